"""The log directories that an explicit plan asks for, in a run that moves replicas: judged with the plan; what lies
elsewhere is copied between disks once the moves have ended; and none is elsewhere at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.procedures.move_between_disks import copy_settings, held_by, look_at_disks
from kraft_runbook.procedures.move_replicas import replicas_in
from kraft_runbook.reassignment.directories import (
    brokers_asked,
    copies_left,
    in_words,
    judge_directories,
    lie_elsewhere,
    require_answers,
    still_asked,
)
from kraft_runbook.reassignment.disk_rates import own_rates
from kraft_runbook.reassignment.disks import DiskMove, DiskPlan, Logs
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.stages import PlanStage
from kraft_runbook.steps.reassignment.asked_rate import THROTTLE_REFUSED
from kraft_runbook.steps.reassignment.copying import WhileCopying, move_between_disks, rehearse_disk_moves
from kraft_runbook.steps.reassignment.disk_throttle import put_disk_throttle_back, throttle_disks
from kraft_runbook.steps.reassignment.disks import how_to_undo, known_faults, reading_of
from kraft_runbook.steps.reassignment.ending import has_started, not_done, verify_plan
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.judged_rate import require_copies_end
from kraft_runbook.steps.reassignment.looks import patiently
from kraft_runbook.steps.reassignment.throttling import put_throttles_back
from kraft_runbook.steps.reassignment.troubles import AGAIN_SECONDS, TRIES, WAITS, say_it_goes_on, wait_out
from kraft_runbook.steps.reassignment.wanted import Asks, asks_how_fast
from kraft_runbook.steps.reassignment.whole import require_whole
from kraft_runbook.steps.run import Run

SAMPLE = 5
TOLD, BETWEEN = "told and not started", "; "


@dataclass(frozen=True, slots=True)
class Judged:
    """``moves``: the copies between disks that a plan takes as well; ``notes``: for its preview; ``shown``: each
    directory before and after, in Markdown.
    """

    moves: Sequence[DiskMove] = ()
    notes: tuple[str, ...] = ()
    shown: str = ""


def judged(run: Run, plan: ReassignmentPlan, throttle: int | None) -> Judged:
    """The directories that the plan asks for. Raises Refused as ``judge_directories`` does, and for a throttle under
    which the copies between disks would never end.
    """
    if not plan.directories:
        return Judged()
    brokers = brokers_asked(plan.directories)
    logs: Logs = run.cluster.ask(look_at_disks, brokers)
    copies = judge_directories(plan, logs)
    notes = (*in_words(plan, copies), *known_faults(run.cluster.settled(), sorted(brokers)))
    if not copies.moves:
        return Judged(notes=notes)
    notes += tuple(own_rates(run.cluster.ask(copy_settings, copies.brokers)))
    notes += () if throttle is None else require_copies_end(run, copies.moves, throttle)
    shown = copies.preview(logs, throttle=throttle).render_markdown()
    return Judged(copies.moves, notes, f"\n### Then between disks\n\n{shown}")


def lay_out(run: Run, plan: ReassignmentPlan) -> WhileCopying | None:
    """Once the plan's moves have ended: start the next copies of what lies in another directory than asked. Returns the
    wait for them; None where all lies as asked. Raises as ``move_between_disks`` does; StepFailed too where the
    throttle would never let them end.
    """
    if not plan.directories:
        return None
    while True:
        try:
            is_left = _store_what_is_left(run, plan)
            if is_left:
                _require_an_end(run)
        except (Unreachable, StepFailed) as trouble:
            if not has_started(run):
                raise
            wait_out(run, trouble)
            return WhileCopying(files_of(run), 1, files_of(run).disk_rate.rate, rests=AGAIN_SECONDS)
        if not is_left:
            say_it_goes_on(run, WAITS)
            say_it_goes_on(run, TRIES)
            return None
        wait = move_between_disks(run, signed=plan.digest)
        if isinstance(wait, WhileCopying):
            return wait


def _store_what_is_left(run: Run, plan: ReassignmentPlan) -> bool:
    """Whether anything is to be copied, by the run's plan of disks: the one that it goes on with, or else a new one of
    what lies elsewhere now.
    """
    files = files_of(run)
    stored = _stored(run, plan)
    if stored is not None:
        reading = reading_of(run, stored)
        if reading.stage is not PlanStage.AS_PLANNED and not reading.foreign:
            return True
    ids, held = run.cluster.ask(held_by, plan.topics)
    asked = still_asked(plan, ids, held)
    left = copies_left(asked, run.cluster.ask(look_at_disks, brokers_asked(asked)))
    if not left.moves:
        return False
    topics = {each.partition.topic for each in left.moves}
    left = DiskPlan(left.goal, left.moves, left.notes, {name: each for name, each in ids.items() if name in topics})
    files.store_disk_plan(left, begun=True)
    told = f"{len(left.moves)} replicas lie in another directory than asked, and are copied between disks"
    run.cluster.tell(told)
    run.journal.record(Moves(what="copies between disks", partitions=len(left.moves), told=told))
    return True


def _require_an_end(run: Run) -> None:
    """Before the first of these copies: more may be produced than when the plan was judged. Raises StepFailed for a
    throttle under which they would never end: that passes, or a person gives another (``pace``), who is answered.
    """
    files, given = files_of(run), asks_how_fast(run).throttle
    reading = reading_of(run, files.disk_plan)
    if reading.moving or reading.there:
        return
    try:
        rate = files.wanted_throttle(given)
        if rate is not None:
            require_copies_end(run, reading.left, rate)
    except Refused as refused:
        run.cluster.tell(f"No copy between disks begins. What to do: {refused.way_out}")
        if files.asks_for_another(given):
            run.journal.record(Moves(what=THROTTLE_REFUSED, partitions=None, told=str(refused)))
        raise StepFailed(
            refused.problem,
            way_out=f"{refused.way_out}. change_pace__{run.spec.name} takes a throttle, with this run's name; then"
            " clear this task",
        ) from None


def _stored(run: Run, plan: ReassignmentPlan) -> DiskPlan | None:
    """The run's plan of disks, where all of it is asked for by this plan, which a person has signed."""
    try:
        found = files_of(run).disk_plan
    except Refused:  # there is none, or it was changed: what lies elsewhere says what is to be copied
        return None
    return found if all(plan.directories.get((m.broker, m.partition)) == m.target for m in found.moves) else None


