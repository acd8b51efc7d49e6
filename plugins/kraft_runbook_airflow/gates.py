"""The gates under Airflow: prove, ask a person, confirm that the approval still fits the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from airflow.configuration import conf
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput
from airflow.triggers.base import StartTriggerArgs

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Answered, Approved, Asked, Confirmed, Proven, Rejected, TurnedAway
from kraft_runbook.migration.checks import Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS, DUAL_WRITING
from kraft_runbook.migration.checks.liveness import CODE, LIVENESS_SECONDS, dual_write_liveness
from kraft_runbook.migration.gate_page import render_in_full, render_page, what_happens_next
from kraft_runbook.migration.gates import Proof, is_behind, make_proof
from kraft_runbook.migration.signatures import APPROVE_TASKS, standing, too_old
from kraft_runbook.migration.transitions import TABLE, Gate
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.parity.dual_write import await_movement
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.runbook.check_results import CheckResult
from kraft_runbook.runbook.way_back import RollbackPlan
from kraft_runbook_airflow.answers import AnswerTrigger, require_same
from kraft_runbook_airflow.approvals import asked_signatures, load_proof, require_approval, store_proof, triggered_by
from kraft_runbook_airflow.environment import airflow_secrets, cluster_spec, is_dry_run
from kraft_runbook_airflow.journal import record, records_of, require_shared_state, told_to_a_person
from kraft_runbook_airflow.operators import ClusterOperator
from kraft_runbook_airflow.parity import load_summary
from kraft_runbook_airflow.people import assigned_users, require_enough_people
from kraft_runbook_airflow.second_look import look_and_judge
from kraft_runbook_airflow.way_back_facts import examine_the_hosts_of_those_down, not_deletable, said_to_be_gone

READ_BACK_SECONDS = 120.0
"""How long the triggerer may take to read the answers back; it takes one request each."""


class ProveGate(ClusterOperator):
    """Check the cluster deeply, join the parity report, and seal both with a digest. Refuses to ask a person about a
    proof that does not hold.

    Returns every proving of this run's gate, the latest last: each is asked for by a task instance of its own
    (``ApprovalGate``).
    """

    def __init__(self, *, gate: Gate, parity_task: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gate = gate
        self.parity_task = parity_task

    def act(self, context: Any, spec: ClusterSpec) -> list[dict[str, Any]]:
        seen, checks, back = examine(spec, self.gate, self.log.info, said_to_be_gone(context, spec))
        phase = detect_phase(seen).phase
        parity = load_summary(context, self.parity_task) if self.parity_task and not is_dry_run() else None
        needed = spec.approvals.needed_for(self.gate.value, asked_signatures(context))
        proof = make_proof(
            self.gate,
            seen,
            spec,
            checks=checks,
            parity=parity,
            rollback=back,
            made_at=datetime.now(UTC),
            ahead=what_happens_next(self.gate, seen, spec, steps_back=back.steps),
            needed=needed,
            triggered_by=triggered_by(context),
        )
        self.log.info("%s", render_in_full(proof))
        if is_dry_run():
            self.log.info("Dry run: this gate would now wait for an approval")
            return [{"digest": proof.digest, "passed": False}]
        passed = is_behind(self.gate, seen)
        if not passed:
            self.require_askable(spec, proof)
        store_proof(proof)
        based_on = parity.digest if parity else None
        proven = Proven(
            gate=self.gate.value,
            digest=proof.digest,
            phase=phase.value,
            parity=based_on,
            passed=passed,
            proof=proof.to_dict(),
        )
        record(context, self.cluster, proven)
        earlier = [{"digest": "", "passed": False}] * (standing(records_of(context), self.gate).provings - 1)
        return [*earlier, {"digest": proof.digest, "passed": passed}]

    def require_askable(self, spec: ClusterSpec, proof: Proof) -> None:
        """Raise Refused where nobody should be asked: the proof does not hold, is too old already, or too few could
        sign it.
        """
        if proof.objections:
            raise Refused(
                f"gate {self.gate.value} can't be put before a person:\n"
                + "\n".join(f"- {o}" for o in proof.objections),
                way_out="; ".join(dict.fromkeys(c.fix for c in proof.checks if c.blocks and c.fix))
                or "look at the parity report above, correct what differs, and clear "
                f"{self.parity_task or 'this task'} with its downstream tasks",
            )
        old = too_old(proof, spec.approvals.valid_for, proof.made_at)
        if old:
            raise Refused(f"gate {self.gate.value} can't be put before a person: {old.why}", way_out=old.way_out)
        require_enough_people(spec, proof)


def examine(
    spec: ClusterSpec, gate: Gate, tell: Callable[[str], object], gone: Collection[int] = ()
) -> tuple[ClusterObservation, tuple[CheckResult, ...], RollbackPlan]:
    """Observe deeply, run the gate's checks, and find the way back; once dual writes should flow, look twice to see
    that they do.

    ``gone``: controllers whose hosts are gone for good, as an operator says.
    """
    earlier = observe_settled(spec, secrets=airflow_secrets(), tell=tell, gone=gone)
    dual_writing = TABLE.gate(gate).needs_parity or detect_phase(earlier).phase in DUAL_WRITING
    apart = LIVENESS_SECONDS if dual_writing else spec.deadlines.poll
    if dual_writing:
        await_movement(spec, earlier, secrets=airflow_secrets(), within=apart)
    # The way back asks nothing of the hosts but of controllers that are down; of ZooKeeper, what would keep a restarted
    # broker down.
    deep: dict[str, Any] = {"scope": Scope.FULL, "with_hosts": gate is not Gate.ROLLBACK}
    seen, checks = look_and_judge(
        spec, partial(_judge, spec, gate), tell=tell, apart=apart, earlier=earlier, gone=gone, **deep
    )
    stopped = next((each.evidence for each in checks if each.code == CODE and each.verdict is Verdict.FAIL), None)
    return seen, checks, _way_back(spec, gate, seen, stopped, gone)


def _judge(
    spec: ClusterSpec, gate: Gate, seen: ClusterObservation, earlier: ClusterObservation | None
) -> tuple[CheckResult, ...]:
    phase = detect_phase(seen).phase
    found = CHECKS.run(seen, spec, phase, gate=gate.value, earlier=earlier).results
    if earlier is not None and (TABLE.gate(gate).needs_parity or (phase in DUAL_WRITING and not quorum_is_lost(seen))):
        return (*found, dual_write_liveness(earlier, seen))
    return found


def _way_back(
    spec: ClusterSpec, gate: Gate, seen: ClusterObservation, stopped: str | None, gone: Collection[int]
) -> RollbackPlan:
    """The way back from here; before a rollback with everything that could stop it half-way."""
    if gate is not Gate.ROLLBACK:
        return way_back(seen, spec, dual_write_stopped=stopped)
    leads = detect_phase(seen).phase in DUAL_WRITING and not quorum_is_lost(seen)
    behind = what_lies_behind(spec, secrets=airflow_secrets()) if leads else None
    asked = examine_the_hosts_of_those_down(spec, seen, gone)
    return way_back(
        asked, spec, dual_write_stopped=stopped, gone=gone, not_deletable=not_deletable(spec), lies_behind=behind
    )


class ApprovalGate(ApprovalOperator):
    """Parks until a person approves or rejects; holds no worker. What is shown comes from the stored proof, and the
    answer goes into the evidence.

    ``number``: the first or second signature. The second is asked for only where two must sign. ``asking``: one proving
    of the gate. The task is mapped over all of them, since Airflow 3.3 never changes the page of a task instance that
    has asked once: proven again, the gate would show its first proof.
    """

    template_fields: Sequence[str] = ("subject", "body")

    def __init__(
        self, *, cluster: str, gate: Gate, number: int, asking: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(
            subject=f"{cluster}: {TABLE.gate(gate).asks}" + (" (second signature)" if number == 2 else ""),
            fail_on_reject=True,
            **kwargs,
        )
        self.cluster = cluster
        self.gate = gate
        self.number = number
        self.asking = asking

    def execute(self, context: Any) -> Any:
        if is_dry_run():
            return self._not_asked("Dry run: nobody is asked")
        with told_to_a_person(context, self.cluster):
            at = standing(records_of(context), self.gate)
            if context["ti"].map_index != at.provings - 1:
                return self._not_asked(
                    "The gate was proven again: that proof is asked for by another instance of this task"
                )
            if at.passed:
                return self._not_asked("already done: the cluster is beyond this gate's step")
            proof = load_proof(at.digest)
        if self.number > proof.needed:
            return self._not_asked("One signature is enough in this run")
        return self._ask(context, proof)

    def _not_asked(self, why: str) -> dict[str, str]:
        self.log.info("%s", why)
        return {"not_asked": why}

    def _ask(self, context: Any, proof: Proof) -> Any:
        ti = context["ti"]
        prove = f"gate_{self.gate.value}.prove"
        base = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
        self.body = render_page(
            proof, in_full=f"[the log of {prove}]({base}/dags/{ti.dag_id}/runs/{quote(ti.run_id)}/tasks/{prove})"
        )
        self.assigned_users = assigned_users(cluster_spec(self.cluster).approvals, excluded=proof.triggered_by)
        record(
            context, self.cluster, Asked(**self._try(context, proof.digest), number=self.number, needed=proof.needed)
        )
        try:
            super().execute(context)
        except TaskAwaitingInput as parked:
            parked.kwargs = {"proof_digest": proof.digest}
            raise

    def execute_complete(self, context: Any, event: dict[str, Any], proof_digest: str = "") -> Any:
        by = event.get("responded_by_user") or {}
        chosen = event.get("chosen_options") or []
        answer = Answered(
            **self._try(context, proof_digest),
            by=by.get("name"),
            by_id=by.get("id"),
            answered_at=_moment(event.get("responded_at")),
        )
        with told_to_a_person(context, self.cluster):
            proof = load_proof(proof_digest)
            turned_away = self._why_not(
                context, proof, str(by.get("name")), str(by.get("id")), approves=chosen != [self.REJECT]
            )
        if turned_away:
            record(context, self.cluster, TurnedAway(**asdict(answer), chosen=tuple(chosen), why=turned_away))
            self.log.error("The answer by %s does not count: %s. The gate asks again.", answer.by, turned_away)
            return self._ask(context, proof)
        if chosen == [self.REJECT]:
            way_back = "\n".join(f"{n}. {step}" for n, step in enumerate(proof.rollback.steps, 1)) or proof.rollback.why
            record(context, self.cluster, Rejected(**asdict(answer)))
            self.log.error("Rejected by %s. The run stops here; nothing further is changed.", answer.by)
            self.log.error("To go on, clear this gate's 'prove' task. To go back:\n%s", way_back)
            raise AirflowFailException(f"rejected by {answer.by}")
        super().execute_complete(context=context, event=event)
        record(context, self.cluster, Approved(**asdict(answer)))
        return {"proof_digest": proof_digest, "approved_by": answer.by, "approved_at": answer.answered_at}

    def _why_not(self, context: Any, proof: Proof, name: str, user_id: str, *, approves: bool) -> str | None:
        """Why this person's answer is none. To reject is free to whoever may sign at all, also to the one who triggered
        the run or signed already.
        """
        approvals = cluster_spec(self.cluster).approvals
        if not approves:
            return approvals.why_not(name, user_id, None)
        signed = standing(records_of(context), self.gate).on_this_proof
        if any(s.user_id == user_id and s.task != APPROVE_TASKS[self.number - 1] for s in signed):
            return f"{name} has signed already; {proof.needed} different people must sign"
        return approvals.why_not(name, user_id, proof.triggered_by)

    def _try(self, context: Any, digest: str) -> dict[str, Any]:
        """Which try of this task asks for a signature of which proof: what its records have in common."""
        ti = context["ti"]
        return {"gate": self.gate.value, "digest": digest, "task_instance": str(ti.id), "try_number": ti.try_number}


def _moment(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, datetime) else value


class ConfirmGate(ClusterOperator):
    """Read the signatures back from Airflow, look at the cluster once more; refuse a stale approval, a foreign one, or
    a cluster that changed.
    """

    start_from_trigger = True

    def __init__(self, *, gate: Gate, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gate = gate
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls="kraft_runbook_airflow.answers.AnswerTrigger",
            trigger_kwargs={"gate": gate.value},
            next_method="after_reading",
            timeout=timedelta(seconds=READ_BACK_SECONDS),
        )

    def act(self, context: Any, spec: ClusterSpec) -> None:
        """Only where the scheduler can't start a trigger itself (``dag.test()``): defer to the same trigger."""
        self.defer(
            trigger=AnswerTrigger(self.gate.value),
            method_name="after_reading",
            timeout=timedelta(seconds=READ_BACK_SECONDS),
        )

    def after_reading(self, context: Any, event: dict[str, Any]) -> dict[str, Any] | None:
        """Go on with Airflow's own answers, by task instance."""
        if is_dry_run():
            return None
        with told_to_a_person(context, self.cluster):
            require_shared_state(context)
            return self.confirm(context, cluster_spec(self.cluster), event)

    def confirm(self, context: Any, spec: ClusterSpec, answers: Mapping[str, Any]) -> dict[str, Any]:
        """``answers``: Airflow's own, by task instance. Raises Refused where they, the evidence or the cluster do not
        allow the gate's step.
        """
        seen, checks, _ = examine(spec, self.gate, self.log.info, said_to_be_gone(context, spec))
        phase = detect_phase(seen).phase
        if is_behind(self.gate, seen):
            self.log.info("already done: the cluster is in %s", phase)
            return {"passed": True}
        blocking = [c for c in checks if c.blocks]
        if blocking:
            raise Refused(
                "\n".join(f"{c.code} {c.title}: {c.evidence}" for c in blocking),
                way_out="; ".join(dict.fromkeys(c.fix for c in blocking)),
            )
        proof, at = require_approval(context, spec, self.gate, seen, confirming=True)
        require_same(at.on_this_proof, answers)
        signatures = tuple(
            {
                "by": s.name,
                "by_id": s.user_id,
                "answered_at": s.approved_at.isoformat(),
                "task": s.task,
                "task_instance": s.task_instance,
            }
            for s in at.on_this_proof
        )
        record(
            context,
            self.cluster,
            Confirmed(gate=self.gate.value, digest=proof.digest, phase=phase.value, signatures=signatures),
        )
        return {"digest": proof.digest, "phase": phase.value}
