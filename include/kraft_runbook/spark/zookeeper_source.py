"""The Spark data source ``zookeeper``: Kafka's tree as canonical rows, in parallel by ranges of topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_tree import read_everything_else, read_topics, topic_names
from kraft_runbook.metadata.entities import Row
from kraft_runbook.spark.arrow_rows import ROW_SCHEMA, row_batches
from kraft_runbook.spark.source_options import Sealed

TOPICS_A_PARTITION = 500
"""At least so many topics a Spark partition: a session with ZooKeeper costs some milliseconds."""


@dataclass
class Topics(InputPartition):
    """A range of topics; ``rest``: and everything that is not of one topic."""

    names: Sequence[str]
    rest: bool = False


class ZookeeperSource(DataSource):
    """Options: those of ``Sealed``, and ``partitions``, the most ranges of topics to read at once (default 4)."""

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
        if len(names) <= TOPICS_A_PARTITION:
            return [Topics(names, rest=True)]
        most = int(self.options.get("partitions", "4"))
        size = max(TOPICS_A_PARTITION, -(-len(names) // most))
        ranges = [Topics(names[start : start + size]) for start in range(0, len(names), size)]
        return [*ranges, Topics((), rest=True)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Topics)
        return row_batches(self._rows(partition))

    def _rows(self, part: Topics) -> Iterator[Row]:
        sealed = Sealed.from_options(self.options)
        with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets) as reader:
            rest = read_everything_else(reader, sealed.decoding) if part.rest else iter(())
            yield from chain(read_topics(reader, part.names, sealed.decoding), rest)
