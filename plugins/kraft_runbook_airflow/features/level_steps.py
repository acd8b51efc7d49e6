"""A feature level's change under Airflow: planned, signed with its preview, applied once, seen on every node."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Planned, Played, Reached, of_kind
from kraft_runbook.features.change import Direction, LevelChange
from kraft_runbook.features.operation import FEATURES
from kraft_runbook.features.preview import Preview
from kraft_runbook.features.stages import Gate, Step
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.private_file import write_private
from kraft_runbook.procedures.change_level import await_level, change_level
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.gates import Shown, examines_by_checks
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.base.operators import ClusterOperator

PLAN = "plan"
SEEN_BY_ALL = "level_shown_by_every_node"


examine = examines_by_checks(FEATURES)


# -- the plan, as a file that the gate's proof names -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """What a person signs: the change, and its preview with the server's answer as it was rendered."""

    feature: str
    now: int
    target: int
    software: str
    rendered: str

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


def _file(digest: str) -> Path:
    return state_directory() / "plans" / f"{digest}.json"


def _store(plan: LevelPlan) -> None:
    write_private(_file(plan.digest), json.dumps(asdict(plan), indent=1))


def plan_of(context: Any) -> LevelPlan:
    """The run's latest plan. Raises Refused where none is on record, or its file is not the one that was recorded."""
    planned = [each for _, each in of_kind(records_of(context), Planned) if each.digest]
    if not planned or planned[-1].digest is None:
        raise Refused("no plan of a level is on record in this run", way_out=f"clear {PLAN} with its downstream tasks")
    digest = planned[-1].digest
    file = _file(digest)
    plan = LevelPlan(**json.loads(file.read_text())) if file.is_file() else None
    if plan is None or plan.digest != digest:
        raise Refused(
            f"the plan {digest[:12]} is not in the state directory as it was recorded",
            way_out=f"clear {PLAN} with its downstream tasks; all workers must share KRAFT_RUNBOOK_STATE",
        )
    return plan


def shows_plan(context: Any) -> Shown:
    """What the level gate's proof holds: the run's plan."""
    plan = plan_of(context)
    text = f"### The plan\n\n```text\n{plan.rendered}\n```"
    return Shown(exhibits=(Exhibit(PLAN, plan.digest, text),), by=PLAN)


# -- tasks -------------------------------------------------------------------------------------------------------------


class PlanLevel(ClusterOperator):
    """Plan the change that the run's form asks for, with its preview and the leader's validate-only answer. Refuses
    what can't be had, saying why and what helps.
    """

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        params = run.params
        seen = _look(run, self.log.info)
        preview = _preview(run, seen, str(params["feature"]), str(params["level"]).strip())
        text = preview.render_text()
        self.log.info("%s", text)
        change = preview.change
        if change.direction is Direction.DOWN and not params.get("down"):
            raise Refused(
                f"{change.feature} is at {change.now}, and {change.target} lies below it",
                way_out="trigger the run anew, with 'Lower it' ticked, where that is what you want",
            )
        if not preview.may_go:
            raise _refused(preview)
        plan = LevelPlan(change.feature, change.now, change.target, change.software, text)
        _store(plan)
        planned = Planned(
            phase=FEATURES.read(seen, run.spec).stage,
            goal=f"{change.feature} {change.now} -> {change.target}",
            steps=tuple(map(str, change.steps)),
            risks=tuple(map(str, change.starred)),
            gone=(),
            digest=plan.digest,
        )
        run.journal.record(planned)
        return {"digest": plan.digest, "target": change.target}


class ChangeLevel(ClusterOperator):
    """Plan once more; where it is what was signed, have the leader validate it and then change the level."""

    ui_color = "#fde8c8"

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        run.claim.take()
        plan, seen = plan_of(context), _look(run, self.log.info)
        reading = FEATURES.read(seen, run.spec)
        preview = _preview(run, seen, plan.feature, str(plan.target))
        if preview.change.direction is Direction.NONE:
            run.already_done(reading.stage, Step.CHANGE, f"{plan.feature} is at {plan.target}")
            return {"changed": False}
        FEATURES.table.require(Step.CHANGE, reading)
        run.signatures.require(FEATURES, Gate.LEVEL, seen, exhibit=plan.digest)
        if not plan.fits(preview.change):
            raise Refused(
                f"what was signed is {plan.feature} {plan.now} -> {plan.target} on Kafka {plan.software}; now it would"
                f" be {preview.change.now} -> {preview.change.target} on Kafka {preview.change.software}",
                way_out=f"clear {PLAN} with its downstream tasks, and let the new plan be signed",
            )
        if not preview.may_go:
            raise _refused(preview)
        run.signatures.begins(Gate.LEVEL)
        began = datetime.now(UTC)
        what = f"{plan.feature} {plan.now} -> {plan.target}"
        would = [Act(f"set {what}")]
        changed = bool(run.cluster.do(change_level, preview.change, would=would, tell=self.log.info))
        ended = datetime.now(UTC)
        played = Played(
            phase=reading.stage,
            step=Step.CHANGE,
            node_id=None,
            changed=(what,) if changed else (),
            seconds=round((ended - began).total_seconds(), 1),
            began_at=began,
            ended_at=ended,
            restarted=False,
        )
        run.journal.record(played)
        return {"changed": changed}

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        plan = plan_of(context)
        run.cluster.do(change_level, would=[Act(f"set {plan.feature} {plan.now} -> {plan.target}")])
        return {"dry_run": True}


class AwaitLevel(ClusterOperator):
    """Until every node shows the planned level, two looks in a row. It takes less than a second on a healthy cluster,
    so this waits in the task itself, a minute at most.
    """

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        plan, began = plan_of(context), datetime.now(UTC)
        seconds = run.cluster.ask(await_level, plan.feature, plan.target, tell=self.log.info)
        self.log.info("every node shows %s %d", plan.feature, plan.target)
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

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        self.log.info("Dry run: every node would be asked until it shows the level")
        return {"dry_run": True}


def _look(run: Run, tell: Callable[[str], object]) -> ClusterObservation:
    return run.cluster.settled(with_hosts=True)


def _preview(run: Run, seen: ClusterObservation, feature: str, wanted: str) -> Preview:
    if isinstance(seen.features, Unread):
        raise Refused(
            f"the feature levels could not be read: {seen.features.reason}",
            way_out="make readable what is named, then clear this task",
        )
    return run.cluster.ask(preview_change, seen.features, feature, wanted)


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
