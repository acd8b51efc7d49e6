"""One comparison from start to end: M, the tree, E, the log, a closer look at what differs, the report. The argument is
in ``parity.comparison``.
"""

from __future__ import annotations

import json
import secrets as random_bytes
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kraft_runbook.cluster.observation import MigrationZnode, ZkMigrationState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.kafka.metadata_log_reader import LogTruncated
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum, read_cluster_records
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_rows import read_again, read_topics
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.image.image import Key
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.frames import Garbled
from kraft_runbook.parity.baseline import BaselineHead, outlives_zookeeper, proves, read_head, read_rows, write_baseline
from kraft_runbook.parity.comparison import Difference, Obstacle, ParityReport, compare
from kraft_runbook.parity.dual_write import NoProof, read_migration, require_movement
from kraft_runbook.parity.findings import Findings
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.quorum_facts import declared_rows, quorum_versions
from kraft_runbook.parity.second_look import keys_in_question, look_again
from kraft_runbook.parity.spark.parallel_read import read_tree
from kraft_runbook.parity.spark.payload import Sealed
from kraft_runbook.parity.spark.progress import LogProgress
from kraft_runbook.parity.spark.rows_frame import rows_frame
from kraft_runbook.parity.spark.session import session
from kraft_runbook.parity.spark.topic_join import compare_topics

TOPICS_AT_ONCE = 5_000
"""How many topics in question are looked at together, each time with an M and E of their own: their rows are held in
memory.
"""
PAUSE = 1.0
"""Seconds before suspects are read again."""
PATIENCE_FOR_THE_LOG = 3
"""How often suspects that follow the log's order are read again: by the argument once would do."""
PATIENCE_FOR_SESSIONS = 15
"""How often suspects are that follow sessions and elections: a broker between its two registrations, a controller just
elected.
"""


def run_parity(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    spark: SparkSession | None = None,
    baseline: Path | None = None,
    save_baseline: Path | None = None,
) -> ParityReport:
    """Compare both stores once. What can't be read makes the report INCONCLUSIVE, with the reason and the way out.

    ``spark``: None for a local session of this call's own. ``baseline``: what a finalized cluster is compared with.
    ``save_baseline``: where a MATCH leaves one. Raises RunbookError for a baseline that can't be used, SecretMissing
    for a secret that connecting needs.
    """
    found = Findings(datetime.now(UTC))
    head = read_head(baseline) if baseline is not None else None
    sealed = Sealed.of(spec, secrets=secrets, salt=head.salt if head else random_bytes.token_bytes(16))
    try:
        state = _migration_state(found, sealed)
        if state is ZkMigrationState.POST_MIGRATION:
            if head is None or baseline is None:
                raise NoProof(
                    "the migration is finalized: ZooKeeper is not written any more, so there is nothing to compare"
                    " with",
                    way_out="name the baseline that the last MATCH in dual write left (--baseline)",
                )
            with session(spark) as ready:
                _compare_with_baseline(ready, found, sealed, head, baseline)
            return found.report(spec)
        if spec.zookeeper is None:
            raise NoProof(
                "the cluster file names no ZooKeeper, so there are no two stores to compare",
                way_out=(
                    "none is needed: the metadata log is the only store. Where the cluster does use ZooKeeper, name the"
                    " ensemble under 'zookeeper'"
                ),
            )
        if state is not ZkMigrationState.MIGRATION:
            raise NoProof(
                "the metadata was not copied yet: the log's migration state is"
                f" {state.name if state else 'not recorded'}",
                way_out=(
                    "wait until the last broker has registered in migration mode and the copy is done, then run again"
                ),
            )
        found.migration = _migration(sealed)
        found.start = found.migration.kraft_metadata_offset
        with _follow(sealed, found.start) as log, ThreadPoolExecutor(1) as beside:
            reading = beside.submit(_read_ahead, log)  # while Spark starts and its workers read ZooKeeper
            with session(spark) as ready:
                proven = _compare_with_zookeeper(ready, found, sealed, log, reading)
                _look_again(found, sealed, log, proven)
                with _zookeeper(sealed) as reader:
                    require_movement(reader, spec, since=found.start, secrets=secrets)
                report = found.report(spec)
                if save_baseline is not None and proves(report):
                    _save(save_baseline, report, found, sealed, proven)
            return report
    except (NoProof, Unreachable, LogTruncated, Garbled) as error:
        found.obstacles.append(Obstacle(error.problem, error.way_out))
    return found.report(spec)


