"""What the looks of the last hour showed one after the other: phases, leaders of the quorum, brokers that were not in
sync. Pure.

It is made for every viewer every few seconds, of up to some thousand lines: each line is read once, and a broker costs
something only where it was not well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.dashboard.facts import STALE, HourFact, LaneFact, SpanFact
from kraft_runbook.dashboard.kept_look import moment_of
from kraft_runbook.dashboard.out_of_sync import sync_points

HOUR = timedelta(hours=1)
MOST = 12
"""Brokers that have a lane of their own: those that do not run now, then those that did not at some time, that were not
read, or had the most replicas out of sync.
"""
DOWN, NOT_READ, BEHIND = "does not run", "not read", "out of sync"
_Seen = tuple[int, str, int | None]
"""The number of a look, what it shows, and how many replicas are out of sync."""


@dataclass(frozen=True, slots=True)
class _Moments:
    """When each look was. ``gap``: seconds after which a state may not have lasted."""

    at: Sequence[datetime]
    gap: float

    def next_to(self, number: int) -> datetime:
        """Until when what this look shows lasts: the next look, unless that came too late to tell."""
        follows = self.at[min(number + 1, len(self.at) - 1)]
        return follows if (follows - self.at[number]).total_seconds() <= self.gap else self.at[number]


def last_hour(lines: Iterable[Mapping[str, Any]], now: datetime, *, every: float = 0) -> HourFact | None:
    """By the lines of kept looks, in any order; None where the last hour has fewer than two. A change lies between two
    looks, and is shown at the later one. Where nobody looked for longer than a look is fresh, or than two looks of the
    watch take (``every``: seconds between them), nothing is shown: what was so before may not have stayed so.
    """
    recent = ((at, line) for line in lines if (at := moment_of(line)) and now - HOUR <= at <= now)
    points = sorted(recent, key=lambda point: point[0])
    if len(points) < 2:
        return None
    phases, leaders, brokers = list[_Seen](), list[_Seen](), defaultdict[int, list[_Seen]](list)
    for number, (_, line) in enumerate(points):
        phase = line.get("phase")
        if isinstance(phase, str):
            phases.append((number, phase, None))
        leaders.append((number, _leader(line), None))
        for broker, state, count in _not_well(line):
            brokers[broker].append((number, state, count))
    moments = _Moments([at for at, _ in points], max(STALE, 2 * every))
    ranked = sorted(brokers, key=lambda each: _rank(each, brokers[each], len(points) - 1))
    return HourFact(
        points[0][0],
        points[-1][0],
        (
            LaneFact("phase", _spans(phases, moments)),
            LaneFact("leader", _spans(leaders, moments)),
            *(LaneFact(f"broker {each}", _spans(brokers[each], moments)) for each in sorted(ranked[:MOST])),
        ),
        nodes("broker", sorted(ranked[MOST:])) if ranked[MOST:] else "",
        sync_points((line for _, line in points), points[0][0], points[-1][0]),
    )


def _spans(seen: Sequence[_Seen], moments: _Moments) -> tuple[SpanFact, ...]:
    found: list[SpanFact] = []
    first = 0
    for place, (number, state, _) in enumerate(seen):
        follows = seen[place + 1] if place + 1 < len(seen) else None
        ends = moments.next_to(number)
        if follows and follows[:2] == (number + 1, state) and ends == moments.at[number + 1]:
            continue  # it goes on
        counts = [count for _, _, count in seen[first : place + 1] if count is not None]
        found.append(SpanFact(moments.at[seen[first][0]], ends, state, max(counts, default=None)))
        first = place + 1
    return tuple(found)


def _leader(line: Mapping[str, Any]) -> str:
    leader, epoch = line.get("leader"), line.get("epoch")
    return f"{leader}, epoch {epoch}" if _is_count(leader) and _is_count(epoch) else NOT_READ


def _not_well(line: Mapping[str, Any]) -> Iterable[tuple[int, str, int | None]]:
    """Brokers that do not run, were not read, or have replicas that are out of sync, and how many."""
    modes, behind = line.get("modes"), line.get("out_of_sync")
    modes = modes if isinstance(modes, dict) else {}
    behind = behind if isinstance(behind, dict) else {}
    for name in {*(name for name, mode in modes.items() if mode is None or mode == "down"), *behind}:
        if not name.isdecimal():
            continue
        count = behind.get(name, 0)
        replicas = count if _is_count(count) else None
        if modes.get(name) == "down":
            yield int(name), DOWN, replicas or None
        elif replicas is None or (name in modes and modes[name] is None):
            yield int(name), NOT_READ, replicas or None
        elif replicas:
            yield int(name), BEHIND, replicas


def _rank(broker: int, seen: Sequence[_Seen], last: int) -> tuple[bool, bool, bool, int, int]:
    """The worst first."""
    states = {state for _, state, _ in seen}
    down_now = seen[-1][:2] == (last, DOWN)
    most = max((count for _, _, count in seen if count is not None), default=0)
    return not down_now, DOWN not in states, NOT_READ not in states, -most, broker


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
