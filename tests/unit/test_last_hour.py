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
    ("unread", "most"),
    [({"out_of_sync": {"1": None}}, None), ({"modes": {"1": None, "2": "hybrid"}, "out_of_sync": {"1": 5}}, 5)],
)
def test_what_was_not_read_is_never_shown_as_in_sync(unread: dict[str, Any], most: int | None) -> None:
    assert lane("broker 1", line(0), line(15, **unread), line(30)) == (span(15, 30, "not read", most),)


def test_a_quorum_that_was_not_read_is_no_leader() -> None:
    looks = [line(0), line(15, leader=None, epoch=None), line(30)]
    assert [each.state for each in lane("leader", *looks)] == ["101, epoch 7", "not read", "101, epoch 7"]


def test_one_look_is_no_hour_and_older_and_later_ones_do_not_count() -> None:
    old, late = line(-3600), line(60 * 60)
    assert last_hour([old, line(0), late, {"at": "soon"}, {}], NOW) is None
    assert hour(old, line(0), line(5), late).until == moment(5)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"modes": 3, "out_of_sync": "x"},
        {"out_of_sync": {"1": 0}},
        {"out_of_sync": {"1": True}, "epoch": True},
        {"modes": {"1": []}, "out_of_sync": {"1": [], "": 3, "b": 1}},
        {"phase": 7, "leader": "101"},
    ],
)
def test_a_spoilt_line_stops_nothing(spoilt: dict[str, Any]) -> None:
    found = hour(line(0), line(15, **spoilt), line(30))
    told = {each.state for lane in found.lanes for each in lane.spans}
    assert told <= {"HYBRID", "101, epoch 7", "not read"} and found.until == moment(30)


def test_of_many_brokers_the_worst_have_lanes_and_the_others_are_named() -> None:
    behind = {str(each): each for each in range(1, 41)}
    found = hour(line(0, out_of_sync=behind), line(15, out_of_sync=behind))
    assert [each.name for each in found.lanes[2:]] == [f"broker {each}" for each in range(41 - MOST, 41)]
    assert found.others == "brokers " + ", ".join(map(str, range(1, 41 - MOST)))


def test_a_broker_that_does_not_run_is_shown_before_any_that_was_behind() -> None:
    modes = {str(each): "kraft" for each in range(1, 41)}
    behind = {str(each): 500 for each in range(1, 31)}
    looks = [line(each, modes={**modes, "37": "down"}, out_of_sync={**behind, "37": 1}) for each in (0, 15, 30)]
    names = [each.name for each in hour(*looks).lanes[2:]]
    assert "broker 37" in names and len(names) == MOST
    down_before = [
        line(0, modes={**modes, "37": "down"}, out_of_sync=behind),
        line(15, modes=modes, out_of_sync=behind),
    ]
    assert "broker 37" in [each.name for each in hour(*down_before).lanes]


def test_looks_of_a_slow_watch_are_no_gap() -> None:
    looks = [line(each) for each in range(0, 3000, 300)]
    slow = last_hour(looks, NOW, every=300)
    assert slow is not None and slow.lanes[0].spans == (span(0, 2700, "HYBRID"),)
    assert len(hour(*looks).lanes[0].spans) == 10


def test_the_picture_lies_within_its_width_and_a_moment_can_be_seen() -> None:
    found = hour(*(line(each, epoch=each) for each in range(0, 100, 10)))
    drawn = bars(found.lanes[1], found)
    assert [each.style for each in drawn[:3]] == ["one", "other", "one"]
    assert (drawn[0].x, drawn[0].words) == (0.0, "101, epoch 0, 02:14:05 to 02:14:15")
    assert all(each.x + each.width <= WIDE + 0.2 and each.width >= 2 for each in drawn)


def test_two_leaders_differ_also_where_one_look_between_them_saw_none() -> None:
    found = hour(line(0), line(15, leader=None), line(30, leader=102), line(45, leader=102))
    assert [each.style for each in bars(found.lanes[1], found)] == ["one", "unread", "other"]
    again = hour(line(0), line(15, leader=None), line(30), line(45))
    assert [each.style for each in bars(again.lanes[1], again)] == ["one", "unread", "one"]


def test_a_broker_that_flaps_at_each_look_is_a_picture_of_bounded_size() -> None:
    behind = {str(each): 1 for each in range(1, 13)}
    looks = [line(each, out_of_sync=behind if each % 2 else {}) for each in range(3000)]
    found = hour(*looks)
    drawn = [bars(each, found) for each in found.lanes]
    assert len(found.lanes) == 2 + MOST and max(map(len, drawn)) <= WIDE / 2
    assert any(each.words == "several changes" for each in drawn[2])


def test_many_spans_are_told_by_their_last() -> None:
    many = LaneFact("broker 1", tuple(span(each, each + 1, "out of sync", each) for each in range(SAID + 3)))
    assert in_short(many).startswith("3 before, then out of sync, up to 3 replicas, ")
    assert in_short(LaneFact("broker 1", ())) == "nothing"
