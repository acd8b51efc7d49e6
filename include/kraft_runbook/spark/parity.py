"""One comparison from start to end: M, the tree, E, the log, the suspects once more, the report. The argument is in ``metadata.comparison``."""

from __future__ import annotations

import json
import secrets as random_bytes
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kraft_runbook.clients.metadata_log_reader import LogTruncated
from kraft_runbook.clients.metadata_quorum import QuorumDescription, describe_quorum, read_cluster_records
from kraft_runbook.clients.quorum_facts import declared_rows, quorum_versions, replay_log
from kraft_runbook.clients.secrets import Secrets
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_tree import read_keys
from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.metadata.comparison import Difference, Obstacle, ParityReport, Undecoded, compare, make_report, persisting
from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.metadata.frames import Garbled
from kraft_runbook.metadata.metadata_log import Version
from kraft_runbook.metadata.zookeeper_tree import BadZnode, parse_migration
from kraft_runbook.observation import MigrationZnode, ZkMigrationState
from kraft_runbook.spark.arrow_rows import FAILED, ROW_SCHEMA, VERSION_SCHEMA
from kraft_runbook.spark.baseline import BaselineHead, outlives_zookeeper, proves, read_head, read_rows, write_baseline
from kraft_runbook.spark.candidates import find_candidates
from kraft_runbook.spark.session import session
from kraft_runbook.spark.source_options import Sealed

AGAINST_ZOOKEEPER = "ZooKeeper"
PAUSE = 1.0
"""Seconds before suspects are read again."""
PATIENCE_FOR_THE_LOG = 3
"""How often suspects that follow the log's order are read again: by the argument once would do."""
PATIENCE_FOR_SESSIONS = 15
"""How often suspects are that follow sessions and elections: a broker between its two registrations, a controller just elected."""
STANDSTILL = 3.0
"""Seconds in which /migration must move: a NoOpRecord comes twice a second (measured)."""


@dataclass(slots=True)
class _Findings:
    """What a run has found so far. ``both``: agreeing keys of each kind."""

    started_at: datetime
    against: str = AGAINST_ZOOKEEPER
    quorum: QuorumDescription | None = None
    migration: MigrationZnode | None = None
    start: int = -1
    end: int = -1
    both: Counter[Kind] = field(default_factory=Counter)
    differences: tuple[Difference, ...] = ()
    undecoded: tuple[Undecoded, ...] = ()
    obstacles: list[Obstacle] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rounds: int = 1


class _Withheld(Exception):
    """There is no proof to be had; the message is an Obstacle."""

    def __init__(self, problem: str, way_out: str) -> None:
        self.obstacle = Obstacle(problem, way_out)
        super().__init__(problem)


def run_parity(
    spec: ClusterSpec, *, secrets: Secrets, spark: SparkSession | None = None, baseline: Path | None = None, save_baseline: Path | None = None
) -> ParityReport:
    """Compare both stores once. What can't be read makes the report INCONCLUSIVE, with the reason and the way out.

    ``spark``: None for a local session of this call's own. ``baseline``: what a finalized cluster is compared with. ``save_baseline``: where a
    MATCH leaves one. Raises RunbookError for a baseline that can't be used, SecretMissing for a secret that connecting needs.
    """
    found = _Findings(datetime.now(UTC))
    head = read_head(baseline) if baseline is not None else None
    sealed = Sealed.of(spec, secrets=secrets, salt=head.salt if head else random_bytes.token_bytes(16))
    try:
        state = _migration_state(found, sealed)
        with session(spark) as ready:
            if state is ZkMigrationState.POST_MIGRATION:
                if head is None or baseline is None:
                    raise _Withheld(
                        "the migration is finalized: ZooKeeper is not written any more, so there is nothing to compare with",
                        "name the baseline that the last MATCH in dual write left (--baseline)",
                    )
                rows = _from_baseline(ready, found, sealed, head, baseline)
            elif state is ZkMigrationState.MIGRATION:
                rows = _from_zookeeper(ready, found, sealed)
            else:
                raise _Withheld(
                    f"the metadata was not copied yet: the log's migration state is {state.name if state else 'not recorded'}",
                    "wait until the last broker has registered in migration mode and the copy is done, then run again",
                )
            _compare(ready, found, sealed, rows)
            if found.against == AGAINST_ZOOKEEPER:
                _look_again(found, sealed)
                _is_alive(found, sealed)
            report = _report(found, spec)
            if save_baseline is not None and proves(report):
                _save(save_baseline, report, sealed, rows)
            return report
    except _Withheld as withheld:
        found.obstacles.append(withheld.obstacle)
    except (Unreachable, LogTruncated, Garbled) as error:
        found.obstacles.append(Obstacle(error.problem, error.way_out))
    return _report(found, spec)


