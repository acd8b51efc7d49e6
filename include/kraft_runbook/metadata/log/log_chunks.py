"""A piece of the metadata log as it came over the network, and its records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraft_runbook.metadata.log.frames import Record, records


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """A snapshot holds the state of everything below ``end_offset``."""

    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole batches, of the log or of a snapshot. Records below ``since`` were read before; those above ``up_to`` are
    not committed.

    ``begins``: of a snapshot's chunks, whether this is the first one, which replaces all that was known.
    """

    data: bytes
    since: int = 0
    up_to: int = -1
    snapshot: SnapshotId | None = None
    begins: bool = True

    def records(self) -> Iterator[Record]:
        """The records, each with its offset in the log; all those of a snapshot take effect at the last offset that it
        holds.
        """
        if self.snapshot is not None:
            at = self.snapshot.end_offset - 1
            for record in records(self.data):
                yield Record(at, record.epoch, record.api_key, record.version, record.body)
            return
        for record in records(self.data, up_to=self.up_to):
            if record.offset >= self.since:
                yield record
