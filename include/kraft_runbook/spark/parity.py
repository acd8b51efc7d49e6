"""One comparison from start to end: M, the tree, E, the log, a closer look at what differs, the report. The argument is in ``metadata.comparison``."""

from __future__ import annotations

import json
import secrets as random_bytes
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kraft_runbook.clients.metadata_log_reader import LogTruncated
from kraft_runbook.clients.metadata_quorum import describe_quorum, read_cluster_records
from kraft_runbook.clients.quorum_facts import declared_rows, quorum_versions, replay_log
from kraft_runbook.clients.secrets import Secrets
from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_tree import read_keys
from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.metadata import entities
from kraft_runbook.metadata.comparison import Difference, Obstacle, ParityReport, compare, persisting
from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.metadata.frames import Garbled
from kraft_runbook.metadata.image import Key
from kraft_runbook.metadata.metadata_log import Version
from kraft_runbook.observation import MigrationZnode, ZkMigrationState
from kraft_runbook.spark.baseline import BaselineHead, outlives_zookeeper, proves, read_head, read_rows, write_baseline
from kraft_runbook.spark.candidates import compare_topics, find_candidates
from kraft_runbook.spark.findings import Findings, Withheld
from kraft_runbook.spark.session import session
from kraft_runbook.spark.source_options import Sealed
from kraft_runbook.spark.stores import frame, log_versions, read_migration, zookeeper_rows

PAUSE = 1.0
"""Seconds before suspects are read again."""
PATIENCE_FOR_THE_LOG = 3
"""How often suspects that follow the log's order are read again: by the argument once would do."""
PATIENCE_FOR_SESSIONS = 15
"""How often suspects are that follow sessions and elections: a broker between its two registrations, a controller just elected."""
STANDSTILL = 3.0
"""Seconds in which /migration must move: a NoOpRecord comes twice a second (measured)."""


def run_parity(
    spec: ClusterSpec, *, secrets: Secrets, spark: SparkSession | None = None, baseline: Path | None = None, save_baseline: Path | None = None
) -> ParityReport:
    """Compare both stores once. What can't be read makes the report INCONCLUSIVE, with the reason and the way out.

    ``spark``: None for a local session of this call's own. ``baseline``: what a finalized cluster is compared with. ``save_baseline``: where a
    MATCH leaves one. Raises RunbookError for a baseline that can't be used, SecretMissing for a secret that connecting needs.
    """
    found = Findings(datetime.now(UTC))
    head = read_head(baseline) if baseline is not None else None
    sealed = Sealed.of(spec, secrets=secrets, salt=head.salt if head else random_bytes.token_bytes(16))
    try:
        state = _migration_state(found, sealed)
        with session(spark) as ready:
            if state is ZkMigrationState.POST_MIGRATION:
                if head is None or baseline is None:
                    raise Withheld(
                        "the migration is finalized: ZooKeeper is not written any more, so there is nothing to compare with",
                        "name the baseline that the last MATCH in dual write left (--baseline)",
                    )
                _compare_with_baseline(ready, found, sealed, head, baseline)
                return found.report(spec)
            if state is not ZkMigrationState.MIGRATION:
                raise Withheld(
                    f"the metadata was not copied yet: the log's migration state is {state.name if state else 'not recorded'}",
                    "wait until the last broker has registered in migration mode and the copy is done, then run again",
                )
            proven = _compare_with_zookeeper(ready, found, sealed)
            _look_again(found, sealed, proven)
            _is_alive(found, sealed)
            report = found.report(spec)
            if save_baseline is not None and proves(report):
                _save(save_baseline, report, found, sealed, proven)
            return report
    except Withheld as withheld:
        found.obstacles.append(withheld.obstacle)
    except (Unreachable, LogTruncated, Garbled) as error:
        found.obstacles.append(Obstacle(error.problem, error.way_out))
    return found.report(spec)


