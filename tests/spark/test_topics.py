"""Spark clears the topics whose fingerprints agree, and no other."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from kraft_runbook.metadata.canonical_rows import Kind, whole_topic
from kraft_runbook.parity.spark.rows_frame import rows_frame
from kraft_runbook.parity.spark.topic_join import compare_topics


def test_topics_are_compared_by_fingerprint_and_every_other_one_is_in_question(spark: SparkSession) -> None:
    def side(**topics: str) -> DataFrame:
        return rows_frame(spark, [whole_topic(name, value) for name, value in topics.items()])

    zookeeper = side(
        a="3 2 aa", b="4 0 bb", c="3 2 cc", differs="1 0 dd", odd="odd", only_zookeeper="1 1 ff", touched="1 0 ee"
    )
    log = side(a="3 2 aa", b="4 0 bb", c="3 2 cc", differs="1 0 00", odd="1 0 ee", only_log="1 0 ff", touched="touched")
    found = compare_topics(zookeeper, log)
    assert found.in_question == ("differs", "odd", "only_log", "only_zookeeper", "touched")
    assert found.both == {Kind.TOPIC: 3, Kind.ASSIGNMENT: 10, Kind.PARTITION_STATE: 10, Kind.TOPIC_CONFIG: 4}


def test_of_an_empty_side_every_topic_is_in_question(spark: SparkSession) -> None:
    topics = rows_frame(spark, [whole_topic("a", "1 0 aa")])
    assert (
        compare_topics(topics, rows_frame(spark, [])).in_question
        == compare_topics(rows_frame(spark, []), topics).in_question
        == ("a",)
    )
