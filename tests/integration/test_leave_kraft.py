"""Leaving KRaft on a real quorum: the fence is lifted where anything can't be proven, and what was acknowledged is in
ZooKeeper where it is not.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import by_hand
import pytest
from by_hand import answered
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic
from confluent_kafka.admin import AlterConfigOpType as Op
from fault_proxy import Proxy
from kazoo.client import KazooClient
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions, make_acl
from labs import Lab

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import ControllerZnode, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed, TimedOut
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.kafka.leader_elections import elect_preferred_leaders
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.local import supervision
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.controller_threads import cut_off
from kraft_runbook.migration.leaving import Departure, FencePlan, fence_plan
from kraft_runbook.migration.never_copied import why_not_proven
from kraft_runbook.migration.resumed_departure import departure_in
from kraft_runbook.parity.comparison import Comparison
from kraft_runbook.parity.final_proof import FinalProof, LastLook
from kraft_runbook.procedures import give_back
from kraft_runbook.procedures import leave_kraft as departure
from kraft_runbook.procedures.give_back import settle_in_zookeeper
from kraft_runbook.procedures.leave_kraft import leave_kraft
from kraft_runbook.procedures.look_at_nodes import accepts
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.quorum_fence import QuorumFence
from kraft_runbook.procedures.quorum_logs import read_logs
from lab.layout import layout, starts, zookeeper_servers

BURST = [f"burst-{n}" for n in range(300)]
BEHIND = (("orders", 1), ("orders", 2))
"""Partitions whose state znode is created again, the second one after the check of all. Their versions are lower than
their epochs.
"""
AHEAD = ("orders", 3)
"""One whose version lies ahead, as it does after an election among controllers of brokers in KRaft mode."""
LED_BY_ANOTHER = ("orders", 4)
"""One whose first replica does not lead it, so that an election can be seen."""
EPOCH = 60_000
"""A controller epoch in the states that no /controller_epoch comes near by itself: more than one above it, and a
ZooKeeper controller elects no leader there.
"""


@pytest.fixture(scope="module")
def own_lab(dual_write: Lab) -> Lab:
    return dual_write


def leave(
    lab: Lab, zookeeper: KazooClient, *, just_before=None, plan: FencePlan | None = None, tell=print
) -> Departure:
    since = json.loads(zookeeper.get("/migration")[0])["kraft_metadata_offset"]
    plan = plan or fence_plan(observe(lab.spec, secrets=lab.secrets))
    with by_hand.just_before_the_fence(just_before or (lambda: None)):
        return leave_kraft(lab.spec, plan, proven_since=since, secrets=lab.secrets, tell=tell)


def create(lab: Lab, topics: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
    answered(admin.create_topics([NewTopic(name, 3, 3) for name in topics]))


def dual_write_goes_on(lab: Lab) -> None:
    by_hand.wait_until(
        "all controllers are back",
        lambda: len(describe_quorum(lab.spec, secrets=lab.secrets).voters) == len(lab.spec.controllers),
    )
    by_hand.await_dual_write(lab.spec, secrets=lab.secrets)


def test_the_threads_of_every_broker_in_migration_mode_are_seen_on_its_host(dual_write: Lab) -> None:
    hosts = gather_host_facts(dual_write.spec)
    assert {i: len(hosts[i].controller_threads) for i in (*dual_write.spec.broker_ids, 101)} == {
        1: 4,
        2: 4,
        3: 4,
        101: 0,
    }
    assert cut_off(observe(dual_write.spec, secrets=dual_write.secrets), hosts) == {}


def test_a_controller_whose_file_lost_the_flag_is_named_before_any_is_stopped(
    dual_write: Lab, zookeeper: KazooClient
) -> None:
    """Lifting the fence starts controllers: one without the flag would finalize the migration as soon as it led."""
    controller = dual_write.spec.controllers[1]
    file = Path(controller.config_file)
    kept, changed = file.read_text(), file.stat().st_mtime_ns
    before = starts(dual_write.spec)
    file.write_text("\n".join(line for line in kept.splitlines() if "migration.enable" not in line))
    try:
        with pytest.raises(StepFailed, match=f"controller {controller.id} would not start in migration mode") as failed:
            leave(dual_write, zookeeper)
    finally:
        file.write_text(kept)
        os.utime(file, ns=(changed, changed))
    assert "could not be lifted" not in failed.value.problem
    assert all(accepts(c.host, c.port) is True for c in dual_write.spec.controllers)
    assert starts(dual_write.spec) == before


def test_what_fails_before_the_fence_stops_no_controller(dual_write: Lab, zookeeper: KazooClient) -> None:
    def fail() -> None:
        raise StepFailed("something else", way_out="")

    before = starts(dual_write.spec)
    with pytest.raises(StepFailed, match="something else"):
        leave(dual_write, zookeeper, just_before=fail)
    assert starts(dual_write.spec) == before
    assert all(accepts(c.host, c.port) is True for c in dual_write.spec.controllers)


def test_without_the_right_to_delete_no_controller_is_stopped(dual_write: Lab, zookeeper: KazooClient) -> None:
    before = starts(dual_write.spec)
    acls, _ = zookeeper.get_acls("/")
    zookeeper.set_acls("/", [ACL(Permissions.ALL & ~Permissions.DELETE, Id("world", "anyone"))])
    try:
        with pytest.raises(
            Refused, match=r"NoAuth: no DELETE on their parent, whose ACL is world:anyone=crwa\); nothing was stopped"
        ):
            leave(dual_write, zookeeper)
    finally:
        zookeeper.set_acls("/", acls)
    assert starts(dual_write.spec) == before
    assert all(accepts(c.host, c.port) is True for c in dual_write.spec.controllers)


@pytest.mark.long
def test_where_the_right_is_taken_away_meanwhile_every_controller_is_started_again(
    dual_write: Lab, zookeeper: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departure, "require_deletable", lambda reader: None)
    before = starts(dual_write.spec)
    acls, _ = zookeeper.get_acls("/")
    try:
        with pytest.raises(StepFailed, match="could not be changed \\(NoAuth\\), so nothing was") as failed:
            leave(
                dual_write,
                zookeeper,
                just_before=lambda: zookeeper.set_acls(
                    "/", [ACL(Permissions.ALL & ~Permissions.DELETE, Id("world", "anyone"))]
                ),
            )
    finally:
        zookeeper.set_acls("/", acls)
    assert "could not be lifted" not in str(failed.value)
    dual_write_goes_on(dual_write)
    after = starts(dual_write.spec)
    assert [after[c.service] - before[c.service] for c in dual_write.spec.controllers] == [1, 1, 1]


@pytest.mark.long
def test_a_controller_that_cannot_be_stopped_lifts_the_fence(
    dual_write: Lab, zookeeper: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock can't be taken: what stands at the lock file's place is a directory, until the failure is known."""
    plan = fence_plan(observe(dual_write.spec, secrets=dual_write.secrets))
    other, stuck = (dual_write.spec.controller(each) for each in plan.fenced)
    lock = Path(stuck.config_file).with_name(f".{Path(stuck.config_file).name}.lock")
    hear = QuorumFence._hear_of_failure

    def mend_and_hear(self: QuorumFence, host: str, message: str) -> None:
        if lock.is_dir():
            lock.rmdir()
        hear(self, host, message)

    monkeypatch.setattr(QuorumFence, "_hear_of_failure", mend_and_hear)
    before = starts(dual_write.spec)

    def take_the_lock() -> None:
        lock.unlink(missing_ok=True)
        lock.mkdir()

    with pytest.raises(StepFailed, match=f"controller {stuck.id} could not be stopped") as failed:
        leave(dual_write, zookeeper, plan=plan, just_before=take_the_lock)
    assert "could not be lifted" not in str(failed.value)
    dual_write_goes_on(dual_write)
    after = starts(dual_write.spec)
    assert [after[c.service] - before[c.service] for c in (other, stuck)] == [1, 0]


