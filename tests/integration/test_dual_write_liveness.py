"""Dual write can die while every metric looks healthy. It is found, named, and its cure works."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import by_hand
from churn import churning
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from labs import Lab
from watched import Watched, watching

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ZkMigrationState, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.migration import conditions
from kraft_runbook.migration.checks.catalogue import CHECKS, SOAK
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.eligibility import zookeeper_write_ms
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.runbook.check_results import CheckResult, Verdict
from kraft_runbook.runbook.checklist import Needs

TOPIC = "without-state"
PARTITIONS = 12
LOST = range(4)


def state_of(partition: int) -> str:
    return f"/brokers/topics/{TOPIC}/partitions/{partition}/state"


def liveness(lab: Lab) -> CheckResult:
    earlier = observe(lab.spec, secrets=lab.secrets)
    time.sleep(3)
    return dual_write_liveness(earlier, observe(lab.spec, secrets=lab.secrets))


def until(verdict: Verdict, look: Callable[[], CheckResult], *, within: float) -> CheckResult:
    ends = time.monotonic() + within
    while (found := look()).verdict is not verdict:
        assert time.monotonic() < ends, f"not {verdict} within {within:.0f} s but {found.verdict}: {found.evidence}"
    return found


def brokers_follow_the_metadata_log(lab: Lab, in_kraft: int) -> None:
    """As its leader shows it of all, also of those in migration mode, and the gauges of the one in KRaft mode."""
    first, later = (observe(lab.spec, secrets=lab.secrets) for _ in range(2))
    assert was_read(later.quorum)
    assert {each.id for each in later.quorum.observers} == {*lab.spec.broker_ids}
    followed = CHECKS["KRB-GATE-014"].run(later, lab.spec, first)
    assert followed.verdict is Verdict.PASS, followed.evidence
    errors = {b.id: b.metrics.metadata_errors for b in later.brokers.values() if was_read(b.metrics)}
    assert errors == {**dict.fromkeys(lab.spec.broker_ids), in_kraft: 0}


def test_a_partition_without_its_state_znode_stops_dual_write_and_is_found_named_and_cured(
    own_lab: Lab, zookeeper: KazooClient
) -> None:
    spec, secrets = own_lab.spec, own_lab.secrets
    admin = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
    admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS, replica_assignment=[[1]] * PARTITIONS)])[
        TOPIC
    ].result()
    with watching(own_lab) as start:
        by_hand.to_dual_write(spec, secrets=secrets)
    nothing_is_refused_while_controllers_and_brokers_start(start)
    assert until(Verdict.PASS, lambda: liveness(own_lab), within=300)
    for partition in LOST:
        zookeeper.delete(state_of(partition))

    preflight = CHECKS["KRB-PRE-014"].run(observe(spec, secrets=secrets, scope=Scope.FULL), spec)
    assert preflight.verdict is Verdict.FAIL
    assert f"{TOPIC}-0" in preflight.evidence

    # The partitions' only leader goes and comes: their state has to be written.
    by_hand.roll_brokers(spec.model_copy(update={"brokers": spec.brokers[:1]}), BrokerMode.KRAFT, secrets=secrets)
    brokers_follow_the_metadata_log(own_lab, in_kraft=1)
    found = until(Verdict.FAIL, lambda: liveness(own_lab), within=300)
    assert "ZooKeeper is no longer written" in found.evidence
    assert "state" in found.fix
    seen = observe(spec, secrets=secrets)
    assert {c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)} == {
        ZkMigrationState.MIGRATION
    }, "the metrics look healthy"

    for partition in LOST:
        zookeeper.create(
            state_of(partition),
            json.dumps({"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]}).encode(),
        )
    by_hand.restart(spec.controller(describe_quorum(spec, secrets=secrets).leader_id), spec)
    assert until(Verdict.PASS, lambda: liveness(own_lab), within=300)
    # The two others wrote ZooKeeper on; what is refused while this one still starts is refused rightly.
    by_hand.wait_until("the controller is back", lambda: is_back(own_lab))
    gates_and_conditions_hold_while_topics_come_and_go(own_lab)
    a_topic_that_zookeeper_lacks_is_found_while_topics_come_and_go(own_lab, zookeeper)


def nothing_is_refused_while_controllers_and_brokers_start(start: Watched) -> None:
    """A controller shows state 0 before the quorum's first records are committed; brokers come and go. None of it may
    stop a step.
    """
    assert start.refused() == []
    assert {ZkMigrationState.NOT_PUBLISHED, ZkMigrationState.PRE_MIGRATION} <= start.states(), (
        "the looks were fast enough to see controllers start"
    )
    assert start.phases() == [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID]


def is_back(lab: Lab) -> bool:
    """Whether every controller is a voter that has caught up, and shows its state of the migration."""
    seen = observe(lab.spec, secrets=lab.secrets)
    shown = [c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)]
    whole = conditions.QUORUM_WHOLE.progress(seen, lab.spec).done
    return whole and shown == [ZkMigrationState.MIGRATION] * len(lab.spec.controllers)


def judge(lab: Lab, earlier: ClusterObservation, seen: ClusterObservation) -> dict[str, str]:
    """What blocks at the gates behind the copy, and what the waits would wait for."""
    phase = detect_phase(seen).phase
    gates = [
        r
        for gate in ("dual_write", SOAK)
        for r in CHECKS.run(seen, lab.spec, phase, gate=gate, earlier=earlier).results
    ]
    found = {r.code: r.evidence for r in gates if r.blocks and CHECKS[r.code].needs is Needs.LIVE}
    waits = [
        (conditions.METADATA_COPIED, None),
        (conditions.QUORUM_WHOLE, None),
        *((conditions.BROKER_IN_SYNC, i) for i in lab.spec.broker_ids),
    ]
    for condition, node_id in waits:
        progress = condition.progress(seen, lab.spec, node_id=node_id, earlier=earlier)
        found |= {} if progress.done else {condition.describe(node_id): progress.waiting_for}
    return found


def look_under_churn(
    lab: Lab, looks: int, *, pause: float = 0.05
) -> Iterator[tuple[ClusterObservation, ClusterObservation]]:
    """Pairs of looks, ``LIVENESS_SECONDS`` apart, while topics, configs, ACLs and quotas change all the time."""
    with churning(lab, pause=pause) as churn:
        before = [observe(lab.spec, secrets=lab.secrets)]
        while looks:
            time.sleep(lab.spec.deadlines.poll)
            seen = observe(lab.spec, secrets=lab.secrets)
            old = [each for each in before if (seen.observed_at - each.observed_at).total_seconds() >= LIVENESS_SECONDS]
            before.append(seen)
            if old:
                looks -= 1
                yield old[-1], seen
    assert churn.changes["topics"] > len(before)


def gates_and_conditions_hold_while_topics_come_and_go(lab: Lab) -> None:
    """Of twelve looks while one controller leads, two at most are refused. One that begins to lead meanwhile, as on a
    machine that is short of time, first compares ZooKeeper with its own metadata: what is refused then is refused
    rightly. So is what ZooKeeper has not written three seconds later, where so much changes that it falls behind. The
    looks are taken again then, with half the changes, as they are where a quarter had no answer.
    """
    for pause in (0.05, 0.1, 0.2, 0.4):
        found, exact, writes, epochs = [], [], [], set()
        for earlier, seen in look_under_churn(lab, 12, pause=pause):
            active = seen.active_controller
            if active is None or not (
                was_read(active.metrics) and was_read(seen.topics_apart) and was_read(seen.quorum)
            ):
                continue  # not churn but a busy machine: no answer in time
            found.append(judge(lab, earlier, seen))
            epochs.add(seen.quorum.leader_epoch)
            writes.append(zookeeper_write_ms(seen))
            exact.append(
                active.metrics.zk_write_behind_lag == 0
                and not seen.topics_apart.only_in_quorum | seen.topics_apart.only_in_zookeeper
            )
        behind = sum("KRB-GATE-003" in each for each in found)
        if len(epochs) == 1 and len(found) >= 9 and behind <= 2:
            break
    told = "\n".join(f"look {n}: {each}" for n, each in enumerate(found, start=1) if each)
    assert len(epochs) == 1 and len(found) >= 9, f"{len(found)} looks of twelve had an answer, {len(epochs)} leaders"
    assert any(writes) and None not in writes, f"99 % of the writes to ZooKeeper took {writes}"
    assert exact.count(False) >= 2, f"what is exact at one look does not hold here: {exact}, {pause} s between changes"
    healthy = lab.spec.deadlines.healthy_in_a_row
    assert any(not any(found[n : n + healthy]) for n in range(len(found) - healthy + 1)), told
    assert sum(map(bool, found)) <= 2, told


def a_topic_that_zookeeper_lacks_is_found_while_topics_come_and_go(lab: Lab, zookeeper: KazooClient) -> None:
    zookeeper.delete(f"/brokers/topics/{TOPIC}", recursive=True)
    found = [judge(lab, earlier, seen) for earlier, seen in look_under_churn(lab, 5)]
    assert all(TOPIC in each.get("KRB-GATE-004", "") for each in found[1:]), found
