"""The wait while data moves: it ends when a task has something to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.course import CoursePoint
from kraft_runbook.procedures.look_at_replicas import look_at_plan
from kraft_runbook.reassignment.batches import Limits, busiest, next_batch
from kraft_runbook.reassignment.explain import causes_of, progress_between
from kraft_runbook.reassignment.hours import Hours, hours_of
from kraft_runbook.reassignment.list_room import without_room
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.progress import replicas_left
from kraft_runbook.reassignment.stages import PlanReading, PlanStage, read_plan
from kraft_runbook.reassignment.throttles import (
    GROWING,
    gap_grows,
    least_rate,
    rate_that_keeps_up,
)
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.reassignment.concurrency import follow, that_count
from kraft_runbook.steps.reassignment.files import HowFar, RunFiles

SAY_SECONDS = 30.0
FOREVER = 2.0**35
"""A pause that an earlier version has kept has no end."""
log = logging.getLogger(__name__)


def may_start(cluster: Cluster, files: RunFiles, hours: Hours | None) -> bool:
    """Whether a new batch may: nobody has paused the run, and it is in its hours."""
    return not files.paused and (hours is None or hours.open_at(datetime.fromtimestamp(cluster.now(), UTC)))


def held_back(cluster: Cluster, files: RunFiles, hours: Hours | None, *, could: bool, undo: str) -> str:
    """Why no new batch starts though one could (``could``), also for others who ask (``RunFiles.resting``); empty where
    one may. Then the run rests until the task says that it has started one: killed before that, it was waiting still.
    Raises Refused where a person paused the run, and has not let it go on in time: a forgotten pause would keep the
    cluster claimed for ever. ``undo``: what else can be done then.
    """
    if not could or may_start(cluster, files, hours):
        return ""
    until = files.paused_until
    if until is not None and cluster.now() > until:
        raise Refused(
            f"the run is still paused (change_pace), and was to go on by {when(until)}",
            way_out=f"trigger change_pace__{cluster.spec.name} with the run's name and 'go on', or with 'pause' for"
            f" another while; then clear this task. Or {undo}",
        )
    why = f"it is not within {hours} UTC" if until is None else f"the run is paused, until {when(until)}"
    files.rest(why)
    cluster.tell(f"No new batch starts: {why}")
    return why


class Waits(Protocol):
    """What a task gave to whoever waits for it (``WhileMoving``)."""

    throttled: int | None
    hours: Hours | None
    most: int | None


def what_is_to_do(
    cluster: Cluster,
    files: RunFiles,
    wait: Waits,
    *,
    left: bool,
    busiest: int,
    counting: Callable[[], frozenset[int]],
    room: Callable[[], bool],
) -> str:
    """Why the task should go on while something moves or is left (``left``); empty where it should not. ``room``:
    whether a new batch fits: the task starts it, or says why it may not (``held_back``), for those who ask meanwhile.
    ``busiest`` and ``counting``: as of ``concurrency.follow``.
    """
    may = may_start(cluster, files, wait.hours)
    if follows := cluster.spec.reassignment.concurrency:
        bounds = follows.within(wait.most)
        pace = follow(cluster, files, bounds, counting=counting, busiest=busiest, may_rise=may and left)
        if pace.changes:
            return pace.changes[-1]
    if (may or not files.resting) and room():
        return "there is room for the next batch" if may else "there is room for the next batch, and none may start now"
    # also what is no rate: the task says so
    return "the throttle is to change" if files.asks_for_another(wait.throttled) else ""


def when(moment: float) -> str:
    """Seconds since the epoch, for a person."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC" if moment < FOREVER else "no set time"


def point_of(look: ReplicasLook, reading: PlanReading, bytes_left: int | None) -> CoursePoint:
    """What is left of the plan now. ``bytes_left``: of what moves; None where it was not read."""
    replicas = replicas_left(reading, look.placement.ongoing, look.seen)
    return CoursePoint(datetime.now(UTC), len(reading.left) + len(reading.moving), replicas, bytes_left)


