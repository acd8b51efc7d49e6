"""A rehearsal's result for a person: what was done, its numbers, and what no rehearsal tells. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kraft_runbook.evidence.body import number, part, texts
from kraft_runbook.evidence.kinds import Canary

NUMBERS = (
    ("partitions", "partitions", "{:,}"),
    ("topics", "topics", "{:,}"),
    ("brokers", "brokers stood in for", "{}"),
    ("tree_seconds", "reading the source", "{:.1f} s"),
    ("tree_cpu", "processor time of reading the source", "{:.1f} s"),
    ("copy", "Kafka's metadata copy", "{:.1f} s"),
    ("copy_cpu", "processor time of the throwaway in that copy", "{:.1f} s"),
    ("copy_load", "highest load in that copy", "{:.1f}"),
    ("copied_records", "records copied", "{:,}"),
    ("window", "window of the way back", "{:.1f} s"),
    ("window_cpu", "processor time of the throwaway in that window", "{:.1f} s"),
    ("window_load", "highest load in that window", "{:.1f}"),
    ("tries", "tries to leave KRaft", "{}"),
    ("respelt", "znodes that came back in other bytes of the same meaning", "{:,}"),
    ("controller_rss", "a controller's memory at its peak", "{} MiB"),
    ("cpu", "processor time of the throwaway's processes", "{:.0f} s"),
    ("load", "highest load average of a minute, of the whole rehearsal", "{:.1f}"),
    ("seconds", "the whole rehearsal", "{:.0f} s"),
)
NOT_TOLD = (
    "hosts, their disks and the network between them",
    "TLS and SASL, and every listener setting",
    "limits of connections",
    "clients, and what they see of a restart",
    "tiered storage, and what the classes of plugins do, an authorizer among them",
    "the ACLs of znodes",
    "restarts of brokers that hold replicas",
    "metadata that changes while the migration runs",
    "the preflight with which a way back ends (verify_rollback): the phase alone is looked at",
    "what a controller holds beyond its heap under G1, the collector that Kafka starts with: limits.controller_memory"
    " compares resident memory under the serial collector",
)
"""What no rehearsal tells; its page says so. Of collectors: Kafka's kafka-run-class.sh (KAFKA_JVM_PERFORMANCE_OPTS) and
the throwaway's own (``io/local/templates``).
"""


@dataclass(frozen=True, slots=True)
class RehearsalCard:
    """One rehearsal. ``numbers``: each with its label, "not measured" where it was not. ``refused``: tries in vain."""

    at: datetime
    verdict: str
    whole: bool
    reasons: tuple[str, ...]
    rungs: tuple[str, ...]
    numbers: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    refused: tuple[str, ...]
    kafka: str
    tool: str
    source: str
    not_told: tuple[str, ...] = NOT_TOLD

    @property
    def good(self) -> bool:
        return self.verdict == "PASSED"


def card_of(at: datetime, told: Canary) -> RehearsalCard:
    """Of one record."""
    return RehearsalCard(
        at,
        told.verdict,
        told.whole,
        told.reasons,
        rungs_of(told),
        numbers_of(told.measured),
        told.left_out,
        texts(told.measured, "refused"),
        told.kafka,
        told.tool,
        told.source,
    )


def numbers_of(measured: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Each number with its label."""
    return tuple((label, _told(measured.get(key), form)) for key, label, form in NUMBERS)


def rungs_of(told: Canary) -> tuple[str, ...]:
    """Each rung that was done, with what it took; its name alone in a record from before that was measured."""
    took = part(told.measured, "rungs")
    return tuple(f"{rung}{_took(part(took, rung))}" for rung in told.rungs)


def _took(numbers: Mapping[str, Any]) -> str:
    forms = {"seconds": "{:.1f} s", "cpu": "processor {:.1f} s", "load": "load {:.1f}", "throttled": "throttled {:.0%}"}
    said = [form.format(value) for key, form in forms.items() if (value := number(numbers, key)) is not None]
    return f" ({', '.join(said)})" if said else ""


def _told(value: object, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) and not isinstance(value, bool) else "not measured"