def _migration_state(found: Findings, sealed: Sealed) -> ZkMigrationState | None:
    found.quorum = describe_quorum(sealed.spec, secrets=sealed.secrets)
    return read_cluster_records(sealed.spec, secrets=sealed.secrets).migration_state_record


# -- ZooKeeper and the log ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Proven:
    """ZooKeeper's rows as they agreed with the log. ``settled``: keys that agreed only later, and ``later``: what they said then."""

    tree: DataFrame
    closer: DataFrame | None = None
    settled: set[Key] = field(default_factory=set)
    later: list[Row] = field(default_factory=list)


def _compare_with_zookeeper(spark: SparkSession, found: Findings, sealed: Sealed) -> _Proven:
    """Everything once, each topic by its fingerprint; then the topics in question row by row, with a new M and E."""
    found.migration = read_migration(sealed)
    found.start = found.migration.kraft_metadata_offset
    tree = zookeeper_rows(spark, sealed)  # read to its last znode before anybody asks for E
    found.end = _end(found, sealed, found.start)
    versions = log_versions(spark, sealed, found.leading, start=found.start, end=found.end)
    topics = compare_topics(tree, versions)
    tree = tree.union(frame(spark, declared_rows(sealed.spec)))
    _judge(found, tree.where(_BESIDE), versions.where(_BESIDE))
    found.both += topics.both
    if not topics.in_question:
        return _Proven(tree)
    start = read_migration(sealed).kraft_metadata_offset
    closer = zookeeper_rows(spark, sealed, topics.in_question)
    end = _end(found, sealed, start)
    _judge(found, closer, log_versions(spark, sealed, found.leading, start=start, end=end, topics=topics.in_question, beside=False))
    return _Proven(tree.join(_named(spark, topics.in_question), ["kind", "key"], "left_anti"), closer)


_BESIDE = f"kind <> '{Kind.WHOLE_TOPIC.value}'"
_WHOLE = f"kind = '{Kind.WHOLE_TOPIC.value}'"


def _end(found: Findings, sealed: Sealed, start: int) -> int:
    """E, asked for now. Raises Withheld where ``start`` lies behind it."""
    found.quorum = describe_quorum(sealed.spec, secrets=sealed.secrets)
    found.last = found.quorum.high_watermark - 1
    if found.last < start:
        raise Withheld(
            f"/migration names offset {start}, and the quorum's log ends at {found.last}: it belongs to another quorum",
            "do not start brokers; docs/rollback.md says how a stale /migration is removed, and what it can do",
        )
    return found.last


def _judge(found: Findings, rows: DataFrame, versions: DataFrame) -> None:
    candidates = find_candidates(rows, versions)
    found.add(candidates.counts - Counter(row.kind for row in candidates.rows), compare(candidates.rows, candidates.versions))


# -- suspects -----------------------------------------------------------------------------------------------------------


def _look_again(found: Findings, sealed: Sealed, proven: _Proven) -> None:
    """Read the suspects again, each time with a new M and E. One that agrees once is cleared; what never does is a mismatch."""
    suspects: Sequence[Difference] = found.differences
    while suspects and found.rounds <= (PATIENCE_FOR_THE_LOG if all(s.kind.follows_the_log for s in suspects) else PATIENCE_FOR_SESSIONS):
        time.sleep(PAUSE)
        found.rounds += 1
        keys = {each.identity for each in suspects}
        start = read_migration(sealed).kraft_metadata_offset
        with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets) as reader:
            rows = [*read_keys(reader, keys, sealed.decoding), *(row for row in declared_rows(sealed.spec) if (row.kind, row.key) in keys)]
        versions = [v for v in _versions_now(found, sealed, start, keys) if (v.kind, v.key) in keys]
        still = persisting(suspects, compare(rows, versions))
        cleared = keys - {each.identity for each in still}
        proven.settled |= cleared
        proven.later += [row for row in rows if (row.kind, row.key) in cleared]
        suspects = still
    found.both += Counter(row.kind for row in proven.later)
    found.differences = tuple(suspects)


