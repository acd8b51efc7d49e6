"""What is on record of a gate: its stored proof and the signatures under it. Every step that changes the cluster asks
here first.

What counts is the run's evidence, to which only tasks append, and Airflow's own answer, read back when the gate is
confirmed. Tasks' states and XComs count for nothing: whoever may edit a DAG's runs can set them by hand
(docs/gates.md).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Begins
from kraft_runbook.gates.proof import Proof
from kraft_runbook.gates.signatures import Standing, proven_again, refusal, standing
from kraft_runbook.io.private_file import write_private
from kraft_runbook.runbook.operation import Operation
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.journal import record, records_of


def require_confirmation(
    context: Any,
    spec: ClusterSpec,
    operation: Operation,
    gate: str,
    seen: ClusterObservation,
    *,
    node: int | None = None,
    exhibit: str | None = None,
    under_way: bool = False,
) -> None:
    """Raise Refused unless this run's gate was confirmed on a signed proof, and the cluster differs from it by nothing
    but the guarded steps' own work.

    ``node``: whose turn it is. ``exhibit``: the digest of what the run would carry out, which the proof must show.
    ``under_way``: the cluster shows the steps' own work where an observation does not (replicas that move).
    """
    proof, at = require_approval(context, spec, operation, gate, seen, node=node, under_way=under_way)
    if exhibit is not None and exhibit not in {each.digest for each in proof.exhibits}:
        raise Refused(
            f"what this run would carry out was made anew after gate {gate} was proven, so that nobody has signed it",
            way_out=f"clear gate_{gate}.prove with its downstream tasks",
        )
    signed = {s.task_instance for s in at.on_this_proof}
    if at.confirmed != proof.digest or not signed <= at.read_back:
        raise Refused(
            f"gate {gate} was not confirmed on the proof that was signed (a task marked successful by hand"
            " confirms nothing)",
            way_out=f"clear gate_{gate}.confirm with its downstream tasks; it says what is missing",
        )


def begins(context: Any, cluster: str, gate: str) -> None:
    """Put on record that a step behind the gate begins to act now. Once it changed something the proof's age stops
    nobody: a killed step can go on.
    """
    record(context, cluster, Begins(gate=gate, digest=standing(records_of(context), gate).digest))


def require_approval(
    context: Any,
    spec: ClusterSpec,
    operation: Operation,
    gate: str,
    seen: ClusterObservation,
    *,
    confirming: bool = False,
    node: int | None = None,
    under_way: bool = False,
) -> tuple[Proof, Standing]:
    """The gate's proof and its signatures, where they allow its step now. Raises Refused otherwise, saying why;
    RunbookError when the evidence is broken. ``under_way``: as of ``require_confirmation``; the proof's age stops
    nobody then, once a step has begun to act.
    """
    records = records_of(context)
    at = standing(records, gate)
    group = f"gate_{gate}"
    if not at.digest:
        raise Refused(f"no proof is on record for gate {gate}", way_out=f"clear {group}.prove")
    proof = load_proof(at.digest)
    why_not = refusal(
        operation,
        proof,
        at,
        seen,
        spec,
        now=proof.made_at if under_way and at.begun else datetime.now(UTC),
        asked=asked_signatures(context),
        confirming=confirming,
        node=node,
    )
    if why_not:
        raise Refused(f"gate {gate} does not allow this step: {why_not.why}", way_out=why_not.way_out)
    again = operation.table.gate(gate).proven_again
    if again and not proven_again(records, f"{group}.{again}", at.on_this_proof):
        raise Refused(
            "parity was not proven again after the last signature (a task marked successful by hand proves nothing)",
            way_out=f"clear {group}.{again} with its downstream tasks",
        )
    return proof, at


def asked_signatures(context: Any) -> int:
    """How many signatures the trigger form asks for: the cluster file's number counts where it is higher."""
    return int(context["params"].get("approvals_needed") or 1)


def triggered_by(context: Any) -> str | None:
    """The name of whoever triggered this run; None where Airflow knows no one (``DagRun.triggering_user_name``).

    In the UI and by the API it is the name that signatures carry too; ``airflow dags trigger`` puts the account of the
    machine there.
    """
    name = getattr(context.get("dag_run"), "triggering_user_name", None)
    return str(name) if name else None


def _proof_file(digest: str) -> Path:
    return state_directory() / "proofs" / f"{digest}.json"


def store_proof(proof: Proof) -> None:
    """Keep the proof under its digest."""
    write_private(_proof_file(proof.digest), json.dumps(proof.to_dict(), indent=1, default=str))


def load_proof(digest: str) -> Proof:
    """The stored proof. Raises Refused where it is gone."""
    file = _proof_file(digest)
    if not file.is_file():
        raise Refused(
            f"the proof {digest[:12]} is not in the state directory",
            way_out=(
                "clear the gate's 'prove' task; if workers run on several machines, let them share KRAFT_RUNBOOK_STATE"
            ),
        )
    return Proof.from_dict(json.loads(file.read_text()))
