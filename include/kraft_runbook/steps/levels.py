"""A feature level's change: planned, signed with its preview, applied once, seen on every node."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Planned, Reached, of_kind
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.private_file import write_private
from kraft_runbook.levels.change import Direction, LevelChange
from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.levels.preview import Preview
from kraft_runbook.levels.stages import Gate, Step
from kraft_runbook.procedures.change_level import await_level, change_level
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook.steps.examine import Shown, examines_by_checks
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.run import Run

PLAN = "plan"
SEEN_BY_ALL = "level_shown_by_every_node"


examine = examines_by_checks(LEVELS)


# -- the plan, as a file that the gate's proof names -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """What a person signs: the change, and its preview with the server's answer as it was rendered."""

    feature: str
    now: int
    target: int
    software: str
    rendered: str

    def __str__(self) -> str:
        return f"{self.feature} {self.now} -> {self.target}"

    @property
    def digest(self) -> str:
        return sha256_of(asdict(self))

    def fits(self, change: LevelChange) -> bool:
        """Whether a change that was planned anew is the one that was signed."""
        return (self.feature, self.now, self.target, self.software) == (
            change.feature,
            change.now,
            change.target,
            change.software,
        )


def _file(run: Run, digest: str) -> Path:
    return run.state / "plans" / f"{digest}.json"


def plan_of(run: Run) -> LevelPlan:
    """The run's latest plan. Raises Refused where none is on record, or its file is not the one that was recorded."""
    planned = [each for _, each in of_kind(run.journal.records(), Planned) if each.digest]
    if not planned or planned[-1].digest is None:
        raise Refused("no plan of a level is on record in this run", way_out=f"clear {PLAN} with its downstream tasks")
    digest = planned[-1].digest
    file = _file(run, digest)
    plan = LevelPlan(**json.loads(file.read_text())) if file.is_file() else None
    if plan is None or plan.digest != digest:
        raise Refused(
            f"the plan {digest[:12]} is not in the state directory as it was recorded",
            way_out=f"clear {PLAN} with its downstream tasks; all workers must share KRAFT_RUNBOOK_STATE",
        )
    return plan


def shows_plan(run: Run) -> Shown:
    """What the level gate's proof holds: the run's plan."""
    plan = plan_of(run)
    text = f"### The plan\n\n```text\n{plan.rendered}\n```"
    return Shown(exhibits=(Exhibit(PLAN, plan.digest, text),), by=PLAN)


# -- tasks -------------------------------------------------------------------------------------------------------------


def plan_level(run: Run) -> dict[str, Any]:
    """Plan the change that the run's form asks for, with its preview and the leader's validate-only answer. Raises
    Refused where it can't be had, saying why and what helps.
    """
    params = run.params
    seen, preview = _settled_preview(run, str(params["feature"]), str(params["level"]).strip())
    text = preview.render_text()
    run.cluster.tell(text)
    change = preview.change
    if change.direction is Direction.DOWN and not params.get("down"):
        raise Refused(
            f"{change.feature} is at {change.now}, and {change.target} lies below it",
            way_out="trigger the run anew, with 'Lower it' ticked, where that is what you want",
        )
    if not preview.may_go:
        raise _refused(preview)
    plan = LevelPlan(change.feature, change.now, change.target, change.software, text)
    write_private(_file(run, plan.digest), json.dumps(asdict(plan), indent=1))
    planned = Planned(
        phase=LEVELS.read(seen, run.spec).stage,
        goal=f"{change.feature} {change.now} -> {change.target}",
        steps=tuple(map(str, change.steps)),
        risks=tuple(map(str, change.starred)),
        gone=(),
        digest=plan.digest,
    )
    run.journal.record(planned)
    return {"digest": plan.digest, "target": change.target}


