"""What the looks of the last hour showed one after the other: phases, leaders of the quorum, brokers that were not in
sync. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from kraft_runbook.cluster.naming import some
from kraft_runbook.dashboard.facts import STALE, HourFact, LaneFact, SpanFact
from kraft_runbook.dashboard.kept_look import moment_of

HOUR = timedelta(hours=1)
MOST = 12
"""Brokers that have a lane of their own: those with the most replicas out of sync."""
_Points = Sequence[tuple[datetime, Mapping[str, Any]]]
_State = tuple[str, int | None]
"""What a look shows, and a number of which the greatest is kept."""


def last_hour(lines: Iterable[Mapping[str, Any]], now: datetime) -> HourFact | None:
    """By the lines of kept looks, in any order; None where the last hour has fewer than two. A change lies between two
    looks, and is shown at the later one. Where nobody looked for longer than a look is fresh, nothing is shown: what
    was so before may not have stayed so.
    """
    recent = ((at, line) for line in lines if (at := moment_of(line)) and now - HOUR <= at <= now)
    points = sorted(recent, key=lambda point: point[0])
    if len(points) < 2:
        return None
    lanes = [LaneFact("phase", _spans(points, _phase)), LaneFact("leader", _spans(points, _leader))]
    ids = {broker for _, line in points for broker in (*_behind(line), *_without_mode(line))}
    brokers = [LaneFact(f"broker {each}", _spans(points, partial(_broker, each))) for each in ids]
    brokers.sort(key=lambda lane: (-max(span.most or 0 for span in lane.spans), _number(lane.name)))
    left = sorted((lane.name for lane in brokers[MOST:]), key=_number)
    shown = sorted(brokers[:MOST], key=lambda lane: _number(lane.name))
    return HourFact(points[0][0], points[-1][0], (*lanes, *shown), some(left) if left else "")


def _spans(points: _Points, value: Callable[[Mapping[str, Any]], _State | None]) -> tuple[SpanFact, ...]:
    """What lasted how long, by a look's state (``value``; None: nothing to show)."""
    found: list[SpanFact] = []
    before, lasts = points[0][0], False
    for at, line in points:
        lasts = lasts and (at - before).total_seconds() <= STALE
        if lasts:
            found[-1] = replace(found[-1], ended=at)
        seen = value(line)
        if seen is not None and lasts and found[-1].state == seen[0]:
            found[-1] = replace(found[-1], most=_most(found[-1].most, seen[1]))
        elif seen is not None:
            found.append(SpanFact(at, at, *seen))
        before, lasts = at, seen is not None
    return tuple(found)


def _phase(line: Mapping[str, Any]) -> _State | None:
    phase = line.get("phase")
    return (phase, None) if isinstance(phase, str) else None


def _leader(line: Mapping[str, Any]) -> _State:
    leader, epoch = line.get("leader"), line.get("epoch")
    if not isinstance(leader, int) or not isinstance(epoch, int):
        return "not read", None
    return f"{leader}, epoch {epoch}", None


def _broker(broker: str, line: Mapping[str, Any]) -> _State | None:
    """None where it ran and all its replicas were in sync."""
    without, count = _without_mode(line).get(broker), _behind(line).get(broker, 0)
    if without or not isinstance(count, int):
        return without or "not read", None
    return ("out of sync", count) if count else None


def _behind(line: Mapping[str, Any]) -> Mapping[str, Any]:
    found = line.get("out_of_sync")
    return found if isinstance(found, dict) else {}


def _without_mode(line: Mapping[str, Any]) -> Mapping[str, str]:
    """Brokers that do not run, or of which that was not read."""
    modes = line.get("modes")
    names = {"down": "does not run", None: "not read"}
    return {each: names[mode] for each, mode in modes.items() if mode in names} if isinstance(modes, dict) else {}


def _most(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _number(name: str) -> tuple[int, str]:
    digits = name.rpartition(" ")[2]
    return (int(digits) if digits.isdigit() else 0, name)
