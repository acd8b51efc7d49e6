"""Copies between the disks of a broker: some at once are started, and waited for without a worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.signatures import standing
from kraft_runbook.procedures.move_between_disks import CopiedInPart, look_at_disks, start_disk_moves
from kraft_runbook.reassignment.disks import (
    DiskMove,
    DiskPlan,
    DiskReading,
    busiest_disks,
    next_moves,
    of_plain,
    read_disks,
    to_plain,
    without_room,
)
from kraft_runbook.reassignment.hours import Hours, hours_of
from kraft_runbook.reassignment.stages import MOVE, PlanStage
from kraft_runbook.reassignment.still_copies import StillCopies
from kraft_runbook.steps.handle import Act, Cluster
from kraft_runbook.steps.reassignment.concurrency import take_up
from kraft_runbook.steps.reassignment.disk_throttle import change_disk_throttle
from kraft_runbook.steps.reassignment.disks import how_to_undo, reading_of, require_signed_disks
from kraft_runbook.steps.reassignment.ending import ENDED, STARTED, begun_before_a_kill, has_started
from kraft_runbook.steps.reassignment.files import HowFar, RunFiles, files_of
from kraft_runbook.steps.reassignment.looks import settled_look
from kraft_runbook.steps.reassignment.troubles import AGAIN_SECONDS, TRIES, WAITS, say_it_goes_on, wait_out
from kraft_runbook.steps.reassignment.waiting import SAY_SECONDS, held_back, what_is_to_do
from kraft_runbook.steps.reassignment.wanted import asks_how_fast
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)


class NothingTaken(StepFailed):
    """A broker that has just lost its replicas, or is about to get them, may show them: that passes."""


@dataclass
class WhileCopying:
    """Waits until the next copies may start, all have ended, somebody interferes, or the throttle or the number of
    copies at once is to change. The fields are those of ``waiting.WhileMoving``; ``at_once``: copies that a broker may
    make; ``gone``: moves that the task found to be gone, though their broker may still show a log. The plan is read
    once: one that is made anew ends the task that waits.
    """

    files: RunFiles
    at_once: int
    throttled: int | None = None
    rests: float = 0.0
    hours: Hours | None = None
    most: int | None = None
    gone: Collection[DiskMove] = ()
    say: float = SAY_SECONDS
    warn: Callable[[str], object] = log.warning
    _plan: DiskPlan | None = None
    _still: StillCopies = field(default_factory=StillCopies)
    _said: tuple[float, int] | None = None
    """When it told how far it is, and how many bytes were left of all then."""

    def to_plain(self) -> dict[str, Any]:
        """As plain values, for whoever waits in another process."""
        hours, gone = str(self.hours) if self.hours else None, [to_plain(each) for each in sorted(self.gone)]
        return {
            "at_once": self.at_once,
            "throttled": self.throttled,
            "hours": hours,
            "most": self.most,
            "gone": gone,
        }

    @staticmethod
    def of_plain(
        files: RunFiles, given: Mapping[str, Any], *, say: float, warn: Callable[[str], object]
    ) -> WhileCopying:
        """What ``to_plain`` gave."""
        hours, gone = hours_of(given["hours"]), frozenset(map(of_plain, given["gone"]))
        return WhileCopying(
            files, given["at_once"], given["throttled"], hours=hours, most=given["most"], gone=gone, say=say, warn=warn
        )

    def look(self, cluster: Cluster) -> str:
        """Why the task should go on, empty where nothing is to do. Raises RunbookError."""
        plan = self._plan
        if plan is None:
            plan = self._plan = self.files.disk_plan
        # by the task's own look: what it did not find gone is there, also on a failed disk
        reading = read_disks(plan, cluster.ask(look_at_disks, plan.brokers), held=plan.held, without=self.gone)
        if self._said is None or cluster.now() - self._said[0] >= self.say:
            self._tell(cluster, reading)
        if reading.stage in (PlanStage.AS_PLANNED, PlanStage.UNKNOWN):
            return f"the plan stands {reading.stage}"
        return what_is_to_do(
            cluster,
            self.files,
            self,
            left=bool(reading.left),
            busiest=busiest_disks(reading),
            counting=lambda: _that_run(cluster),
            room=lambda: bool(next_moves(reading, self.at_once)),
        )

    def _tell(self, cluster: Cluster, reading: DiskReading) -> None:
        """How far it is, in the log and for the dashboard."""
        now, left = cluster.now(), reading.bytes_left + sum(each.size for each in reading.left)
        speed = None
        if self._said is not None and now > self._said[0]:
            speed = max(0.0, (self._said[1] - left) / (now - self._said[0]))
        self._said = now, left
        cluster.tell(str(reading))
        stuck = self._still.look(reading, now, self.throttled)
        for each in stuck:
            self.warn(
                f"{each}. Read the broker's log and restart it: it goes on with them then. Or mark the run as failed"
                f" and {how_to_undo(cluster.spec.name)}, which ends them"
            )
        far = HowFar(
            at=datetime.fromtimestamp(now, UTC).isoformat(),
            partitions=len(reading.left) + len(reading.moving) + len(reading.there),
            there=len(reading.there),
            moving=len(reading.moving),
            bytes_left=left,
            bytes_a_second=speed,
            seconds_left=left / speed if speed else None,
            throttle=self.throttled,
            stuck=stuck,
        )
        try:
            self.files.keep_progress(far)
        except OSError as error:
            cluster.tell(f"How far it is could not be kept for the dashboard: {error}")


def _that_run(cluster: Cluster) -> frozenset[int]:
    """The brokers whose numbers count: a copy keeps its broker's disks busy, and others wait for its followers."""
    return settled_look(cluster, sizes_of=(), settings=False).placement.live


