"""What of I3 is about parity: which report a gate, or leaving KRaft, may rest on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.outcomes import Outcome
from kraft_runbook.migration.transitions import TABLE, Gate

Body = Mapping[str, Any]
LEAVING_PARITY = "parity_before_leaving"
AGAIN = "gate_finalize.parity_again"


def behind_the_gate(body: Body, proof: Body, before: Sequence[Body]) -> Iterator[str]:
    """What is wrong with the parity behind an approval or a confirmation. ``before``: what the run had recorded by
    then.

    The proof's report must be what its task had compared last when the gate was proven, and nothing compared since may
    say otherwise.
    """
    if not TABLE.gate(proof["gate"]).needs_parity:
        return
    parity = proof["parity"]
    if not parity or parity["verdict"] != "MATCH":
        yield f"though parity was {parity['verdict'] if parity else 'not measured'}"
        return
    proven = next(
        (
            n
            for n, each in reversed(list(enumerate(before)))
            if each["outcome"] == Outcome.PROVEN and each["digest"] == body["digest"]
        ),
        len(before),
    )
    reports = [
        each for each in before[:proven] if each["outcome"] == Outcome.COMPARED and each["task"] == parity["task"]
    ]
    if not reports or (reports[-1]["digest"], reports[-1]["verdict"]) != (parity["digest"], "MATCH"):
        yield f"on a parity report that is not the latest of {parity['task']} in this run"
    yield from _latest_differs(before)
    if body["outcome"] == Outcome.CONFIRMED and proof["gate"] == Gate.FINALIZE:
        signed = max(
            (datetime.fromisoformat(each["answered_at"]) for each in before if _approves(each, body["digest"])),
            default=None,
        )
        again = [each for each in before if each["outcome"] == Outcome.COMPARED and each["task"] == AGAIN]
        if not again or signed is None or datetime.fromisoformat(again[-1]["started_at"]) < signed:
            yield "without parity proven after the signature"


def behind_left_kraft(body: Body, before: Sequence[Body]) -> Iterator[str]:
    """What is wrong with the parity behind leaving KRaft. None is needed where nothing was ever copied."""
    if body.get("phase") == Phase.PRE_MIGRATION or body.get("logs_read"):
        return
    places = [
        n for n, each in enumerate(before) if each["outcome"] == Outcome.COMPARED and each["task"] == LEAVING_PARITY
    ]
    if not places:
        yield "without a full parity of that run"
        return
    yield from _latest_differs(before)
    played = [each["step"] for each in before[places[-1] :] if each["outcome"] == Outcome.PLAYED]
    if played:
        yield f"on a parity that is older than {played[-1]}"


def _approves(each: Body, digest: str) -> bool:
    return bool(each["outcome"] == Outcome.APPROVED and each["digest"] == digest and each.get("answered_at"))


def _latest_differs(before: Sequence[Body]) -> Iterator[str]:
    """Whoever compared last in this run found something else than MATCH."""
    latest = next((each for each in reversed(before) if each["outcome"] == Outcome.COMPARED), None)
    if latest is not None and latest["verdict"] != "MATCH":
        yield f"though {latest['task']} had last found {latest['verdict']}"
