"""How many bytes one batch of Kafka's metadata copy may have, by what is to be copied.

The copy hands records over in groups: a topic with its configs and partitions, one entity's configs or quotas, one
resource's ACLs, all delegation tokens (``ZkMigrationClient``). ``BufferingBatchConsumer`` collects groups until they
have ``zookeeper.metadata.migration.min.batch.size`` records, and the controller appends them as one batch, at most
10,000 records (``QuorumController.appendRecords``). A batch above 8 MiB is refused (``KafkaRaftClient``), which is a
fatal fault of the controller, and then of the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

BATCH_BYTES = 8 * 1024 * 1024
"""The most that a batch of the metadata log may have (``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``)."""
RECORDS_AT_ONCE = 10_000
"""The most records that the controller appends at once (``QuorumController.MAX_RECORDS_PER_BATCH``)."""
BATCH_HEADER = 61
"""Bytes of a batch without its records (``DefaultRecordBatch.RECORD_BATCH_OVERHEAD``)."""


@dataclass(frozen=True, slots=True)
class CopyGroups:
    """All groups of the copy. ``size``: the bytes of all their records. ``largest``: the bytes of the largest group.
    ``classes``: how many records there are, and how many bytes each has at most, the heaviest first.
    """

    records: int
    size: int
    largest: int
    classes: tuple[tuple[int, float], ...]

    def most_bytes(self, min_batch_size: int) -> int:
        """The most bytes that a batch can have with this setting, in whatever order Kafka reads the znodes: one record
        less than the setting, of the heaviest, and the largest group on top of them.
        """
        ends = 1 if min_batch_size <= RECORDS_AT_ONCE else 2  # a part of a split batch may begin within a group
        heaviest = self._heaviest(min(min_batch_size - 1, RECORDS_AT_ONCE)) + ends * self.largest
        return BATCH_HEADER + min(heaviest, self.size)

    def _heaviest(self, records: int) -> int:
        """The bytes of that many of the heaviest records."""
        total = 0.0
        for count, size in self.classes:
            taken = min(count, records)
            total += taken * size
            records -= taken
            if not records:
                break
        return round(total)

    def greatest_setting(self, limit: int = BATCH_BYTES) -> int | None:
        """The greatest setting with which no batch can exceed ``limit`` bytes, up to 10,000. None: there is none."""
        low, high = 0, RECORDS_AT_ONCE
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.most_bytes(middle) <= limit else (low, middle - 1)
        return low or None
