"""A rehearsal's result, for a person. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.rehearsal.throwaway import NOT_TOLD

_LABELS = (
    ("partitions", "partitions", "{:,}"),
    ("topics", "topics", "{:,}"),
    ("brokers", "brokers stood in for", "{}"),
    ("tree_seconds", "reading the source", "{:.1f} s"),
    ("copy", "Kafka's metadata copy", "{:.1f} s"),
    ("copied_records", "records copied", "{:,}"),
    ("window", "window of the way back", "{:.1f} s"),
    ("tries", "tries to leave KRaft", "{}"),
    ("controller_rss", "a controller's memory at its peak", "{} MiB"),
    ("cpu", "processor time of everything", "{:.0f} s"),
    ("load", "highest load average of a minute", "{:.1f}"),
    ("seconds", "the whole rehearsal", "{:.0f} s"),
)


def render(spec: ClusterSpec, told: Canary) -> str:
    """The verdict with every reason, what was done, the numbers, and what they do not tell."""
    return "\n".join(_lines(spec, told))


def _lines(spec: ClusterSpec, told: Canary) -> Iterator[str]:
    yield f"Rehearsal of {spec.name}'s migration: {told.verdict}"
    yield from (f"  {reason}" for reason in told.reasons)
    yield ""
    yield f"Done: {', '.join(told.rungs) or 'nothing'}"
    for key, label, form in _LABELS:
        value = told.measured.get(key)
        yield f"  {label}: {'not measured' if value is None else form.format(value)}"
    if told.left_out:
        yield ""
        yield "Settings that the throwaway did not have:"
        yield from (f"  {each}" for each in told.left_out)
    yield ""
    yield f"A rehearsal does not tell: {'; '.join(NOT_TOLD)}."
