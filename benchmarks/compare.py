"""The comparison alone, in one warm Spark session: ours, datacompy's Spark compare, and DuckDB's full outer join, over the same rows in memory.

Both sides are read once from the cluster, row by row. Some rows of ZooKeeper's side are changed on purpose, and each of the three must find exactly those.
"""

from __future__ import annotations

import json
import statistics
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.scale.cluster import Plan, load_spec
from kraft_runbook.clients.decoding import decoding_of
from kraft_runbook.clients.metadata_quorum import describe_quorum
from kraft_runbook.clients.quorum_facts import replay_log
from kraft_runbook.clients.secrets import environment_secrets
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_tree import read_topics, topic_names
from kraft_runbook.errors import StepFailed
from kraft_runbook.metadata.comparison import compare
from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.spark.arrow_rows import row_batches
from kraft_runbook.spark.candidates import find_candidates
from kraft_runbook.spark.settings import SETTINGS

TOPIC_KINDS = frozenset([Kind.TOPIC, Kind.ASSIGNMENT, Kind.PARTITION_STATE, Kind.TOPIC_CONFIG])
FILES = "compare"
"""Where, below the cluster's directory, both sides are kept as files."""
PLANTED = 50
"""About so many rows are changed."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Both frames, checkpointed; ``files``: the same as parquet, for who does not read Spark's memory; ``planted``: rows that differ."""

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
    return spark


def write_sides(plan: Plan) -> None:
    """Read the cluster once, row by row, into two parquet files: ZooKeeper's rows of topics, some of them changed, and the log's at its end."""
    spec, secrets = load_spec(plan), environment_secrets({})
    decoding = decoding_of(spec, secrets=secrets)
    files = plan.directory / FILES
    files.mkdir(exist_ok=True)
    one_in = max(1, 2 * plan.partitions // PLANTED)
    with ZookeeperReader(spec.zookeeper, secrets=secrets, timeout=60) as reader:
        tree = read_topics(reader, topic_names(reader), decoding)
        planted = _write(files / "zookeeper.parquet", tree, changed=lambda row: zlib.crc32(f"{row.kind} {row.key}".encode()) % one_in == 0)
    quorum = describe_quorum(spec, secrets=secrets)
    end = quorum.high_watermark - 1
    replay = replay_log(spec, quorum.leader_id, quorum.leader_epoch, start=end, end=end, fingerprints=decoding.fingerprints, secrets=secrets, timeout=60)
    _write(files / "log.parquet", (row for row in replay.image.rows() if row.kind in TOPIC_KINDS), changed=lambda row: False)
    (files / "planted.json").write_text(json.dumps(planted))


def _write(path: Path, rows: Iterable[Row], *, changed: Callable[[Row], bool]) -> int:
    """Write rows, changing the values of some; how many. Raises StepFailed where nothing could be read."""
    count = 0

    def planting() -> Iterator[Row]:
        nonlocal count
        for row in rows:
            if changed(row):
                count += 1
                yield Row(row.kind, row.key, row.value + " ")
            else:
                yield row

    batches = iter(row_batches(planting()))
    first = next(batches, None)
    if first is None:
        raise StepFailed(f"no rows for {path.name} could be read from the cluster", way_out="python -m benchmarks.scale status")
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
    return count


def read_sides(spark: SparkSession, plan: Plan) -> Sides:
    """What ``write_sides`` left, in Spark's memory."""
    files = plan.directory / FILES

    def frame(name: str) -> DataFrame:
        return spark.read.parquet(str(files / f"{name}.parquet")).repartition(4)

    versions = frame("log").withColumns({"offset": f.lit(0).cast("bigint"), "last": f.lit(True)})
    planted = int(json.loads((files / "planted.json").read_text()))
    if not planted:
        raise StepFailed("no difference was planted: a comparison that finds none proves nothing", way_out="use a larger cluster")
    return Sides(frame("zookeeper").localCheckpoint(), versions.localCheckpoint(), files, planted)


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
        database.execute(f"create table {name} as select * from read_parquet('{sides.files / name}.parquet')")  # noqa: S608 - our own path
    query = "select count(*) from zookeeper z full outer join log l on z.kind = l.kind and z.key = l.key where z.value is distinct from l.value"

    def run() -> int:
        found = database.execute(query).fetchone()
        assert found is not None
        return int(found[0])

    return run
