"""Consumer groups of a real cluster in ZooKeeper mode, with real old clients and new ones, as the scan sees them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import by_hand
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.security import ACL, Id, Permissions
from labs import Lab
from old_consumers import old_consumer

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.groups.fault_kinds import FaultKind
from kraft_runbook.groups.look import Kind, Mode
from kraft_runbook.groups.partitions import Side
from kraft_runbook.groups.report import GroupReport
from kraft_runbook.migration.consumer_groups import groups_that_need_zookeeper
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.procedures.see_groups import look_for_live_groups, scan_groups
from kraft_runbook.runbook.check_results import Verdict

PARTITIONS, RECORDS = 4, 40


@pytest.fixture(scope="module", autouse=True)
def topics(own_lab: Lab) -> None:
    """Two topics with records."""
    client = AdminClient({"bootstrap.servers": ",".join(own_lab.spec.bootstrap_servers)})
    by_hand.answered(client.create_topics([NewTopic(name, PARTITIONS, 3) for name in ("moved", "moved.more")]))
    producer = Producer({"bootstrap.servers": ",".join(own_lab.spec.bootstrap_servers)})
    for name in ("moved", "moved.more"):
        for number in range(RECORDS):
            producer.produce(name, b"x", partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def report_of(lab: Lab, group: str) -> GroupReport:
    (found,) = scan_groups(lab.spec, secrets=lab.secrets, names=[group]).groups
    return found


def await_group(lab: Lab, group: str, done: Callable[[GroupReport], bool]) -> GroupReport:
    last: list[GroupReport] = []

    def shown() -> bool:
        last[:] = scan_groups(lab.spec, secrets=lab.secrets, names=[group]).groups
        return bool(last) and done(last[0])

    by_hand.wait_until(f"group {group}", shown, within=60)
    return last[0]


@contextmanager
def new_consumer(lab: Lab, group: str, name: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(lab.spec.bootstrap_servers),
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["moved"])
        by_hand.wait_until(f"{name} owns partitions", lambda: bool(consumer.poll(1) and consumer.assignment()))
        yield consumer
    finally:
        consumer.close()


def test_real_clients_are_told_apart(own_lab: Lab, zookeeper: KazooClient, tmp_path: Path) -> None:
    """Two old members; a pattern that its client escapes; a new one beside an old one; what is left of each."""
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(old_consumer(own_lab.spec, "old", tmp_path, topics="moved"))
        stack.enter_context(old_consumer(own_lab.spec, "escaped", tmp_path, pattern=r"moved\..*"))
        stack.enter_context(old_consumer(own_lab.spec, "to-kafka", tmp_path, topics="moved", settings=TO_KAFKA))
        old = await_group(
            own_lab,
            "old",
            lambda g: (
                len({row.zookeeper_owner for row in g.partitions}) == 2
                and [row.lag for row in g.partitions] == [0] * PARTITIONS
            ),
        )
        assert (old.group_class, old.mode, old.follows) == (GroupClass.ALL_OLD, Mode.ABSENT, Side.ZOOKEEPER)
        assert len(old.members[Kind.OLD]) == 2 and old.needs_zookeeper
        assert {row.zookeeper_owner for row in old.partitions} == {f"{m}-0" for m in old.members[Kind.OLD]}
        assert {(row.zookeeper_offset, row.kafka_offset) for row in old.partitions} == {(RECORDS // PARTITIONS, None)}
        assert old.last_write is not None and (old.refused, old.faults) == ((), ())

        escaped = await_group(own_lab, "escaped", lambda g: bool(g.members[Kind.OLD]))
        to_kafka = await_group(own_lab, "to-kafka", lambda g: any(row.kafka_offset for row in g.partitions))
        seen = observe(own_lab.spec, secrets=own_lab.secrets, scope=Scope.FULL).consumer_groups
        assert was_read(seen) and seen.live.count == 3, seen
        assert set(seen.live.names) == {"old (ALL_OLD)", "escaped (ALL_OLD)", "to-kafka (ALL_OLD)"}
        again = groups_that_need_zookeeper(look_for_live_groups(own_lab.spec, secrets=own_lab.secrets), own_lab.spec)
        assert (
            again.verdict is Verdict.FAIL
            and "3: escaped (ALL_OLD), old (ALL_OLD), to-kafka (ALL_OLD)" in again.evidence
        )

        assert [fault.kind for fault in escaped.faults] == [FaultKind.ESCAPED_TWICE, FaultKind.WITHOUT_OFFSET]
        assert escaped.faults[1].count == PARTITIONS, "those of moved.more, which the pattern was to fit"
        assert "[.]" in escaped.refused[0]

        assert FaultKind.KAFKA_AHEAD in {fault.kind for fault in to_kafka.faults}

        with new_consumer(own_lab, "old", "canary"):
            both = await_group(own_lab, "old", lambda g: g.group_class is not GroupClass.UNKNOWN)
            assert both.group_class is GroupClass.CONTRADICTORY
            assert (both.follows, both.lag) == (None, None)
            assert "canary" in both.refused[0]
            assert {row.kafka_owner for row in both.partitions} == {"canary"}
    left = await_group(own_lab, "old", lambda g: not g.needs_zookeeper)
    assert (left.group_class, left.lag) == (GroupClass.OFFSETS_ONLY, 0)
    with new_consumer(own_lab, "old", "alone") as consumer:
        consumer.commit(offsets=[TopicPartition("moved", 0, 3)], asynchronous=False)
        alone = await_group(own_lab, "old", lambda g: g.group_class is not GroupClass.UNKNOWN)
        assert (alone.group_class, alone.follows) == (GroupClass.ALL_NEW, Side.KAFKA)
        assert alone.partitions[0].lag == RECORDS // PARTITIONS - 3
        assert alone.partitions[0].zookeeper_offset == RECORDS // PARTITIONS
    zookeeper.create("/consumers/old/owners/moved/0", b"fence")
    fenced = await_group(own_lab, "old", lambda g: g.group_class is not GroupClass.UNKNOWN)
    assert fenced.group_class is GroupClass.FENCED


TO_KAFKA = {"offsets.storage": "kafka", "dual.commit.enabled": "false"}


def test_znodes_that_nobody_may_read_or_that_hold_nonsense_spoil_one_group(
    own_lab: Lab, zookeeper: KazooClient
) -> None:
    zookeeper.create("/consumers/strange/offsets/moved/0", b"{}", makepath=True)
    zookeeper.create("/consumers/strange/offsets/moved/00", b"1")
    zookeeper.create("/consumers/strange/offsets/gone/0", b"5", makepath=True)
    zookeeper.create("/consumers/closed/ids/x", b"", makepath=True)
    other = ACL(Permissions.ALL, Id("digest", "other:Zm9vYmFyYmF6"))
    zookeeper.create("/consumers/closed/offsets/moved/0", b"5", makepath=True)
    zookeeper.set_acls("/consumers/closed/offsets/moved/0", [other])
    strange, closed = report_of(own_lab, "strange"), report_of(own_lab, "closed")
    assert strange.group_class is GroupClass.OFFSETS_ONLY
    (fault,) = [each for each in strange.faults if each.kind is FaultKind.OFFSET_UNUSABLE]
    assert fault.where == (
        "offsets/moved/00 names no partition",
        "gone-0: there is no such partition",
        "moved-0: no number",
    )
    assert closed.group_class is GroupClass.UNKNOWN and "NoAuth" in closed.why
    whole = {each.name: each for each in scan_groups(own_lab.spec, secrets=own_lab.secrets).groups}
    assert replace(whole["strange"], why=strange.why) == strange  # why says how many seconds ago it wrote
    assert whole["closed"].group_class is GroupClass.UNKNOWN
    assert not [name for name in zookeeper.get_children("/") if name.startswith("kraft_runbook_clock")]
    assert json.dumps(sorted(whole))
