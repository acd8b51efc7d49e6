"""The comparison alone, in one warm Spark session: ours, datacompy's Spark compare, and DuckDB's full outer join, over
the same facts in memory: columns for ours, which is how the gate holds them, rows for the others.

Both sides are read once from the cluster. Some partitions of ZooKeeper's side are changed on purpose, and each of the
three must find exactly those.
"""

from __future__ import annotations

import json
import pickle
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks.scale.cluster import Plan, load_spec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.read_rows import topic_names
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Row
from kraft_runbook.metadata.image.log_replay import LogReplay, Version
from kraft_runbook.metadata.topic_columns import TopicColumns, bounds_of
from kraft_runbook.metadata.topic_prints import topic_prints
from kraft_runbook.parity.comparison import compare
from kraft_runbook.parity.decoding import decoding_of
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.spark.arrow_rows import ROWS, row_batches
from kraft_runbook.parity.spark.rows_frame import rows_frame
from kraft_runbook.parity.spark.settings import SETTINGS
from kraft_runbook.parity.spark.topic_join import compare_topics

FILES = "compare"
"""Where, below the cluster's directory, both sides are kept as files."""
PLANTED = 50
"""About so many partitions are changed."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides, in memory in the form that each way compares: columns for ours, frames of rows for datacompy;
    ``files``: the rows as parquet.
    """

    zookeeper: TopicColumns
    log: TopicColumns
    rows: DataFrame
    versions: DataFrame
    files: Path
    planted: int


