"""What a gate's tasks do around the question to a person: they prove before it, and confirm after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Confirmed, Proven
from kraft_runbook.gates.page import render_in_full
from kraft_runbook.gates.proof import Proof, make_proof
from kraft_runbook.gates.signatures import Signature, standing, too_old
from kraft_runbook.runbook.changes import state_of, unread_since
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.approvals import asked_signatures, load_proof, require_approval, store_proof
from kraft_runbook.steps.examine import Examined, Examines, Shown
from kraft_runbook.steps.run import Run


def prove(
    run: Run, operation: Operation, gate: str, shown: Shown, examine: Examines, *, triggered_by: str | None
) -> tuple[ClusterObservation, Proof]:
    """Check the cluster deeply, join what is shown, and seal both with a digest. Told in full."""
    found = examine(run, gate)
    proof = make_proof(
        gate,
        found.seen,
        run.spec,
        checks=found.checks,
        parity=shown.parity,
        rollback=found.way_back,
        made_at=datetime.now(UTC),
        ahead=operation.ahead(gate, found.seen, run.spec, found.way_back.steps),
        needed=run.spec.approvals.needed_for(gate, asked_signatures(run)),
        triggered_by=triggered_by,
        exhibits=(*shown.exhibits, *found.exhibits),
    )
    run.cluster.tell(render_in_full(proof, operation.table.gate(gate)))
    return found.seen, proof


def require_askable(run: Run, operation: Operation, proof: Proof, shown_by: str) -> None:
    """Raise Refused where nobody should be asked: the proof does not hold, or is too old already. ``shown_by``: as of
    ``Shown``.
    """
    objections = proof.objections(operation.table.gate(proof.gate))
    if objections:
        raise Refused(
            f"gate {proof.gate} can't be put before a person:\n" + "\n".join(f"- {o}" for o in objections),
            way_out="; ".join(dict.fromkeys(c.fix for c in proof.checks if c.blocks and c.fix))
            or f"look at the parity report above, correct what differs, and clear {shown_by} with its downstream tasks",
        )
    old = too_old(proof, run.spec.approvals.valid_for, proof.made_at)
    if old:
        raise Refused(f"gate {proof.gate} can't be put before a person: {old.why}", way_out=old.way_out)


def keep_proof(run: Run, proof: Proof, *, passed: bool) -> list[dict[str, Any]]:
    """Store the proof, and put it on record. ``passed``: nothing is left to sign for. Returns every proving of this
    run's gate, the latest last.
    """
    store_proof(run.state, proof)
    run.journal.record(
        Proven(
            gate=proof.gate,
            digest=proof.digest,
            phase=proof.phase.value,
            parity=proof.parity.digest if proof.parity else None,
            passed=passed,
            proof=proof.to_dict(),
        )
    )
    run.cluster.tell(verdict_of(proof, passed=passed))
    earlier = [{"digest": "", "passed": False}] * (standing(run.journal.records(), proof.gate).provings - 1)
    return [*earlier, {"digest": proof.digest, "passed": passed}]


def verdict_of(proof: Proof, *, passed: bool) -> str:
    """What a proof comes to, in a line."""
    amiss = [c.code for c in proof.checks if c.verdict is not Verdict.PASS]
    parity = f", parity is {proof.parity.verdict}" if proof.parity else ""
    ends = "nothing is left to sign for" if passed else "a person is asked"
    named = f"; not: {', '.join(amiss)}" if amiss else ""
    passing = f"{len(proof.checks) - len(amiss)} of {len(proof.checks)} checks pass{named}{parity}"
    return f"Gate {proof.gate}: {passing}; {ends}, proof {proof.digest[:12]}"


def confirm(
    run: Run,
    operation: Operation,
    gate: str,
    examine: Examines,
    require_same: Callable[[Sequence[Signature]], None],
) -> dict[str, Any]:
    """Look at the cluster once more, and put on record that the signatures still fit it. ``require_same``: raises
    Refused unless whoever took the signatures has the same on record. Raises Refused for a stale approval, and for a
    cluster that changed.
    """
    found = _examined(run, gate, examine)
    phase = detect_phase(found.seen).phase
    if operation.is_behind(gate, found.seen, run.spec):
        run.cluster.tell(f"already done: the cluster is in {phase}")
        return {"passed": True}
    blocking = [c for c in found.checks if c.blocks]
    if blocking:
        raise Refused(
            "\n".join(f"{c.code} {c.title}: {c.evidence}" for c in blocking),
            way_out="; ".join(dict.fromkeys(c.fix for c in blocking)),
        )
    proof, at = require_approval(run, operation, gate, found.seen, confirming=True)
    require_same(at.on_this_proof)
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
    run.journal.record(Confirmed(gate=gate, digest=proof.digest, phase=phase.value, signatures=signatures))
    return {"digest": proof.digest, "phase": phase.value}


def _examined(run: Run, gate: str, examine: Examines) -> Examined:
    """A look, and again, ``deadlines.healthy_in_a_row`` times in all, while a node does not say what it said for the
    proof: one that is busy answers at the next.
    """
    found = examine(run, gate)
    for _ in range(run.spec.deadlines.healthy_in_a_row - 1):
        unread = _unread_since_the_proof(run, gate, found.seen)
        if not unread:
            break
        run.cluster.tell(f"looking again, this may be over in a moment: {'; '.join(unread)}")
        run.cluster.pause(run.spec.deadlines.poll)
        found = examine(run, gate)
    return found


def _unread_since_the_proof(run: Run, gate: str, seen: ClusterObservation) -> list[str]:
    try:
        proof = load_proof(run.state, standing(run.journal.records(), gate).digest)
    except Refused:  # whether it is needed is judged behind this look
        return []
    return unread_since(proof.state, state_of(seen))
