"""Both stores as Spark frames: read to the end before the call returns, and with a worker's failure raised as what it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kraft_runbook.clients.metadata_quorum import QuorumDescription
from kraft_runbook.clients.quorum_facts import quorum_versions
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.metadata.entities import Row
from kraft_runbook.metadata.zookeeper_tree import BadZnode, parse_migration
from kraft_runbook.observation import MigrationZnode
from kraft_runbook.spark.arrow_rows import FAILED, ROW_SCHEMA, VERSION_SCHEMA
from kraft_runbook.spark.findings import Withheld
from kraft_runbook.spark.progress import reading_topics
from kraft_runbook.spark.source_options import Sealed


def read_migration(sealed: Sealed) -> MigrationZnode:
    """/migration as it is now. Raises Withheld where it names no offset."""
    with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets) as reader:
        znode = reader.get("/migration")
    if znode is None:
        raise Withheld(
            "/migration is missing, so nothing says up to where ZooKeeper was written",
            "if the controllers run in migration mode, look for errors of KRaftMigrationDriver in their logs; after a rollback there is nothing to compare",
        )
    try:
        migration = parse_migration(znode.data)
    except BadZnode as error:
        raise Withheld(f"/migration can't be read: {error}", "find out who wrote it; the controllers rewrite it when a new one is elected") from None
    if migration.is_blank or migration.kraft_metadata_offset < 0:
        raise Withheld("/migration is blank: no controller has copied anything yet", "wait for the copy, then run again")
    return migration


def zookeeper_rows(spark: SparkSession, sealed: Sealed, topics: Sequence[str] | None = None) -> DataFrame:
    """The whole tree, each topic as one row; or the rows of ``topics`` alone."""
    options = sealed.shared_by(spark.sparkContext.defaultParallelism).options()
    if topics is not None:
        options["topics"] = json.dumps(topics)
    with reading_topics(spark):
        return _read(spark, "zookeeper", options)


def log_versions(
    spark: SparkSession, sealed: Sealed, quorum: QuorumDescription, *, start: int, end: int, topics: Sequence[str] | None = None, beside: bool = True
) -> DataFrame:
    """What the log gave each key from ``start`` to ``end``, each topic as one row or ``topics`` row by row; ``beside``: and what is not of a topic."""
    options = {"start": start, "end": end, "leader": quorum.leader_id, "epoch": quorum.leader_epoch}
    plain = {name: str(value) for name, value in options.items()} | ({} if beside else {"beside": "false"})
    if topics is not None:
        plain["topics"] = json.dumps(topics)
    log = _read(spark, "metadata_log", {**sealed.options(), **plain})
    if not beside:
        return log
    told = quorum_versions(sealed.spec, quorum, offset=start, secrets=sealed.secrets)
    return log.union(spark.createDataFrame([(v.kind.value, v.key, v.value, v.offset, v.last) for v in told], VERSION_SCHEMA))


def frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Plain rows."""
    return spark.createDataFrame([(row.kind.value, row.key, row.value) for row in rows], ROW_SCHEMA)


def _read(spark: SparkSession, source: str, options: dict[str, str]) -> DataFrame:
    found = spark.read.format(source).options(**options).load().localCheckpoint(eager=True)
    for failed in found.where(f.col("kind") == FAILED).limit(1).collect():
        raise Withheld(**json.loads(failed["value"]))
    return found
