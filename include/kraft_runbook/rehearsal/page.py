"""A rehearsal's result as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.body import texts
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.rehearsal_card import NOT_TOLD, numbers_of, rungs_of


def render(spec: ClusterSpec, told: Canary) -> str:
    """The verdict with every reason, what was done, the numbers, and what they do not tell."""
    return "\n".join(_lines(spec, told))


def _lines(spec: ClusterSpec, told: Canary) -> Iterator[str]:
    yield f"Rehearsal of {spec.name}'s migration: {told.verdict}"
    yield from (f"  {reason}" for reason in told.reasons)
    yield ""
    yield f"Done: {', '.join(rungs_of(told)) or 'nothing'}"
    yield from (f"  {label}: {number}" for label, number in numbers_of(told.measured))
    if refused := texts(told.measured, "refused"):
        yield ""
        yield "Tries in vain:"
        yield from (f"  {each}" for each in refused)
    if told.left_out:
        yield ""
        yield "Settings that the throwaway did not have:"
        yield from (f"  {each}" for each in told.left_out)
    yield ""
    yield f"A rehearsal does not tell: {'; '.join(NOT_TOLD)}."
