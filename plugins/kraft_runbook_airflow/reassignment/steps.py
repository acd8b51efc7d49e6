"""The tasks of a run that moves replicas: check, plan, save, throttle, move, put back, elect, verify, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Checked, Closed, Moves
from kraft_runbook.evidence.outcomes import ENDED_IN_ERROR, outcome_of
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.gates.signatures import refusal, standing
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.zookeeper.reassignment_znodes import read_reassignment_znodes
from kraft_runbook.procedures.look_at_replicas import look_at_plan, look_at_replicas
from kraft_runbook.procedures.move_replicas import prefer_first_replicas, read_state, save_state, start_next_batch
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.procedures.throttle_replication import read_throttles, remove_throttles, require_swept, set_throttles
from kraft_runbook.reassignment.batches import KRAFT_LIMITS, ZOOKEEPER_LIMITS, Limits
from kraft_runbook.reassignment.checks import check_before_moving
from kraft_runbook.reassignment.goals import Goal, Topics
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.operation import MOVE, REASSIGNMENT, TABLE
from kraft_runbook.reassignment.picture import draw
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.refusals import Reason, require_no_refusal
from kraft_runbook.reassignment.stages import PlanReading, PlanStage
from kraft_runbook.reassignment.throttles import LEAST_OF_RATE, cannot_end, produced_into
from kraft_runbook.reassignment.verifying import verify
from kraft_runbook.runbook.check_results import CheckResult, ChecksReport
from kraft_runbook_airflow.base.approvals import asked_signatures, begins, load_proof
from kraft_runbook_airflow.base.claims import give_back, take_claim
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.gates import Examined, Shown
from kraft_runbook_airflow.base.journal import record, records_of, require_mirrored
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.report import BAD, states_of
from kraft_runbook_airflow.reassignment.files import files_of
from kraft_runbook_airflow.reassignment.trigger import ReassignmentTrigger

PRODUCED_SECONDS = 5.0
"""Between the two looks that tell what is produced."""


def settled_look(spec: ClusterSpec, **how: Any) -> Look:
    return look_at_replicas(spec, secrets=airflow_secrets(), **how)


def checked(
    spec: ClusterSpec, tell: Callable[[str], object]
) -> tuple[Look, ClusterObservation, tuple[CheckResult, ...]]:
    """A look, and every check of it."""
    seen = observe_settled(spec, secrets=airflow_secrets(), tell=tell, scope=Scope.LIVE)
    look = settled_look(spec)
    throttles = read_throttles(spec, {p.topic for p in look.seen}, secrets=airflow_secrets())
    modes = {broker.mode for broker in seen.brokers.values() if was_read(broker.mode)}
    faulty = None
    if spec.zookeeper is not None and modes != {BrokerMode.KRAFT}:
        faulty = read_reassignment_znodes(spec, secrets=airflow_secrets(), lists=True).faulty_lists
    return look, seen, check_before_moving(look, seen, throttles, faulty)


class CheckBeforeMoving(ClusterOperator):
    """Every check of the operation. One that blocks and does not pass fails the task."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        _, seen, checks = checked(spec, self.log.info)
        report = ChecksReport(checks)
        self.log.info("%s", report.render_markdown())
        record(context, self.cluster, Checked(phase=detect_phase(seen).phase.value, checks=report.to_dict()))
        require_mirrored(context)
        if report.blocking:
            raise Refused(
                "there are reasons not to move replicas now:\n"
                + "\n".join(f"{c.code} {c.title}: {c.evidence}\n  What to do: {c.fix}" for c in report.blocking),
                way_out="correct what is named above and clear this task",
            )
        return {"passed": sum(each.passed for each in checks)}

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        """The same: it changes nothing."""
        return self.act(context, spec)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run's form asks for. ``throttle``: bytes a second a broker; ``partitions`` None: as the mode allows."""

    goal: Goal
    topics: Topics
    allowed: tuple[Reason, ...]
    throttle: int | None
    partitions: int | None
    moves: int
    bytes: int | None

    def limits(self, seen: ClusterObservation) -> Limits:
        """A controller in ZooKeeper mode takes less in one request."""
        in_kraft = {broker.mode for broker in seen.brokers.values() if was_read(broker.mode)} == {BrokerMode.KRAFT}
        most = self.partitions or (KRAFT_LIMITS if in_kraft else ZOOKEEPER_LIMITS).partitions
        return Limits(most, self.moves, self.bytes)


