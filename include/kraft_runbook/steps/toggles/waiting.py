"""Looking again and again at groups that were toggled: until they have settled, and for as long as they soak."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.errors import RunbookError
from kraft_runbook.groups.classify import classify
from kraft_runbook.groups.look import GroupLook, Mode
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.toggles.alarms import alarms
from kraft_runbook.groups.toggles.settled import GOES_ON, Sides, follow, told
from kraft_runbook.groups.toggles.toggle import MODES
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.steps.handle import Cluster

IN_A_ROW = 3
"""So many looks in a row must show the same: that a group has settled, or that something is wrong with it."""
GONE = "it is not below /consumers any more"


class Settling:
    """Until every group has settled: three good looks in a row. ``groups``: with the direction of each; ``interval``:
    the members' commit interval, seconds.
    """

    every: ClassVar[float] = 1.0

    def __init__(
        self, groups: Mapping[str, str], interval: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._groups = {group: Direction(direction) for group, direction in groups.items()}
        self._interval, self._clock = interval, clock
        self._sides = dict.fromkeys(self._groups, Sides())
        self._good = dict.fromkeys(self._groups, 0)
        self._missing = dict.fromkeys(self._groups, "not looked at yet")

    def look(self, cluster: Cluster) -> bool:
        waiting = [each for each in self._groups if self._good[each] < IN_A_ROW]
        try:
            found = {each.name: each for each in cluster.ask(look_at_groups, names=waiting)}
        except RunbookError as error:
            self._good.update(dict.fromkeys(waiting, 0))
            self._missing.update(dict.fromkeys(waiting, error.problem))
            raise
        for group in waiting:
            missing = self._judge(group, found.get(group))
            self._good[group] = 0 if missing else self._good[group] + 1
            self._missing[group] = missing or f"{self._good[group]} of {IN_A_ROW} looks are good"
        return all(each >= IN_A_ROW for each in self._good.values())

    def _judge(self, group: str, look: GroupLook | None) -> str:
        if look is None:
            return GONE
        now, direction = self._clock(), self._groups[group]
        self._sides[group] = follow(self._sides[group], look, now)
        return "; ".join(told(look, direction, self._sides[group], now, self._interval))

    def told(self) -> Mapping[str, Any]:
        """``missing``: by group that has not settled, what is."""
        return {"missing": {each: self._missing[each] for each, good in self._good.items() if good < IN_A_ROW}}


class Soaking:
    """Until the soak is over and the last look is a good one, or something has been wrong for three looks in a row. A
    group that can't be judged at a moment, since it rebalances, is looked at again. ``until``: seconds since the epoch.
    """

    every: ClassVar[float] = 5.0

    def __init__(self, group: str, direction: str, until: float) -> None:
        self._group, self._direction, self._until = group, Direction(direction), until
        self._bad = 0
        self._broken = self._waits = ""

    def look(self, cluster: Cluster) -> bool:
        self._waits = "it was not seen"
        found = cluster.ask(look_at_groups, names=[self._group])
        wrong, self._waits = _wrong(found[0] if found else None, self._direction)
        self._bad = self._bad + 1 if wrong else 0
        if self._bad >= IN_A_ROW:
            self._broken = wrong
        return bool(self._broken) or (cluster.now() >= self._until and not wrong and not self._waits)

    def told(self) -> Mapping[str, Any]:
        """``broken``: what is wrong; ``waits``: why the last look says nothing."""
        return {"broken": self._broken, "waits": self._waits}


def _wrong(look: GroupLook | None, direction: Direction) -> tuple[str, str]:
    """What is wrong, and what keeps it from being judged."""
    if look is None:
        return GONE, ""
    standing = classify(look)
    if found := [each.line() for each in alarms(look)]:
        return found[0], ""
    zookeeper = look.zookeeper
    if standing.group_class is GroupClass.UNKNOWN or not was_read(zookeeper):
        return "", f"{standing.group_class}: {standing.why}"
    if standing.group_class not in GOES_ON[direction]:
        return f"it is {standing.group_class} ({standing.why})", ""
    if (zookeeper.mode is Mode.KAFKA) is not (direction is Direction.TO_KAFKA):
        return f"its mode is {zookeeper.mode} and not {MODES[direction]}: somebody has toggled it", ""
    return "", ""


WATCHES: Mapping[str, Callable[..., Settling | Soaking]] = {"settling": Settling, "soaking": Soaking}
"""By the name in ``Later``."""
