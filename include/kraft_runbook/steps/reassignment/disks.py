"""Replicas moved between the disks of one broker: the plan and its gate, the copies, the throttle, the way back."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.io.private_file import write_private
from kraft_runbook.procedures.move_between_disks import disk_rate, look_at_disks, set_disk_rate, start_disk_moves
from kraft_runbook.reassignment.disk_goals import (
    BackToOldDisks,
    DiskGoal,
    EmptyDisk,
    EvenDisks,
    ExplicitDisks,
    directories_from_json,
    plan_disks,
)
from kraft_runbook.reassignment.disks import DiskMove, DiskPlan, DiskReading, next_moves, plan_from_json, read_disks
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.stages import MOVE, PlanStage
from kraft_runbook.software.fault_uses import Use
from kraft_runbook.software.known_faults import FAULTS, was_looked_at
from kraft_runbook.steps.examine import Shown
from kraft_runbook.steps.handle import Act, Cluster
from kraft_runbook.steps.reassignment.ending import PLANNED, STARTED, has_started, leave_with_nothing_to_do
from kraft_runbook.steps.reassignment.files import RunFiles, file_of_run, files_of, files_of_all
from kraft_runbook.steps.reassignment.throttling import rate_text
from kraft_runbook.steps.reassignment.troubles import AGAIN_SECONDS, say_it_goes_on, wait_out
from kraft_runbook.steps.run import Run

EMPTY, EVEN, EXPLICIT, BACK = "empty this disk", "even the disks", "explicit", "back to the old disks"
"""What the form asks for."""
DISKS, RATE = "disks.json", "disk_rate.json"
AT_ONCE = 20


def _goal(run: Run) -> DiskGoal:
    params, goal = run.params, run.params["goal"]
    if goal == EXPLICIT:
        if not params["plan"]:
            raise Refused("the form holds no plan", way_out="trigger the run anew with 'plan' filled in")
        return ExplicitDisks(directories_from_json(params["plan"], source="the form's plan"))
    if goal == BACK:
        return BackToOldDisks(_plan_of(str(params["run"] or ""), run.state).moves)
    if params["broker"] is None or (goal == EMPTY and not params["directory"]):
        wanted = "'broker' and 'directory'" if goal == EMPTY else "'broker'"
        raise Refused(f"to {goal}, the form must name them", way_out=f"trigger the run anew with {wanted} filled in")
    broker = int(params["broker"])
    return EmptyDisk(broker, str(params["directory"])) if goal == EMPTY else EvenDisks(broker)


def _plan_of(name: str, state: Path) -> DiskPlan:
    """What a run of this name planned. Raises Refused where none did."""
    path = file_of_run(name, state, DISKS, did="moved replicas between disks")
    return plan_from_json(path.read_text(), source=str(path))


def _plan(run: Run) -> DiskPlan:
    return _plan_of(run.name, run.state)


def plan_between_disks(run: Run) -> dict[str, Any]:
    """Plan, and keep the plan for the gate. Raises Refused for what must not be planned, NothingToDo where nothing is
    to move.
    """
    logs = run.cluster.ask(look_at_disks)
    plan = plan_disks(_goal(run), logs)
    if not plan.moves:
        leave_with_nothing_to_do(run, f"{plan.goal}: nothing is to move between disks")
    notes = (*plan.notes, *known_faults(run.cluster.settled(), plan.brokers))
    plan = replace(plan, notes=notes, topic_ids=run.cluster.ask(topic_ids, {m.partition.topic for m in plan.moves}))
    shown = plan.preview(logs, throttle=_rate(run)).render_markdown()
    files = files_of(run)
    write_private(files.directory / DISKS, plan.to_json())
    write_private(files.preview(plan.digest), shown)
    run.cluster.tell(shown)
    run.journal.record(Moves(what=PLANNED, partitions=len(plan.moves), told=shown))
    return {"digest": plan.digest, "replicas": len(plan.moves)}


def known_faults(seen: ClusterObservation, brokers: Collection[int]) -> Iterator[str]:
    """What is known to go wrong with several log directories in the releases that these brokers run; whose release is
    not known, or is not in the list of faults (docs/known-faults.md), is named too.
    """
    versions = {b: found for b in brokers if b in seen.brokers and was_read(found := seen.brokers[b].software_version)}
    for fault in FAULTS:
        having = [b for b, version in versions.items() if fault.is_in(KafkaVersion.of(version))]
        if having and fault.only_with is Use.DIRECTORIES:
            yield f"{nodes('broker', having, 'runs')} a release with a known fault: {fault}"
    unknown = [b for b in brokers if b not in versions or not was_looked_at(KafkaVersion.of(versions[b]))]
    if unknown:
        yield f"whether {nodes('broker', unknown, 'runs')} a release with a fault in such moves is not known"


def shows_disks(run: Run) -> Shown:
    """The plan of this run, for its gate. Raises Refused where there is none."""
    plan = _plan(run)
    preview = files_of(run).preview(plan.digest).read_text()
    return Shown(exhibits=(Exhibit("plan", plan.digest, f"### What moves between disks\n\n{preview}"),), by="plan")


def _rate(run: Run) -> int | None:
    return round(run.params["throttle_mb"] * 1e6) if run.params["throttle_mb"] else None


def _signed(run: Run, plan: DiskPlan, reading: DiskReading) -> None:
    """The claim is this run's, and a person has signed this very plan. Raises Refused; nothing was changed then."""
    run.claim.take()
    under_way = bool(reading.moving or reading.there)
    run.signatures.require(REASSIGNMENT, MOVE, run.cluster.settled(), exhibit=plan.digest, under_way=under_way)
    if reading.foreign:
        raise Refused(
            f"the disks are not as the plan found them: {reading}",
            way_out="let it end, then clear the task 'plan' with its downstream tasks: the rest is planned and signed"
            " for anew",
        )