Asks = Callable[[Any], Wanted]
"""Reads the run's form, given Airflow's context. Raises Refused for what makes no sense."""


class MakePlan(ClusterOperator):
    """Plan, refuse what must not be planned, and keep the plan with its preview for the gate."""

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        wanted, look, files = self.asks(context), settled_look(spec), files_of(context)
        plan = make_plan(wanted.goal, look.placement, topics=wanted.topics)
        require_no_refusal(plan, look.placement, declared=spec.broker_ids, allowed=wanted.allowed)
        if plan.is_empty:
            raise AirflowSkipException(f"{plan.goal}: nothing is to move, the cluster is as wanted")
        if wanted.throttle is not None:
            self.require_an_end(spec, plan, look, wanted.throttle)
        preview = make_preview(plan, look.placement, throttle=wanted.throttle)
        shown = preview.render_markdown()
        files.store_plan(plan)
        write_private(files.directory / "preview.md", shown)
        write_private(files.picture, draw(preview))
        self.log.info("%s\nA picture of it: %s", preview.render_text(), files.picture)
        record(context, self.cluster, Moves(what="planned", partitions=len(plan.target), told=shown))
        return {"digest": plan.digest, "partitions": len(plan.target), "copies": plan.copies, "bound": plan.bound}

    def require_an_end(self, spec: ClusterSpec, plan: ReassignmentPlan, look: Look, rate: int) -> None:
        """Raise Refused for a throttle under which the copies would never catch up with what is produced now."""
        time.sleep(PRODUCED_SECONDS)
        later = settled_look(spec, sizes_of=list(plan.target), settings=False)
        produced = produced_into(plan.moves, look.placement.sizes, later.placement.sizes, later.at - look.at)
        if reasons := cannot_end(rate, produced):
            least = max(produced.values()) / LEAST_OF_RATE / 1e6
            raise Refused(
                f"the throttle would never let it end: {'; '.join(reasons[:5])}",
                way_out=f"give a throttle well above {least:,.1f} MB/s, or none, in a new run",
            )

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        """The same: it changes nothing."""
        return self.act(context, spec)


def shows_plan(context: Any) -> Shown:
    """The plan of this run, for its gate. Raises Refused where there is none."""
    files = files_of(context)
    plan, preview = files.plan(), (files.directory / "preview.md").read_text()
    return Shown(exhibits=(Exhibit("plan", plan.digest, f"### What moves\n\n{preview}"),), by="plan")


def examine(spec: ClusterSpec, gate: str, tell: Callable[[str], object], gone: Collection[int] = ()) -> Examined:
    """What a gate's proof is made of: the cluster, the checks, the way back."""
    _, seen, checks = checked(spec, tell)
    return Examined(seen, checks, REASSIGNMENT.way_back(seen, spec))


def require_signed(
    context: Any, spec: ClusterSpec, tell: Callable[[str], object]
) -> tuple[Look, PlanReading, ClusterObservation]:
    """The claim is this run's, the gate was confirmed on this very plan, and the cluster is the one that was
    signed for. Once the plan's own moves are under way the proof's age stops nobody. Raises Refused.
    """
    take_claim(context, spec)
    plan = files_of(context).plan()
    look, reading = look_at_plan(spec, plan, secrets=airflow_secrets())
    seen = observe_settled(spec, secrets=airflow_secrets(), tell=tell)
    at = standing(records_of(context), MOVE)
    again = f"clear gate_{MOVE}.prove with its downstream tasks"
    if not at.digest:
        raise Refused(f"no proof is on record for gate {MOVE}", way_out=again)
    proof = load_proof(at.digest)
    under_way = at.begun and reading.stage in (PlanStage.MOVING, PlanStage.AS_PLANNED)
    now = proof.made_at if under_way else datetime.now(UTC)
    why_not = refusal(REASSIGNMENT, proof, at, seen, spec, now=now, asked=asked_signatures(context))
    if why_not:
        raise Refused(f"gate {MOVE} does not allow this step: {why_not.why}", way_out=why_not.way_out)
    if at.confirmed != proof.digest or not {s.task_instance for s in at.on_this_proof} <= at.read_back:
        raise Refused(f"gate {MOVE} was not confirmed on the proof that was signed", way_out=again)
    if plan.digest not in {exhibit.digest for exhibit in proof.exhibits}:
        raise Refused("another plan was signed than the one of this run", way_out=again)
    if reading.stage is PlanStage.UNKNOWN:
        raise Refused(
            f"the cluster is not as the plan found it: {'; '.join(reading.because)}",
            way_out="clear the task 'plan' with its downstream tasks: what is left is planned anew and signed for",
        )
    return look, reading, seen