def apply_level(run: Run) -> dict[str, Any]:
    """Plan once more; where it is what was signed, have the leader validate it and then change the level. In a
    rehearsal, say what it would be. Raises Refused.
    """
    if run.cluster.rehearses:
        run.cluster.do(change_level, would=[_setting(plan_of(run))])
        return {"dry_run": True}
    run.claim.take()
    plan, seen = plan_of(run), _look(run)
    reading = LEVELS.read(seen, run.spec)
    preview = _preview(run, seen, plan.feature, str(plan.target))
    if preview.change.direction is Direction.NONE:
        run.already_done(reading.stage, Step.CHANGE, f"{plan.feature} is at {plan.target}")
        return {"changed": False}
    LEVELS.table.require(Step.CHANGE, reading)
    run.signatures.require(LEVELS, Gate.LEVEL, seen, exhibit=plan.digest)
    if not plan.fits(preview.change):
        raise Refused(
            f"the signed plan is {plan} on Kafka {plan.software}; now it would"
            f" be {preview.change.now} -> {preview.change.target} on Kafka {preview.change.software}",
            way_out=f"clear {PLAN} with its downstream tasks, and let the new plan be signed",
        )
    if not preview.may_go:
        raise _refused(preview)
    run.signatures.begins(Gate.LEVEL)
    began = datetime.now(UTC)
    changed = bool(run.cluster.do(change_level, preview.change, would=[_setting(plan)], tell=run.cluster.tell))
    run.acted(reading.stage, Step.CHANGE, began, *([str(plan)] if changed else []))
    return {"changed": changed}


def see_level(run: Run) -> dict[str, Any]:
    """Until every node shows the planned level, two looks in a row. It takes less than a second on a healthy
    cluster, so this waits in the task itself, a minute at most.
    """
    if run.cluster.rehearses:
        run.cluster.tell("Dry run: every node would be asked until it shows the level")
        return {"dry_run": True}
    plan, began = plan_of(run), datetime.now(UTC)
    seconds = run.cluster.ask(await_level, plan.feature, plan.target, tell=run.cluster.tell)
    run.cluster.tell(f"every node shows {plan.feature} {plan.target}")
    values = {"feature": plan.feature, "level": plan.target}
    reached = Reached(
        values=values,
        condition=SEEN_BY_ALL,
        node_id=None,
        began_at=began,
        seconds=round(seconds, 1),
        error="",
    )
    run.journal.record(reached)
    return {"seconds": round(seconds, 1)}


def _look(run: Run) -> ClusterObservation:
    return run.cluster.settled(with_hosts=True)


def _setting(plan: LevelPlan) -> Act:
    return Act(f"set {plan}")


def _preview(run: Run, seen: ClusterObservation, feature: str, wanted: str) -> Preview:
    if isinstance(seen.features, Unread):
        raise Refused(
            f"the feature levels could not be read: {seen.features.reason}",
            way_out="make readable what is named, then clear this task",
        )
    return run.cluster.ask(preview_change, seen.features, feature, wanted)


def _settled_preview(run: Run, feature: str, wanted: str) -> tuple[ClusterObservation, Preview]:
    """A look and its preview; again where a controller is about to register, as right after a raise."""
    for left in reversed(range(run.spec.deadlines.healthy_in_a_row)):
        seen = _look(run)
        preview = _preview(run, seen, feature, wanted)
        if not left or not preview.may_be_over:
            break
        run.cluster.tell("looking again, this may be over in a moment: a controller has not registered anew")
        run.cluster.pause(run.spec.deadlines.poll)
    return seen, preview


def _refused(preview: Preview) -> Refused:
    change = preview.change
    said = [each.problem for each in preview.obstacles]
    if preview.answer is not None and not preview.answer.accepted:
        said.append(f"the quorum's leader refuses it: {preview.answer.refusal}")
    ways = [each.way_out for each in preview.obstacles] or ["correct what the leader names"]
    return Refused(
        f"{change.feature} {change.now} -> {change.target} can't be had: {'; '.join(said)}",
        way_out=f"{'; '.join(dict.fromkeys(ways))}; then clear this task",
    )
