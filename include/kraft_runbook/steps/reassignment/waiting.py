"""The wait while data moves: it ends when a task has something to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from kraft_runbook.errors import Refused
from kraft_runbook.procedures.look_at_replicas import look_at_plan
from kraft_runbook.reassignment.batches import Limits, next_batch
from kraft_runbook.reassignment.explain import causes_of, progress_between
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.throttles import GROWING, gap_grows, rate_that_keeps_up
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.reassignment.files import RunFiles

SAY_SECONDS = 30.0
log = logging.getLogger(__name__)


@dataclass
class WhileMoving:
    """Waits until the next batch may start, all has ended, somebody else interferes, or the throttle is to change.

    ``throttled``: bytes a second that are in force. ``being_deleted``: topics whose deletion waits, as the task saw
    them; nothing of theirs can be started, so there is no room for it. ``say``: seconds from one word on how far it is
    to the next. ``warn``: hears of what is stuck.
    """

    files: RunFiles
    limits: Limits
    throttled: int | None = None
    being_deleted: Collection[str] = ()
    say: float = SAY_SECONDS
    warn: Callable[[str], object] = log.warning
    _earlier: Look | None = None
    _said: float = field(default_factory=time.monotonic)
    _gaps: list[int] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)
    _plan: ReassignmentPlan | None = None

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
                mend = self._faster() if self.throttled else "read the brokers' logs"
                self.warn(
                    f"What is left to copy grew {GROWING} times in a row, to {self._gaps[-1] / 1e6:.1f} MB: more is"
                    f" produced than copied; {mend}"
                )
            self._earlier, self._said = now, time.monotonic()
        return ""

    def _faster(self) -> str:
        """Which rate would do, from what the gap grew by in the last looks."""
        assert self.throttled is not None
        last = slice(-GROWING - 1, None)
        seconds = self._times[-1] - self._times[last][0]
        rate = rate_that_keeps_up(self.throttled, self._gaps[last], seconds)
        return f"write {rate / 1e6:.1f} or more into throttle_mb, in place of {self.throttled / 1e6:.1f} MB/s"

    def _why(self, cluster: Cluster, speaks: bool) -> tuple[str, Look]:
        """Why the task should go on, if it should; sizes are read only where they are needed."""
        plan = self._planned()
        sizes_of = list(plan.target) if speaks or self.limits.bytes is not None else []
        look, _ = cluster.ask(look_at_plan, plan, sizes_of=sizes_of)
        placement = replace(look.placement, being_deleted=frozenset(self.being_deleted))
        reading = read_plan(plan, placement)
        if reading.stage in (PlanStage.AS_PLANNED, PlanStage.UNKNOWN):
            return f"the plan stands {reading.stage}", look
        if reading.lost:
            return reading.because[-1], look
        if next_batch(plan, placement, self.limits):
            return "there is room for the next batch", look
        return ("the throttle is to change" if self._throttle_changes() else ""), look

    def _planned(self) -> ReassignmentPlan:
        """Read once: at 200,000 partitions that takes half a second of the triggerer. A plan that is made anew ends the
        task that waits.
        """
        if self._plan is None:
            self._plan = self.files.plan()
        return self._plan

    def _throttle_changes(self) -> bool:
        """Also where the file holds no rate: the task says so, and lets it say the one in force."""
        try:
            return self.files.wanted_throttle(self.throttled) != self.throttled
        except Refused:
            return True

    def _tell(self, cluster: Cluster, earlier: Look, now: Look) -> int:
        """How far it is, and what is stuck; returns the bytes left."""
        reading = read_plan(self._planned(), now.placement)
        far = progress_between(earlier, now, reading)
        cluster.tell(str(far))
        causes = causes_of(earlier, now, throttled=self.throttled is not None)
        stuck = [str(each) for each in causes if each.partition in reading.moving and not each.waits][:20]
        for found in stuck:
            self.warn(f"Stuck: {found}")
        told = {
            "at": datetime.now(UTC).isoformat(),
            "partitions": far.partitions,
            "there": far.there,
            "moving": far.moving,
            "bytes_left": None if far.unread else far.bytes_left,
            "bytes_a_second": sum(far.rates.values()) if far.rates else None,
            "seconds_left": far.seconds_left if far.rates and not far.unread else None,
            "throttle": self.throttled,
            "stuck": stuck,
        }
        try:
            self.files.keep_progress(told)
        except OSError as error:
            self.warn(f"How far it is could not be kept for the dashboard: {error}")
        return far.bytes_left