def _migration_state(found: Findings, sealed: Sealed) -> ZkMigrationState | None:
    found.quorum = describe_quorum(sealed.spec, secrets=sealed.secrets)
    return read_cluster_records(sealed.spec, secrets=sealed.secrets).migration_state_record


def _zookeeper(sealed: Sealed, *, rate: float | None = None) -> ZookeeperReader:
    return ZookeeperReader(sealed.spec.ensemble, secrets=sealed.secrets, rate=rate)


def _migration(sealed: Sealed) -> MigrationZnode:
    with _zookeeper(sealed) as reader:
        return read_migration(reader)


def _follow(sealed: Sealed, start: int) -> LogFollower:
    replay = LogReplay(start, sealed.decoding.fingerprints, sealed.spec.kafka.ibp)
    return LogFollower(sealed.spec, replay, secrets=sealed.secrets, progress=LogProgress().told)


def _read_ahead(log: LogFollower) -> None:
    """The log up to now, and the fingerprints at M; what follows is short."""
    log.read_on()
    log.replay.prints()


# -- ZooKeeper and the log ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Proven:
    """ZooKeeper's side as it agreed with the log: ``topics`` as wholes, all others in ``rows``. ``settled``: keys that
    agreed only ``later``.
    """

    topics: DataFrame
    rows: list[Row]
    settled: set[Key] = field(default_factory=set)
    later: list[Row] = field(default_factory=list)


def _compare_with_zookeeper(
    spark: SparkSession, found: Findings, sealed: Sealed, log: LogFollower, reading: Future[None]
) -> _Proven:
    """Everything once, each topic by its fingerprint; then the topics in question row by row, with a new M and E.
    ``reading``: who has the log until then.
    """
    tree, rows = read_tree(spark, sealed)  # read to its last znode before anybody asks for E
    reading.result()
    found.end = _end(found, log, found.start)
    topics = compare_topics(tree, rows_frame(spark, log.replay.whole_topics()))
    found.both += topics.both
    found.add_epochs([row for row in rows if row.kind is Kind.MANY_EPOCHS], log.replay, but=topics.in_question)
    rows = [row for row in rows if row.kind is not Kind.MANY_EPOCHS]
    rows += declared_rows(sealed.spec)
    told = quorum_versions(sealed.spec, log.quorum, offset=found.start, secrets=sealed.secrets)
    found.add(compare(rows, chain(log.replay.versions_beside_topics(), told)))
    proven = _Proven(_without(spark, tree, topics.in_question), rows)
    for first in range(0, len(topics.in_question), TOPICS_AT_ONCE):
        proven.rows += _look_closer(found, sealed, log, topics.in_question[first : first + TOPICS_AT_ONCE])
    return proven


def _look_closer(found: Findings, sealed: Sealed, log: LogFollower, topics: Sequence[str]) -> list[Row]:
    """These topics row by row: ZooKeeper's rows, all of which were compared."""
    with _zookeeper(sealed, rate=sealed.spec.ensemble.read_rate) as reader:
        start = read_migration(reader).kraft_metadata_offset
        rows = list(read_topics(reader, topics, sealed.decoding))
    _end(found, log, start)
    found.add(compare(rows, log.replay.versions_of_topics(topics, since=start)))
    return rows


def _end(found: Findings, log: LogFollower, start: int) -> int:
    """E, asked for now, with the log read up to it. Raises NoProof where ``start`` lies behind it."""
    found.last = log.read_on()
    found.quorum = log.quorum
    if found.last < start:
        raise NoProof(
            f"/migration names offset {start}, and the quorum's log ends at {found.last}: it belongs to another quorum",
            way_out="do not start brokers; docs/rollback.md says how a stale /migration is removed, and what it can do",
        )
    return found.last


def _without(spark: SparkSession, tree: DataFrame, names: Sequence[str]) -> DataFrame:
    """The topics but these."""
    return (
        tree.join(rows_frame(spark, (canonical_rows.whole_topic(name, "") for name in names)), "key", "left_anti")
        if names
        else tree
    )


# -- suspects ----------------------------------------------------------------------------------------------------------


