"""The log up to the offset in question, in bulk: records about topics as columns, all others one by one, transactions
honoured.

Records about topics and all others change different parts of the image, so that each sort can be taken in its own
order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.image.frozen_topics import TopicRecords
from kraft_runbook.metadata.image.image import TOPIC_RESOURCE, MetadataImage, Touched
from kraft_runbook.metadata.image.thawing_topics import ThawingTopics
from kraft_runbook.metadata.log.record_columns import TYPES
from kraft_runbook.metadata.log.record_index import Places, RecordIndex
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.metadata.log.transactions import Transactions

MARKS = (RecordType.BEGIN_TRANSACTION, RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION)


@dataclass(slots=True)
class BulkReplay:
    """``image`` takes the records that are not of one topic at once; those of topics come with ``freeze``."""

    image: MetadataImage
    transactions: Transactions
    _topics: TopicRecords = field(init=False)
    _order: int = 0
    _begun: int | None = None
    """The place of the Begin of the transaction that is open."""
    _open: list[tuple[int, RecordIndex]] = field(default_factory=list)
    """Chunks since then, whole, with the place of their first record."""
    _dropped: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._topics = TopicRecords(self.image.fingerprints)

    def apply(self, records: RecordIndex) -> int:
        """Take these records in; how many there were. Raises Garbled, naming the offset."""
        first = self._order
        self._order += len(records)
        self._follow_transactions(records, first)
        of_topics = np.isin(records.api_key, TYPES)
        others = ~of_topics & (records.api_key != RecordType.NO_OP)
        key = records.api_key.astype(np.int32) << 16 | records.version
        for kind in np.unique(key[of_topics]).tolist():
            of_it = key == kind
            if kind >> 16 == RecordType.CONFIG:
                of_topic = (
                    records.data[records.start] == TOPIC_RESOURCE
                )  # resource_type, an int8, is the record's first field
                others |= of_it & ~of_topic
                of_it &= of_topic
                if not of_it.any():
                    continue
            self._topics.add(records.take(of_it), first + np.flatnonzero(of_it))
        nobody = Touched()
        for _, record in self.transactions.effective(records.take(others).records()):
            self.image.apply(record, nobody)
        return len(records)

    def _follow_transactions(self, records: RecordIndex, first: int) -> None:
        if self._begun is not None:
            self._open.append((first, records))
        for at in np.flatnonzero(np.isin(records.api_key, MARKS)).tolist():
            if records.api_key[at] == RecordType.BEGIN_TRANSACTION:
                self._begun, self._open = first + at, [(first, records)]
            else:
                if records.api_key[at] == RecordType.ABORT_TRANSACTION and self._begun is not None:
                    self._dropped.append((self._begun, first + at))
                self._begun, self._open = None, []

    def freeze(self) -> tuple[ThawingTopics, Transactions]:
        """The topics, and the transaction that is still open: with all its records, since they take effect later, or
        never.
        """
        if self._begun is None:
            return ThawingTopics(self._topics.freeze(self._dropped)), self.transactions
        held = [
            record
            for first, records in self._open
            for record in records.take(_behind(records, self._begun - first)).records()
        ]
        topics = self._topics.freeze([*self._dropped, (self._begun, self._order)])
        return ThawingTopics(topics), Transactions(self.transactions.open_since, held)


def _behind(records: RecordIndex, place: int) -> Places | NDArray[np.bool_]:
    return np.arange(max(0, place + 1), len(records))