def _reading(run: Run, plan: DiskPlan) -> DiskReading:
    ids = run.cluster.ask(topic_ids, plan.topic_ids.keys()) if plan.topic_ids else {}
    return read_disks(plan, run.cluster.ask(look_at_disks, plan.brokers), ids)


def throttle_disks(run: Run) -> dict[str, Any] | None:
    """Set the throttle that the form names, once the former one is on disk. Raises Refused, Unreachable, StepFailed."""
    rate = _rate(run)
    if rate is None:
        run.cluster.tell("The form names no throttle")
        return None
    if run.cluster.rehearses:
        run.cluster.do(set_disk_rate, would=_would_throttle(rate))
        return None
    plan = _plan(run)
    _signed(run, plan, _reading(run, plan))
    _throttle(run, rate)
    return {"bytes_a_second": rate}


def _would_throttle(rate: int) -> list[Act]:
    return [Act(f"throttle copies between disks to {rate_text(rate)}")]


def _throttle(run: Run, rate: int) -> None:
    if not _note(run).exists():
        former = run.cluster.ask(disk_rate)
        for _, kept in _notes(run):
            former = kept["former"] if former == kept["ours"] else former  # another run's own is nobody's former
        write_private(_note(run), json.dumps({"former": former, "ours": str(rate)}))
    run.cluster.do(set_disk_rate, str(rate), would=_would_throttle(rate))
    run.journal.record(Moves(what="throttled", partitions=None, told=rate_text(rate)))


def put_disk_throttle_back(run: Run) -> dict[str, Any] | None:
    """Whatever happened: the throttle becomes what it was, once none of the run's copies goes on. One that somebody
    else set meanwhile stays. A run that undoes another puts back that one's too. Raises Unreachable, StepFailed.
    """
    undone = files_of_all(run.state) / str(run.params.get("run") or "") / RATE
    found = _put_back(run, _note(run))
    return _put_back(run, undone) or found if run.params.get("goal") == BACK else found


def _put_back(run: Run, note: Path) -> dict[str, Any] | None:
    if run.cluster.rehearses or not note.exists():
        return None
    run.claim.take()
    plan = _plan_of(note.parent.name, run.state)
    reading = _reading(run, plan)
    if reading.moving or reading.lost:  # a broker that is back goes on with its copies
        run.cluster.tell(f"The throttle stays while copies go on, or may: {reading}")
        return {"left": len(reading.moving) or len(reading.left) or 1}
    kept = json.loads(note.read_text())
    if run.cluster.ask(disk_rate) == kept["ours"]:
        going = [other["ours"] for name, other in _notes(run) if name != note.parent.name and _may_go_on(run, name)]
        former = going[-1] if going else kept["former"]
        run.cluster.do(set_disk_rate, former, would=[Act("put the throttle of copies between disks back")])
    note.unlink(missing_ok=True)
    run.journal.record(Moves(what="put back", partitions=None, told=str(kept["former"])))
    return {"left": 0}


@dataclass(slots=True)
class WhileCopying:
    """Waits until the next copies may start, all have ended, or somebody interferes. ``rests``: so many seconds until
    what failed is tried again, without a look. The plan is read once: one that is made anew ends the task that waits.
    """

    files: RunFiles
    at_once: int
    rests: float = 0.0
    _plan: DiskPlan | None = None

    def look(self, cluster: Cluster) -> tuple[str, str]:
        """Why the task should go on, empty where nothing is to do; and how far it is. Raises RunbookError."""
        plan = self._plan
        if plan is None:
            plan = self._plan = plan_from_json((self.files.directory / DISKS).read_text(), source=DISKS)
        reading = read_disks(plan, cluster.ask(look_at_disks, plan.brokers))
        if reading.stage in (PlanStage.AS_PLANNED, PlanStage.UNKNOWN):
            return f"the plan stands {reading.stage}", str(reading)
        return ("there is room for the next copies" if next_moves(reading, self.at_once) else ""), str(reading)


