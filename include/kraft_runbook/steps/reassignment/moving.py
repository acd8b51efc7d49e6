"""What is there is saved, and replicas are moved batch by batch."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kraft_runbook.cluster.assignment import Move
from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.evidence.course import course_to_list
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.signatures import standing
from kraft_runbook.procedures.demote_broker import keep_orders
from kraft_runbook.procedures.look_at_replicas import look_at_plan
from kraft_runbook.procedures.move_replicas import StartedInPart, of_untold, save_state, start_next_batch
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.batches import Limits, batch_with_room, batches
from kraft_runbook.reassignment.list_room import crowded, filled_by_others
from kraft_runbook.reassignment.stages import MOVE, PlanReading, PlanStage
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.concurrency import take_up
from kraft_runbook.steps.reassignment.copying import WhileCopying
from kraft_runbook.steps.reassignment.directories import lay_out, note_told, rehearse_copies
from kraft_runbook.steps.reassignment.ending import ENDED, STARTED, begun_before_a_kill, has_started
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.signed import of_lost, require_signed
from kraft_runbook.steps.reassignment.throttling import (
    change_throttle,
    list_what_moves,
    listed_by_others,
    put_throttles_back,
)
from kraft_runbook.steps.reassignment.troubles import AGAIN_SECONDS, TRIES, WAITS, say_it_goes_on, wait_out
from kraft_runbook.steps.reassignment.waiting import WhileMoving, held_back, point_of
from kraft_runbook.steps.reassignment.wanted import Asks
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)


def moves_of(batch: Iterable[Move], asked: Directories | None = None) -> tuple[Act, ...]:
    """The acts of starting these moves. ``asked``: the directories that replicas are to be made in."""

    def told(move: Move) -> Iterator[str]:
        yield f"{list(move.present)} -> {list(move.target)}"
        for broker in move.adding if asked else ():
            if path := (asked or {}).get((broker, move.partition)):
                yield f"in {path} of broker {broker}"

    return tuple(Act(f"move {m.partition}", tuple(told(m))) for m in batch)


def save(run: Run) -> dict[str, Any] | None:
    """Keep the assignment and the throttles as they are, on disk, before anything changes. Raises Refused."""
    if run.cluster.rehearses:
        run.cluster.tell("Dry run: the present assignment would be saved")
        return None
    files = files_of(run)
    look, _, _ = require_signed(run)
    throttles = run.cluster.ask(read_throttles, {p.topic for p in look.seen})
    saved, plan = save_state(files.saved, look, throttles), files.plan()
    if plan.demotes:
        keep_orders(files.orders, look.cluster_id, plan.present, plan.target, plan.topic_ids)
    run.cluster.tell(f"Saved: {files.saved}")
    run.journal.record(Moves(what="saved", partitions=len(saved.assignment)))
    return {"run": files.name}


def move_on(run: Run, *, asks: Asks) -> WhileMoving | WhileCopying | dict[str, Any]:
    """Start the next batch, of what is left. Returns the wait for what moves, and the task's answer where nothing is
    left. Once all moves have ended, replicas that lie in another directory than the plan asks for are copied there; the
    throttle between brokers is put back before, since copies between disks may take hours.

    Once moves were started, a lost broker, a server that does not answer, and what Kafka refuses for the moment end
    nothing: the wait is for them (``troubles``), and what can go on does. So does what needs no directory that a broker
    did not take: the next batch is chosen at once, without those that ask for it. Raises Refused; Unreachable or
    StepFailed where that has lasted too long, or none was started.
    """
    files, untold = files_of(run), dict[tuple[int, str], str]()
    while True:
        try:
            found = _move_on(run, asks, untold)
            if isinstance(found, PlanReading) and files.plan().directories and files.throttles.rate is not None:
                put_throttles_back(run)
            break
        except (Unreachable, StepFailed) as trouble:
            if isinstance(trouble, StartedInPart) and trouble.untold.keys() - untold.keys():
                untold |= trouble.untold
                continue
            if not has_started(run):
                raise
            wait_out(run, trouble)
            return WhileMoving(files, Limits(1), files.throttles.rate, rests=AGAIN_SECONDS)
    if isinstance(found, WhileMoving):
        return found
    if wait := lay_out(run, files.plan()):
        return wait
    course = tuple(course_to_list(files.course))
    run.journal.record(Moves(what=ENDED, partitions=len(found.there), course=course))
    return {"there": len(found.there), "deleted_since": len(found.gone)}


def _move_on(run: Run, asks: Asks, untold: Mapping[tuple[int, str], str]) -> WhileMoving | PlanReading:
    """Where the plan stands, where nothing of it is left between brokers. ``untold``: as of ``StartedInPart``, from
    this task's batches before.
    """
    look, reading, seen = require_signed(run, waits=True)
    begun_before_a_kill(run, [str(each) for each in sorted(reading.moving)])
    waits = has_started(run)
    if reading.lost and not waits:
        raise of_lost(run, reading)
    files, wanted = files_of(run), asks(run)
    plan = files.plan()
    run.cluster.tell("; ".join(reading.because))
    if reading.stage is PlanStage.AS_PLANNED and (not (course := files.course) or course[-1].partitions):
        for what in (WAITS, TRIES):  # at the first such look: what it waits for between disks begins later
            say_it_goes_on(run, what)
    try:
        files.keep_point(point_of(look, reading, None if reading.moving else 0))
    except OSError as error:
        log.warning("What is left could not be kept for the dashboard and the evidence: %s", error)
    if reading.stage is PlanStage.AS_PLANNED:
        return reading
    if reading.lost:
        wait_out(run, of_lost(run, reading))
    if not standing(run.journal.records(), MOVE).begun:
        run.signatures.begins(MOVE)
    change_throttle(run, plan, look, wanted)
    wanted = wanted.at_most(files.most_at_once(files.throttles.rate))
    limits = wanted.limits(seen, take_up(run, wanted.follows) if wanted.follows else None)
    look = replace(look, placement=replace(look.placement, closed=frozenset(untold)))
    now, next_ones, no_room = batch_with_room(plan, look, limits, listed=partial(listed_by_others, run))
    look, copying = replace(look, placement=now), now.copying
    moving = [each for each in plan.moves if each.partition in copying]
    filled = filled_by_others(reading.left, [*moving, *next_ones], now.listed)
    no_room += tuple(f"topic {each}: others have filled its lists of throttled replicas" for each in filled)
    no_room += (of_untold(untold.values()),) if untold else ()
    stands = reading.holds_up(now.ongoing) and not reading.lost and not next_ones
    if stands:
        if not waits:
            raise of_lost(run, reading)
        wait_out(run, of_lost(run, reading))
    undo = f"trigger cancel_reassignments__{run.spec.name}"
    held = held_back(run.cluster, files, wanted.hours, could=bool(next_ones or no_room), undo=undo)
    if held:
        next_ones = ()
    begun = [*moving, *next_ones]
    list_what_moves(run, begun)
    if topics := crowded(reading.left, begun):
        run.cluster.tell(f"No more of {some(topics)} at once: lists of throttled replicas would be too long to be read")
    batch: Sequence[Move] = ()
    in_part: StartedInPart | None = None
    if next_ones:
        acts = moves_of(next_ones, plan.directories)
        try:
            batch = run.cluster.do(start_next_batch, plan, look, limits, among=next_ones, would=acts) or ()
        except StartedInPart as error:
            in_part, batch = error, error.done
            note_told(run, error.told)
    if batch:
        named = some(move.partition for move in batch)
        run.cluster.tell(f"Started {len(batch)} moves: {named}")
        run.journal.record(Moves(what=STARTED, partitions=len(batch), told=named))
    if not held:
        files.rest("")
    if not reading.lost and not stands:
        say_it_goes_on(run, WAITS)
    if in_part:
        raise in_part
    for each in no_room:
        log.warning("%s: what would start there waits", each)
    if no_room and not (next_ones or reading.moving or reading.lost or stands or held):
        raise StepFailed(
            f"nothing else is left than moves without room: {some(no_room, between='; ')}",
            way_out="make room there, then clear this task. Or begin a new run, which plans what is left anew",
        )
    say_it_goes_on(run, TRIES)
    if next_ones and not batch:
        # What Metadata still shows, Kafka does not know any more: to ask at once would be to ask for ever.
        run.cluster.tell(f"Nothing was taken of {len(next_ones)} moves, trying again")
        return WhileMoving(files, limits, files.throttles.rate, rests=AGAIN_SECONDS)
    return WhileMoving(
        files,
        limits,
        files.throttles.rate,
        now.being_deleted | plan.made_anew(now.topic_ids),
        hours=wanted.hours,
        most=wanted.moves,
        full=now.full,
        closed=now.closed,
        filled=filled,
    )


def rehearse_moves(run: Run, *, asks: Asks) -> None:
    """Batch after batch, as if each had ended before the next; then the copies between disks."""
    files, wanted = files_of(run), asks(run)
    wanted = wanted.at_most(files.most_at_once(files.wanted_throttle(wanted.throttle)))
    plan, limits = files.plan(), wanted.limits(run.cluster.observe())
    look, _ = run.cluster.ask(look_at_plan, plan)
    for batch in batches(plan, look.placement, limits):
        run.cluster.do(start_next_batch, plan, look, limits, would=moves_of(batch, plan.directories))
    rehearse_copies(run, plan)
