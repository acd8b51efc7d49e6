"""What Spark's workers do: read their parts of Kafka's tree in ZooKeeper. They import nothing that they don't need;
each starts anew for every comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.read_rows import read_everything_else
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Row
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.metadata.topic_prints import topic_prints
from kraft_runbook.parity.assignments import found_columns
from kraft_runbook.parity.partition_epochs import packed
from kraft_runbook.parity.spark.arrow_rows import row_batches_of_a_worker
from kraft_runbook.parity.spark.payload import Sealed

ODD = "odd"
"""In place of a topic's fingerprint: its znodes can't be read in bulk with certainty; it needs a closer look."""


@dataclass(frozen=True)
class Work:
    """What a worker is sent. Part n is the n-th range of topics; the one behind the last range is everything that is
    not of one topic.
    """

    sealed: Sealed
    ranges: Sequence[Sequence[str]]

    def read(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of these parts. A part that can't be read ends with a row of kind FAILED."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from row_batches_of_a_worker(self._rows(number))

    def _rows(self, number: int) -> Iterator[Row]:
        sealed = self.sealed
        with ZookeeperReader(sealed.spec.ensemble, secrets=sealed.secrets, rate=sealed.rate, spread=number) as reader:
            if number == len(self.ranges):
                yield from read_everything_else(reader, sealed.decoding)
            else:
                yield from _whole_topics(reader, self.ranges[number], sealed.salt)


class AssignmentWork(Work):
    """The same, of the assignment alone: each topic by what a plan speaks of (``parity.assignments``)."""

    def _rows(self, number: int) -> Iterator[Row]:
        sealed = self.sealed
        with ZookeeperReader(sealed.spec.ensemble, secrets=sealed.secrets, rate=sealed.rate, spread=number) as reader:
            columns, odd = read_topic_columns(reader, self.ranges[number])
        yield from _by_prints(found_columns(columns), odd, sealed.salt)


def _whole_topics(reader: ZookeeperReader, names: Sequence[str], salt: bytes) -> Iterator[Row]:
    columns, odd = read_topic_columns(reader, names)
    if len(columns):
        yield packed(columns)
    yield from _by_prints(columns, odd, salt)


def _by_prints(columns: TopicColumns, odd: Sequence[str], salt: bytes) -> Iterator[Row]:
    for each in topic_prints(columns, salt):
        yield canonical_rows.whole_topic(each.topic, each.value)
    for name in odd:
        yield canonical_rows.whole_topic(name, ODD)