class SaveState(ClusterOperator):
    """Keep the assignment and the throttles as they are, on disk, before anything changes."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        look, _, _ = require_signed(context, spec, self.log.info)
        throttles = read_throttles(spec, {p.topic for p in look.seen}, secrets=airflow_secrets())
        saved = save_state(files_of(context).saved, look, throttles)
        self.log.info("Saved: %s", files_of(context).saved)
        record(context, self.cluster, Moves(what="saved", partitions=len(saved.assignment)))
        return {"run": files_of(context).name}

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        self.log.info("Dry run: the present assignment would be saved")


class SetThrottle(ClusterOperator):
    """Throttle the plan's moves, where the run asks for it."""

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, spec: ClusterSpec) -> None:
        require_signed(context, spec, self.log.info)
        rate = files_of(context).wanted_throttle(self.asks(context).throttle)
        if rate is None:
            self.log.info("No throttle is asked for")
            return
        begins(context, self.cluster, MOVE)
        throttle(context, spec, rate)

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        self.log.info("Dry run: the throttle would be set: %s", self.asks(context).throttle)


def throttle(context: Any, spec: ClusterSpec, rate: int) -> None:
    """Set this rate; that it will be set is written down first."""
    files = files_of(context)
    files.will_throttle_to(rate)
    set_throttles(spec, files.plan().moves, rate, secrets=airflow_secrets())
    record(context, spec.name, Moves(what="throttled", partitions=None, told=f"{rate / 1e6:g} MB/s a broker"))


class MoveReplicas(ClusterOperator):
    """Start batch after batch; no worker waits while data moves. Cleared at any point it goes on with what is left."""

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        look, reading, seen = require_signed(context, spec, self.log.info)
        files, wanted = files_of(context), self.asks(context)
        plan = files.plan()
        self.log.info("%s", "; ".join(reading.because))
        if reading.stage is PlanStage.AS_PLANNED:
            record(context, self.cluster, Moves(what="ended", partitions=len(reading.there)))
            return {"there": len(reading.there), "deleted_since": len(reading.gone)}
        if not standing(records_of(context), MOVE).begun:
            begins(context, self.cluster, MOVE)
        rate = files.wanted_throttle(wanted.throttle)
        if rate is not None and rate != files.throttled_to:
            throttle(context, spec, rate)
        limits = wanted.limits(seen)
        batch = start_next_batch(spec, plan, look, limits, secrets=airflow_secrets())
        if batch:
            named = ", ".join(str(move.partition) for move in batch[:5])
            self.log.info("Started %d moves: %s%s", len(batch), named, " …" if len(batch) > 5 else "")
            record(context, self.cluster, Moves(what="started", partitions=len(batch), told=named))
        self.defer(
            trigger=ReassignmentTrigger(
                self.cluster, files.name, [limits.partitions, limits.moves, limits.bytes], files.throttled_to
            ),
            method_name="resume",
        )
        raise AssertionError("defer raises")

    def resume(self, context: Any, event: dict[str, Any]) -> Any:
        """Look again, from the beginning: the event says only that there is something to do."""
        self.log.info("%s", event["why"])
        return self.act_or_rehearse(context, act=self.act, rehearse=self.rehearse)

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        wanted = self.asks(context)
        self.log.info("Dry run: the plan would be carried out, %d moves a broker at once", wanted.moves)


