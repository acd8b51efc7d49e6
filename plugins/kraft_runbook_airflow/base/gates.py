"""The gates under Airflow: prove, ask a person, confirm that the approval still fits the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput
from airflow.triggers.base import StartTriggerArgs

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.evidence.kinds import Answered, Approved, Asked, Rejected, TurnedAway
from kraft_runbook.gates.page import render_page
from kraft_runbook.gates.people import require_enough_people, require_same, why_no_answer
from kraft_runbook.gates.proof import Proof
from kraft_runbook.gates.signatures import APPROVE_TASKS, standing
from kraft_runbook.runbook.notifier import Tells
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.approvals import load_proof
from kraft_runbook.steps.examine import Examines, Shown
from kraft_runbook.steps.gates import confirm, keep_proof, prove, require_askable
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.answers import AnswerTrigger
from kraft_runbook_airflow.base.environment import cluster_spec, state_directory
from kraft_runbook_airflow.base.journal import record, records_of, told_to_a_person
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.people import assigned_users, triggered_by, users_of_simple_auth_manager
from kraft_runbook_airflow.base.report_link import airflows_path

READ_BACK_SECONDS = 600.0
"""How long the triggerer may take to read the answers back; it takes one request each. At its first one Airflow 3.3
makes the triggerer's own API, for some five seconds of a core; where processors were short all the time, that took 62
and 149 s, and Airflow's log called the triggerer deadlocked (measured).
"""


Shows = Callable[[Run], Shown]
"""Raises Refused where what is to be shown is not on record."""


def shows_nothing(_: Run) -> Shown:
    return Shown()


class ProveGate(ClusterOperator):
    """Check the cluster deeply, join the parity report, and seal both with a digest. Refuses to ask a person about a
    proof that does not hold.

    ``keep``: a look that also keeps what later looks compare with; a dry run has ``examine`` in its place.

    Returns every proving of this run's gate, the latest last: each is asked for by a task instance of its own
    (``ApprovalGate``).
    """

    def __init__(
        self,
        *,
        operation: Operation,
        gate: str,
        examine: Examines,
        keep: Examines | None = None,
        shows: Shows = shows_nothing,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.operation = operation
        self.gate = gate
        self.examine = examine
        self.keep = keep or examine
        self.shows = shows

    def act(self, context: Any, run: Run) -> list[dict[str, Any]]:
        shown = self.shows(run)
        seen, proof = self.prove(context, run, shown, self.keep)
        passed = self.operation.is_behind(self.gate, seen, run.spec)
        if not passed:
            require_askable(run, self.operation, proof, shown.by)
            require_enough_people(run.spec.approvals, proof, users_of_simple_auth_manager())
        return keep_proof(run, proof, passed=passed)

    def rehearse(self, context: Any, run: Run) -> list[dict[str, Any]]:
        _, proof = self.prove(context, run, Shown(), self.examine)
        self.log.info("Dry run: this gate would now wait for an approval")
        return [{"digest": proof.digest, "passed": False}]

    def prove(self, context: Any, run: Run, shown: Shown, examine: Examines) -> tuple[ClusterObservation, Proof]:
        """The proof as things stand now, said in full in the task's log."""
        return prove(run, self.operation, self.gate, shown, examine, triggered_by=triggered_by(context))