def move_between_disks(run: Run, *, signed: str = "") -> WhileCopying | dict[str, Any]:
    """Start the next copies of what is left. Returns the wait for those that go on, and the task's answer where nothing
    is left. A lost broker is waited for once copies were started: it goes on with them when it is back. ``signed``: as
    of ``require_signed_disks``. Raises Refused; Unreachable or StepFailed where that has lasted too long, or none was
    started.
    """
    plan, files, wanted = files_of(run).disk_plan, files_of(run), asks_how_fast(run)
    if run.cluster.rehearses:
        rehearse_disk_moves(run, plan.moves)
        return {"dry_run": True}
    at_once = wanted.first_moves
    try:
        reading = reading_of(run, plan)
        require_signed_disks(run, plan, reading, signed)
        begun_before_a_kill(run, [_named(each) for each in reading.moving])
        run.cluster.tell(str(reading))
        if reading.stage is PlanStage.AS_PLANNED:
            run.journal.record(Moves(what=ENDED, partitions=len(reading.there), told=str(reading)))
            return {"there": len(reading.there), "gone": len(reading.gone)}
        if not standing(run.journal.records(), MOVE).begun:
            run.signatures.begins(MOVE)
        change_disk_throttle(run, (*reading.moving, *reading.left), wanted.throttle)
        wanted = wanted.at_most(files.most_at_once(files.disk_rate.rate, of_disks=True))
        at_once = take_up(run, wanted.follows) if wanted.follows else wanted.most_moves
        batch, no_room = next_moves(reading, at_once, wanted.order), without_room(reading)
        undo = how_to_undo(run.spec.name)
        ends = reading.ends
        could = len(batch) > len(ends) or bool(no_room)
        held = held_back(run.cluster, files, wanted.hours, could=could, undo=undo)
        if held:
            batch = ends
        in_part: CopiedInPart | None = None
        if batch:
            try:
                taken = run.cluster.do(start_disk_moves, batch, would=[_act(each) for each in batch]) or ()
            except CopiedInPart as error:
                in_part, taken = error, error.done
            if taken:
                named = some(map(_named, taken), 5)
                run.journal.record(Moves(what=STARTED, partitions=len(taken), told=named))
            elif not in_part:  # brokers show them still, and have them no more: to ask at once would be to ask for ever
                raise NothingTaken(
                    f"nothing was taken of {len(batch)} copies: their brokers show the replicas and do not have them",
                    way_out="look in the brokers' logs, then clear this task",
                )
        if not held:
            files.rest("")
        if not reading.lost:
            say_it_goes_on(run, WAITS)
        if in_part:
            raise in_part
        if no_room:
            named = some([f"{_named(each)} in {each.target}" for each in no_room], 5)
            said = f"{len(no_room)} copies are left for which there is no room: {named}"
            if not (batch or reading.moving or reading.lost or held):
                raise StepFailed(said, way_out=f"free disk there, then clear this task. Or {undo}")
            run.cluster.tell(f"{said}. They wait")
        say_it_goes_on(run, TRIES)
        if reading.lost:
            raise Unreachable(
                f"{nodes('broker', reading.lost, 'does')} not answer", way_out="start it: it goes on with its copies"
            )
    except (Unreachable, StepFailed) as trouble:
        if not isinstance(trouble, NothingTaken) and not has_started(run):
            raise
        wait_out(run, trouble)
        return WhileCopying(files, at_once, rests=AGAIN_SECONDS)
    rate, gone = files.disk_rate.rate, frozenset(reading.gone)
    return WhileCopying(files, at_once, rate, hours=wanted.hours, most=wanted.moves, gone=gone)


def rehearse_disk_moves(run: Run, moves: Iterable[DiskMove]) -> None:
    """List the copies, each by itself."""
    for each in moves:
        run.cluster.do(start_disk_moves, [each], would=[_act(each)])


def _act(move: DiskMove) -> Act:
    return Act(f"move {_named(move)}", (f"{move.source} -> {move.target}",))


def _named(move: DiskMove) -> str:
    return f"{move.partition} of broker {move.broker}"
