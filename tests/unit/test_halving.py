"""Halving suspects finds what ends a try, says no more than it saw, and is over after so many tries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from kraft_runbook.rehearsal.halving import MOST, Culprits, NotJudged, Search, search

Ends = Callable[[Sequence[int]], bool]


def any_of(*culprits: int) -> Ends:
    return lambda some: bool(set(culprits) & set(some))


def searched(suspects: Collection[int], ends: Ends, most: int = MOST) -> Search[int]:
    tried: list[Sequence[int]] = []

    def counted(some: Sequence[int]) -> bool:
        tried.append(some)
        return ends(some)

    found = search(tuple(suspects), counted, most=most)
    assert found.tries == len(tried) <= most
    return found


@pytest.mark.parametrize("culprit", range(17))
def test_one_culprit_is_found_wherever_it_is_and_was_seen_alone(culprit: int) -> None:
    found = searched(range(17), any_of(culprit))
    assert found.found == (Culprits((culprit,), True),)
    assert not found.vanished and not found.stopped
    assert found.others in (False, None) and (found.tries < MOST) <= (found.others is False)


def test_of_more_than_the_tries_can_tell_apart_the_smallest_set_that_was_seen_is_told() -> None:
    for culprit in (0, 1, 998, 1999):
        (least,) = searched(range(2000), any_of(culprit)).found
        assert least.seen and culprit in least.suspects and len(least.suspects) <= 2000 / 2 ** (MOST - 2) + 1


def test_two_culprits_are_both_found_where_there_are_tries_enough() -> None:
    found = searched(range(4), any_of(0, 3))
    assert {each.suspects for each in found.found} == {(0,), (3,)} and all(each.seen for each in found.found)


def test_of_two_culprits_the_second_is_told_as_one_of_the_rest_where_the_tries_are_over() -> None:
    found = searched(range(32), any_of(0, 30))
    first, rest = found.found
    assert first == Culprits((0,), True)
    assert rest.seen and 30 in rest.suspects
    found = searched(range(32), any_of(0, 30), most=6)
    assert found.found == (Culprits((0,), True),) and found.others is None, "no try was left to ask for others"


def test_what_two_together_end_is_told_of_both_and_never_of_one() -> None:
    found = searched(range(8), lambda some: {2, 6} <= set(some))
    (least,) = found.found
    assert {2, 6} <= set(least.suspects) and least.seen


def test_a_culprit_that_vanishes_is_told_as_that() -> None:
    found = searched(range(8), lambda some: False)
    assert found.vanished and found.found == () and found.tries <= 6
    assert searched((7,), lambda some: False) == Search((), 2, vanished=True)


def test_where_the_tries_are_over_before_all_are_tried_again_nothing_is_said_to_be_seen() -> None:
    found = searched(range(2000), lambda some: False)
    assert found.found == (Culprits(tuple(range(2000)), False),) and not found.vanished


def test_one_suspect_is_tried_alone_and_the_tree_without_it() -> None:
    assert searched((7,), any_of(7)) == Search((Culprits((7,), True),), 2, others=False)


def test_where_a_try_without_any_suspect_ends_none_is_to_blame() -> None:
    """Else each half would seem to end one, and an innocent suspect would be named."""
    assert searched(range(9), lambda some: True) == Search((), 1, others=True)


@pytest.mark.parametrize("at", range(1, 6))
def test_a_try_that_says_nothing_ends_the_search_with_what_is_known(at: int) -> None:
    calls: list[int] = []

    def ends(some: Sequence[int]) -> bool:
        calls.append(1)
        if len(calls) == at:
            raise NotJudged("no memory")
        return 3 in some

    found = searched(range(16), ends)
    assert found.stopped == "no memory" and found.tries == at and not found.vanished
    if at == 1:
        assert found.found == () and found.others is None
    else:
        (least,) = found.found
        assert 3 in least.suspects and least.seen == (at > 2)


def test_without_suspects_there_is_one_try() -> None:
    assert searched((), any_of(1)) == Search((), 1, others=False)