class ApprovalGate(ActsOrRehearses, ApprovalOperator):
    """Parks until a person approves or rejects; holds no worker. What is shown comes from the stored proof, and the
    answer goes into the evidence.

    ``number``: the first or second signature. The second is asked for only where two must sign. ``asking``: one proving
    of the gate. The task is mapped over all of them, since Airflow 3.3 never changes the page of a task instance that
    has asked once: proven again, the gate would show its first proof.
    """

    template_fields: Sequence[str] = ("subject", "body")

    def __init__(
        self,
        *,
        cluster: str,
        operation: Operation,
        gate: str,
        number: int,
        asking: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        terms = operation.table.gate(gate)
        super().__init__(
            subject=f"{cluster}: {terms.asks}" + (" (second signature)" if number == 2 else ""),
            fail_on_reject=True,
            **kwargs,
        )
        self.cluster, self.operation = cluster, operation
        self.terms = terms
        self.gate = gate
        self.number = number
        self.asking = asking

    def rehearse(self, context: Any, run: Run) -> Any:
        return self._not_asked("Dry run: nobody is asked")

    def act(self, context: Any, run: Run) -> Any:
        at = standing(records_of(context), self.gate)
        if context["ti"].map_index != at.provings - 1:
            return self._not_asked(
                "The gate was proven again: that proof is asked for by another instance of this task"
            )
        if at.passed:
            return self._not_asked("already done: the cluster is beyond this gate's step")
        proof = load_proof(run.state, at.digest)
        if self.number > proof.needed:
            return self._not_asked("One signature is enough in this run")
        return self._ask(context, proof)

    def _not_asked(self, why: str) -> dict[str, str]:
        self.log.info("%s", why)
        return {"not_asked": why}

    def _ask(self, context: Any, proof: Proof) -> Any:
        ti = context["ti"]
        prove = f"gate_{self.gate}.prove"
        base = airflows_path()
        self.body = render_page(
            proof,
            self.terms,
            in_full=f"[the log of {prove}]({base}/dags/{ti.dag_id}/runs/{quote(ti.run_id)}/tasks/{prove});"
            f" [where the cluster stands now]({base}/dags/{ti.dag_id}/plugin/cluster)",
        )
        self.assigned_users = assigned_users(cluster_spec(self.cluster).approvals, excluded=proof.triggered_by)
        record(
            context, self.cluster, Asked(**self._try(context, proof.digest), number=self.number, needed=proof.needed)
        )
        Tells(self.cluster, f"a gate waits ({self.gate})")(context)
        try:
            ApprovalOperator.execute(self, context)
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
            proof = load_proof(state_directory(), proof_digest)
            turned_away = why_no_answer(
                cluster_spec(self.cluster).approvals,
                proof,
                lambda: standing(records_of(context), self.gate),
                APPROVE_TASKS[self.number - 1],
                str(by.get("name")),
                str(by.get("id")),
                approves=chosen != [self.REJECT],
            )
        if turned_away:
            record(context, self.cluster, TurnedAway(**asdict(answer), chosen=tuple(chosen), why=turned_away))
            self.log.error("The answer by %s does not count: %s. The gate asks again.", answer.by, turned_away)
            return self._ask(context, proof)
        if chosen == [self.REJECT]:
            way_back = self.operation.told_back(proof.rollback, self.cluster, "\n")
            record(context, self.cluster, Rejected(**asdict(answer)))
            self.log.error("Rejected by %s. The run stops here; nothing further is changed.", answer.by)
            self.log.error("To go on, clear this gate's 'prove' task. %s", way_back)
            raise AirflowFailException(f"rejected by {answer.by}")
        super().execute_complete(context=context, event=event)
        record(context, self.cluster, Approved(**asdict(answer)))
        return {"proof_digest": proof_digest, "approved_by": answer.by, "approved_at": answer.answered_at}

    def _try(self, context: Any, digest: str) -> dict[str, Any]:
        """Which try of this task asks for a signature of which proof: what its records have in common."""
        ti = context["ti"]
        return {"gate": self.gate, "digest": digest, "task_instance": str(ti.id), "try_number": ti.try_number}


def _moment(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, datetime) else value


class ConfirmGate(ClusterOperator):
    """Read the signatures back from Airflow, look at the cluster once more; refuse a stale approval, a foreign one, or
    a cluster that changed.
    """

    start_from_trigger = True

    def __init__(self, *, operation: Operation, gate: str, examine: Examines, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.operation = operation
        self.gate = gate
        self.examine = examine
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls="kraft_runbook_airflow.base.answers.AnswerTrigger",
            trigger_kwargs={"gate": gate},
            next_method="after_reading",
            timeout=timedelta(seconds=READ_BACK_SECONDS),
        )

    def act(self, context: Any, run: Run) -> None:
        """Only where the scheduler can't start a trigger itself (``dag.test()``): defer to the same trigger."""
        self.defer(
            trigger=AnswerTrigger(self.gate),
            method_name="after_reading",
            timeout=timedelta(seconds=READ_BACK_SECONDS),
        )

    def rehearse(self, context: Any, run: Run) -> None:
        """Nobody was asked, so nothing is to be confirmed."""

    def after_reading(self, context: Any, event: dict[str, Any]) -> Any:
        """Go on with Airflow's own answers, by task instance."""
        return self.act_or_rehearse(
            context, act=lambda context, run: self.confirm(context, run, event), rehearse=self.rehearse
        )

    def confirm(self, context: Any, run: Run, answers: Mapping[str, Any]) -> dict[str, Any]:
        """``answers``: Airflow's own, by task instance. Raises Refused where they, the evidence or the cluster do not
        allow the gate's step.
        """
        return confirm(
            run, self.operation, self.gate, self.examine, lambda signatures: require_same(signatures, answers)
        )
