"""Metadata transactions (KIP-866, KIP-868): records between Begin and End take effect at End, or never.

The metadata copy is one transaction. No snapshot ends inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kraft_runbook.metadata.log.frames import Record
from kraft_runbook.metadata.log.record_schemas import RecordType


@dataclass(slots=True)
class Transactions:
    """Follows a stream of records. ``open_since``: the offset of the Begin of a transaction that has not ended;
    ``held``: its records.
    """

    open_since: int | None = None
    held: list[Record] = field(default_factory=list)

    def copy(self) -> Transactions:
        """A copy that can be read on from, leaving this one as it was."""
        return Transactions(self.open_since, list(self.held))

    def effective(self, records: Iterable[Record]) -> Iterator[tuple[int, Record]]:
        """Each record with the offset at which it takes effect: its own, or that of the EndTransaction. Aborted ones
        never come.
        """
        for record in records:
            if record.api_key == RecordType.BEGIN_TRANSACTION:
                self.open_since, self.held = record.offset, []
            elif record.api_key == RecordType.END_TRANSACTION:
                for each in self.held:
                    yield record.offset, each
                self.open_since, self.held = None, []
            elif record.api_key == RecordType.ABORT_TRANSACTION:
                self.open_since, self.held = None, []
            elif self.open_since is not None:
                self.held.append(record)
            else:
                yield record.offset, record
