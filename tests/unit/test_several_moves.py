"""Which groups are meant by names and patterns, what the form says of missing offsets, and the plan as a file."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from groups_seen_as import kafka, look, member, new, zookeeper

from kraft_runbook.errors import Refused
from kraft_runbook.groups.look import Kind, LogBounds
from kraft_runbook.groups.moves import Moves, meant, plan_moves
from kraft_runbook.groups.planned_offsets import Beginning, Direction, Without, parse_without

THERE = ("orders", "orders.eu", "ordersxeu", "billing")
LOGS = {"t": {0: LogBounds(0, 100), 1: LogBounds(0, 100)}}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["orders"], ("orders",)),
        (["orders.eu"], ("orders.eu",)),
        (["orders.+"], ("orders.eu", "ordersxeu")),
        ([".*"], ("billing", "orders", "orders.eu", "ordersxeu")),
        (["billing", "bill.*"], ("billing",)),
    ],
)
def test_a_name_means_itself_and_a_pattern_all_that_it_fits_whole(wanted: list[str], found: tuple[str, ...]) -> None:
    assert meant(wanted, THERE) == found


@pytest.mark.parametrize(
    ("wanted", "says"),
    [(["ord"], "no group below /consumers is 'ord'"), (["("], "no pattern: missing"), ([], "no group is named")],
)
def test_a_word_that_means_nothing_is_refused(wanted: list[str], says: str) -> None:
    with pytest.raises(Refused, match=says):
        meant(wanted, THERE)


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("", None),
        ("  ", None),
        ("earliest", Beginning.EARLIEST),
        ("End at  the stop", Beginning.END_AT_THE_STOP),
        ("end-at-the-stop", Beginning.END_AT_THE_STOP),
        ("0", 0),
        ("a.b-c-0=5 t-1=6", {"a.b-c-0": 5, "t-1": 6}),
    ],
)
def test_what_the_form_says_of_missing_offsets(text: str, without: Without | None) -> None:
    assert parse_without(text) == without


@pytest.mark.parametrize("text", ["latest", "-1", "t-0=-1", "t=5", "t-0=5 t-0=6", "1 2", "t-0=5,t-1=6"])
def test_what_it_can_not_mean_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="does not say where a partition without an offset begins"):
        parse_without(text)


def test_one_refused_group_keeps_no_other_back_and_the_file_holds_the_plans() -> None:
    old = look(zookeeper(member(Kind.OLD), offsets={("t", 0): 5, ("t", 1): 6}), logs=LOGS)
    both = replace(look(zookeeper(member(Kind.OLD)), kafka(new("app")), logs=LOGS), name="both")
    moves = plan_moves([old, both], Direction.TO_KAFKA, None)
    assert [plan.group for plan in moves.plans] == ["g"] and list(moves.refused) == ["both"]
    read = Moves.from_dict(json.loads(json.dumps(moves.to_dict())))
    assert (read.plans, read.direction, read.digest) == (moves.plans, moves.direction, moves.digest)
    other = plan_moves([replace(old, name="h")], Direction.TO_KAFKA, None)
    assert other.digest != moves.digest


def test_one_offset_may_serve_all_and_offsets_by_partition_are_for_one_group() -> None:
    without = look(zookeeper(member(Kind.OLD)), logs=LOGS)
    (plan,) = plan_moves([without], Direction.TO_KAFKA, 7).plans
    assert [each.offset for each in plan.offsets] == [7, 7]
    assert plan_moves([without], Direction.TO_KAFKA, 101).plans == ()
    with pytest.raises(Refused, match="given for 2 groups"):
        plan_moves([without, replace(without, name="h")], Direction.TO_KAFKA, {"t-0": 1})
