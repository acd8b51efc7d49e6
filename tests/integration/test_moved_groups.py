"""A group of real old clients moves to Kafka's coordination and back, while records come: none is lost, none is read
twice.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import by_hand
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.protocol.consumer import OffsetDeleteRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kazoo.client import KazooClient
from labs import Lab
from moving_groups import (
    COMMIT_SECONDS,
    GROUP,
    PARTITIONS,
    TOPIC,
    New,
    Old,
    Records,
    begin_at_the_start,
    make_topic,
    owners,
    require_each_once,
)

from kraft_runbook.errors import Refused
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.move_plan import MovePlan, plan_move
from kraft_runbook.groups.partitions import partitions_of
from kraft_runbook.groups.planned_offsets import Direction, Origin
from kraft_runbook.io.kafka.connection import connect_to
from kraft_runbook.io.kafka.group_commits import commit_offsets
from kraft_runbook.procedures.move_group import (
    commit_group,
    fence_group,
    lift_group,
    remove_static_group,
    require_in_place,
    see_group,
    stop_read,
    write_back_group,
)
from kraft_runbook.procedures.offsets_retention import read_offsets_retention
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.procedures.watch_groups import Listening, Starting
from lab.installation import JARS, java


@dataclass
class Mover:
    lab: Lab

    def look(self) -> GroupLook:
        return see_group(self.lab.spec, GROUP, secrets=self.lab.secrets)

    def has_plan(self, direction: Direction) -> bool:
        (*found,) = look_at_groups(self.lab.spec, secrets=self.lab.secrets, names=[GROUP])
        return bool(
            found
            and len(partitions_of(found[0])) == PARTITIONS
            and isinstance(plan_move(found[0], direction), MovePlan)
        )

    def plan(self, direction: Direction) -> MovePlan:
        found = plan_move(self.look(), direction)
        assert isinstance(found, MovePlan), found
        assert [each.partition for each in found.offsets] == [(TOPIC, n) for n in range(PARTITIONS)]
        return found

    def at_the_stop(self, plan: MovePlan) -> MovePlan:
        """Wait until all are silent; each offset as the stopped members have left it."""
        given = {"secrets": self.lab.secrets}
        listening = Listening(self.lab.spec, [plan], COMMIT_SECONDS, **given)
        by_hand.wait_until("the group is silent", lambda: not listening(), within=60)
        found = stop_read(self.lab.spec, plan, None, **given)
        assert stop_read(self.lab.spec, plan, None, kept=found, **given) == found
        return found

    def await_start(self, plan: MovePlan) -> None:
        starting = Starting(self.lab.spec, [plan], secrets=self.lab.secrets)
        by_hand.wait_until("the group has started", lambda: not starting(), within=60)


def lose_offset(lab: Lab, partition: int) -> None:
    """Delete one committed offset, as Kafka does when it expires."""
    with connect_to(lab.spec, lab.spec.brokers[0], secrets=lab.secrets) as broker:
        node = broker.send(FindCoordinatorRequest(version=3, key=GROUP, key_type=0)).node_id
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    number = topic.OffsetDeleteRequestPartition(partition_index=partition)
    request = OffsetDeleteRequest(version=0, group_id=GROUP, topics=[topic(name=TOPIC, partitions=[number])])
    with connect_to(
        lab.spec, next(each for each in lab.spec.brokers if each.id == node), secrets=lab.secrets
    ) as coordinator:
        assert coordinator.send(request).error_code == 0


def test_each_broker_says_how_long_offsets_are_kept(own_lab: Lab) -> None:
    found = read_offsets_retention(own_lab.spec, secrets=own_lab.secrets)
    assert (found.minutes, found.unread) == (7 * 24 * 60, ())


@pytest.fixture(scope="module", autouse=True)
def topic(own_lab: Lab) -> None:
    make_topic(own_lab)


def test_from_old_to_new_and_back(own_lab: Lab, zookeeper: KazooClient, tmp_path: Path) -> None:
    """Records come all the time but while old members end: what they have in hand then, they may read again."""
    given = {"secrets": own_lab.secrets}
    spec, mover, records, old, new = (
        own_lab.spec,
        Mover(own_lab),
        Records(own_lab),
        Old(own_lab, tmp_path),
        New(own_lab),
    )

    def read_up_to(number: int) -> bool:
        return len({*old.read, *new.read}) == number

    begin_at_the_start(zookeeper)
    with ExitStack() as members:
        members.enter_context(old.running())
        by_hand.wait_until("both own partitions", lambda: len(owners(zookeeper)) == 2, within=60)
        members = members.pop_all()
    with records.coming():
        with members:
            by_hand.wait_until("old members commit", lambda: mover.has_plan(Direction.TO_KAFKA), within=60)
            plan = mover.plan(Direction.TO_KAFKA)
            with pytest.raises(Refused, match="is not silent: registered in ZooKeeper: movers_"):
                fence_group(spec, plan, **given)
            with records.hold() as sent:
                by_hand.wait_until("old members have read all", lambda: read_up_to(sent))
                members.close()
            moved = mover.at_the_stop(plan)
        by_old = len(old.read)
        assert {each.origin for each in moved.offsets} == {Origin.ZOOKEEPER}
        assert sum(each.offset or 0 for each in moved.offsets) == sent == by_old > 0

        with pytest.raises(Refused, match="are not fenced"):
            commit_group(spec, moved, **given)
        zookeeper.create(f"/consumers/{GROUP}/owners/{TOPIC}/1", b"as a try that was killed leaves it")
        assert fence_group(spec, moved, **given) == PARTITIONS - 1
        assert fence_group(spec, moved, **given) == 0
        commit_offsets(spec, GROUP, {(TOPIC, 0): moved.offsets[0].offset or 0}, **given)  # so does this
        assert commit_group(spec, moved, **given).changed == PARTITIONS - 1
        assert commit_group(spec, moved, **given).changed == 0

        require_in_place(spec, moved, **given)
        lose_offset(own_lab, 2)
        with pytest.raises(Refused, match="no offset in Kafka any more: expired, or deleted: moving-2"):
            require_in_place(spec, moved, **given)
        assert commit_group(spec, moved, **given).changed == 1
        require_in_place(spec, moved, **given)

        with new.running():
            mover.await_start(moved)
            require_in_place(spec, moved, begun=True, **given)
            with pytest.raises(Refused, match=r"in Kafka's group, which is Stable: new \("):
                commit_group(spec, moved, **given)
            with pytest.raises(Refused, match="UNKNOWN_MEMBER_ID"):
                commit_offsets(spec, GROUP, {(TOPIC, 0): 0}, **given)
            with old.running(1) as (mistaken,):
                assert mistaken.wait(60) == 1  # its rebalance failed; it has no logger to say so
            assert "Found previous offset" not in old.told[-1]
            assert len(old.read) == by_old, "an old member read in spite of the fence"
            by_hand.wait_until("its session has ended", lambda: mover.has_plan(Direction.BACK))
            back = mover.plan(Direction.BACK)
            assert back.fences == moved.fences
        assert remove_static_group(spec, back, **given) == 1, "it would stay for its session.timeout.ms of 45 s"
        assert remove_static_group(spec, back, **given) == 0
        returned = mover.at_the_stop(back)
        assert sum(each.offset or 0 for each in returned.offsets) == by_old + len(new.read)

        with pytest.raises(Refused, match="have not the offsets of the plan in ZooKeeper"):
            lift_group(spec, returned, **given)
        assert write_back_group(spec, returned, **given).changed == PARTITIONS
        assert write_back_group(spec, returned, **given).changed == 0
        assert lift_group(spec, returned, **given) == PARTITIONS
        assert lift_group(spec, returned, **given) == 0

        with old.running():
            mover.await_start(returned)
            assert len(old.read) > by_old
            with records.hold() as sent:
                by_hand.wait_until("old members have read all", lambda: read_up_to(sent))
                records.ended.set()
    require_each_once(records, old.read, new.read)
    assert min(by_old, len(new.read), len(old.read) - by_old) > 0
    print(f"{records.sent} records: {by_old} by old members, {len(new.read)} by the new one, then by old ones again")


@pytest.mark.long
def test_our_acts_on_twenty_groups_forth_and_back(
    own_lab: Lab, zookeeper: KazooClient, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Of twenty groups with twelve partitions each, from the last look to the last read back, each way; and Kafka's own
    tool, which resets the offsets of one group. For ``benchmarks.group_bars``, which says how long they may take.
    """
    spec, number = own_lab.spec, 20
    given: dict[str, Any] = {"secrets": own_lab.secrets}
    topic = f"timed-{time.time_ns()}"
    admin = AdminClient({"bootstrap.servers": ",".join(spec.bootstrap_servers)})
    by_hand.answered(admin.create_topics([NewTopic(topic, 12, 3)]))
    groups = [f"{topic}-{n}" for n in range(number)]
    for group in groups:
        for partition in range(12):
            zookeeper.create(f"/consumers/{group}/offsets/{topic}/{partition}", b"0", makepath=True)

    def moved(group: str, direction: Direction) -> float:
        planned = plan_move(see_group(spec, group, **given), direction)
        assert isinstance(planned, MovePlan), planned
        began = time.monotonic()
        plan = stop_read(spec, planned, None, **given)
        if direction is Direction.TO_KAFKA:
            assert fence_group(spec, plan, **given) == commit_group(spec, plan, **given).changed == 12
        else:
            write_back_group(spec, plan, **given)
            assert lift_group(spec, plan, **given) == 12
        require_in_place(spec, plan, **given)
        return time.monotonic() - began

    forth = [moved(group, Direction.TO_KAFKA) for group in groups]
    back = [moved(group, Direction.BACK) for group in groups]
    file = tmp_path / "offsets.csv"
    file.write_text("".join(f"{topic},{partition},0\n" for partition in range(12)))
    began = time.monotonic()
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    asked = ["--bootstrap-server", spec.bootstrap_servers[0], "--group", f"{topic}-by-hand", "--reset-offsets"]
    command = [java(), "-cp", f"{JARS}/*", tool, *asked, "--from-file", str(file), "--execute"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    counted = {"ours": sum(forth) / number, "slowest": max(forth), "back": sum(back) / number}
    counted |= {"slowest_back": max(back), "by_kafkas_tool": time.monotonic() - began, "load": os.getloadavg()[0]}
    request.node.user_properties += [(name, f"{value:.2f}") for name, value in counted.items()]