@dataclass
class WhileMoving:
    """Waits until the next batch may start, all has ended, somebody else interferes, or the throttle or the number of
    moves at once is to change.

    ``throttled``: bytes a second that are in force. ``being_deleted``: topics whose deletion waits, or that were made
    anew under their names, as the task saw them; nothing of theirs is started, so there is no room for it. ``full``:
    brokers without room on their disks, in the same way, ``closed``: log directories that take nothing
    (``Placement.closed``), and ``filled``: topics whose lists of throttled replicas others have filled: whether there
    is room again, the task asks. ``say``: seconds from one word on how far it is to the next. ``warn``: hears of what
    is stuck. ``rests``: instead of a look, so many seconds until the task tries again what it has just failed at.
    ``hours``: in which batches may start. ``most``: copies at once that the form allows a broker; None: it does not
    say.
    """

    files: RunFiles
    limits: Limits
    throttled: int | None = None
    being_deleted: Collection[str] = ()
    rests: float = 0.0
    hours: Hours | None = None
    most: int | None = None
    full: Collection[int] = ()
    filled: Collection[str] = ()
    closed: Collection[tuple[int, str]] = ()
    say: float = SAY_SECONDS
    warn: Callable[[str], object] = log.warning
    _earlier: ReplicasLook | None = None
    _said: float = field(default_factory=time.monotonic)
    _gaps: list[int] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)
    _plan: ReassignmentPlan | None = None

    def to_plain(self) -> dict[str, Any]:
        """As plain values, for whoever waits in another process."""
        return {
            "limits": [self.limits.partitions, self.limits.moves, self.limits.bytes],
            "throttled": self.throttled,
            "being_deleted": sorted(self.being_deleted),
            "hours": str(self.hours) if self.hours else None,
            "most": self.most,
            "full": sorted(self.full),
            "filled": sorted(self.filled),
            "closed": [list(each) for each in sorted(self.closed)],
        }

    @staticmethod
    def of_plain(
        files: RunFiles, given: Mapping[str, Any], *, say: float, warn: Callable[[str], object]
    ) -> WhileMoving:
        """What ``to_plain`` gave."""
        own = {
            "limits": Limits(*given["limits"]),
            "hours": hours_of(given["hours"]),
            "closed": [(broker, path) for broker, path in given["closed"]],
        }
        return WhileMoving(files, say=say, warn=warn, **{**given, **own})

    def look(self, cluster: Cluster) -> str:
        """Why the task should go on; empty where nothing is to do. Raises RunbookError."""
        speaks = self._earlier is None or time.monotonic() - self._said >= self.say
        why, now = self._why(cluster, speaks)
        if why:
            return why
        if self._earlier is None:
            self._earlier = now
        elif speaks:
            self._gaps.append(self._tell(cluster, self._earlier, now))
            self._times.append(now.at)
            if gap_grows(self._gaps):
                least = self._least(self._earlier, now)
                mend = self._faster(cluster.spec.name, least) if self.throttled else "read the brokers' logs"
                self.warn(
                    f"The rest to copy grew {GROWING} times in a row, to {self._gaps[-1] / 1e6:.1f} MB: more is"
                    f" produced than copied; {mend}"
                )
            self._earlier, self._said = now, time.monotonic()
        return ""

    def _least(self, earlier: ReplicasLook, now: ReplicasLook) -> float:
        """As of ``least_rate``, for all that is copied now, by what was produced between these looks."""
        copied = now.placement.copying & earlier.placement.sizes.keys()
        moves = [each for each in self._planned().moves if each.partition in copied]
        return least_rate(*now.speeds_since(earlier, moves), len(moves))

    def _faster(self, cluster: str, least: float) -> str:
        """Which rate would do, from what the gap grew by in the last looks, and no less than would be taken
        (``judged_rate``).
        """
        assert self.throttled is not None
        last = slice(-GROWING - 1, None)
        seconds = self._times[-1] - self._times[last][0]
        rate = rate_that_keeps_up(self.throttled, self._gaps[last], seconds, least)
        now = self.throttled / 1e6
        return f"trigger change_pace__{cluster} with {rate / 1e6:.1f} MB/s or more, in place of {now:.1f} MB/s"

    def _why(self, cluster: Cluster, speaks: bool) -> tuple[str, ReplicasLook]:
        """Why the task should go on, if it should; sizes are read only where they are needed."""
        plan = self._planned()
        sizes_of = list(plan.target) if speaks or self.limits.bytes is not None else []
        look, _ = cluster.ask(look_at_plan, plan, sizes_of=sizes_of)
        placement = replace(
            look.placement,
            being_deleted=frozenset(self.being_deleted),
            full=frozenset(self.full),
            closed=frozenset(self.closed),
            listed=without_room(self.filled),
        )
        reading = read_plan(plan, placement)
        if reading.stage in (PlanStage.AS_PLANNED, PlanStage.UNKNOWN):
            return f"the plan stands {reading.stage}", look
        why = what_is_to_do(
            cluster,
            self.files,
            self,
            left=bool(reading.left),
            busiest=busiest(look.placement),
            counting=lambda: that_count(cluster, plan, look.placement),
            room=lambda: bool(next_batch(plan, placement, self.limits)),
        )
        return why or ("half of what is throttled has ended" if self._half_has_ended(look) else ""), look

    def _half_has_ended(self, look: ReplicasLook) -> bool:
        """What has ended, or has every copy in sync, is still read by its followers in sync, and slows down the rest
        (``list_what_moves``).
        """
        listed = self.files.throttles.partitions if self.throttled else frozenset()
        return bool(listed) and len(listed) <= 2 * len(listed - look.placement.copying)

    def _planned(self) -> ReassignmentPlan:
        """Read once: at 200,000 partitions that takes half a second of the triggerer. A plan that is made anew ends the
        task that waits.
        """
        if self._plan is None:
            self._plan = self.files.plan()
        return self._plan

    def _tell(self, cluster: Cluster, earlier: ReplicasLook, now: ReplicasLook) -> int:
        """How far it is, and what is stuck; returns the bytes left."""
        reading = read_plan(self._planned(), now.placement)
        far = progress_between(earlier, now, reading)
        cluster.tell(str(far))
        causes = causes_of(earlier, now, throttled=self.throttled is not None)
        stuck = [str(each) for each in causes if each.partition in reading.moving and not each.waits][:20]
        for found in stuck:
            self.warn(f"Stuck: {found}")
        if reading.lost:
            self.warn(f"{reading.because[-1]}: their copies wait, all else goes on")
        elif reading.held or reading.leaderless or reading.whole:
            self.warn(f"{reading.because[-1]}, all else goes on")
        if self.full:
            self.warn(f"{nodes('broker', self.full, 'has')} no room for what would start there, all else goes on")
        if self.closed:
            named = some([f"{path} of broker {broker}" for broker, path in sorted(self.closed)], 5)
            self.warn(f"Nothing that the plan wants in {named} is started there now, all else goes on")
        if self.filled:
            self.warn(f"Others have filled the lists of throttled replicas of {some(self.filled, 5)}, all else goes on")
        told = HowFar(
            at=datetime.now(UTC).isoformat(),
            partitions=far.partitions,
            there=far.there,
            moving=far.moving,
            bytes_left=None if far.unread else far.bytes_left,
            bytes_a_second=sum(far.rates.values()) if far.rates else None,
            seconds_left=far.seconds_left if far.rates and not far.unread else None,
            throttle=self.throttled,
            stuck=stuck,
        )
        try:
            self.files.keep_progress(told)
            self.files.keep_point(point_of(now, reading, None if far.unread else far.bytes_left))
        except OSError as error:
            self.warn(f"How far it is could not be kept for the dashboard: {error}")
        return far.bytes_left
