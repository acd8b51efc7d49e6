"""The rows that need a closer look, found in Spark: a fingerprint of every bucket first, a join only for the buckets that differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.metadata.metadata_log import Version

BUCKETS = 512


@dataclass(frozen=True, slots=True)
class Candidates:
    """``counts``: ZooKeeper's rows of each kind. ``rows`` and ``versions``: those of the keys in question, and of no others."""

    counts: Counter[Kind]
    rows: tuple[Row, ...]
    versions: tuple[Version, ...]


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
