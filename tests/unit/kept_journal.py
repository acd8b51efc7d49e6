"""The journal of a run in a test that reads back what it wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from recording import Ports

from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.record import EvidenceRecord, make_record


class Kept(Ports):
    """Every gate is signed, nobody else has the claim, and the records are those that were written. ``task``: whose the
    next ones are.
    """

    def __init__(self) -> None:
        super().__init__()
        self.task = "drill"
        self._records: list[EvidenceRecord] = []

    def record(self, what: Kind) -> None:
        super().record(what)
        last = self._records[-1] if self._records else None
        self._records.append(make_record(last, {"task": self.task, **what.body()}, at=datetime.now(UTC)))

    def records(self) -> tuple[EvidenceRecord, ...]:
        return tuple(self._records)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [dict(each.body) for each in self._records]