def _look_again(found: Findings, sealed: Sealed, log: LogFollower, proven: _Proven) -> None:
    """Read the suspects again where they were seen, each time with a new M and E. One that agrees once is cleared; what
    never does is a mismatch.
    """
    suspects: Sequence[Difference] = found.differences
    while suspects and found.rounds <= (
        PATIENCE_FOR_THE_LOG if all(s.kind.follows_the_log for s in suspects) else PATIENCE_FOR_SESSIONS
    ):
        time.sleep(PAUSE)
        found.rounds += 1
        asked = {each.identity for each in suspects}
        with _zookeeper(sealed) as reader:
            start = read_migration(reader).kraft_metadata_offset
            rows = [
                *read_again(reader, suspects, sealed.decoding),
                *(row for row in declared_rows(sealed.spec) if (row.kind, row.key) in asked),
            ]
        _end(found, log, start)
        keys = keys_in_question(suspects, rows)
        told = [
            v
            for v in quorum_versions(sealed.spec, log.quorum, offset=start, secrets=sealed.secrets)
            if (v.kind, v.key) in keys
        ]
        look = look_again(
            suspects,
            rows,
            [*told, *log.replay.versions_of(keys - {(v.kind, v.key) for v in told}, start)],
            log.replay.touched,
        )
        found.obstacles += look.obstacles
        found.undecoded += tuple(each for each in look.undecoded if each not in found.undecoded)
        proven.settled |= look.agreed
        proven.later += look.rows
        suspects = look.suspects
    found.both += Counter(row.kind for row in proven.later)
    found.differences = tuple(suspects)


# -- the proven state --------------------------------------------------------------------------------------------------


def _save(path: Path, report: ParityReport, found: Findings, sealed: Sealed, proven: _Proven) -> None:
    cluster_id = next(row.value for row in proven.rows if row.kind is Kind.CLUSTER_ID)
    head = BaselineHead(
        report.cluster,
        json.loads(cluster_id),
        report.migration_offset,
        report.end_offset,
        found.last,
        report.migration_epoch,
        report.digest,
        sealed.salt,
    )
    whole = (
        Row(Kind.WHOLE_TOPIC, each["key"], each["value"])
        for each in proven.topics.select("key", "value").toLocalIterator()
    )
    rows = (row for row in proven.rows if (row.kind, row.key) not in proven.settled)
    write_baseline(path, head, chain(whole, rows, proven.later))


def _compare_with_baseline(
    spark: SparkSession, found: Findings, sealed: Sealed, head: BaselineHead, path: Path
) -> None:
    """The log between the offsets of the proof, with what ZooKeeper held then."""
    if head.cluster != sealed.spec.name:
        raise RunbookError(
            f"the baseline at {path} is of cluster {head.cluster}, not {sealed.spec.name}",
            way_out="name the baseline of this cluster",
        )
    found.against = f"the baseline {head.digest[:16]}"
    found.start, found.end = head.migration_offset, head.end_offset
    found.migration = MigrationZnode(head.migration_offset, -1, head.migration_epoch, -1)
    found.notes.append(
        f"ZooKeeper is out of use: compared was the state that a MATCH (digest {head.digest}) proved at offsets"
        f" {head.migration_offset} to {head.end_offset}; what changed since then exists in KRaft only"
    )
    rows = list(read_rows(path))
    as_one = {row.key: row for row in rows if row.kind is Kind.WHOLE_TOPIC}
    with _follow(sealed, head.migration_offset) as log:
        log.read_to(head.end_offset)
        topics = compare_topics(rows_frame(spark, as_one.values()), rows_frame(spark, log.replay.whole_topics()))
        found.both += topics.both
        questioned = {name: canonical_rows.whole_topic(name, "").key for name in topics.in_question}
        found.differences += tuple(
            Difference(Kind.WHOLE_TOPIC, key, '"as it was proven"', '"something else"')
            for key in questioned.values()
            if key in as_one
        )
        log.read_to(head.last_offset)
        by_row = log.replay.versions_of_topics(name for name, key in questioned.items() if key not in as_one)
        told = chain(
            by_row,
            log.replay.versions_beside_topics(),
            quorum_versions(sealed.spec, log.quorum, offset=found.start, secrets=sealed.secrets),
        )
        found.add(
            compare(
                (row for row in rows if row.kind is not Kind.WHOLE_TOPIC),
                (version for version in told if outlives_zookeeper(version.kind)),
            )
        )
