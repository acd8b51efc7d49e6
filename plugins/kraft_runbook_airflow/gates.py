"""The gates under Airflow: prove, ask a person, confirm that the approval still fits the cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from kraft_runbook.checks import Verdict, run_checks
from kraft_runbook.checks.liveness import dual_write_liveness
from kraft_runbook.checks.model import CheckResult
from kraft_runbook.checks.registry import DUAL_WRITING
from kraft_runbook.clients.observe import Scope, observe
from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.gates import NEEDS_PARITY, Gate, is_behind, make_proof
from kraft_runbook.observation import ClusterObservation
from kraft_runbook.phases import RollbackPlan, detect_phase
from kraft_runbook.way_back import quorum_is_lost, way_back
from kraft_runbook_airflow.approvals import load_proof, require_approval, store_proof
from kraft_runbook_airflow.environment import airflow_secrets, is_dry_run
from kraft_runbook_airflow.journal import record
from kraft_runbook_airflow.operators import ClusterOperator
from kraft_runbook_airflow.parity import load_summary

LIVENESS_SECONDS = 3.0
"""How far apart the two looks at /migration are: NoOp records move its offset twice a second, 2 s of standstill mean death."""


class ProveGate(ClusterOperator):
    """Check the cluster deeply, join the parity report, and seal both with a digest. Refuses to ask a person about a proof that does not hold."""

    def __init__(self, *, gate: Gate, parity_task: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gate = gate
        self.parity_task = parity_task

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        seen, checks, back = examine(spec, self.gate)
        phase = detect_phase(seen).phase
        parity = load_summary(context, self.parity_task) if self.parity_task and not is_dry_run() else None
        proof = make_proof(self.gate, seen, checks=checks, parity=parity, rollback=back, made_at=datetime.now(UTC))
        self.log.info("%s", proof.render_markdown())
        if is_dry_run():
            self.log.info("Dry run: this gate would now wait for an approval")
            return {"digest": proof.digest, "markdown": proof.render_markdown(), "passed": False}
        passed = is_behind(self.gate, seen)
        if proof.objections and not passed:
            raise Refused(
                f"gate {self.gate.value} can't be put before a person:\n" + "\n".join(f"- {o}" for o in proof.objections),
                way_out="; ".join(dict.fromkeys(c.fix for c in checks if c.blocks and c.fix))
                or "look at the parity report above, correct what differs, and clear the parity task",
            )
        store_proof(proof)
        record(
            context,
            self.cluster,
            "proven",
            {"gate": self.gate.value, "digest": proof.digest, "phase": phase.value, "parity": parity.digest if parity else None, "proof": proof.to_dict()},
        )
        return {"digest": proof.digest, "markdown": proof.render_markdown(), "passed": passed}


def examine(spec: ClusterSpec, gate: Gate) -> tuple[ClusterObservation, tuple[CheckResult, ...], RollbackPlan]:
    """Observe deeply, run the gate's checks, and find the way back; once dual writes should flow, look twice to see that they do."""
    secrets = airflow_secrets()
    earlier = observe(spec, secrets=secrets)
    checks: list[CheckResult] = []
    stopped = None
    deep = gate is not Gate.ROLLBACK
    if gate in NEEDS_PARITY or detect_phase(earlier).phase in DUAL_WRITING:
        time.sleep(LIVENESS_SECONDS)
    seen = observe(spec, secrets=secrets, scope=Scope.FULL if deep else Scope.LIVE, with_hosts=deep)
    phase = detect_phase(seen).phase
    if gate in NEEDS_PARITY or (phase in DUAL_WRITING and not quorum_is_lost(seen)):
        alive = dual_write_liveness(earlier, seen)
        checks.append(alive)
        stopped = alive.evidence if alive.verdict is Verdict.FAIL else None
    found = run_checks(seen, spec, phase, gate=gate.value).results
    return seen, (*found, *checks), way_back(seen, spec, dual_write_stopped=stopped)


