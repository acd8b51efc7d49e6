"""The last hour on the dashboard, by the lines of kept looks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from observations import NOW

from kraft_runbook.dashboard.facts import HourFact, LaneFact, SpanFact
from kraft_runbook.dashboard.last_hour import MOST, last_hour
from kraft_runbook.dashboard.page import SAID, WIDE, bars, in_short

BEGIN = NOW - timedelta(minutes=50)


def line(seconds: float, **changes: Any) -> Mapping[str, Any]:
    healthy = {"phase": "HYBRID", "modes": {"1": "hybrid", "2": "hybrid"}, "out_of_sync": {}, "leader": 101, "epoch": 7}
    return {**healthy, "at": moment(seconds).isoformat(), **changes}


def moment(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def hour(*lines: Mapping[str, Any]) -> HourFact:
    found = last_hour(lines, NOW)
    assert found is not None
    return found


def lane(name: str, *lines: Mapping[str, Any]) -> tuple[SpanFact, ...]:
    return next(each.spans for each in hour(*lines).lanes if each.name == name)


def span(began: float, ended: float, state: str, most: int | None = None) -> SpanFact:
    return SpanFact(moment(began), moment(ended), state, most)


def test_a_state_lasts_until_the_look_that_shows_another() -> None:
    looks = [line(0), line(15), line(30, phase="DUAL_WRITE", epoch=8), line(45, phase="DUAL_WRITE", epoch=8)]
    assert lane("phase", *looks) == (span(0, 30, "HYBRID"), span(30, 45, "DUAL_WRITE"))
    assert lane("leader", *reversed(looks)) == (span(0, 30, "101, epoch 7"), span(30, 45, "101, epoch 8"))


def test_a_broker_has_a_lane_where_it_was_not_in_sync_with_the_most_replicas() -> None:
    looks = [
        line(0),
        line(15, modes={"1": "hybrid", "2": "down"}),
        line(30, out_of_sync={"2": 40}),
        line(45, out_of_sync={"2": 90}),
        line(60, out_of_sync={"2": 3}),
        line(75),
        line(90),
    ]
    assert lane("broker 2", *looks) == (span(15, 30, "does not run"), span(30, 75, "out of sync", 90))
    assert [each.name for each in hour(*looks).lanes] == ["phase", "leader", "broker 2"]


def test_nothing_is_shown_where_nobody_looked() -> None:
    looks = [line(0, out_of_sync={"1": 2}), line(10, out_of_sync={"1": 2}), line(600, out_of_sync={"1": 2}), line(610)]
    assert lane("broker 1", *looks) == (span(0, 10, "out of sync", 2), span(600, 610, "out of sync", 2))
    assert lane("phase", *looks) == (span(0, 10, "HYBRID"), span(600, 610, "HYBRID"))


@pytest.mark.parametrize(
    "unread", [{"out_of_sync": {"1": None}}, {"modes": {"1": None, "2": "hybrid"}, "out_of_sync": {"1": 5}}]
)
def test_what_was_not_read_is_never_shown_as_in_sync(unread: dict[str, Any]) -> None:
    assert lane("broker 1", line(0), line(15, **unread), line(30)) == (span(15, 30, "not read"),)


def test_a_quorum_that_was_not_read_is_no_leader() -> None:
    looks = [line(0), line(15, leader=None, epoch=None), line(30)]
    assert [each.state for each in lane("leader", *looks)] == ["101, epoch 7", "not read", "101, epoch 7"]


def test_one_look_is_no_hour_and_older_and_later_ones_and_spoilt_lines_do_not_count() -> None:
    old, later = line(-3600), line(60 * 60)
    assert last_hour([old, line(0), later, {"at": "soon"}, {}], NOW) is None
    assert hour(old, line(0), line(5), {"at": moment(7).isoformat(), "modes": 3, "out_of_sync": "x"}).until == moment(7)


def test_of_many_brokers_the_worst_have_lanes_and_the_others_are_named() -> None:
    behind = {str(each): each for each in range(1, 41)}
    found = hour(line(0, out_of_sync=behind), line(15, out_of_sync=behind))
    assert [each.name for each in found.lanes[2:]] == [f"broker {each}" for each in range(41 - MOST, 41)]
    assert found.others == "broker 1, broker 2, broker 3, broker 4, broker 5 and 23 more"


def test_the_picture_lies_within_its_width_and_a_moment_can_be_seen() -> None:
    found = hour(*(line(each, epoch=each) for each in range(0, 100, 10)))
    drawn = bars(found.lanes[1], found)
    assert [each.style for each in drawn[:3]] == ["one", "other", "one"]
    assert (drawn[0].x, drawn[0].words) == (0.0, "101, epoch 0, 02:14:05 to 02:14:15")
    assert all(each.x + each.width <= WIDE + 0.2 and each.width >= 2 for each in drawn)


def test_many_spans_are_told_by_their_last() -> None:
    many = LaneFact("broker 1", tuple(span(each, each + 1, "out of sync", each) for each in range(SAID + 3)))
    assert in_short(many).startswith("3 before, then out of sync, up to 3 replicas, ")
    assert in_short(LaneFact("broker 1", ())) == "nothing"