def _versions_now(found: Findings, sealed: Sealed, start: int, keys: set[Key]) -> Iterator[Version]:
    end = _end(found, sealed, start)
    quorum = found.leading
    replay = replay_log(
        sealed.spec, quorum.leader_id, quorum.leader_epoch, start=start, end=end, fingerprints=sealed.decoding.fingerprints, secrets=sealed.secrets
    )
    told = list(quorum_versions(sealed.spec, quorum, offset=start, secrets=sealed.secrets))
    yield from told
    yield from replay.versions_of(keys - {(v.kind, v.key) for v in told})


def _is_alive(found: Findings, sealed: Sealed) -> None:
    """Equal at M is no proof of now when /migration stands still: then whatever follows M never reaches ZooKeeper."""
    deadline = time.monotonic() + STANDSTILL
    while read_migration(sealed).kraft_metadata_offset == found.start:
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


# -- the proven state ---------------------------------------------------------------------------------------------------


def _save(path: Path, report: ParityReport, found: Findings, sealed: Sealed, proven: _Proven) -> None:
    rows = proven.tree if proven.closer is None else proven.tree.union(proven.closer)
    cluster_id = rows.where(f.col("kind") == Kind.CLUSTER_ID.value).collect()[0]["value"]
    head = BaselineHead(
        report.cluster, json.loads(cluster_id), report.migration_offset, report.end_offset, found.last, report.migration_epoch, report.digest, sealed.salt
    )
    told = (Row(Kind(each["kind"]), each["key"], each["value"]) for each in rows.toLocalIterator())
    write_baseline(path, head, [*(row for row in told if (row.kind, row.key) not in proven.settled), *proven.later])


def _compare_with_baseline(spark: SparkSession, found: Findings, sealed: Sealed, head: BaselineHead, path: Path) -> None:
    """The log between the offsets of the proof, with what ZooKeeper held then."""
    if head.cluster != sealed.spec.name:
        raise RunbookError(f"the baseline at {path} is of cluster {head.cluster}, not {sealed.spec.name}", way_out="name the baseline of this cluster")
    found.against = f"the baseline {head.digest[:16]}"
    found.start, found.end = head.migration_offset, head.end_offset
    found.migration = MigrationZnode(head.migration_offset, -1, head.migration_epoch, -1)
    found.notes.append(
        f"ZooKeeper is out of use: compared was the state that a MATCH (digest {head.digest}) proved at offsets {head.migration_offset} to {head.end_offset}; "
        "what changed since then exists in KRaft only"
    )
    rows = frame(spark, read_rows(path)).localCheckpoint(eager=True)
    whole = rows.where(_WHOLE)
    topics = compare_topics(whole, log_versions(spark, sealed, found.leading, start=head.migration_offset, end=head.end_offset, beside=False))
    found.both += topics.both
    known = {entities.parse_key(each["key"])[0] for each in whole.join(_named(spark, topics.in_question), ["kind", "key"], "left_semi").select("key").collect()}
    found.differences += tuple(
        Difference(Kind.WHOLE_TOPIC, entities.canonical([name]), '"as it was proven"', '"something else"') for name in topics.in_question if name in known
    )
    by_row = [name for name in topics.in_question if name not in known]
    versions = log_versions(spark, sealed, found.leading, start=head.migration_offset, end=head.last_offset, topics=by_row)
    gone = [kind.value for kind in Kind if not outlives_zookeeper(kind)]
    _judge(found, rows.where(_BESIDE), versions.where(~f.col("kind").isin(gone)))


def _named(spark: SparkSession, names: Sequence[str]) -> DataFrame:
    """The keys of these topics as wholes."""
    return frame(spark, (entities.whole_topic(name, "") for name in names)).select("kind", "key")