# -- what there is to compare -------------------------------------------------------------------------------------------


def _migration_state(found: _Findings, sealed: Sealed) -> ZkMigrationState | None:
    found.quorum = describe_quorum(sealed.spec, secrets=sealed.secrets)
    return read_cluster_records(sealed.spec, secrets=sealed.secrets).migration_state_record


def _read_migration(sealed: Sealed) -> MigrationZnode:
    with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets) as reader:
        znode = reader.get("/migration")
    if znode is None:
        raise _Withheld(
            "/migration is missing, so nothing says up to where ZooKeeper was written",
            "if the controllers run in migration mode, look for errors of KRaftMigrationDriver in their logs; after a rollback there is nothing to compare",
        )
    try:
        migration = parse_migration(znode.data)
    except BadZnode as error:
        raise _Withheld(f"/migration can't be read: {error}", "find out who wrote it; the controllers rewrite it when a new one is elected") from None
    if migration.is_blank or migration.kraft_metadata_offset < 0:
        raise _Withheld("/migration is blank: no controller has copied anything yet", "wait for the copy, then run again")
    return migration


def _from_zookeeper(spark: SparkSession, found: _Findings, sealed: Sealed) -> DataFrame:
    """M, then the tree, read to its last znode before anybody asks for E."""
    found.migration = _read_migration(sealed)
    found.start = found.migration.kraft_metadata_offset
    tree = spark.read.format("zookeeper").options(**sealed.options()).load().localCheckpoint(eager=True)
    _raise_failures(tree)
    found.quorum = describe_quorum(sealed.spec, secrets=sealed.secrets)
    found.end = found.quorum.high_watermark - 1
    if found.end < found.start:
        raise _Withheld(
            f"/migration names offset {found.start}, and the quorum's log ends at {found.end}: it belongs to another quorum",
            "do not start brokers; docs/rollback.md says how a stale /migration is removed, and what it can do",
        )
    return tree.union(_frame(spark, declared_rows(sealed.spec)))


def _from_baseline(spark: SparkSession, found: _Findings, sealed: Sealed, head: BaselineHead, path: Path) -> DataFrame:
    if head.cluster != sealed.spec.name:
        raise RunbookError(f"the baseline at {path} is of cluster {head.cluster}, not {sealed.spec.name}", way_out="name the baseline of this cluster")
    found.against = f"the baseline {head.digest[:16]}"
    found.start, found.end = head.migration_offset, head.end_offset
    found.migration = MigrationZnode(head.migration_offset, -1, head.migration_epoch, -1)
    found.notes.append(
        f"ZooKeeper is out of use: compared was the state that a MATCH (digest {head.digest}) proved at offsets {head.migration_offset} to {head.end_offset}; "
        "what changed since then exists in KRaft only"
    )
    return _frame(spark, read_rows(path))


def _frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    return spark.createDataFrame([(row.kind.value, row.key, row.value) for row in rows], ROW_SCHEMA)


# -- comparing ----------------------------------------------------------------------------------------------------------


def _compare(spark: SparkSession, found: _Findings, sealed: Sealed, rows: DataFrame) -> None:
    quorum = found.quorum
    assert quorum is not None
    options = {"start": found.start, "end": found.end, "leader": quorum.leader_id, "epoch": quorum.leader_epoch}
    log = spark.read.format("metadata_log").options(**sealed.options(), **{k: str(v) for k, v in options.items()}).load().localCheckpoint(eager=True)
    _raise_failures(log)
    beside = quorum_versions(sealed.spec, quorum, offset=found.start, secrets=sealed.secrets)
    plain = [(v.kind.value, v.key, v.value, v.offset, v.last) for v in beside]
    versions = log.union(spark.createDataFrame(plain, VERSION_SCHEMA))
    if found.against != AGAINST_ZOOKEEPER:
        gone = [kind.value for kind in Kind if not outlives_zookeeper(kind)]
        versions = versions.where(~f.col("kind").isin(gone))
    candidates = find_candidates(rows, versions)
    comparison = compare(candidates.rows, candidates.versions)
    found.both = candidates.counts - Counter(row.kind for row in candidates.rows) + comparison.both
    found.differences, found.undecoded = comparison.differences, comparison.undecoded


