"""Who may sign a gate, and whether their answers hold, by what Airflow says of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from kraft_runbook.cluster.approvals import Approvals
from kraft_runbook.errors import Refused
from kraft_runbook.gates.proof import Proof
from kraft_runbook.gates.signatures import Signature, Standing

APPROVES = "Approve"
"""What Airflow keeps of an approval (``ApprovalOperator.APPROVE``)."""


def require_enough_people(approvals: Approvals, proof: Proof, known: Collection[str] | None) -> None:
    """Raise Refused where too few of the people in the cluster file could sign. ``known``: the names of Airflow's
    users; None or empty where that is not known.
    """
    users = approvals.users
    if not users:
        return
    unknown = [each.name for each in users if known and each.name not in known]
    able = [
        each
        for each in users
        if each.name not in unknown and not (approvals.exclude_trigger and each.name == proof.triggered_by)
    ]
    if len(able) < proof.needed:
        strangers = (
            f"; Airflow has no user {', '.join(unknown)} (it has {', '.join(sorted(known or ()))})" if unknown else ""
        )
        raise Refused(
            f"{proof.needed} must sign gate {proof.gate}, and of approvals.users {len(able)} can{strangers}",
            way_out="correct approvals in the cluster file, or let another person trigger the run",
        )


def why_no_answer(
    approvals: Approvals,
    proof: Proof,
    gate: Callable[[], Standing],
    task: str,
    name: str,
    user_id: str,
    *,
    approves: bool,
) -> str | None:
    """Why this person's answer at ``task`` is none. To reject is free to whoever may sign at all, also to the one who
    triggered the run or signed already.
    """
    if not approves:
        return approvals.why_not(name, user_id, None)
    if any(s.user_id == user_id and s.task != task for s in gate().on_this_proof):
        return f"{name} has signed already; {proof.needed} different people must sign"
    return approvals.why_not(name, user_id, proof.triggered_by)


def require_same(signatures: Sequence[Signature], answers: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise Refused unless Airflow says of each signature what the evidence says: who approved, and when."""
    for each in signatures:
        told = answers.get(each.task_instance, {"unread": "it was not asked for"})
        if "unread" in told:
            raise Refused(
                f"the approval by {each.who} stands in the evidence, but Airflow's own record of it could not be read:"
                f" {told['unread']}",
                way_out=(
                    "where the approval's task was cleared, answer it anew; else look at the triggerer's log, then"
                    " clear this task"
                ),
            )
        when = datetime.fromisoformat(told["at"]) if told["at"] else None
        if told["chosen"] != [APPROVES] or (told["by"], told["by_id"], when) != (
            each.name,
            each.user_id,
            each.approved_at,
        ):
            said = (
                f"{'; '.join(told['chosen']) or 'no answer'} by {told['by'] or 'nobody'} (id {told['by_id']}) at"
                f" {told['at']}"
            )
            raise Refused(
                f"the evidence has an approval by {each.who} at {each.approved_at.isoformat()}, Airflow has: {said}",
                way_out=(
                    "find out who wrote what (docs/evidence.md); to go on, clear the gate's 'prove' task with its"
                    " downstream tasks"
                ),
            )
