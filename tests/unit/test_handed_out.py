"""The account of what members handed out finds each planted fault."""

from __future__ import annotations

from handed_out import HandedOut, account


def handed(member: str, offsets: range, *, begin: float, partition: int = 0) -> list[HandedOut]:
    return [HandedOut(begin + at / 10, member, partition, offset) for at, offset in enumerate(offsets)]


def test_an_orderly_move_and_back_is_clean() -> None:
    seen = [*handed("a", range(5), begin=0), *handed("b", range(5, 8), begin=1), *handed("a", range(8, 10), begin=2)]
    found = account({0: 10}, seen)
    assert (found.lost, found.twice, found.overlaps) == ((), (), ())
    assert round(found.silent[0], 1) == 0.8


def test_a_lost_record_is_found() -> None:
    assert account({0: 5}, handed("a", range(4), begin=0)).lost == ((0, 4),)
    assert account({0: 1, 1: 1}, handed("a", range(1), begin=0)).lost == ((1, 0),)


def test_a_record_twice_is_found_whoever_handed_it_out() -> None:
    assert account({0: 3}, [*handed("a", range(3), begin=0), *handed("a", range(2, 3), begin=9)]).twice == ((0, 2),)
    seen = [*handed("a", range(3), begin=0), HandedOut(0.0, "old", 0, 2)]
    found = account({0: 3}, seen, timeless=["old"])
    assert (found.twice, found.overlaps) == (((0, 2),), ())


def test_two_members_at_once_are_found() -> None:
    seen = [*handed("a", range(5), begin=0), *handed("b", range(5, 8), begin=0.25)]
    late = account({0: 8}, seen).overlaps
    assert {each.member for each in late} == {"a"} and [each.offset for each in late] == [3, 4]
    again = account({0: 3}, [*handed("a", range(3), begin=0), *handed("b", range(3), begin=1)])
    assert len(again.overlaps) == 3
