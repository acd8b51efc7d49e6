"""Kafka's tree in ZooKeeper, read by Spark's workers in parallel by ranges of topics, each topic as one row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kraft_runbook.clients.dual_write import NoProof
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_topics import read_topic_columns
from kraft_runbook.clients.zookeeper_tree import read_everything_else, topic_names
from kraft_runbook.metadata import entities
from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.metadata.topic_prints import topic_prints
from kraft_runbook.spark.arrow_rows import FAILED, ROW_SCHEMA, row_batches_of_a_worker
from kraft_runbook.spark.progress import reading_topics
from kraft_runbook.spark.sealed import Sealed

TOPICS_A_RANGE = 500
"""At least so many topics a range: a session with ZooKeeper costs some milliseconds."""
RANGES = 32
"""At most so many ranges. How many are read at a time is the number of Spark's cores."""
ODD = "odd"
"""In place of a topic's fingerprint: its znodes can't be read in bulk with certainty; it needs a closer look."""


def read_tree(spark: SparkSession, sealed: Sealed) -> tuple[DataFrame, list[Row]]:
    """The topics, one row of kind WHOLE_TOPIC each, and the rows of everything else, of which there are few. All is read when the call returns.

    Raises NoProof with what a worker could not read, Unreachable where the driver found no server.
    """
    with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets) as reader:
        names = topic_names(reader)
    work = Work(sealed.shared_by(spark.sparkContext.defaultParallelism), _ranges(names))
    parts = len(work.ranges) + 1
    with reading_topics(spark, len(names)):
        found = spark.range(0, parts, 1, parts).mapInArrow(work.read, ROW_SCHEMA).localCheckpoint(eager=True)
    beside = found.where(f.col("kind") != Kind.WHOLE_TOPIC.value).collect()
    for each in beside:
        if each["kind"] == FAILED:
            raise NoProof(**json.loads(each["value"]))
    return found.where(f.col("kind") == Kind.WHOLE_TOPIC.value), [Row(Kind(each["kind"]), each["key"], each["value"]) for each in beside]


@dataclass(frozen=True)
class Work:
    """What a worker is sent. Part n is the n-th range of topics; the one behind the last range is everything that is not of one topic."""

    sealed: Sealed
    ranges: Sequence[Sequence[str]]

    def read(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of these parts. A part that can't be read ends with a row of kind FAILED."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from row_batches_of_a_worker(self._rows(number))

    def _rows(self, number: int) -> Iterator[Row]:
        sealed = self.sealed
        with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets, rate=sealed.rate, spread=number) as reader:
            if number == len(self.ranges):
                yield from read_everything_else(reader, sealed.decoding)
            else:
                yield from _whole_topics(reader, self.ranges[number], sealed.salt)


def _ranges(names: Sequence[str]) -> list[Sequence[str]]:
    size = max(TOPICS_A_RANGE, -(-len(names) // RANGES))
    return [names[start : start + size] for start in range(0, len(names), size)]


def _whole_topics(reader: ZookeeperReader, names: Sequence[str], salt: bytes) -> Iterator[Row]:
    columns, odd = read_topic_columns(reader, names)
    for each in topic_prints(columns, salt):
        yield entities.whole_topic(each.topic, each.value)
    for name in odd:
        yield entities.whole_topic(name, ODD)