class ApprovalGate(ApprovalOperator):
    """Parks until a person approves or rejects; holds no worker. The digest that was shown is kept with the answer.

    ``number``: the first or second signature. The second is asked for only where the run needs two.
    """

    template_fields: Sequence[str] = ("subject", "body", "proof_digest", "passed")

    def __init__(self, *, cluster: str, gate: Gate, prove_task: str, number: int, users: Sequence[str], **kwargs: Any) -> None:
        pull = f"ti.xcom_pull(task_ids='{prove_task}')"
        super().__init__(
            subject=f"{cluster}: {SUBJECTS[gate]}" + (" (second signature)" if number == 2 else ""),
            body=f"{{{{ {pull}['markdown'] }}}}",
            assigned_users=[{"id": user, "name": user} for user in users] or None,
            fail_on_reject=True,
            **kwargs,
        )
        self.cluster = cluster
        self.gate = gate
        self.number = number
        self.proof_digest = f"{{{{ {pull}['digest'] }}}}"
        self.passed = f"{{{{ {pull}['passed'] }}}}"

    def execute(self, context: Any) -> Any:
        if is_dry_run():
            self.log.info("Dry run: nobody is asked")
            return {"not_asked": "dry run"}
        if self.passed == "True":
            self.log.info("already done: the cluster is beyond this gate's step")
            return {"not_asked": "the cluster is beyond this gate's step"}
        if self.number > int(context["params"].get("approvals_needed", 1)):
            self.log.info("One signature is enough in this run")
            return {"not_asked": "one signature is enough"}
        try:
            super().execute(context)
        except TaskAwaitingInput as parked:
            parked.kwargs = {"proof_digest": self.proof_digest}
            raise

    def execute_complete(self, context: Any, event: dict[str, Any], proof_digest: str = "") -> Any:
        chosen = event.get("chosen_options") or []
        who = (event.get("responded_by_user") or {}).get("name")
        if chosen == [self.REJECT]:
            plan = load_proof(proof_digest).rollback
            way_back = "\n".join(f"{n}. {step}" for n, step in enumerate(plan.steps, 1)) or plan.why
            record(context, self.cluster, "rejected", {"gate": self.gate.value, "digest": proof_digest, "by": who, "answered_at": event.get("responded_at")})
            self.log.error("Rejected by %s. The run stops here; nothing further is changed.", who)
            self.log.error("To go on, clear this gate's 'prove' task. To go back:\n%s", way_back)
            raise AirflowFailException(f"rejected by {who}")
        answer = super().execute_complete(context=context, event=event)
        record(context, self.cluster, "approved", {"gate": self.gate.value, "digest": proof_digest, "by": who, "answered_at": answer["responded_at"]})
        return {
            "proof_digest": proof_digest,
            "chosen_options": answer["chosen_options"],
            "approved_by": (answer["responded_by_user"] or {}).get("id"),
            "approved_at": answer["responded_at"].isoformat(),
        }


SUBJECTS = {
    Gate.START: "start the migration to KRaft?",
    Gate.DUAL_WRITE: "restart the brokers in KRaft mode?",
    Gate.FINALIZE: "finalize? This can't be undone",
    Gate.ROLLBACK: "go back to ZooKeeper?",
}


class ConfirmGate(ClusterOperator):
    """Look at the cluster once more after the approval; refuse a stale approval, a foreign one, or a cluster that changed."""

    def __init__(self, *, gate: Gate, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gate = gate

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any] | None:
        if is_dry_run():
            return None
        seen, checks, _ = examine(spec, self.gate)
        phase = detect_phase(seen).phase
        if is_behind(self.gate, seen):
            self.log.info("already done: the cluster is in %s", phase)
            return {"passed": True}
        blocking = [c for c in checks if c.blocks]
        if blocking:
            raise Refused("\n".join(f"{c.code} {c.title}: {c.evidence}" for c in blocking), way_out="; ".join(dict.fromkeys(c.fix for c in blocking)))
        proof = require_approval(context, spec, self.gate, seen, resuming=False)
        record(context, self.cluster, "confirmed", {"gate": self.gate.value, "digest": proof.digest, "phase": phase.value})
        return {"digest": proof.digest, "phase": phase.value}
