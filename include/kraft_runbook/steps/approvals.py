"""What is on record of a gate: its stored proof and the signatures under it. Every step that changes the cluster asks
here first.

What counts is the run's evidence, to which only tasks append, and Airflow's own answer, read back when the gate is
confirmed. Tasks' states and XComs count for nothing: whoever may edit a DAG's runs can set them by hand
(docs/gates.md).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Begins
from kraft_runbook.gates.proof import Proof
from kraft_runbook.gates.signatures import Standing, proven_again, refusal, standing
from kraft_runbook.io.private_file import write_private
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.run import Run


def require_confirmation(
    run: Run,
    operation: Operation,
    gate: str,
    seen: ClusterObservation,
    *,
    turn: Collection[int] = (),
    exhibit: str | None = None,
    under_way: bool = False,
) -> None:
    """Raise Refused unless this run's gate was confirmed on a signed proof, and the cluster differs from it by nothing
    but the guarded steps' own work.

    ``turn``: the nodes whose turn it is. ``exhibit``: the digest of what the run would carry out, which the proof must
    show. ``under_way``: the cluster shows the steps' own work where an observation does not (replicas that move).
    """
    proof, at = require_approval(run, operation, gate, seen, turn=turn, under_way=under_way)
    if exhibit is not None and exhibit not in {each.digest for each in proof.exhibits}:
        raise Refused(
            f"what this run would carry out is not what gate {gate} has shown: its plan was made anew, or a playbook"
            " was changed. Nobody has signed it",
            way_out=f"clear gate_{gate}.prove with its downstream tasks",
        )
    signed = {s.task_instance for s in at.on_this_proof}
    if at.confirmed != proof.digest or not signed <= at.read_back:
        raise Refused(
            f"gate {gate} was not confirmed on the proof that was signed (a task marked successful by hand"
            " confirms nothing)",
            way_out=f"clear gate_{gate}.confirm with its downstream tasks; it says what is missing",
        )


def begins(run: Run, gate: str) -> None:
    """Put on record that a step behind the gate begins to act now. Once it changed something the proof's age stops
    nobody: a killed step can go on.
    """
    run.journal.record(Begins(gate=gate, digest=standing(run.journal.records(), gate).digest))


def require_approval(
    run: Run,
    operation: Operation,
    gate: str,
    seen: ClusterObservation,
    *,
    confirming: bool = False,
    turn: Collection[int] = (),
    under_way: bool = False,
) -> tuple[Proof, Standing]:
    """The gate's proof and its signatures, where they allow its step now. Raises Refused otherwise, saying why;
    RunbookError when the evidence is broken. ``under_way``: as of ``require_confirmation``; the proof's age stops
    nobody then, once a step has begun to act.
    """
    records = run.journal.records()
    at = standing(records, gate)
    group = f"gate_{gate}"
    if not at.digest:
        raise Refused(f"no proof is on record for gate {gate}", way_out=f"clear {group}.prove")
    proof = load_proof(run.state, at.digest)
    why_not = refusal(
        operation,
        proof,
        at,
        seen,
        run.spec,
        now=proof.made_at if under_way and at.begun else datetime.now(UTC),
        asked=asked_signatures(run),
        confirming=confirming,
        turn=turn,
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


def asked_signatures(run: Run) -> int:
    """How many signatures the trigger form asks for: the cluster file's number counts where it is higher."""
    return int(run.params.get("approvals_needed") or 1)


def _proof_file(state: Path, digest: str) -> Path:
    return state / "proofs" / f"{digest}.json"


def store_proof(state: Path, proof: Proof) -> None:
    """Keep the proof under its digest."""
    write_private(_proof_file(state, proof.digest), json.dumps(proof.to_dict(), indent=1, default=str))


def load_proof(state: Path, digest: str) -> Proof:
    """The stored proof. Raises Refused where it is gone."""
    file = _proof_file(state, digest)
    if not file.is_file():
        raise Refused(
            f"the proof {digest[:12]} is not in the state directory",
            way_out=(
                "clear the gate's 'prove' task; if workers run on several machines, let them share KRAFT_RUNBOOK_STATE"
            ),
        )
    return Proof.from_dict(json.loads(file.read_text()))
