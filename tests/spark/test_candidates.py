"""Spark finds exactly the keys that the argument would object to."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kraft_runbook.metadata.comparison import compare
from kraft_runbook.metadata.entities import Kind, Row, whole_topic
from kraft_runbook.metadata.metadata_log import Version
from kraft_runbook.spark.candidates import Candidates, compare_topics, find_candidates
from kraft_runbook.spark.stores import rows_frame, versions_frame


def find(spark: SparkSession, rows: Sequence[Row], versions: Sequence[Version]) -> Candidates:
    return find_candidates(rows_frame(spark, rows), versions_frame(spark, versions))


def test_equal_sides_have_no_candidates_and_are_counted(spark: SparkSession) -> None:
    rows = [Row(Kind.TOPIC, f'["{n}"]', '"x"') for n in range(2000)] + [Row(Kind.ACL, '["a"]', "{}")]
    found = find(spark, rows, [Version(r.kind, r.key, r.value, 5, True) for r in rows])
    assert found == Candidates(Counter({Kind.TOPIC: 2000, Kind.ACL: 1}), (), ())


def test_the_same_verdicts_come_out_as_without_spark(spark: SparkSession) -> None:
    """A thousand keys with random histories, absent at times on either side: what Spark leaves out agrees, what it keeps is judged the same."""
    dice = random.Random(7)
    rows, versions = [], []
    for n in range(1000):
        kind, key = dice.choice([Kind.TOPIC, Kind.TOPIC_CONFIG, Kind.ACL]), f'["k{n}"]'
        value = dice.choice([None, '"1"', '"1"', '"1"', '"2"'])
        if value is not None:
            rows.append(Row(kind, key, value))
        history = dice.choice([[], ['"1"'], ['"1"'], ['"1"'], ['"1"', None], [None, '"2"'], ['"2"', '"1"', '"3"']])
        versions += [Version(kind, key, each, at, at == len(history) - 1) for at, each in enumerate(history)]
    whole = compare(rows, versions)
    found = find(spark, rows, versions)
    assert len(found.rows) < len(rows) / 2
    judged = compare(found.rows, found.versions)
    assert set(judged.differences) == set(whole.differences)
    assert found.counts - Counter(r.kind for r in found.rows) + judged.both == whole.both


def test_topics_are_compared_by_fingerprint_and_every_other_one_is_in_question(spark: SparkSession) -> None:
    def side(**topics: str) -> DataFrame:
        return rows_frame(spark, [whole_topic(name, value) for name, value in topics.items()])

    zookeeper = side(a="3 2 aa", b="4 0 bb", c="3 2 cc", differs="1 0 dd", odd="odd", only_zookeeper="1 1 ff", touched="1 0 ee")
    log = side(a="3 2 aa", b="4 0 bb", c="3 2 cc", differs="1 0 00", odd="1 0 ee", only_log="1 0 ff", touched="touched")
    found = compare_topics(zookeeper, log)
    assert found.in_question == ("differs", "odd", "only_log", "only_zookeeper", "touched")
    assert found.both == {Kind.TOPIC: 3, Kind.ASSIGNMENT: 10, Kind.PARTITION_STATE: 10, Kind.TOPIC_CONFIG: 4}


def test_an_empty_side_is_all_candidates(spark: SparkSession) -> None:
    rows = [Row(Kind.TOPIC, '["a"]', '"x"')]
    assert find(spark, rows, []).rows == tuple(rows)
    assert [v.key for v in find(spark, [], [Version(Kind.TOPIC, '["a"]', '"x"', 5, True)]).versions] == ['["a"]']
