"""When Kafka's own copy of the metadata began and ended, by the metadata log's own clock.

The copy is one transaction named ``ZK Migration`` (KIP-866, ``QuorumController.ZkRecordConsumer``); the active
controller stamps each batch with the time at which it was appended, so its span needs no access that observing the
cluster does not have. Beside Kafka's own line in the controller's log, on 3.9.2: 14.77 s for 14.82 (20,000 partitions),
0.28 for 0.33 (44).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime

from kraft_runbook.cluster.observation import CopySpan
from kraft_runbook.metadata.log.frames import Record, batches
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_schemas import RecordType, decode

MIGRATION_TRANSACTION = "ZK Migration"
_TIMESTAMP = struct.Struct(">q")
_BEFORE_RECORDS = 34
"""How far before a batch's records its base timestamp lies (magic 2): two timestamps, producer id, epoch and sequence,
and the count.
"""


@dataclass(slots=True)
class CopyWatch:
    """Follows a log's transactions. ``span``: the last copy that ended; one that was aborted never did."""

    span: CopySpan | None = None
    _began: tuple[int, datetime] | None = None

    def copy(self) -> CopyWatch:
        """A copy that can be read on from, leaving this one as it was."""
        return CopyWatch(self.span, self._began)

    def see(self, record: Record, chunk: Chunk) -> None:
        """Take note of a record that stands at a transaction's boundary. ``chunk``: the one that holds it, which is no
        snapshot (those hold none).
        """
        if record.api_key == RecordType.BEGIN_TRANSACTION:
            is_copy = decode(record)["name"] == MIGRATION_TRANSACTION
            self._began = (record.offset, appended_at(chunk, record.offset)) if is_copy else None
        elif record.api_key == RecordType.END_TRANSACTION and self._began is not None:
            offset, began = self._began
            self.span, self._began = (
                CopySpan(began, appended_at(chunk, record.offset), record.offset - offset - 1),
                None,
            )
        elif record.api_key == RecordType.ABORT_TRANSACTION:
            self._began = None


def appended_at(chunk: Chunk, offset: int) -> datetime:
    """When the active controller appended the batch that holds this offset, to the millisecond. Raises ValueError where
    none does.
    """
    for batch in batches(memoryview(chunk.data)):
        if batch.first_offset <= offset <= batch.last_offset:
            (milliseconds,) = _TIMESTAMP.unpack_from(chunk.data, batch.start - _BEFORE_RECORDS)
            return datetime.fromtimestamp(milliseconds / 1000, UTC)
    raise ValueError(f"no batch of the chunk holds offset {offset}")
