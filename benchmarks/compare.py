"""The comparison alone, in one warm Spark session: ours, datacompy's Spark compare, and DuckDB's full outer join, over the same rows in memory.

Both sides are read once from the cluster. Some rows of ZooKeeper's side are changed on purpose, and each of the three must find exactly those.
"""

from __future__ import annotations

import secrets as random_bytes
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.scale.cluster import Plan, load_spec
from kraft_runbook.clients.metadata_quorum import describe_quorum
from kraft_runbook.clients.secrets import environment_secrets
from kraft_runbook.errors import StepFailed
from kraft_runbook.metadata.comparison import compare
from kraft_runbook.metadata.entities import Kind
from kraft_runbook.spark.candidates import find_candidates
from kraft_runbook.spark.session import with_sources
from kraft_runbook.spark.settings import SETTINGS
from kraft_runbook.spark.source_options import Sealed

TOPIC_KINDS = [kind.value for kind in (Kind.TOPIC, Kind.ASSIGNMENT, Kind.PARTITION_STATE, Kind.TOPIC_CONFIG)]
PLANTED = 50
"""About so many rows are changed."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Both frames, checkpointed; the same as parquet, for who does not read Spark's memory; ``planted``: rows that differ."""

    rows: DataFrame
    versions: DataFrame
    files: Path
    planted: int


def measure(plan: Plan, *, runs: int, driver_memory: str, master: str) -> Mapping[str, float]:
    """Median seconds of each, after one run of each that is not counted. Raises StepFailed when one does not find what was planted."""
    spark = _session(master, driver_memory)
    try:
        sides = read_sides(spark, plan)
        ways: dict[str, Callable[[], int]] = {
            "ours": lambda: ours(sides),
            "datacompy": lambda: datacompy_spark(spark, sides),
            "duckdb": duckdb_join(sides),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(runs + 1):
            for name, way in ways.items():
                began = time.perf_counter()
                found = way()
                took = time.perf_counter() - began
                if found != sides.planted:
                    raise StepFailed(f"{name} found {found} differences where {sides.planted} were planted", way_out="the cluster must be quiet: end churn")
                if number:
                    times[name].append(took)
        return {name: statistics.median(each) for name, each in times.items()} | {"planted": sides.planted}
    finally:
        spark.stop()


def _session(master: str, driver_memory: str) -> SparkSession:
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": driver_memory}
    builder = SparkSession.builder.appName("kraft-runbook benchmarks").master(master)
    for name, value in (SETTINGS | local).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return with_sources(spark)


def read_sides(spark: SparkSession, plan: Plan) -> Sides:
    """Read the cluster once: ZooKeeper's rows of topics, some of them changed, and the log's last versions of the same kinds."""
    spec, secrets = load_spec(plan), environment_secrets({})
    sealed = Sealed.of(spec, secrets=secrets, salt=random_bytes.token_bytes(16))
    quorum = describe_quorum(spec, secrets=secrets)
    end = str(quorum.high_watermark - 1)
    options = {"start": end, "end": end, "leader": str(quorum.leader_id), "epoch": str(quorum.leader_epoch)}
    planted = f.pmod(f.xxhash64("kind", "key"), f.lit(max(1, 2 * plan.partitions // PLANTED))) == 0
    tree = spark.read.format("zookeeper").options(**sealed.options()).load().where(f.col("kind").isin(TOPIC_KINDS))
    rows = tree.withColumn("value", f.when(planted, f.concat("value", f.lit(" "))).otherwise(f.col("value"))).localCheckpoint()
    log = spark.read.format("metadata_log").options(**sealed.options(), **options).load()
    versions = log.where(f.col("kind").isin(TOPIC_KINDS) & f.col("last")).localCheckpoint()
    files = plan.directory / "compare"
    rows.write.mode("overwrite").parquet(str(files / "zookeeper"))
    versions.select("kind", "key", "value").write.mode("overwrite").parquet(str(files / "log"))
    return Sides(rows, versions, files, rows.where(planted).count())


def ours(sides: Sides) -> int:
    """Fingerprints of buckets, a join where they differ, the verdict on each key: how many differ."""
    candidates = find_candidates(sides.rows, sides.versions)
    return len(compare(candidates.rows, candidates.versions).differences)


def datacompy_spark(spark: SparkSession, sides: Sides) -> int:
    """datacompy's ``SparkSQLCompare`` by (kind, key): how many rows do not match."""
    from datacompy.spark import SparkSQLCompare

    compared = SparkSQLCompare(spark, sides.rows, sides.versions.select("kind", "key", "value"), join_columns=["kind", "key"])
    alone = compared.df1_unq_rows.count() + compared.df2_unq_rows.count()
    found = int(compared.intersect_rows.count() - compared.count_matching_rows() + alone)
    spark.catalog.clearCache()
    return found


def duckdb_join(sides: Sides) -> Callable[[], int]:
    """DuckDB's full outer join over two tables in memory, two threads: how many keys differ. Loading the tables is not counted."""
    import duckdb

    database = duckdb.connect(config={"threads": 2})
    for name in ("zookeeper", "log"):
        database.execute(f"create table {name} as select * from read_parquet('{sides.files / name}/*.parquet')")  # noqa: S608 - our own path
    query = "select count(*) from zookeeper z full outer join log l on z.kind = l.kind and z.key = l.key where z.value is distinct from l.value"

    def run() -> int:
        found = database.execute(query).fetchone()
        assert found is not None
        return int(found[0])

    return run