def _raise_failures(frame: DataFrame) -> None:
    """Raise what a worker could not read."""
    for failed in frame.where(f.col("kind") == FAILED).limit(1).collect():
        raise _Withheld(**json.loads(failed["value"]))


def _look_again(found: _Findings, sealed: Sealed) -> None:
    """Read the suspects again, each time with a new M and E. One that agrees once is cleared; what never does is a mismatch."""
    suspects: Sequence[Difference] = found.differences
    while suspects and found.rounds <= (PATIENCE_FOR_THE_LOG if all(s.kind.follows_the_log for s in suspects) else PATIENCE_FOR_SESSIONS):
        time.sleep(PAUSE)
        found.rounds += 1
        keys = {each.identity for each in suspects}
        start = _read_migration(sealed).kraft_metadata_offset
        with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets) as reader:
            rows = [*read_keys(reader, keys, sealed.decoding), *(row for row in declared_rows(sealed.spec) if (row.kind, row.key) in keys)]
        versions = [v for v in _versions_now(sealed, start, keys) if (v.kind, v.key) in keys]
        still = persisting(suspects, compare(rows, versions))
        cleared = keys - {each.identity for each in still}
        found.both += Counter(row.kind for row in rows if (row.kind, row.key) in cleared)
        suspects = still
    found.differences = tuple(suspects)


def _versions_now(sealed: Sealed, start: int, keys: set[tuple[Kind, str]]) -> Iterator[Version]:
    quorum = describe_quorum(sealed.spec, secrets=sealed.secrets)
    fingerprints = sealed.decoding.fingerprints
    replay = replay_log(
        sealed.spec, quorum.leader_id, quorum.leader_epoch, start=start, end=quorum.high_watermark - 1, fingerprints=fingerprints, secrets=sealed.secrets
    )
    told = list(quorum_versions(sealed.spec, quorum, offset=start, secrets=sealed.secrets))
    yield from told
    yield from replay.versions_of(keys - {(v.kind, v.key) for v in told})


def _is_alive(found: _Findings, sealed: Sealed) -> None:
    """Equal at M is no proof of now when /migration stands still: then whatever follows M never reaches ZooKeeper."""
    deadline = time.monotonic() + STANDSTILL
    while _read_migration(sealed).kraft_metadata_offset == found.start:
        if time.monotonic() > deadline:
            high_watermark = describe_quorum(sealed.spec, secrets=sealed.secrets).high_watermark
            found.obstacles.append(
                Obstacle(
                    f"dual write stands still: /migration stays at offset {found.start} while the metadata log has reached {high_watermark - 1}",
                    "look for a partition without a state znode (kraft-runbook explain names it) and create it; "
                    "then the controllers write on within a minute, and this can run again",
                )
            )
            return
        time.sleep(0.25)


# -- the answer ---------------------------------------------------------------------------------------------------------


def _report(found: _Findings, spec: ClusterSpec) -> ParityReport:
    return make_report(
        cluster=spec.name,
        against=found.against,
        both=found.both,
        differences=found.differences,
        undecoded=found.undecoded,
        obstacles=found.obstacles,
        migration_offset=found.start,
        end_offset=found.end,
        migration_epoch=found.migration.kraft_metadata_epoch if found.migration else -1,
        leader_id=found.quorum.leader_id if found.quorum else -1,
        leader_epoch=found.quorum.leader_epoch if found.quorum else -1,
        rounds=found.rounds,
        started_at=found.started_at,
        finished_at=datetime.now(UTC),
        notes=found.notes,
    )


def _save(path: Path, report: ParityReport, sealed: Sealed, rows: DataFrame) -> None:
    cluster_id = rows.where(f.col("kind") == Kind.CLUSTER_ID.value).collect()[0]["value"]
    head = BaselineHead(report.cluster, json.loads(cluster_id), report.migration_offset, report.end_offset, report.migration_epoch, report.digest, sealed.salt)
    write_baseline(path, head, (Row(Kind(each["kind"]), each["key"], each["value"]) for each in rows.toLocalIterator()))
