"""The whole assignment: what fingerprints do not clear is looked at closely, and again while it settles. Reading and
Spark are fakes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC
from test_assignments import Store, held, tp, whole

from kraft_runbook.cluster.assignment import Assignment, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.parity.assignments import found_columns, planned_columns
from kraft_runbook.parity.spark import assignment_comparison
from kraft_runbook.procedures import compare_assignment as procedure
from kraft_runbook.procedures.compare_assignment import LOOKS, compare_assignment
from kraft_runbook.reassignment.verifying import Deviation, Verification

PLANNED, OTHER, LED = tp("planned", 0), tp("other", 0), tp("led", 0)
BEFORE: Assignment = {PLANNED: (1, 2), OTHER: (2, 3), LED: (1, 3)}
TARGET: Assignment = {PLANNED: (3, 2)}
LED_BY_ITS_SECOND = PartitionSeen((1, 3), 3, (1, 3)), (), ()


class Cluster:
    """``looks``: what the store holds at each look; the last one stays. ``odd``: topics that can't be read in bulk."""

    def __init__(self, patch: pytest.MonkeyPatch, *looks: Store) -> None:
        self.looks, self.odd, self.slept, self.closely = list(looks), set[str](), 0, list[tuple[str, ...]]()
        self.legacy: str | None = None
        self.shown: dict[TopicPartition, PartitionSeen] = {}
        self.moving: dict[TopicPartition, Ongoing] = {}
        patch.setattr(assignment_comparison, "topics_in_question", self.in_question)
        patch.setattr(procedure, "is_in_zookeeper", lambda *_, **__: True)
        patch.setattr(procedure, "topics_in_zookeeper", self.read)
        patch.setattr(procedure, "read_reassignment_znodes", lambda *_, **__: SimpleNamespace(legacy=self.legacy))
        patch.setattr(procedure, "assignment_seen", lambda *_, **__: SimpleNamespace(partitions=self.shown))
        patch.setattr(procedure, "Reassignments", lambda *_, **__: SimpleNamespace(ongoing=lambda: dict(self.moving)))
        patch.setattr(procedure.time, "sleep", self.sleep)

    def now(self) -> Store:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def in_question(self, spec: Any, planned: Assignment, *, in_zookeeper: bool, secrets: Any) -> tuple[str, ...]:
        theirs, mine = _prints(found_columns(held(self.now()))), _prints(planned_columns(planned))
        return tuple(sorted(t for t in {*theirs, *mine} if t in self.odd or theirs.get(t) != mine.get(t)))

    def read(self, spec: Any, names: Any, *, secrets: Any) -> Any:
        self.closely.append(tuple(names))
        store = {p: each for p, each in self.now().items() if p.topic in names and p.topic not in self.odd}
        return found_columns(held(store)), tuple(name for name in names if name in self.odd)

    def sleep(self, _: float) -> None:
        self.slept += 1


def _prints(columns: Any) -> dict[str, str]:
    from kraft_runbook.metadata.topic_prints import topic_prints

    return {each.topic: each.value for each in topic_prints(columns, b"s")}


def compare(before: Assignment = BEFORE) -> Verification:
    return compare_assignment(SPEC, TARGET, before=before, secrets=lambda _: "x")


AS_PLANNED: Store = {PLANNED: whole(3, 2), OTHER: whole(2, 3), LED: LED_BY_ITS_SECOND}


def test_only_what_differs_is_looked_at_and_everything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, AS_PLANNED)
    found = compare()
    assert cluster.closely == [("led",)] and cluster.slept == 0
    assert found.holds and (found.partitions, found.others) == (1, 2)
    assert "fingerprints of ZooKeeper by Spark, 1 topics looked at closely" in found.render_text()


def test_what_settles_within_the_looks_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    electing = {**AS_PLANNED, PLANNED: (PartitionSeen((3, 2), 2, (2, 3)), (), ())}
    cluster = Cluster(monkeypatch, electing, electing, AS_PLANNED)
    assert compare().holds and cluster.slept == 1


def test_what_stays_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = {**AS_PLANNED, PLANNED: (PartitionSeen((3, 2, 1), 3, (3, 2)), (), (1,)), OTHER: whole(2, 4)}
    cluster = Cluster(monkeypatch, moved)
    found = compare()
    assert found.deviations == {Deviation.MOVING: (PLANNED,), Deviation.NOT_PLANNED: (OTHER,)}
    assert cluster.slept == LOOKS - 1 and (found.partitions, found.others) == (1, 2)


def test_without_what_was_before_only_the_plan_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, {**AS_PLANNED, OTHER: whole(4, 5)})
    found = compare({})
    assert found.holds and (found.partitions, found.others) == (1, 0) and cluster.closely == []


def test_a_topic_that_cant_be_read_in_bulk_is_judged_by_what_brokers_show(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, AS_PLANNED)
    cluster.odd = {"planned"}
    cluster.shown = {PLANNED: PartitionSeen((3, 2), 3, (3, 2))}
    assert compare().holds
    cluster.moving = {PLANNED: Ongoing((3, 2), (3,), ())}
    assert compare().deviations == {Deviation.MOVING: (PLANNED,)}


def test_the_legacy_znode_is_a_fault_though_every_partition_is_as_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    Cluster(monkeypatch, AS_PLANNED).legacy = "{}"
    assert not compare().holds