@pytest.mark.long
def test_an_active_controller_that_resigns_during_the_proof_lifts_the_fence_at_once(
    dual_write: Lab, zookeeper: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def never_ends(self: FinalProof, reader: object) -> LastLook:
        over.wait(300)
        return LastLook(0, Comparison(Counter()))

    monkeypatch.setattr(FinalProof, "compare", never_ends)
    with pytest.raises(StepFailed, match="does not lead the quorum any more") as failed:
        leave(dual_write, zookeeper)
    over.set()
    assert "the fence is lifted" in failed.value.way_out
    dual_write_goes_on(dual_write)


@pytest.mark.long
def test_where_this_tool_loses_zookeeper_inside_the_fence_every_controller_is_started_again(
    dual_write: Lab, zookeeper: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network between this process alone and ZooKeeper falls silent, before the offset is read."""
    (server,) = zookeeper_servers(dual_write.spec)
    address = (f"{dual_write.network}.2", server.port)
    proxy = Proxy({address: (server.host, server.port)})
    reader = departure.ZookeeperReader
    via = {"servers": ("{}:{}".format(*address),)}
    monkeypatch.setattr(departure, "ZookeeperReader", lambda asked, **how: reader(asked.model_copy(update=via), **how))
    before, held = starts(dual_write.spec), json.loads(zookeeper.get("/controller")[0])
    try:
        with pytest.raises(
            StepFailed, match=r"the drain could not be proven: ZooKeeper at .* could not be read"
        ) as failed:
            leave(dual_write, zookeeper, just_before=lambda: proxy.cut([os.getpid()]))
    finally:
        proxy.close()
    assert "the fence is lifted" in failed.value.way_out and "could not be lifted" not in str(failed.value)
    dual_write_goes_on(dual_write)  # a controller leads that may be another one
    znodes = json.loads(zookeeper.get("/controller")[0])
    assert znodes["kraftControllerEpoch"] >= held["kraftControllerEpoch"] >= 0
    after = starts(dual_write.spec)
    assert sum(after[c.service] - before[c.service] for c in dual_write.spec.controllers) == 2


def test_a_state_znode_that_lies_behind_and_may_not_be_written_is_named_before_any_controller_is_stopped(
    dual_write: Lab, zookeeper: KazooClient
) -> None:
    path = "/brokers/topics/orders/partitions/0/state"
    by_hand.make_state_anew(zookeeper, "orders", 0)
    zookeeper.set_acls(path, [make_acl("world", "anyone", read=True, admin=True)])
    before = starts(dual_write.spec)
    try:
        with pytest.raises(StepFailed, match=rf"{path} \(NoAuth: no WRITE\)") as failed:
            leave(dual_write, zookeeper)
    finally:
        zookeeper.set_acls(path, OPEN_ACL_UNSAFE)
    assert "zookeeper.security" in failed.value.way_out
    assert starts(dual_write.spec) == before


def test_a_touched_key_that_differs_in_zookeeper_lifts_the_fence(dual_write: Lab, zookeeper: KazooClient) -> None:
    admin = AdminClient({"bootstrap.servers": ",".join(dual_write.spec.bootstrap_servers)})

    def touch_and_plant() -> None:
        entry = ConfigEntry("retention.ms", "777000", incremental_operation=Op.SET)
        answered(
            admin.incremental_alter_configs(
                [ConfigResource(ConfigResource.Type.TOPIC, "customers", incremental_configs=[entry])]
            )
        )
        by_hand.wait_until(
            "the change reaches ZooKeeper", lambda: b"777000" in zookeeper.get("/config/topics/customers")[0]
        )
        zookeeper.set(
            "/config/topics/customers", zookeeper.get("/config/topics/customers")[0].replace(b"777000", b"666000")
        )

    before = zookeeper.get("/controller")[0]
    with pytest.raises(StepFailed, match="keys changed since the full parity") as failed:
        leave(dual_write, zookeeper, just_before=touch_and_plant)
    assert "retention.ms" in str(failed.value)
    assert zookeeper.get("/controller")[0] == before
    assert zookeeper.exists("/migration")
    dual_write_goes_on(dual_write)
    zookeeper.set(
        "/config/topics/customers", zookeeper.get("/config/topics/customers")[0].replace(b"666000", b"777000")
    )


def test_what_is_not_drained_in_time_lifts_the_fence(
    dual_write: Lab, zookeeper: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real drain is too quick to be caught behind: the offset is read as one that lags by a record. The next test
    goes on from the topics that are made here.
    """
    read = departure._offset
    monkeypatch.setattr(departure, "_offset", lambda reader: (read(reader) or 0) - 1)
    before = starts(dual_write.spec)
    with pytest.raises(StepFailed, match="was not written up to offset") as failed:
        leave(dual_write, zookeeper, just_before=lambda: create(dual_write, BURST[:150]))
    assert "the fence is lifted" in failed.value.way_out
    dual_write_goes_on(dual_write)
    after = starts(dual_write.spec)
    active = describe_quorum(dual_write.spec, secrets=dual_write.secrets)
    assert active.high_watermark > 0
    assert sum(after[c.service] - before[c.service] for c in dual_write.spec.controllers) == 2


def test_right_after_a_burst_every_acknowledged_topic_and_state_is_in_zookeeper(
    dual_write: Lab, zookeeper: KazooClient
) -> None:
    zookeeper.create("/admin/reassign_partitions", b'{"version":1,"partitions":[]}')
    for topic, partition in BEHIND:
        by_hand.change_leader(dual_write.spec, topic, partition, replicas_of(zookeeper, topic, partition)[::-1])
    by_hand.await_dual_write(dual_write.spec, secrets=dual_write.secrets)
    assert by_hand.make_state_anew(zookeeper, *BEHIND[0]) > 0

    def create_and_fall_behind_once_all_was_looked_at() -> None:
        by_hand.make_state_anew(zookeeper, *BEHIND[1])
        by_hand.change_leader(dual_write.spec, *BEHIND[1], replicas_of(zookeeper, *BEHIND[1])[::-1])
        create(dual_write, BURST[150:])

    state = "/brokers/topics/{}/partitions/{}/state".format(*AHEAD)
    for _ in range(5):
        zookeeper.set(state, zookeeper.get(state)[0])
    let_another_lead(dual_write, zookeeper)
    claimed = int(zookeeper.get("/controller_epoch")[0])
    write_epoch(zookeeper, "orders", EPOCH)
    now = fence_plan(observe(dual_write.spec, secrets=dual_write.secrets))
    stale = now.led_by(now.fenced[0])  # as if another had been elected since the plan was made
    told: list[str] = []
    left = leave(
        dual_write, zookeeper, plan=stale, tell=told.append, just_before=create_and_fall_behind_once_all_was_looked_at
    )
    assert (
        f"controller {now.active} was elected before the fence; nothing was stopped; beginning again around it" in told
    )
    ours = [f"{topic}-{partition}" for topic, partition in BEHIND]
    # A burst or a start may leave others behind as well, or one of these before it is made anew: the last time counts.
    last = list(dict.fromkeys(each.split(" ")[0] for each in reversed(left.raised)))[::-1]
    assert [name for name in last if name in ours] == ours
    assert left.migration_offset == (left.high_watermark or 0) - 1
    assert (left.touched_keys or 0) >= 150
    assert set(left.deleted) == {"/controller", "/migration", "/admin/reassign_partitions"}
    assert left.window_seconds is not None
    states = [f"/brokers/topics/{name}/partitions/{number}/state" for name in BURST for number in range(3)]
    assert [path for path in states if not zookeeper.exists(path)] == []
    assert json.loads(zookeeper.get("/controller")[0])["kraftControllerEpoch"] == -1
    assert not zookeeper.exists("/migration")
    assert (left.controller_epoch, left.epoch_set) == (claimed, EPOCH)
    assert int(zookeeper.get("/controller_epoch")[0]) == EPOCH + 1
    assert_it_was_elected(zookeeper, left, EPOCH + 1)
    by_hand.change_leader(dual_write.spec, *AHEAD, replicas_of(zookeeper, *AHEAD)[::-1])


def test_the_logs_of_the_stopped_controllers_hold_the_end_of_the_copy(dual_write: Lab) -> None:
    """Kafka's own bytes, read on the host: what would speak against a claim that the copy was never committed."""
    logs = read_logs(dual_write.spec, stop=True, secrets=environment_secrets(), tell=print)
    assert [log.states for log in logs] == [frozenset({1, 2})] * 3
    assert all(log.end > 100 and log.open_since is None for log in logs)
    assert (
        why_not_proven(logs, dual_write.spec.controller_ids)
        == "the log of controllers 101, 102, 103 holds the end of the copy"
    )


def test_a_partition_whose_state_znode_was_made_anew_takes_records_after_a_follower_has_restarted(
    dual_write: Lab, zookeeper: KazooClient
) -> None:
    """Left behind, its leader would skip all that the ZooKeeper controller says, and its restarted follower's fetches
    with it.
    """
    spec = dual_write.spec
    leaders = {
        json.loads(zookeeper.get(f"/brokers/topics/{topic}/partitions/{partition}/state")[0])["leader"]
        for topic, partition in BEHIND
    }
    follower = next(b for b in spec.brokers if b.id not in leaders)
    before = zookeeper.exists(f"/brokers/ids/{follower.id}").czxid
    by_hand.restart(follower, spec)

    def in_every_isr_again() -> bool:
        here = zookeeper.exists(f"/brokers/ids/{follower.id}")
        states = [
            json.loads(zookeeper.get(f"/brokers/topics/{topic}/partitions/{partition}/state")[0])
            for topic, partition in BEHIND
        ]
        return here is not None and here.czxid > before and all(follower.id in state["isr"] for state in states)

    def what_brokers_say() -> str:
        ends = [f"{b.service} ends:\n{supervision.log_tail(layout(spec), b.service, lines=30)}" for b in spec.brokers]
        shown = [state_of(zookeeper, *each) for each in BEHIND], zookeeper.get("/controller")[0]
        return "\n".join((f"{shown}, broker {follower.id}: {zookeeper.exists(f'/brokers/ids/{follower.id}')}", *ends))

    by_hand.wait_until(f"broker {follower.id} is in sync", in_every_isr_again, shows=what_brokers_say)
    partitions = (*BEHIND, AHEAD)
    assert {each: by_hand.produced(spec, *each) for each in partitions} == dict.fromkeys(partitions, "")


def test_a_cluster_that_left_by_hand_is_settled_and_a_killed_broker_loses_its_leaders_and_its_place_in_the_isr(
    dual_write: Lab, zookeeper: KazooClient, tmp_path: Path
) -> None:
    """As Kafka's documented order leaves it: a ZooKeeper controller leads, and the states hold greater epochs than
    its own. The process that mends that is killed when ZooKeeper has done it, before it can put that on record.
    """
    spec = dual_write.spec
    write_epoch(zookeeper, "orders", 2 * EPOCH)
    told: list[str] = []
    begun = noted_by_one_that_was_killed_at_the_deletion(dual_write, tmp_path / "noted")
    settled = settle_in_zookeeper(spec, secrets=dual_write.secrets, tell=told.append, known_within=60, begun=begun)
    assert (settled.epoch_set, settled.deleted) == (2 * EPOCH, ("/controller",)), told
    created = datetime.fromtimestamp(zookeeper.exists("/controller").ctime / 1000, UTC)
    assert (settled.elected_at, settled.by_zookeepers_clock) == (created, ("elected_at",))
    assert (settled.began_at, settled.deleted_at) == (begun.began_at, None)
    assert int(zookeeper.get("/controller_epoch")[0]) == 2 * EPOCH + 1
    again = settle_in_zookeeper(spec, secrets=dual_write.secrets, tell=told.append, known_within=60)
    assert (again.epoch_set, again.deleted) == (None, ())
    assert int(zookeeper.get("/controller_epoch")[0]) == 2 * EPOCH + 1  # nobody was elected for it
    again = settled_after_the_epoch_was_set_alone(dual_write, zookeeper, 3 * EPOCH)
    dead = one_that_leads_beside(dual_write, zookeeper, again.controller)
    os.kill(supervision.processes(layout(spec))[spec.broker(dead).service].pid, signal.SIGKILL)
    zookeeper.delete(f"/brokers/ids/{dead}")  # as ZooKeeper does once its session has ended, 18 s later
    by_hand.wait_until(
        f"the leaders of broker {dead} have moved",
        lambda: all(
            state["leader"] not in (-1, dead) and dead not in state["isr"] for state in states_of(zookeeper, "orders")
        ),
        within=60,
    )


def noted_by_one_that_was_killed_at_the_deletion(lab: Lab, noted: Path) -> Departure:
    """A process of its own settles; SIGKILL ends it right after ZooKeeper's answer. What it had noted by then."""
    one = multiprocessing.get_context("spawn").Process(target=settle_and_die, args=(lab.spec, lab.environment, noted))
    one.start()
    one.join(120)
    assert one.exitcode == -signal.SIGKILL
    found = departure_in(json.loads(noted.read_text()))
    assert found is not None and found.deleted_at is None
    return found


def settle_and_die(spec: ClusterSpec, environment: dict[str, str], noted: Path) -> None:
    delete = give_back.delete_controller_znodes

    def delete_and_die(*given: Any, **also: Any) -> None:
        delete(*given, **also)
        os.kill(os.getpid(), signal.SIGKILL)

    give_back.delete_controller_znodes = delete_and_die  # type: ignore[assignment]
    settle_in_zookeeper(
        spec,
        secrets=environment_secrets(environment),
        tell=print,
        known_within=60,
        departing=lambda moments: noted.write_text(json.dumps(moments.to_dict())),
    )


def let_another_lead(lab: Lab, zookeeper: KazooClient) -> None:
    """Turn round the replicas of a partition; its leader stays. Not before a new controller's own first look is over,
    5 s after its election (auto.leader.rebalance.enable): that one would elect.
    """
    topic, partition = LED_BY_ANOTHER
    elected = zookeeper.exists("/controller").ctime / 1000
    by_hand.wait_until("the controller has looked for preferred leaders", lambda: time.time() - elected > 15)
    by_hand.wait_until(  # whoever is not in the ISR is no leader that could be elected
        "every replica is in sync",
        lambda: set(state_of(zookeeper, *LED_BY_ANOTHER)["isr"]) == set(replicas_of(zookeeper, topic, partition)),
    )
    leader = state_of(zookeeper, *LED_BY_ANOTHER)["leader"]
    others = [each for each in replicas_of(zookeeper, topic, partition) if each != leader]
    by_hand.reorder(lab.spec, topic, partition, [*others, leader])
    by_hand.wait_until(
        "ZooKeeper holds the other order", lambda: replicas_of(zookeeper, topic, partition) == [*others, leader]
    )


def assert_it_was_elected(zookeeper: KazooClient, left: Departure, epoch: int) -> None:
    """The partition that is said to have got its leader has it, by a write of the new controller's own."""
    said = re.match(r"(\S+)-(\d+) was given its first replica, broker (\d+), as leader", left.election)
    assert said, left.election
    topic, partition = said[1], int(said[2])
    data, stat = zookeeper.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
    state = json.loads(data)
    assert state["leader"] == int(said[3]) == replicas_of(zookeeper, topic, partition)[0]
    assert state["controller_epoch"] == epoch
    assert stat.mzxid > zookeeper.exists("/controller").czxid


def settled_after_the_epoch_was_set_alone(lab: Lab, zookeeper: KazooClient, epoch: int) -> Departure:
    """By hand, as a cure that was begun and not ended: the controller elects no leader, until it is settled."""

    def holder() -> ControllerZnode:
        seen = observe(lab.spec, secrets=lab.secrets).zookeeper
        assert was_read(seen) and seen.controller is not None
        return seen.controller

    assert not holder().epoch_set_after
    let_another_lead(lab, zookeeper)
    zookeeper.set("/controller_epoch", b"%d" % epoch)
    assert holder().epoch_set_after
    before = state_of(zookeeper, *LED_BY_ANOTHER)
    with pytest.raises(TimedOut):  # its answer never comes
        elect_preferred_leaders(lab.spec, [TopicPartition(*LED_BY_ANOTHER)], secrets=lab.secrets, timeout=5)
    assert state_of(zookeeper, *LED_BY_ANOTHER) == before
    told: list[str] = []
    healed = settle_in_zookeeper(lab.spec, secrets=lab.secrets, tell=told.append, known_within=60)
    assert (healed.epoch_set, healed.deleted) == (None, ("/controller",)), told
    assert_it_was_elected(zookeeper, healed, epoch + 1)
    assert not holder().epoch_set_after
    return healed


def one_that_leads_beside(lab: Lab, zookeeper: KazooClient, controller: int | None) -> int:
    """A broker that leads a partition of orders and isn't this one. After other brokers' restarts one may lead all."""
    leaders = {state["leader"] for state in states_of(zookeeper, "orders")} - {controller}
    if leaders:
        return int(min(leaders))
    replicas = replicas_of(zookeeper, *LED_BY_ANOTHER)
    by_hand.change_leader(lab.spec, *LED_BY_ANOTHER, sorted(replicas, key=lambda each: each == controller))
    return int(state_of(zookeeper, *LED_BY_ANOTHER)["leader"])


def state_of(zookeeper: KazooClient, topic: str, partition: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zookeeper.get(f"/brokers/topics/{topic}/partitions/{partition}/state")[0])
    return found


def states_of(zookeeper: KazooClient, topic: str) -> list[dict[str, Any]]:
    above = f"/brokers/topics/{topic}/partitions"
    return [json.loads(zookeeper.get(f"{above}/{each}/state")[0]) for each in zookeeper.get_children(above)]


def write_epoch(zookeeper: KazooClient, topic: str, epoch: int) -> None:
    """Give every state of a topic this controller epoch."""
    above = f"/brokers/topics/{topic}/partitions"
    for each in zookeeper.get_children(above):
        data, stat = zookeeper.get(f"{above}/{each}/state")
        state = json.dumps(json.loads(data) | {"controller_epoch": epoch}, separators=(",", ":"))
        zookeeper.set(f"{above}/{each}/state", state.encode(), stat.version)


def replicas_of(zookeeper: KazooClient, topic: str, partition: int) -> list[int]:
    return list(json.loads(zookeeper.get(f"/brokers/topics/{topic}")[0])["partitions"][str(partition)])
