"""How fast a running reassignment goes is changed while it moves, by a run of its own.

What is asked for lies in the files of the run that moves. That run takes it up at its next look and judges it by its
own rule, so nothing is set here, and no claim is needed.
"""

from __future__ import annotations

import os
from typing import Any

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.evidence.store import evidence_directory, read_records
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.stages import PlanReading, PlanStage, read_plan
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.earlier_runs import EarlierRun, earlier_runs
from kraft_runbook.steps.reassignment.files import RunFiles, saved_by
from kraft_runbook.steps.reassignment.looks import settled_look
from kraft_runbook.steps.reassignment.throttling import THROTTLE_REFUSED, rate_text, was_set
from kraft_runbook.steps.reassignment.waiting import when
from kraft_runbook.steps.run import NothingToDo, Run

TAKEN_UP_SECONDS = 300.0
"""A run that waits looks every 2 s; then Airflow starts its task, which asks what is produced for 5 s."""
AGAIN_SECONDS = 2.0
AS_THEY_ARE, PAUSE, GO_ON = "as they are", "pause", "go on"
"""What the form says of new batches."""


def change_pace(run: Run) -> dict[str, Any]:
    """Let the run that moves replicas take another throttle, and wait until it has; or start no new batches, or start
    them again. The form's ``run`` names it; without a name it is the latest whose partitions move, or that is paused.

    Raises Refused where no such run moves anything, or the run found that the rate would never let its moves end;
    NothingToDo where all is as the form asks; StepFailed where the run does not go on.
    """
    rate = round(run.params["throttle_mb"] * 1e6) if run.params["throttle_mb"] else None
    batches = str(run.params["batches"])
    if rate is None and batches == AS_THEY_ARE:
        raise Refused(
            "the form changes nothing", way_out="trigger the run anew with 'throttle_mb' or 'batches' filled in"
        )
    look = settled_look(run.cluster, sizes_of=(), settings=False)
    going, reading = _going_on(run, look, also_paused=batches == GO_ON)
    files, name = going.files, going.files.name
    ended = files.paused and run.cluster.now() > (files.paused_until or 0)
    same = batches == AS_THEY_ARE or (files.paused is (batches == PAUSE) and not ended)
    pauses = None if same else batches == PAUSE
    if rate is not None and not files.asks_for_another(rate) and _is_in_force(files, rate):
        rate = None
    asked = [] if rate is None else [f"Its throttle: {_said(going.throttles.rate)}, to be {_said(rate)}"]
    until = run.cluster.now() + run.spec.reassignment.pause if pauses else None
    asked += [] if pauses is None else [_no_batch(until) if until else "New batches are to start"]
    told = ". ".join([_subject(going, reading), *asked])
    run.cluster.tell(told)
    if not asked:
        raise NothingToDo(f"run {name} goes on as the form asks already")
    if run.cluster.rehearses:
        would = [] if rate is None else [Act(f"let run {name} throttle its moves to {_said(rate)}")]
        would += [] if pauses is None else [Act(f"let run {name} {'start no' if pauses else 'start'} new batches")]
        run.cluster.do(change_pace, would=would)
        return {"run": name}
    run.journal.record(Moves(what="asked for another pace", partitions=len(reading.moving), told=told))
    if pauses is not None:
        files.pause(until)
    if rate is not None:
        known = len(_done_by(name))
        files.keep_throttle(rate)
        _await_answer(run, going, rate, known)
        run.cluster.tell(f"Run {name} has taken it up: {_said(rate)}")
        run.journal.record(Moves(what="throttle taken up", partitions=None, told=f"run {name}: {_said(rate)}"))
    return {"run": name, "bytes_a_second": rate, "paused": files.paused}


def _await_answer(run: Run, going: EarlierRun, rate: int, known: int) -> None:
    """``known``: how many records the run that moves had before it was asked."""
    files, name = going.files, going.files.name
    ends = run.cluster.now() + TAKEN_UP_SECONDS
    while not _is_in_force(files, rate):
        refused = [told.told for told in _done_by(name)[known:] if told.what == THROTTLE_REFUSED]
        if refused:
            raise Refused(
                f"run {name} has not taken the throttle: {refused[-1]}",
                way_out="trigger this DAG anew with a rate that lets the moves end",
            )
        if run.cluster.now() > ends:
            raise StepFailed(
                f"run {name} has not taken the throttle up in {TAKEN_UP_SECONDS:g} s: it does not go on",
                way_out="clear the failed task of that run, which takes it up then; or trigger"
                f" cancel_reassignments__{run.spec.name}",
            )
        run.cluster.pause(AGAIN_SECONDS)


def _is_in_force(files: RunFiles, rate: int) -> bool:
    """A rate is noted before it is set, and a broker that is lost may come between."""
    return files.throttles.rate == rate and was_set(_done_by(files.name), rate)


def _going_on(run: Run, look: ReplicasLook, *, also_paused: bool) -> tuple[EarlierRun, PlanReading]:
    """The run that is meant, and where its plan stands."""
    named = str(run.params["run"] or "")
    if named:
        saved_by(named, run.state)
    for each in earlier_runs(run, look.cluster_id):
        reading = read_plan(each.plan, look.placement)
        if each.files.name == named and reading.stage is PlanStage.AS_PLANNED:
            raise Refused(f"all that run {named} moves is there", way_out="name a run that still moves something")
        if each.files.name == named or (not named and (reading.moving or (also_paused and each.files.paused))):
            return each, reading
    raise Refused(
        f"the files of run {named} can't be used" if named else "no partition of a run of this tool moves now",
        way_out="name the run in the form where it waits between two batches; what other tools move, this can't change",
    )


def _subject(going: EarlierRun, reading: PlanReading) -> str:
    takers = {broker for move in going.plan.moves for broker in move.adding}
    onto = f", onto {nodes('broker', takers)}" if takers else ""
    return (
        f"Run {going.files.name} ({going.plan.goal}): {len(reading.moving)} partitions move, {len(reading.left)} are"
        f" left{onto}"
    )


def _done_by(name: str) -> list[Moves]:
    return [told for _, told in of_kind(read_records(evidence_directory(os.environ), name), Moves)]


def _no_batch(until: float) -> str:
    return f"No new batch is to start. At {when(until)} the run stops, where it is still paused"


def _said(rate: int | None) -> str:
    return "none" if rate is None else rate_text(rate)
