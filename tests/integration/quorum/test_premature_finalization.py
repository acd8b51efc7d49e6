"""A controller that loses its migration flag: nothing more is touched, and everything names it; and when it has led,
the alarm and the only way left.
"""

from __future__ import annotations

import time
from pathlib import Path

import by_hand
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from labs import Lab
from played import restart_broker

from kraft_runbook.cluster.node_properties import MIGRATION_FLAG
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, ZkMigrationState, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.metadata_quorum import controller_mode, describe_quorum
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.migration.checks import CHECKS, CheckResult, Verdict
from kraft_runbook.migration.explain import explain
from kraft_runbook.procedures.observe import observe


def check(lab: Lab, code: str, *, with_hosts: bool = False) -> CheckResult:
    return CHECKS[code].run(observe(lab.spec, secrets=lab.secrets, with_hosts=with_hosts), lab.spec)


def unflag(lab: Lab, controller_id: int) -> str:
    """Take the flag out of a controller's file, as a hand would; returns the text that was there."""
    file = Path(lab.spec.controller(controller_id).config_file)
    text = file.read_text()
    file.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith(MIGRATION_FLAG)))
    return text


def test_a_file_changed_by_hand_stops_the_next_restart_before_anything_is_touched(dual_write: Lab) -> None:
    spec, secrets = dual_write.spec, dual_write.secrets
    broker, controller = spec.broker(1), spec.controller(102)
    before = Path(broker.config_file).read_text()
    incarnation = registered(dual_write, 1)
    assert check(dual_write, "KRB-PRE-047", with_hosts=True).passed
    text = unflag(dual_write, 102)

    with pytest.raises(Refused) as refused:
        restart_broker(spec, 1, BrokerMode.KRAFT, secrets=secrets)
    assert (
        f"controller 102 would not start in migration mode: in {controller.config_file} {MIGRATION_FLAG} is missing"
        in refused.value.problem
    )
    assert Path(broker.config_file).read_text() == before
    assert registered(dual_write, 1) == incarnation, "the broker was not restarted"
    found = check(dual_write, "KRB-PRE-047", with_hosts=True)
    assert found.verdict is Verdict.FAIL and found.blocks and controller.config_file in found.evidence
    assert CHECKS["KRB-PRE-048"].run(observe(spec, secrets=secrets), spec).passed, (
        "the process still runs with the flag"
    )

    Path(controller.config_file).write_text(text)
    assert check(dual_write, "KRB-PRE-047", with_hosts=True).passed
    done = restart_broker(spec, 1, BrokerMode.HYBRID, secrets=secrets, check=True)
    assert "Write the configuration" in done.changed  # by_hand wrote another header


def registered(lab: Lab, broker_id: int) -> str:
    seen = observe(lab.spec, secrets=lab.secrets)
    return seen.quorum.registrations[broker_id].incarnation_id  # type: ignore[union-attr]


def test_once_controllers_without_the_flag_led_the_alarm_sounds_and_kraft_mode_is_the_way_left(dual_write: Lab) -> None:
    spec, secrets = dual_write.spec, dual_write.secrets
    first = describe_quorum(spec, secrets=secrets).leader_id
    unflag(dual_write, first)
    by_hand.restart(spec.controller(first), spec)
    by_hand.wait_until(
        "it runs without the flag",
        lambda: controller_mode(spec, spec.controller(first), secrets=secrets) is ControllerMode.KRAFT,
    )
    seen = observe(spec, secrets=secrets)
    assert CHECKS["KRB-PRE-048"].run(seen, spec).evidence == f"controller {first} runs without the migration flag"
    with pytest.raises(Refused, match=f"controller {first} runs without the migration flag"):
        restart_broker(spec, 1, BrokerMode.KRAFT, secrets=secrets)

    seen = finalize_by_elections(dual_write, first)
    assert detect_phase(seen).phase is Phase.FINALIZED
    alarm = CHECKS["KRB-GATE-007"].run(seen, spec)
    assert alarm.blocks and "THE MIGRATION WAS FINALIZED TOO EARLY" in alarm.evidence
    assert all(f"broker {i} is in hybrid mode" in alarm.evidence for i in spec.broker_ids)
    told = explain(seen, spec)
    assert told.forward[0].startswith("restart brokers 1, 2, 3 in KRaft mode") and not told.rollback.possible

    admin = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
    admin.create_topics([NewTopic("after-the-end", num_partitions=1, replication_factor=3)])["after-the-end"].result()
    time.sleep(2)
    with ZookeeperReader(spec.zookeeper, secrets=secrets) as zookeeper:
        assert zookeeper.get("/brokers/topics/after-the-end") is None, (
            "the alarm tells the truth: nothing new reaches ZooKeeper"
        )

    restart_broker(spec, 1, BrokerMode.KRAFT, secrets=secrets, finalized=True)
    by_hand.wait_until(
        "broker 1 registers in KRaft mode", lambda: observe(spec, secrets=secrets).brokers[1].mode is BrokerMode.KRAFT
    )
    after = CHECKS["KRB-GATE-007"].run(observe(spec, secrets=secrets), spec)
    assert "broker 1 is" not in after.evidence and "broker 2 is in hybrid mode" in after.evidence
    putting_the_flag_back_changes_nothing(dual_write)


def putting_the_flag_back_changes_nothing(lab: Lab) -> None:
    """Every controller gets its flag back and is restarted: the migration stays final, and ZooKeeper is not written."""
    spec, secrets = lab.spec, lab.secrets
    with ZookeeperReader(spec.zookeeper, secrets=secrets) as zookeeper:
        before = zookeeper.get("/migration")
        for controller in spec.controllers:
            file = Path(controller.config_file)
            without = [line for line in file.read_text().splitlines() if not line.startswith(MIGRATION_FLAG)]
            file.write_text("\n".join([*without, f"{MIGRATION_FLAG}=true", ""]))
            by_hand.restart(controller, spec)

        def flagged() -> bool:
            return all(controller_mode(spec, c, secrets=secrets) is ControllerMode.MIGRATION for c in spec.controllers)

        by_hand.wait_until("every controller runs with the flag", flagged)
        by_hand.wait_until("they have a leader", lambda: describe_quorum(spec, secrets=secrets).leader_id > 0)
        time.sleep(2)
        seen = observe(spec, secrets=secrets)
        assert was_read(seen.quorum) and seen.quorum.migration_state_record is ZkMigrationState.POST_MIGRATION
        assert detect_phase(seen).phase is Phase.FINALIZED
        assert before is not None and zookeeper.get("/migration") == before


def finalize_by_elections(lab: Lab, first: int) -> ClusterObservation:
    """Restart the leader, which loses its flag too, until one without it is elected."""
    spec, secrets = lab.spec, lab.secrets
    for _ in range(len(spec.controllers)):
        leader = describe_quorum(spec, secrets=secrets).leader_id
        if leader == first:
            break
        unflag(lab, leader)
        by_hand.restart(spec.controller(leader), spec)
        by_hand.wait_until("a leader", lambda: describe_quorum(spec, secrets=secrets).leader_id > 0)
        if detect_phase(observe(spec, secrets=secrets)).phase is Phase.FINALIZED:
            break
    by_hand.wait_until(
        "the migration is final", lambda: detect_phase(observe(spec, secrets=secrets)).phase is Phase.FINALIZED
    )
    return observe(spec, secrets=secrets)
