"""The length of the metadata copy, read from a run's evidence, beside the expected length. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_runbook.evidence.body import Body, moment, number, parts, text, whole
from kraft_runbook.evidence.kinds import Proven, Reached, kind_of
from kraft_runbook.migration.checks.copy import EXPECTED_COPY
from kraft_runbook.migration.conditions import METADATA_COPIED
from kraft_runbook.migration.copy_tuning import duration
from kraft_runbook.migration.transitions import Gate


def copy_account(bodies: Sequence[Body]) -> str | None:
    """The copy in a sentence or two, from the bodies of a run's records; None where this run did not wait for one."""
    waits = [
        told for body in bodies if isinstance(told := kind_of(body), Reached) and told.condition == METADATA_COPIED.name
    ]
    if not waits:
        return None
    spans = [each.copy for each in waits if number(each.copy, "seconds") is not None]
    said = (
        _real(spans[-1])
        if spans
        else ("The length of the metadata copy is not known: a snapshot replaced its records before they were read")
    )
    lasted = waits[0].seconds
    if lasted is not None:
        said += f"; the wait for it and for dual write took {duration(lasted)}"
    expected = _expected(bodies)
    return f"{said}. " + (
        f"Expected at the start gate: {expected}."
        if expected
        else "This run has no start gate with an expected length."
    )


def _real(span: Body) -> str:
    seconds, records = number(span, "seconds") or 0.0, whole(span, "records") or 0
    began, ended = moment(span, "began_at"), moment(span, "ended_at")
    when = f", {began:%Y-%m-%d %H:%M:%S} to {ended:%H:%M:%S} UTC by the metadata log" if began and ended else ""
    rate = f", {records / seconds:,.0f} a second" if seconds > 0 else ""
    return f"The metadata copy took {seconds:.1f} s ({records:,} records{rate}{when})"


def _expected(bodies: Sequence[Body]) -> str:
    proofs = [
        told.proof for body in bodies if isinstance(told := kind_of(body), Proven) and told.gate == Gate.START.value
    ]
    expected = [
        text(check, "evidence")
        for proof in proofs
        for check in parts(proof, "checks")
        if check.get("code") == EXPECTED_COPY
    ]
    return expected[-1] if expected else ""