class PutThrottlesBack(ClusterOperator):
    """Runs whatever happened: throttles become what they were, and it is proven that none of ours is left."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        files = files_of(context)
        if files.throttled_to is None:
            self.log.info("This run set no throttle")
            return {"left": []}
        take_claim(context, spec)
        saved, plan = read_state(files.saved), files.plan()
        left = remove_throttles(spec, plan.moves, files.throttled_to, saved.throttles, secrets=airflow_secrets())
        record(context, self.cluster, Moves(what="put back", partitions=None, told="; ".join(map(str, left))))
        require_swept(left)
        files.throttles_are_back()
        return {"left": []}

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        self.log.info("Dry run: throttles would be put back")


class PreferLeaders(ClusterOperator):
    """Make the first replica of each moved partition its leader."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        take_claim(context, spec)
        look, plan = settled_look(spec, settings=False), files_of(context).plan()
        refused = prefer_first_replicas(spec, look, list(plan.target), secrets=airflow_secrets())
        for partition, why in sorted(refused.items())[:20]:
            self.log.warning("%s was not elected: %s", partition, why)
        return {"refused": len(refused)}

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        self.log.info("Dry run: preferred leaders would be elected")


class VerifyPlan(ClusterOperator):
    """Compare what is with what was planned; looked at again until it holds, since leaders and ISRs take a moment."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        plan = files_of(context).plan()
        for _ in range(30):
            look = settled_look(spec, settings=False)
            target = {p: replicas for p, replicas in plan.target.items() if p in look.seen}
            found = verify(target, look.seen, look.placement.ongoing)
            if found.holds or not target:
                break
            time.sleep(1)
        self.log.info("%s", found.render_text())
        record(context, self.cluster, Moves(what="verified", partitions=found.partitions, told=found.render_text()))
        if target and not found.holds:
            raise StepFailed(found.render_text(), way_out="mend what is named, then clear this task")
        return {"partitions": found.partitions}

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        self.log.info("Dry run: the plan would be verified")


class ReassignmentReport(ClusterOperator):
    """The end of a run: what became of it, and the way on or back. Succeeds only where the whole run did."""

    def follows_a_record(self, context: Any) -> bool:
        """It comes in any case, also where the first task failed before its first line."""
        return False

    def rehearse(self, context: Any, spec: ClusterSpec) -> Any:
        if any(state in BAD for state in states_of(context).values()):
            return self.act(context, spec)
        self.log.info("Dry run: the plan stands in the log of the task 'plan'; nothing was changed")
        return {"dry_run": True}

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        states = states_of(context)
        failed = sorted(task for task, state in states.items() if state == "failed")
        succeeded = not any(state in BAD for state in states.values())
        seen = observe_settled(spec, secrets=airflow_secrets(), tell=self.log.info)
        phase = detect_phase(seen).phase
        if succeeded:
            end = TABLE.stage(PlanStage.AS_PLANNED.value).end
            text = end(spec) if end else ""
        else:
            reasons = {
                r.body["task"]: r.body.get("error") for r in records_of(context) if outcome_of(r.body) in ENDED_IN_ERROR
            }
            lines = ["The run stopped.", *(f"- {t}: {reasons.get(t) or 'its log says why'}" for t in failed)]
            lines += ["To go on: correct what is named above and clear the failed task. To go back:"]
            text = "\n".join([*lines, *REASSIGNMENT.way_back(seen, spec).steps])
        name = files_of(context).name
        self.log.info("%s\nThis run's name, for the way back: %s", text, name)
        record(
            context,
            self.cluster,
            Closed(
                phase=phase.value,
                succeeded=succeeded,
                failed=tuple(failed),
                brokers_in_kraft=len(seen.brokers_in(BrokerMode.KRAFT)),
            ),
        )
        give_back(context, spec)
        require_mirrored(context)
        if not succeeded:
            raise AirflowFailException("the run stopped; this task's log says where, and the way on and back")
        return {"report": text, "run": name}


def saved_by(name: str, directory: Path) -> Path:
    """Where a run of this name saved what was there before it. Raises Refused where none did."""
    path = directory / "reassignments" / name / "saved.json"
    if "/" in name or not name or not path.is_file():
        known = sorted(p.parent.name for p in (directory / "reassignments").glob("*/saved.json"))
        raise Refused(
            f"no run named {name!r} saved an assignment",
            way_out=f"name one of: {', '.join(known) or '(there is none)'}",
        )
    return path