def rehearse_copies(run: Run, plan: ReassignmentPlan) -> None:
    """List the copies between disks of replicas that stay on their broker."""
    if plan.directories:
        logs: Logs = run.cluster.ask(look_at_disks, brokers_asked(plan.directories))
        if moves := judge_directories(plan, logs).moves:
            throttle_disks(run)
            rehearse_disk_moves(run, moves)


def note_told(run: Run, told: Directories) -> None:
    """Put on record in which directories brokers were told to make replicas of moves that were not started."""
    if new := [each for each in replicas_in(told) if each not in _told(run)]:
        run.journal.record(Moves(what=TOLD, partitions=len(new), told=BETWEEN.join(new)))


def _told(run: Run) -> set[str]:
    records = of_kind(run.journal.records(), Moves)
    return {each for _, found in records if found.what == TOLD for each in found.told.split(BETWEEN)}


def _remembered(run: Run, plan: ReassignmentPlan) -> list[str]:
    """Those of them that their brokers still have not made, of partitions that there are."""
    if not (told := _told(run)):
        return []
    _, held = run.cluster.ask(held_by, plan.topics)
    asked = {
        (broker, p): path
        for (broker, p), path in plan.directories_of_new.items()
        if p in held and broker not in held[p]
    }
    return [each for each in replicas_in(asked) if each in told]


def put_all_throttles_back(run: Run) -> dict[str, Any]:
    """Of moves between brokers, and of copies between disks. Each is put back whatever becomes of the other."""
    try:
        found = put_throttles_back(run)
    finally:
        of_disks = put_disk_throttle_back(run)
    return {**found, "left_between_disks": of_disks["left"]} if of_disks else found


def verify_with_directories(run: Run, *, asks: Asks) -> dict[str, Any] | None:
    """As of ``verify_plan``; then each broker is asked where its replicas lie, and whether their partitions have a
    leader and all replicas in sync. Raises StepFailed too where one lies in another directory than asked, or that is
    not known, and where a partition is not whole.
    """
    found = verify_plan(run, asks=asks)
    plan = files_of(run).plan()
    if found is None or not plan.directories:
        return found
    count, elsewhere = patiently(run, lambda: _elsewhere(run, plan))
    told = f"{count - len(elsewhere)} of {count} replicas lie in the directories that the plan asks for"
    run.cluster.tell(told)
    run.journal.record(Moves(what="verified", partitions=count - len(elsewhere), told=told))
    if elsewhere:
        raise StepFailed(_named(elsewhere), way_out="clear the task 'carry_out.move', which copies them there")
    require_whole(run, {p for _, p in plan.directories})
    return {**found, "in_their_directories": count}


def way_back_of_copies(run: Run) -> tuple[str, ...]:
    """How a run that moved replicas between brokers undoes its copies between disks; empty where it made none."""
    files = files_of(run)
    if not files.has_plan or not files.has_disk_plan:
        return ()
    return (f"To undo its copies between disks: {how_to_undo(run.spec.name)}",)


def undone(run: Run) -> tuple[str, ...]:
    """As of ``ending.not_done``, with what is undone of disks."""
    found, files = list(not_done(run)), files_of(run)
    try:
        if files.disk_rate.rate is not None:
            found.append("the throttle of copies between disks is not put back")
        plan = files.plan() if files.has_plan else None
        if plan and plan.directories and (elsewhere := _elsewhere(run, plan)[1]):
            found.append(_named(elsewhere))
        if plan and plan.directories and (remembered := _remembered(run, plan)):
            found.append(
                f"{len(remembered)} replicas were not begun, and their brokers remember until they restart where they"
                f" were told to make them, so a next one of that partition is made there: {some(remembered, SAMPLE)}"
            )
    except (Refused, Unreachable) as error:
        found.append(error.problem)
    return tuple(dict.fromkeys(found))


def _elsewhere(run: Run, plan: ReassignmentPlan) -> tuple[int, Sequence[str]]:
    """How many replicas are asked to lie in a certain directory, and which do not. Raises Unreachable where a broker
    does not say.
    """
    ids, held = run.cluster.ask(held_by, plan.topics)
    asked = still_asked(plan, ids, held)
    logs: Logs = run.cluster.ask(look_at_disks, brokers_asked(asked))
    require_answers(asked, logs)
    return len(asked), lie_elsewhere(asked, logs)


def _named(elsewhere: Sequence[str]) -> str:
    return f"{len(elsewhere)} replicas do not lie where the plan asks for: {some(elsewhere, SAMPLE, between='; ')}"
