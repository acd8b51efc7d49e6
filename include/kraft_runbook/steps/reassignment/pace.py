"""How fast running moves go is changed while they go on, between brokers and between disks, by a run of its own.

What is asked for lies in the files of the run that moves. That run takes it up at its next look and judges it by its
own rule, so nothing is set here, and no claim is needed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.evidence.store import evidence_directory, read_records
from kraft_runbook.procedures.move_between_disks import look_at_disks
from kraft_runbook.reassignment.disks import read_disks
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.asked_rate import THROTTLE_REFUSED, rate_text, was_set
from kraft_runbook.steps.reassignment.disks import disk_runs, how_to_undo
from kraft_runbook.steps.reassignment.earlier_runs import EarlierRun, earlier_runs
from kraft_runbook.steps.reassignment.ending import ENDED, PLANNED, STARTED
from kraft_runbook.steps.reassignment.files import DISKS, SAVED, RunFiles
from kraft_runbook.steps.reassignment.looks import settled_look
from kraft_runbook.steps.reassignment.saved_by_runs import file_of_run
from kraft_runbook.steps.reassignment.waiting import when
from kraft_runbook.steps.run import NothingToDo, Run

log = logging.getLogger(__name__)
TAKEN_UP_SECONDS = 300.0
"""A run that waits looks every 2 s; then Airflow starts its task, which asks what is produced for 5 s."""
AGAIN_SECONDS = 2.0
AS_THEY_ARE, PAUSE, GO_ON = "as they are", "pause", "go on"
"""What the form says of new batches."""


@dataclass(frozen=True, slots=True)
class Moving:
    """A run that may go on. ``moving``: how many of its moves do; ``ended``: all that it moves is there. ``told``: that
    in words. ``noted``: the rate that it has set, or is about to. ``undo``: how a person ends it.
    """

    files: RunFiles
    moving: int
    ended: bool
    told: str
    noted: Callable[[], int | None]
    undo: str


def change_pace(run: Run) -> dict[str, Any]:
    """Let the run that moves replicas take another throttle, and wait until it has; or start no new batches, or start
    them again. The form's ``run`` names it; without a name it is the one that moves something now, or that is paused.

    Raises Refused where none does, or several do, or the run found that the rate would never let its moves end;
    NothingToDo where all is as the form asks; StepFailed where the run does not go on.
    """
    rate = round(run.params["throttle_mb"] * 1e6) if run.params["throttle_mb"] else None
    batches = str(run.params["batches"])
    if rate is None and batches == AS_THEY_ARE:
        raise Refused(
            "the form changes nothing", way_out="trigger the run anew with 'throttle_mb' or 'batches' filled in"
        )
    going = _going_on(run, also_paused=batches == GO_ON)
    files, name = going.files, going.files.name
    ended = files.paused and run.cluster.now() > (files.paused_until or 0)
    same = batches == AS_THEY_ARE or (files.paused is (batches == PAUSE) and not ended)
    pauses = None if same else batches == PAUSE
    if rate is not None and not files.asks_for_another(rate) and _is_in_force(going, rate):
        rate = None
    asked = [] if rate is None else [f"Its throttle: {_said(going.noted())}, to be {_said(rate)}"]
    until = run.cluster.now() + run.spec.reassignment.pause if pauses else None
    asked += [] if pauses is None else [_no_batch(until) if until else "New batches are to start"]
    told = ". ".join([going.told, *asked])
    run.cluster.tell(told)
    if not asked:
        raise NothingToDo(f"run {name} goes on as the form asks already")
    if run.cluster.rehearses:
        would = [] if rate is None else [Act(f"let run {name} throttle its moves to {_said(rate)}")]
        would += [] if pauses is None else [Act(f"let run {name} {'start no' if pauses else 'start'} new batches")]
        run.cluster.do(change_pace, would=would)
        return {"run": name}
    run.journal.record(Moves(what="asked for another pace", partitions=going.moving, told=told))
    if pauses is not None:
        files.pause(until)
    if rate is not None:
        known = len(_done_by(name))
        files.keep_throttle(rate)
        _await_answer(run, going, rate, known)
        run.cluster.tell(f"Run {name} has taken it up: {_said(rate)}")
        run.journal.record(Moves(what="throttle taken up", partitions=None, told=f"run {name}: {_said(rate)}"))
    return {"run": name, "bytes_a_second": rate, "paused": files.paused}


def _await_answer(run: Run, going: Moving, rate: int, known: int) -> None:
    """``known``: how many records the run that moves had before it was asked."""
    name = going.files.name
    ends = run.cluster.now() + TAKEN_UP_SECONDS
    while not _is_in_force(going, rate):
        refused = [told.told for told in _done_by(name)[known:] if told.what == THROTTLE_REFUSED]
        if refused:
            raise Refused(
                f"run {name} has not taken the throttle: {refused[-1]}",
                way_out="trigger this DAG anew with a rate that lets the moves end",
            )
        if run.cluster.now() > ends:
            raise StepFailed(
                f"run {name} has not taken the throttle up in {TAKEN_UP_SECONDS:g} s: it does not go on",
                way_out=f"clear the failed task of that run, which takes it up then; or {going.undo}",
            )
        run.cluster.pause(AGAIN_SECONDS)


def _is_in_force(going: Moving, rate: int) -> bool:
    """A rate is noted before it is set, and a broker that is lost may come between."""
    return going.noted() == rate and was_set(_done_by(going.files.name), rate)


def _going_on(run: Run, *, also_paused: bool) -> Moving:
    """The run that is meant. Without a name there must be one alone that may be: a run that was given up, and left a
    copy or its pause behind, is not told from one that goes on.
    """
    named = str(run.params["run"] or "")
    if named:
        file_of_run(named, run.state, SAVED, DISKS, did="has begun to move replicas")
    now, found, forgotten, all_there = run.cluster.now(), [], [], False
    for each in chain(_between_disks(run, named), _between_brokers(run, named, also_paused=also_paused)):
        if each.files.name == named and not each.ended:
            return each
        if named or each.ended:  # a run may move between brokers, and then between disks
            all_there = all_there or each.files.name == named
            continue
        until = each.files.paused_until if also_paused else None
        if each.moving or (until is not None and until >= now):
            found.append(each)
        elif until is not None:
            forgotten.append(each)
    if all_there:
        raise Refused(f"all that run {named} moves is there", way_out="name a run that still moves something")
    found = found or forgotten
    if len(found) > 1:
        raise Refused(
            f"{len(found)} runs may be meant: {some([each.told for each in found], 5, between='; ')}",
            way_out="name the run in the form (kraft-runbook evidence lists them)",
        )
    if found:
        return found[0]
    raise Refused(
        f"run {named} has moved nothing, or its files can't be used"
        if named
        else "no run of this tool moves a replica now",
        way_out="name the run in the form where it waits between two batches; what other tools move, this can't change",
    )


def _between_brokers(run: Run, named: str, *, also_paused: bool) -> Iterator[Moving]:
    look = settled_look(run.cluster, sizes_of=(), settings=False)

    def may_be_meant(files: RunFiles) -> bool:
        if named:
            return files.name == named
        return (also_paused and files.paused) or files.may_move(look.placement.ongoing.keys())

    for each in earlier_runs(run, look.cluster_id, meant=may_be_meant):
        reading, name = read_plan(each.plan, look.placement), each.files.name
        moving = reading.moving | look.hidden_of(each.plan.target)
        takers = {broker for move in each.plan.moves for broker in move.adding}
        onto = f", onto {nodes('broker', takers)}" if takers else ""
        ended = reading.stage is PlanStage.AS_PLANNED and not moving
        lays_out = ended and _has_yet_to_lay_out(each)
        told = f"{len(moving)} partitions move, {len(reading.left)} are left{onto}"
        yield Moving(
            each.files,
            len(moving),
            ended and not lays_out,
            f"Run {name} ({each.plan.goal}): {'it is about to copy between disks' if lays_out else told}",
            partial(_noted_of_disks if lays_out else _noted_of_replicas, each.files),
            f"trigger cancel_reassignments__{run.spec.name}",
        )


def _has_yet_to_lay_out(run: EarlierRun) -> bool:
    """Whether a run whose moves have ended has still to find which replicas lie in another directory than asked."""
    if not run.plan.directories or run.files.has_disk_plan:
        return False
    last = [told.what for told in _done_by(run.files.name) if told.what in (PLANNED, ENDED)][-1:]
    return last != [ENDED]


def _between_disks(run: Run, named: str) -> Iterator[Moving]:
    runs = [files for files in disk_runs(run, DISKS) if files.name == named or not named]
    logs = run.cluster.ask(look_at_disks) if runs else {}
    for files in reversed(runs):
        try:
            plan = files.disk_plan
        except Refused as unreadable:
            log.warning("The plan of run %s is left out: %s", files.name, unreadable.problem)
            continue
        if not _has_begun(files):  # a dry run, or one that was turned away at its gate, has planned the same moves
            continue
        reading = read_disks(plan, logs)
        yield Moving(
            files,
            len(reading.moving),
            reading.stage is PlanStage.AS_PLANNED,
            f"Run {files.name} ({plan.goal}): {len(reading.moving)} replicas are copied between disks,"
            f" {len(reading.left)} are left",
            partial(_noted_of_disks, files),
            how_to_undo(run.spec.name),
        )


def _has_begun(files: RunFiles) -> bool:
    """Whether that run has copied or set its throttle, or waits until its first copies may start. One that moves
    between brokers too plans copies between disks only when it is about to make them.
    """
    return (
        files.has_plan
        or bool(files.resting)
        or files.disk_rate.rate is not None
        or any(told.what == STARTED for told in _done_by(files.name))
    )


def _noted_of_replicas(files: RunFiles) -> int | None:
    return files.throttles.rate


def _noted_of_disks(files: RunFiles) -> int | None:
    return files.disk_rate.rate


def _done_by(name: str) -> list[Moves]:
    return [told for _, told in of_kind(read_records(evidence_directory(os.environ), name), Moves)]


def _no_batch(until: float) -> str:
    return f"No new batch is to start. At {when(until)} the run stops, where it is still paused"


def _said(rate: int | None) -> str:
    return "none" if rate is None else rate_text(rate)
