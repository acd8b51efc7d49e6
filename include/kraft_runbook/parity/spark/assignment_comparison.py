"""A planned assignment against the one that the controller's store holds, topic by topic, in Spark."""

from __future__ import annotations

import secrets as random_bytes

from pyspark.sql import DataFrame, SparkSession

from kraft_runbook.cluster.assignment import Assignment
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.garbage import uncollected
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.metadata.topic_prints import topic_prints
from kraft_runbook.parity.assignment_stores import topics_in_log
from kraft_runbook.parity.assignments import found_columns, planned_columns
from kraft_runbook.parity.spark.parallel_read import read_assignment
from kraft_runbook.parity.spark.payload import Sealed
from kraft_runbook.parity.spark.rows_frame import rows_frame
from kraft_runbook.parity.spark.session import session
from kraft_runbook.parity.spark.topic_join import compare_topics


def topics_in_question(
    spec: ClusterSpec,
    planned: Assignment,
    *,
    in_zookeeper: bool,
    secrets: Secrets,
    spark: SparkSession | None = None,
) -> tuple[str, ...]:
    """The topics of either side whose fingerprints differ; every other topic is exactly as planned.

    ``in_zookeeper``: Spark's workers read ZooKeeper by ranges of topics; else the driver reads the metadata log, which
    is read in order. ``spark``: None for a local session of this call's own. Raises NoProof with what a worker could
    not read, Unreachable, LogTruncated or Garbled of the log.
    """
    sealed = Sealed.of(spec, secrets=secrets, salt=random_bytes.token_bytes(16))
    with session(spark) as ready:
        found = (
            read_assignment(ready, sealed)
            if in_zookeeper
            else topics_frame(ready, found_columns(topics_in_log(spec, secrets=secrets, salt=sealed.salt)), sealed.salt)
        )
        return in_question(ready, found, planned, sealed.salt)


def in_question(spark: SparkSession, found: DataFrame, planned: Assignment, salt: bytes) -> tuple[str, ...]:
    """The topics that differ. ``found``: one row of kind WHOLE_TOPIC each, with a fingerprint under this salt."""
    return compare_topics(found, topics_frame(spark, planned_columns(planned), salt)).in_question


def topics_frame(spark: SparkSession, topics: TopicColumns, salt: bytes) -> DataFrame:
    """Each topic by its fingerprint."""
    with uncollected():
        return rows_frame(spark, (canonical_rows.whole_topic(p.topic, p.value) for p in topic_prints(topics, salt)))
