"""The topics of both sides compared in Spark, by one fingerprint each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kraft_runbook.metadata.canonical_rows import Kind, parse_key


@dataclass(frozen=True, slots=True)
class Topics:
    """``both``: how many rows of each kind the topics have whose fingerprints agree. ``in_question``: the names of all
    others.
    """

    both: Counter[Kind]
    in_question: tuple[str, ...]


def compare_topics(one: DataFrame, other: DataFrame) -> Topics:
    """Both sides: rows of kind WHOLE_TOPIC alone, at most one a topic and side."""
    left, right = one.select("key", f.col("value").alias("one")), other.select("key", f.col("value").alias("other"))
    sides = left.join(
        right.hint("shuffle_hash"), "key", "full_outer"
    )  # unsorted: fingerprints as texts would be sorted to be grouped
    agree = f.equal_null("one", "other")
    found = sides.groupBy(
        f.when(agree, f.regexp_extract("one", r"^\"(\d+ \d+) ", 1)).alias("held"),
        f.when(~agree, f.col("key")).alias("key"),
    ).count()
    both: Counter[Kind] = Counter()
    in_question = []
    for each in found.collect():
        if each["held"] is None:
            in_question.append(parse_key(each["key"])[0])
            continue
        partitions, configs = map(int, each["held"].split(" "))
        held = {
            Kind.TOPIC: 1,
            Kind.ASSIGNMENT: partitions,
            Kind.PARTITION_STATE: partitions,
            Kind.TOPIC_CONFIG: configs,
        }
        both.update({kind: number * each["count"] for kind, number in held.items() if number})
    return Topics(both, tuple(sorted(in_question)))
