"""The Spark data source ``zookeeper``: Kafka's tree, in parallel by ranges of topics, each topic as one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_topics import read_topic_columns
from kraft_runbook.clients.zookeeper_tree import read_everything_else, topic_names
from kraft_runbook.metadata import entities
from kraft_runbook.metadata.entities import Row
from kraft_runbook.metadata.topic_prints import topic_prints
from kraft_runbook.spark.arrow_rows import ROW_SCHEMA, row_batches_of_a_worker
from kraft_runbook.spark.source_options import Sealed

TOPICS_A_RANGE = 500
"""At least so many topics a range: a session with ZooKeeper costs some milliseconds."""
RANGES = 32
"""At most so many ranges. How many are read at a time is the number of Spark's cores."""
ODD = "odd"
"""In place of a topic's fingerprint: its znodes can't be read in bulk with certainty; it needs a closer look."""


@dataclass
class Topics(InputPartition):
    """A range of topics, the ``number``-th; ``beside``: everything that is not of one topic, and no topics."""

    number: int
    names: Sequence[str]
    beside: bool = False


class ZookeeperSource(DataSource):
    """Options: those of ``Sealed``."""

    @classmethod
    def name(cls) -> str:
        return "zookeeper"

    def schema(self) -> str:
        return ROW_SCHEMA

    def reader(self, schema: object) -> ZookeeperSourceReader:
        return ZookeeperSourceReader(dict(self.options))


class ZookeeperSourceReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        sealed = Sealed.from_options(self.options)
        with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets) as reader:
            names = topic_names(reader)
        return [*_ranges(names), Topics(0, (), beside=True)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Topics)
        return row_batches_of_a_worker(self._rows(partition))

    def _rows(self, part: Topics) -> Iterator[Row]:
        sealed = Sealed.from_options(self.options)
        with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets, rate=sealed.rate, spread=part.number) as reader:
            if part.beside:
                yield from read_everything_else(reader, sealed.decoding)
            else:
                yield from _whole_topics(reader, part.names, sealed.salt)


def _ranges(names: Sequence[str]) -> list[Topics]:
    size = max(TOPICS_A_RANGE, -(-len(names) // RANGES))
    return [Topics(number, names[start : start + size]) for number, start in enumerate(range(0, len(names), size))]


def _whole_topics(reader: ZookeeperReader, names: Sequence[str], salt: bytes) -> Iterator[Row]:
    columns, odd = read_topic_columns(reader, names)
    for each in topic_prints(columns, salt):
        yield entities.whole_topic(each.topic, each.value)
    for name in odd:
        yield entities.whole_topic(name, ODD)
