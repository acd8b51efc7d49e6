"""Replicas moved between the disks of one broker: the plan and its gate, where it stands, the end, the way back."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.fault_uses import Use
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Begins, Moves, of_kind
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.private_file import write_private
from kraft_runbook.migration import faults_of_3_9
from kraft_runbook.procedures.move_between_disks import copy_settings, held_by, look_at_disks
from kraft_runbook.reassignment.disk_goals import (
    DiskGoal,
    EmptyDisk,
    EvenDisks,
    ExplicitDisks,
    directories_from_json,
    plan_disks,
    still_meant,
    topics_meant,
)
from kraft_runbook.reassignment.disk_rates import own_rates
from kraft_runbook.reassignment.disk_way_back import back_over
from kraft_runbook.reassignment.disks import DiskPlan, DiskReading, read_disks, without_strays
from kraft_runbook.reassignment.hours import shown_hours
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.stages import CANCEL, MOVE, PlanStage
from kraft_runbook.software.known_faults import FAULTS, was_looked_at
from kraft_runbook.steps.examine import Examined, Shown
from kraft_runbook.steps.reassignment.ending import PLANNED, has_started, leave_with_nothing_to_do
from kraft_runbook.steps.reassignment.files import DISKS, PROGRESS, RunFiles, files_of, files_of_all
from kraft_runbook.steps.reassignment.judged_rate import require_copies_end
from kraft_runbook.steps.reassignment.looks import check_before_moving, examine
from kraft_runbook.steps.reassignment.wanted import asks_how_fast
from kraft_runbook.steps.run import Run

EMPTY, EVEN, EXPLICIT, BACK = "empty this disk", "even the disks", "explicit", "back to the old disks"
"""What the form asks for."""


def _goal(run: Run) -> DiskGoal:
    params, goal = run.params, run.params["goal"]
    if goal == EXPLICIT:
        if not params["plan"]:
            raise Refused("the form holds no plan", way_out="trigger the run anew with 'plan' filled in")
        return ExplicitDisks(directories_from_json(params["plan"], source="the form's plan"))
    if goal == BACK:
        known = {each.name: each for each in disk_runs(run, DISKS)}
        if (name := str(params["run"] or "")) not in known:
            raise Refused(
                f"no run named {name!r} moved replicas between disks of cluster {run.spec.name}",
                way_out=f"name one of: {', '.join(sorted(known)) or '(there is none)'}",
            )
        return back_over(known[name].disk_plans)
    if params["broker"] is None or (goal == EMPTY and not params["directory"]):
        wanted = "'broker' and 'directory'" if goal == EMPTY else "'broker'"
        raise Refused(f"to {goal}, the form must name them", way_out=f"trigger the run anew with {wanted} filled in")
    broker = int(params["broker"])
    return EmptyDisk(broker, str(params["directory"])) if goal == EMPTY else EvenDisks(broker)


PUTS_BACK = {"move_between_disks": "put_throttle_back", "reassign_partitions": "put_throttles_back"}
"""The DAGs that copy between disks, each with its task that puts the throttle back."""


LATELY_SECONDS = 120.0
"""A run that waits says how far it is four times in it."""


def disk_runs(run: Run, having: str) -> list[RunFiles]:
    """The runs on this cluster that moved replicas between disks and have this file, the newest last."""
    places = [each for dag in PUTS_BACK for each in files_of_all(run.state).glob(f"{dag}__{run.spec.name}__*/{having}")]
    return [RunFiles(each.parent) for each in sorted(places, key=lambda path: (path.stat().st_mtime, path))]


def stand_still(run: Run) -> Iterator[str]:
    """The copies between disks that stand still by the runs that wait for them (``copying.WhileCopying``), in words."""
    for files in disk_runs(run, DISKS):
        path = files.directory / PROGRESS
        try:
            if time.time() - path.stat().st_mtime < LATELY_SECONDS:
                yield from (
                    f"copies between disks of run {files.name}: {s}" for s in json.loads(path.read_text())["stuck"]
                )
        except (OSError, ValueError, KeyError, TypeError):
            continue


def _gate(run: Run, gate: str | None) -> str | None:
    """The gate by whose checks a run is judged: the way back ends copies, so what hinders a move alone does not hinder
    it.
    """
    return CANCEL if run.params["goal"] == BACK else gate


def check_before_copying(run: Run) -> dict[str, Any]:
    """As of ``check_before_moving``."""
    return check_before_moving(run, _gate(run, None))


def examine_disks(run: Run, gate: str) -> Examined:
    """As of ``looks.examine``."""
    return examine(run, _gate(run, gate) or gate)


def plan_between_disks(run: Run) -> dict[str, Any]:
    """Plan, and keep the plan for the gate. Raises Refused for what must not be planned, NothingToDo where nothing is
    to move.
    """
    seen, goal = run.cluster.ask(look_at_disks), _goal(run)
    ids, held = run.cluster.ask(held_by, topics_meant(goal, seen))
    logs, strays = without_strays(seen, held)
    plan = plan_disks(still_meant(goal, ids, run.cluster.tell), logs, held)
    if not plan.moves:
        said = (f"{plan.goal}: nothing is to move between disks", *plan.notes, *strays.values())
        leave_with_nothing_to_do(run, "; ".join(said))
    throttle = asks_how_fast(run).throttle
    notes = (
        *plan.notes,
        *(strays[b] for b in plan.brokers if b in strays),
        *known_faults(run.cluster.settled(), plan.brokers),
        *own_rates(run.cluster.ask(copy_settings, plan.brokers)),
        *(() if throttle is None else require_copies_end(run, plan.moves, throttle)),
    )
    topics = {m.partition.topic for m in plan.moves}
    plan = replace(plan, notes=notes, topic_ids={topic: each for topic, each in ids.items() if topic in topics})
    shown = plan.preview(logs, throttle=throttle).render_markdown() + shown_hours(asks_how_fast(run).hours)
    files = files_of(run)
    files.store_disk_plan(plan, begun=any(told.gate == MOVE for _, told in of_kind(run.journal.records(), Begins)))
    write_private(files.preview(plan.digest), shown)
    run.cluster.tell(shown)
    run.journal.record(Moves(what=PLANNED, partitions=len(plan.moves), told=shown))
    return {"digest": plan.digest, "replicas": len(plan.moves)}


def known_faults(seen: ClusterObservation, brokers: Collection[int]) -> Iterator[str]:
    """What is known to go wrong with several log directories in the releases that these brokers run; whose release is
    not known, or is not in the list of faults (docs/known-faults.md), is named too.
    """
    versions = {b: found for b in brokers if b in seen.brokers and was_read(found := seen.brokers[b].software_version)}
    for fault in (*faults_of_3_9.FAULTS, *FAULTS):
        having = [b for b, version in versions.items() if fault.is_in(KafkaVersion.of(version))]
        if having and fault.only_with is Use.DIRECTORIES:
            yield f"{nodes('broker', having, 'runs')} a release with a known fault: {fault}"
    lists = (faults_of_3_9.was_looked_at, was_looked_at)
    unknown = [b for b in brokers if b not in versions or not any(of(KafkaVersion.of(versions[b])) for of in lists)]
    if unknown:
        yield f"whether {nodes('broker', unknown, 'runs')} a release with a fault in such moves is not known"


def shows_disks(run: Run) -> Shown:
    """The plan of this run, for its gate. Raises Refused where there is none."""
    plan = files_of(run).disk_plan
    preview = files_of(run).preview(plan.digest).read_text()
    return Shown(exhibits=(Exhibit("plan", plan.digest, f"### What moves between disks\n\n{preview}"),), by="plan")


def require_signed_disks(run: Run, plan: DiskPlan, reading: DiskReading, signed: str = "") -> None:
    """The claim is this run's, and a person has signed this very plan, or the one that it is a part of (``signed``: its
    digest); the proof's age as of ``signed.require_signed``. Raises Refused; nothing was changed then.
    """
    run.claim.take()
    exhibit = signed or plan.digest
    under_way = bool(reading.moving or reading.there or files_of(run).resting or (signed and has_started(run)))
    run.signatures.require(REASSIGNMENT, MOVE, run.cluster.settled(), exhibit=exhibit, under_way=under_way)
    if reading.foreign:
        raise Refused(
            f"the disks are not as the plan found them: {reading}",
            way_out="let it end, then clear the task 'plan' with its downstream tasks: the rest is planned and signed"
            " for anew",
        )


def reading_of(run: Run, plan: DiskPlan) -> DiskReading:
    """Where this plan stands, by the ids of its topics too, and by who has their partitions."""
    ids, held = run.cluster.ask(held_by, {each.partition.topic for each in plan.moves})
    return read_disks(plan, run.cluster.ask(look_at_disks, plan.brokers), ids, held)


def verify_disks(run: Run) -> dict[str, Any] | None:
    """Ask each broker where its replicas lie. Raises StepFailed where one is not where the plan puts it."""
    if run.cluster.rehearses:
        return None
    plan = files_of(run).disk_plan
    reading = reading_of(run, plan)
    run.cluster.tell(str(reading))
    run.journal.record(Moves(what="verified", partitions=len(reading.there), told=str(reading)))
    if reading.stage is not PlanStage.AS_PLANNED:
        raise StepFailed(f"not as planned: {reading}", way_out="clear the task 'carry_out.move'")
    return {"there": len(reading.there), "gone": len(reading.gone)}


def disks_not_done(run: Run) -> tuple[str, ...]:
    """What the cluster shows to be undone, whatever the states of the run's tasks say."""
    found = []
    try:
        if files_of(run).disk_rate.rate is not None:
            found.append("the throttle of copies between disks is not put back")
        reading = reading_of(run, files_of(run).disk_plan)
    except (Refused, Unreachable) as error:
        return (*found, error.problem)
    return (*found, *(() if reading.stage is PlanStage.AS_PLANNED else (f"the plan is not carried out: {reading}",)))


def way_back_of_disks(run: Run) -> tuple[str, ...]:
    """How a run is undone, in words."""
    return (f"{how_to_undo(run.spec.name)}: copies that go on are ended, and what has moved goes back",)


def how_to_undo(cluster: str) -> str:
    """Which form a person triggers for it."""
    return f"trigger move_between_disks__{cluster} with '{BACK}' and this run's name"
