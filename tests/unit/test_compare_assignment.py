"""The whole assignment: what fingerprints do not clear is looked at closely, and again while it settles. Reading and
Spark are fakes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from test_assignments import Store, held, tp, whole

from kraft_runbook.cluster.assignment import Assignment, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.parity.assignments import found_columns, planned_columns
from kraft_runbook.procedures.compare_assignment import LOOKS, Stores, compare_with
from kraft_runbook.reassignment.verifying import Deviation, Verification

PLANNED, OTHER, LED = tp("planned", 0), tp("other", 0), tp("led", 0)
BEFORE: Assignment = {PLANNED: (1, 2), OTHER: (2, 3), LED: (1, 3)}
TARGET: Assignment = {PLANNED: (3, 2)}
LED_BY_ITS_SECOND = PartitionSeen((1, 3), 3, (1, 3)), (), ()


class Held(Stores):
    """``looks``: what the store holds at each look; the last one stays. ``odd``: topics that can't be read in bulk."""

    def __init__(self, *looks: Store) -> None:
        self.looks, self.odd, self.slept, self.read_closely = list(looks), set[str](), 0, list[tuple[str, ...]]()
        self.in_zookeeper, self.left = True, ""
        self.by_brokers: dict[TopicPartition, PartitionSeen] = {}
        self.under_way: dict[TopicPartition, Ongoing] = {}

    def now(self) -> Store:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def in_question(self, planned: Assignment) -> tuple[str, ...]:
        theirs, mine = _prints(found_columns(held(self.now()))), _prints(planned_columns(planned))
        return tuple(sorted(t for t in {*theirs, *mine} if t in self.odd or theirs.get(t) != mine.get(t)))

    def closely(self, topics: Collection[str]) -> tuple[TopicColumns, tuple[str, ...]]:
        self.read_closely.append(tuple(sorted(topics)))
        store = {p: each for p, each in self.now().items() if p.topic in topics and p.topic not in self.odd}
        return found_columns(held(store)), tuple(name for name in topics if name in self.odd)

    def legacy(self) -> str | None:
        return self.left or None

    def shown(self) -> Mapping[TopicPartition, PartitionSeen]:
        return self.by_brokers

    def moving(self) -> Mapping[TopicPartition, Ongoing]:
        return self.under_way

    def pause(self) -> None:
        self.slept += 1


def _prints(columns: Any) -> dict[str, str]:
    from kraft_runbook.metadata.topic_prints import topic_prints

    return {each.topic: each.value for each in topic_prints(columns, b"s")}


def compare(stores: Held, before: Assignment = BEFORE) -> Verification:
    return compare_with(stores, TARGET, before=before)


AS_PLANNED: Store = {PLANNED: whole(3, 2), OTHER: whole(2, 3), LED: LED_BY_ITS_SECOND}


def test_only_what_differs_is_looked_at_and_everything_is_counted() -> None:
    stores = Held(AS_PLANNED)
    found = compare(stores)
    assert stores.read_closely == [("led",)] and stores.slept == 0
    assert found.holds and (found.partitions, found.others) == (1, 2)
    assert "fingerprints of ZooKeeper by Spark, 1 topics looked at closely" in found.render_text()


def test_what_settles_within_the_looks_is_no_fault() -> None:
    electing = {**AS_PLANNED, PLANNED: (PartitionSeen((3, 2), 2, (2, 3)), (), ())}
    stores = Held(electing, electing, AS_PLANNED)
    assert compare(stores).holds and stores.slept == 1


def test_what_stays_is_named() -> None:
    moved = {**AS_PLANNED, PLANNED: (PartitionSeen((3, 2, 1), 3, (3, 2)), (), (1,)), OTHER: whole(2, 4)}
    stores = Held(moved)
    found = compare(stores)
    assert found.deviations == {Deviation.MOVING: (PLANNED,), Deviation.NOT_PLANNED: (OTHER,)}
    assert stores.slept == LOOKS - 1 and (found.partitions, found.others) == (1, 2)


def test_without_what_was_before_only_the_plan_is_judged() -> None:
    stores = Held({**AS_PLANNED, OTHER: whole(4, 5)})
    found = compare(stores, {})
    assert found.holds and (found.partitions, found.others) == (1, 0) and stores.read_closely == []


def test_a_topic_that_cant_be_read_in_bulk_is_judged_by_what_brokers_show() -> None:
    stores = Held(AS_PLANNED)
    stores.odd = {"planned"}
    stores.by_brokers = {PLANNED: PartitionSeen((3, 2), 3, (3, 2))}
    assert compare(stores).holds
    stores.under_way = {PLANNED: Ongoing((3, 2), (3,), ())}
    assert compare(stores).deviations == {Deviation.MOVING: (PLANNED,)}


def test_the_legacy_znode_is_a_fault_though_every_partition_is_as_planned() -> None:
    stores = Held(AS_PLANNED)
    stores.left = "{}"
    assert not compare(stores).holds
