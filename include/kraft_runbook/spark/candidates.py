"""What needs a closer look, found in Spark: the topics whose fingerprints differ; of all other rows a fingerprint of every bucket first, and a join
only for the buckets that differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kraft_runbook.metadata.entities import Kind, Row, parse_key
from kraft_runbook.metadata.metadata_log import Version

BUCKETS = 512


@dataclass(frozen=True, slots=True)
class Candidates:
    """``counts``: ZooKeeper's rows of each kind. ``rows`` and ``versions``: those of the keys in question, and of no others."""

    counts: Counter[Kind]
    rows: tuple[Row, ...]
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class Topics:
    """``both``: how many rows of each kind the topics have whose fingerprints agree. ``in_question``: the names of all others."""

    both: Counter[Kind]
    in_question: tuple[str, ...]


def compare_topics(rows: DataFrame, versions: DataFrame) -> Topics:
    """Compare the rows of kind WHOLE_TOPIC of both sides, each of which has at most one a topic."""
    sides = rows.select("kind", "key", "value").union(versions.select("kind", "key", "value")).where(f.col("kind") == Kind.WHOLE_TOPIC.value)
    topics = sides.groupBy("key").agg(f.count("value").alias("n"), f.min("value").alias("one"), f.max("value").alias("other"))
    agree = (f.col("n") == 2) & (f.col("one") == f.col("other"))
    found = topics.groupBy(f.when(agree, f.regexp_extract("one", r"^\"(\d+ \d+) ", 1)).alias("held"), f.when(~agree, f.col("key")).alias("key")).count()
    both: Counter[Kind] = Counter()
    in_question = []
    for each in found.collect():
        if each["held"] is None:
            in_question.append(parse_key(each["key"])[0])
            continue
        partitions, configs = map(int, each["held"].split(" "))
        held = {Kind.TOPIC: 1, Kind.ASSIGNMENT: partitions, Kind.PARTITION_STATE: partitions, Kind.TOPIC_CONFIG: configs}
        both.update({kind: number * each["count"] for kind, number in held.items() if number})
    return Topics(both, tuple(sorted(in_question)))


def find_candidates(rows: DataFrame, versions: DataFrame) -> Candidates:
    """Every key whose row is none of the log's versions, or that has no row though the log always had one. Both frames are read several times."""
    counts = Counter({Kind(each["kind"]): each["count"] for each in rows.groupBy("kind").count().collect()})
    dirty = _differing_buckets(rows, versions)
    if not dirty:
        return Candidates(counts, (), ())
    rows, versions = rows.where(_bucket().isin(dirty)), versions.where(_bucket().isin(dirty))
    unmatched = rows.join(versions, ["kind", "key", "value"], "left_anti").select("kind", "key")
    sometimes_absent = versions.where(f.col("value").isNull()).select("kind", "key")
    always_there = versions.select("kind", "key").distinct().join(sometimes_absent, ["kind", "key"], "left_anti")
    missing = always_there.join(rows, ["kind", "key"], "left_anti")
    keys = unmatched.union(missing).distinct().localCheckpoint()
    found = rows.join(keys, ["kind", "key"], "left_semi").collect()
    history = versions.join(keys, ["kind", "key"], "left_semi").orderBy(f.desc("offset")).collect()
    return Candidates(
        counts,
        tuple(Row(Kind(r["kind"]), r["key"], r["value"]) for r in found),
        tuple(Version(Kind(v["kind"]), v["key"], v["value"], v["offset"], v["last"]) for v in history),
    )


def _bucket() -> Column:
    return f.pmod(f.xxhash64("kind", "key"), f.lit(BUCKETS))


def _differing_buckets(rows: DataFrame, versions: DataFrame) -> list[int]:
    """Buckets in which the two are not the same set of (kind, key, value). Those with several versions of a key are among them."""
    left, right = _fingerprint(rows, "l"), _fingerprint(versions, "r")
    same = f.col("l_n").eqNullSafe(f.col("r_n")) & f.col("l_x").eqNullSafe(f.col("r_x")) & f.col("l_y").eqNullSafe(f.col("r_y"))
    return [each["bucket"] for each in left.join(right, "bucket", "full_outer").where(~same).select("bucket").collect()]


def _fingerprint(frame: DataFrame, prefix: str) -> DataFrame:
    """Count and two independent 64-bit sums of each bucket."""
    return (
        frame.groupBy(_bucket().alias("bucket"))
        .agg(
            f.count("*").alias(f"{prefix}_n"),
            f.bit_xor(f.xxhash64("kind", "key", "value")).alias(f"{prefix}_x"),
            f.bit_xor(f.xxhash64(f.lit("second"), "value", "key", "kind")).alias(f"{prefix}_y"),
        )
        .select("bucket", f"{prefix}_n", f"{prefix}_x", f"{prefix}_y")
    )
