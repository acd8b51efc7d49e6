"""What a rehearsal says of brokers that were not there when the tree was copied: a stand-in must hide none."""

from __future__ import annotations

import pytest

from kraft_runbook.rehearsal.as_copied import GHOSTS, IN_SYNC, RUNNING, UNNAMED, assigned_brokers
from kraft_runbook.rehearsal.verdict import Finding, Verdict


def found(assigned: set[int], live: set[int], declared: set[int]) -> list[tuple[Verdict, str, str]]:
    said = assigned_brokers(assigned, live=live, declared=declared).found
    return [(each.verdict, each.code, each.what.partition(". ")[0]) for each in said]


def test_where_every_assigned_broker_is_declared_and_live_nothing_is_found() -> None:
    assert found({1, 2}, {1, 2, 3}, {1, 2, 3}) == []


def test_a_dead_broker_that_the_file_does_not_name_is_the_ghost_that_the_start_gate_would_name() -> None:
    ghosts = "KRB-PRE-028: partitions are assigned to brokers 7, 8, which the cluster file does not name"
    assert found({1, 7, 8}, {1, 2}, {1, 2}) == [(Verdict.FAILED, GHOSTS, ghosts)]
    (said,) = assigned_brokers({1, 7, 8}, live={1, 8}, declared={1}).found
    assert "broker 7 was not live when the tree was copied. The controllers wait without end" in said.what


def test_one_that_is_live_and_not_in_the_file_is_a_ghost_too() -> None:
    (said,) = assigned_brokers({1, 7}, live={1, 7}, declared={1}).found
    assert said.code == GHOSTS and "not live" not in said.what


def test_one_that_is_live_without_partitions_and_not_in_the_file_would_be_waited_for_too() -> None:
    """Somebody started it and has moved nothing to it yet: its stand-in would hide it from KRB-PRE-005."""
    assert found({1}, {1, 7}, {1}) == [
        (Verdict.FAILED, UNNAMED, "KRB-PRE-005: broker 7 is live, and not in the cluster file")
    ]


@pytest.mark.parametrize("assigned", [{1, 2, 3}, {1}])
@pytest.mark.parametrize(
    ("down", "are"), [({2}, "broker 2 of the cluster file was"), ({2, 3}, "brokers 2, 3 of the cluster file were")]
)
def test_a_declared_broker_that_was_down_is_of_that_moment(assigned: set[int], down: set[int], are: str) -> None:
    said = f"KRB-PRE-004: {are} not live when the tree was copied: the cluster's state at that moment"
    assert found(assigned, {1, 2, 3} - down, {1, 2, 3}) == [(Verdict.INCONCLUSIVE, RUNNING, said)]


SHORT = Finding(Verdict.FAILED, "gate start: KRB-PRE-029: under-replicated: 4 partitions", IN_SYNC)


def test_an_isr_that_was_short_in_the_copy_is_of_that_moment() -> None:
    """One of 40 brokers restarts while the tree is read."""
    for live in ({1, 2, 3}, {1, 2}):
        found = assigned_brokers({1, 2, 3}, live=live, declared={1, 2, 3}).of_that_moment(SHORT)
        assert found.verdict is Verdict.INCONCLUSIVE and found.code == IN_SYNC
        assert found.what.startswith(f"{SHORT.what} (the cluster's state when the tree was copied")


def test_one_that_may_lack_a_ghost_stays_the_metadatas_fault() -> None:
    assert assigned_brokers({1, 7}, live={1}, declared={1}).of_that_moment(SHORT) == SHORT
    live = assigned_brokers({1, 7}, live={1, 7}, declared={1}).of_that_moment(SHORT)
    assert live.verdict is Verdict.INCONCLUSIVE, "it can come back, though the file does not name it"


@pytest.mark.parametrize("other", [Finding(Verdict.FAILED, "x", GHOSTS), Finding(Verdict.INCONCLUSIVE, "x", IN_SYNC)])
def test_any_other_finding_stays(other: Finding) -> None:
    assert assigned_brokers({1}, live={1}, declared={1}).of_that_moment(other) == other