def move_between_disks(run: Run) -> WhileCopying | dict[str, Any]:
    """Start the next copies of what is left. Returns the wait for those that go on, and the task's answer where nothing
    is left. A lost broker is waited for once copies were started: it goes on with them when it is back. Raises Refused;
    Unreachable or StepFailed where that has lasted too long, or none was started.
    """
    plan, files, at_once = _plan(run), files_of(run), int(run.params["moves_a_broker"])
    if run.cluster.rehearses:
        for each in plan.moves:
            run.cluster.do(start_disk_moves, [each], would=[_act(each)])
        return {"dry_run": True}
    started = has_started(run)
    try:
        reading = _reading(run, plan)
        _signed(run, plan, reading)
        run.cluster.tell(str(reading))
        if reading.stage is PlanStage.AS_PLANNED:
            run.journal.record(Moves(what="ended", partitions=len(reading.there), told=str(reading)))
            return {"there": len(reading.there), "gone": len(reading.gone)}
        if batch := next_moves(reading, at_once):
            run.signatures.begins(MOVE)
        if (batch or reading.moving) and (rate := _rate(run)) is not None and not _is_throttled(run):
            _throttle(run, rate)  # it was put back when an earlier try had failed, or by another run
        if batch:
            taken = run.cluster.do(start_disk_moves, batch, would=[_act(each) for each in batch]) or ()
            named = some([f"{m.partition} of broker {m.broker}" for m in taken], 5)
            run.journal.record(Moves(what=STARTED, partitions=len(taken), told=named))
        if reading.lost:
            raise Unreachable(
                f"{nodes('broker', reading.lost, 'does')} not answer", way_out="start it: it goes on with its copies"
            )
        say_it_goes_on(run)
    except (Unreachable, StepFailed) as trouble:
        if not started and not has_started(run):
            raise
        wait_out(run, trouble)
        return WhileCopying(files, at_once, rests=AGAIN_SECONDS)
    return WhileCopying(files, at_once)


def _act(move: DiskMove) -> Act:
    return Act(f"move {move.partition} of broker {move.broker}", (f"{move.source} -> {move.target}",))


def verify_disks(run: Run) -> dict[str, Any] | None:
    """Ask each broker where its replicas lie. Raises StepFailed where one is not where the plan puts it."""
    if run.cluster.rehearses:
        return None
    plan = _plan(run)
    reading = _reading(run, plan)
    run.cluster.tell(str(reading))
    run.journal.record(Moves(what="verified", partitions=len(reading.there), told=str(reading)))
    if reading.stage is not PlanStage.AS_PLANNED:
        raise StepFailed(f"not as planned: {reading}", way_out="clear the task 'carry_out.move'")
    return {"there": len(reading.there), "gone": len(reading.gone)}


def disks_not_done(run: Run) -> tuple[str, ...]:
    """What the cluster shows to be undone, whatever the states of the run's tasks say."""
    found = ["the throttle of copies between disks is not put back"] if _note(run).exists() else []
    try:
        reading = _reading(run, _plan(run))
    except (Refused, Unreachable) as error:
        return (*found, error.problem)
    return (*found, *(() if reading.stage is PlanStage.AS_PLANNED else (f"the plan is not carried out: {reading}",)))


def _note(run: Run) -> Path:
    return files_of(run).directory / RATE


def _notes(run: Run) -> list[tuple[str, dict[str, Any]]]:
    """Of each run on this cluster that has not put its throttle back, its name, and what it set and found."""
    places = sorted(files_of_all(run.state).glob(f"move_between_disks__{run.spec.name}__*/{RATE}"))
    return [(note.parent.name, json.loads(note.read_text())) for note in places]


def _is_throttled(run: Run) -> bool:
    """Whether its throttle is set, or a person has set another meanwhile."""
    if not _note(run).exists():
        return False
    kept = json.loads(_note(run).read_text())
    return bool(kept["former"] == kept["ours"] or run.cluster.ask(disk_rate) != kept["former"])


def _may_go_on(run: Run, name: str) -> bool:
    """Whether copies of that run go on, or will once a broker is back."""
    reading = _reading(run, _plan_of(name, run.state))
    return bool(reading.moving or reading.lost)


def _goes_on(run: Run, name: str) -> bool:
    return bool(_reading(run, _plan_of(name, run.state)).moving)


def disk_throttles_left(run: Run) -> list[str]:
    """In words: the throttles that runs on this cluster set for copies between disks, where none of them goes on."""
    found = []
    for name, kept in _notes(run):
        if not _goes_on(run, name) and run.cluster.ask(disk_rate) == kept["ours"]:
            found.append(
                f"a throttle of copies between disks without a copy: {kept['ours']}, set by run {name}:"
                " clear its task 'carry_out.put_throttle_back'"
            )
    return found


def way_back_of_disks(run: Run) -> tuple[str, ...]:
    """How a run is undone, in words."""
    return (
        f"trigger move_between_disks__{run.spec.name} with '{BACK}' and this run's name: copies that go on are ended,"
        " and what has moved goes back",
    )