def measure(plan: Plan, *, runs: int, driver_memory: str, master: str) -> Mapping[str, float]:
    """Median seconds of each, after one run of each that is not counted. Raises StepFailed when one does not find what
    was planted.
    """
    spark = _session(master, driver_memory)
    try:
        sides = read_sides(spark, plan)
        ways: dict[str, Callable[[], int]] = {
            "ours": lambda: ours(spark, sides),
            "datacompy": lambda: datacompy_spark(spark, sides),
            "duckdb": duckdb_join(sides),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(runs + 1):
            for name, way in ways.items():
                began = time.perf_counter()
                found = way()
                took = time.perf_counter() - began
                print(f"{number}/{runs} compare.{name}: {took:.2f} s", file=sys.stderr, flush=True)
                if found != sides.planted:
                    raise StepFailed(
                        f"{name} found {found} differences where {sides.planted} were planted",
                        way_out="the cluster must be quiet: end churn",
                    )
                if number:
                    times[name].append(took)
        return {name: statistics.median(each) for name, each in times.items()} | {"planted": sides.planted}
    finally:
        spark.stop()


def _session(master: str, driver_memory: str) -> SparkSession:
    local = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": driver_memory,
    }
    builder = SparkSession.builder.appName("kraft-runbook benchmarks").master(master)
    for name, value in (SETTINGS | local).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write_sides(plan: Plan) -> None:
    """Read the cluster once: ZooKeeper's topics, some of them changed, and the log's at its end; each as columns, and
    as rows in a parquet file.
    """
    spec, secrets = load_spec(plan), environment_secrets({})
    files = plan.directory / FILES
    files.mkdir(exist_ok=True)
    with ZookeeperReader(spec.zookeeper, secrets=secrets, timeout=60) as reader:
        columns, odd = read_topic_columns(reader, topic_names(reader))
    if odd:
        raise StepFailed(f"{len(odd)} topics could not be read in bulk: {odd[:3]}", way_out="make the cluster anew")
    changed = np.arange(0, len(columns.partitions), max(1, len(columns.partitions) // PLANTED))
    columns.partitions.leader_epoch[changed] += 1
    replay = LogReplay(2**62, decoding_of(spec, secrets=secrets).fingerprints, spec.kafka.ibp)
    with LogFollower(spec, replay, secrets=secrets, timeout=60) as follower:
        follower.read_on()
    frozen = replay.image.frozen
    assert frozen is not None
    for name, side in (("zookeeper", columns), ("log", frozen.frozen.columns())):
        (files / f"{name}.columns").write_bytes(pickle.dumps(side))
        with pq.ParquetWriter(files / f"{name}.parquet", ROWS) as writer:
            for batch in row_batches(rows_of(side, range(len(side)))):
                writer.write_batch(batch)
    (files / "planted.json").write_text(json.dumps(len(changed)))


def rows_of(side: TopicColumns, topics: Iterable[int]) -> Iterator[Row]:
    """The canonical rows of the topics at these places."""
    held, bounds = side.partitions, bounds_of(side.partitions.topic, len(side)).tolist()
    configs = bounds_of(side.configs.topic, len(side)).tolist()
    for at in topics:
        name = side.names[at]
        yield canonical_rows.topic(name, side.ids[at])
        for each in range(bounds[at], bounds[at + 1]):
            replicas, adding, removing, isr = (
                lists.values[lists.offsets[each] : lists.offsets[each + 1]].tolist()
                for lists in (held.replicas, held.adding, held.removing, held.isr)
            )
            number = int(held.partition[each])
            yield canonical_rows.assignment(name, number, replicas, adding, removing)
            yield canonical_rows.partition_state(
                name, number, int(held.leader[each]), int(held.leader_epoch[each]), isr, int(held.recovery[each])
            )
        for each in range(configs[at], configs[at + 1]):
            yield canonical_rows.topic_config(name, side.configs.name[each], side.configs.value[each])


def read_sides(spark: SparkSession, plan: Plan) -> Sides:
    """What ``write_sides`` left, in memory."""
    files = plan.directory / FILES

    def frame(name: str) -> DataFrame:
        return spark.read.parquet(str(files / f"{name}.parquet")).repartition(4).localCheckpoint()

    def columns(name: str) -> TopicColumns:
        loaded = pickle.loads((files / f"{name}.columns").read_bytes())  # noqa: S301 - our own file
        assert isinstance(loaded, TopicColumns)
        return loaded

    return Sides(
        columns("zookeeper"),
        columns("log"),
        frame("zookeeper"),
        frame("log"),
        files,
        int(json.loads((files / "planted.json").read_text())),
    )


def ours(spark: SparkSession, sides: Sides) -> int:
    """A fingerprint a topic on each side, Spark's comparison of those, and the rows of the topics that differ: how many
    keys differ.
    """
    salt = b"salt"
    left = rows_frame(
        spark, (canonical_rows.whole_topic(each.topic, each.value) for each in topic_prints(sides.zookeeper, salt))
    )
    right = rows_frame(
        spark, (canonical_rows.whole_topic(each.topic, each.value) for each in topic_prints(sides.log, salt))
    )
    names = set(compare_topics(left, right).in_question)
    first, second = (
        rows_of(side, [at for at, name in enumerate(side.names) if name in names])
        for side in (sides.zookeeper, sides.log)
    )
    return len(compare(first, (Version(row.kind, row.key, row.value, 0, last=True) for row in second)).differences)


def datacompy_spark(spark: SparkSession, sides: Sides) -> int:
    """datacompy's ``SparkSQLCompare`` by (kind, key): how many rows do not match."""
    from datacompy.spark import SparkSQLCompare

    compared = SparkSQLCompare(spark, sides.rows, sides.versions, join_columns=["kind", "key"])
    alone = compared.df1_unq_rows.count() + compared.df2_unq_rows.count()
    found = int(compared.intersect_rows.count() - compared.count_matching_rows() + alone)
    spark.catalog.clearCache()
    return found


def duckdb_join(sides: Sides) -> Callable[[], int]:
    """DuckDB's full outer join over two tables in memory, two threads: how many keys differ. Loading the tables is not
    counted.
    """
    import duckdb

    database = duckdb.connect(config={"threads": 2})
    for name in ("zookeeper", "log"):
        database.execute(f"create table {name} as select * from read_parquet('{sides.files / name}.parquet')")  # noqa: S608 - our own path
    query = (
        "select count(*) from zookeeper z full outer join log l on z.kind = l.kind and z.key = l.key where z.value is"
        " distinct from l.value"
    )

    def run() -> int:
        found = database.execute(query).fetchone()
        assert found is not None
        return int(found[0])

    return run
