"""One comparison of everything, from start to end: M, the tree, E, the log, a closer look at what differs, the report.
The argument is in ``parity.comparison``, the looks are those of ``parity.looks``; Spark reads and joins the topics of
the first one.
"""

from __future__ import annotations

import json
import secrets as random_bytes
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kraft_runbook.cluster.observation import MigrationZnode, ZkMigrationState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_log_reader import LogTruncated
from kraft_runbook.io.kafka.metadata_quorum import describe_elected, read_cluster_records
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.image.log_replay import LogReplay, Version
from kraft_runbook.metadata.log.frames import Garbled
from kraft_runbook.metadata.topic_prints import TopicPrint
from kraft_runbook.parity.comparison import Difference, ParityReport, compare
from kraft_runbook.parity.dual_write import NoProof, read_migration
from kraft_runbook.parity.findings import Findings
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.looks import Looks, NotDualWriting, require_dual_write
from kraft_runbook.parity.proven import (
    Head,
    may_leave_a_proof,
    outlives_zookeeper,
    read_head,
    read_rows,
    require_of,
    write_proven,
)
from kraft_runbook.parity.quorum_facts import declared_rows, quorum_versions
from kraft_runbook.parity.spark.parallel_read import read_tree
from kraft_runbook.parity.spark.payload import Sealed
from kraft_runbook.parity.spark.progress import LogProgress
from kraft_runbook.parity.spark.rows_frame import rows_frame
from kraft_runbook.parity.spark.session import session
from kraft_runbook.parity.spark.topic_join import Topics, compare_topics

TOPICS_AT_ONCE = 5_000
"""How many topics in question are looked at together, each time with an M and E of their own: their rows are held in
memory.
"""


def run_parity(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    spark: SparkSession | None = None,
    baseline: Path | None = None,
    save_proven: Sequence[Path] = (),
) -> ParityReport:
    """Compare both stores once. What can't be read makes the report INCONCLUSIVE, with the reason and the way out.

    ``spark``: None for a local session of this call's own. ``baseline``: the proven state that a finalized cluster is
    compared with. ``save_proven``: where a MATCH leaves one. Raises RunbookError for a file that can't be used,
    SecretMissing for a secret that connecting needs.
    """
    found = Findings(datetime.now(UTC))
    head = read_head(baseline) if baseline is not None else None
    if head is not None and baseline is not None:
        require_of(spec, head, baseline)
    sealed = Sealed.of(spec, secrets=secrets, salt=head.salt if head else random_bytes.token_bytes(16))
    try:
        found.quorum = describe_elected(spec, secrets=secrets)
        if head is None or baseline is None or not _compared_with_file(found, sealed, head, baseline, spark):
            return _compare_with_zookeeper(found, sealed, spark, save_proven)
    except (NoProof, Unreachable, LogTruncated, Garbled) as error:
        found.gave_up(error)
    return found.report(spec)


def _log_from(sealed: Sealed, start: int) -> LogFollower:
    replay = LogReplay(start, sealed.decoding.fingerprints, sealed.spec.kafka.ibp)
    return LogFollower(sealed.spec, replay, secrets=sealed.secrets, progress=LogProgress().told)


def _first_look(
    spark: SparkSession,
    found: Findings,
    log: LogFollower,
    prints: Sequence[TopicPrint],
    topics: DataFrame,
    rows: Iterable[Row],
    versions: Callable[[Topics], Iterable[Version]],
) -> Topics:
    """Each topic by its fingerprint at M, everything else row by row: ``rows``, and what ``versions`` gives of them."""
    compared = compare_topics(topics, rows_frame(spark, log.replay.whole_topics(prints)))
    found.both += compared.both
    found.add(compare(rows, versions(compared)))
    return compared


# -- ZooKeeper and the log ---------------------------------------------------------------------------------------------


def _compare_with_zookeeper(
    found: Findings, sealed: Sealed, spark: SparkSession | None, save_proven: Sequence[Path]
) -> ParityReport:
    spec, secrets = sealed.spec, sealed.secrets
    try:
        found.began(_migration(sealed))
        with _log_from(sealed, found.start) as log, ThreadPoolExecutor(1) as beside:
            looks = Looks(spec, secrets, sealed.decoding, log, found)
            reading = beside.submit(_read_ahead, log)  # while Spark starts and its workers read ZooKeeper
            with session(spark) as ready:
                proven = _look_at_everything(ready, looks, sealed, reading)
                looks.again()
                looks.require_movement()
                report = found.report(spec)
                if may_leave_a_proof(report):
                    for path in save_proven:
                        _save(path, report, looks, sealed, proven)
            return report
    except NotDualWriting:
        raise
    except (NoProof, Unreachable, LogTruncated):
        _require_dual_write_or_silence(sealed)  # a better reason, where it is one
        raise


def _migration(sealed: Sealed) -> MigrationZnode:
    if sealed.spec.zookeeper is None:
        raise NoProof(
            "the cluster file names no ZooKeeper, so there are no two stores to compare",
            way_out=(
                "none is needed: the metadata log is the only store. Where the cluster does use ZooKeeper, name the"
                " ensemble under 'zookeeper'"
            ),
        )
    with ZookeeperReader(sealed.spec.ensemble, secrets=sealed.secrets) as reader:
        return read_migration(reader)


def _require_dual_write_or_silence(sealed: Sealed) -> None:
    """Raise NotDualWriting where the log says so; nothing where it can't be asked. A cluster without ZooKeeper is asked
    only whether it had one.
    """
    with suppress(Unreachable, LogTruncated, Garbled):
        state = read_cluster_records(sealed.spec, secrets=sealed.secrets).migration_state_record
        if sealed.spec.zookeeper is not None or state is ZkMigrationState.POST_MIGRATION:
            require_dual_write(state)


def _read_ahead(log: LogFollower) -> None:
    """The log up to now, and the fingerprints at M; what follows is short."""
    log.read_on()
    log.replay.prints()


@dataclass(slots=True)
class _Proven:
    """ZooKeeper's side as it agreed with the log: ``topics`` as wholes, all others in ``rows``."""

    topics: DataFrame
    rows: list[Row]


def _look_at_everything(spark: SparkSession, looks: Looks, sealed: Sealed, reading: Future[None]) -> _Proven:
    """Everything once, each topic by its fingerprint; then the topics in question row by row, with a new M and E.
    ``reading``: who has the log until then.
    """
    found, log = looks.found, looks.log
    tree, rows = read_tree(spark, sealed)  # read to its last znode before anybody asks for E
    reading.result()
    found.end = looks.end(found.start)
    epochs = [row for row in rows if row.kind is Kind.MANY_EPOCHS]
    rows = [*(row for row in rows if row.kind is not Kind.MANY_EPOCHS), *declared_rows(sealed.spec)]
    topics = _first_look(
        spark,
        found,
        log,
        log.replay.prints(),
        tree,
        rows,
        lambda _: chain(log.replay.versions_beside_topics(), looks.told_by_the_quorum(found.start)),
    )
    found.add_epochs(epochs, log.replay, but=topics.in_question)
    proven = _Proven(_without(spark, tree, topics.in_question), rows)
    for first in range(0, len(topics.in_question), TOPICS_AT_ONCE):
        proven.rows += looks.at_topics(topics.in_question[first : first + TOPICS_AT_ONCE])
    return proven


def _without(spark: SparkSession, tree: DataFrame, names: Sequence[str]) -> DataFrame:
    """The topics but these."""
    return (
        tree.join(rows_frame(spark, (canonical_rows.whole_topic(name, "") for name in names)), "key", "left_anti")
        if names
        else tree
    )


# -- the proven state --------------------------------------------------------------------------------------------------


def _save(path: Path, report: ParityReport, looks: Looks, sealed: Sealed, proven: _Proven) -> None:
    cluster_id = next(row.value for row in proven.rows if row.kind is Kind.CLUSTER_ID)
    past_m = looks.log.past_start
    assert past_m is not None
    head = Head(
        report.cluster,
        json.loads(cluster_id),
        report.migration_offset,
        report.end_offset,
        looks.found.last,
        report.migration_epoch,
        report.digest,
        sealed.salt,
        report.finished_at,
        past_m.epoch,
    )
    whole = (
        Row(Kind.WHOLE_TOPIC, each["key"], each["value"])
        for each in proven.topics.select("key", "value").toLocalIterator()
    )
    rows = (row for row in proven.rows if (row.kind, row.key) not in looks.settled)
    write_proven(path, head, chain(whole, rows, looks.later), looks.log.replay.at_start)


def _compared_with_file(found: Findings, sealed: Sealed, head: Head, path: Path, spark: SparkSession | None) -> bool:
    """Compare the log between the offsets of the proof with what ZooKeeper held then. False, with nothing compared,
    where the cluster is not finalized: ZooKeeper itself is to be compared.
    """
    with _log_from(sealed, head.migration_offset) as log:
        if log.quorum.high_watermark <= head.last_offset:
            raise NoProof(
                f"the proof at {path} ends at offset {head.last_offset}, and the quorum's log at"
                f" {log.quorum.high_watermark - 1}: it belongs to another quorum",
                way_out="name the file that the last MATCH of this cluster left",
            )
        try:
            log.read_to(head.end_offset)
        except LogTruncated:
            state = read_cluster_records(sealed.spec, secrets=sealed.secrets).migration_state_record
            if state is not ZkMigrationState.POST_MIGRATION:
                return False
            raise
        if log.migration_state_now() is not ZkMigrationState.POST_MIGRATION:
            return False
        found.against = f"the baseline {head.digest[:16]}"
        found.start, found.end, found.last = head.migration_offset, head.end_offset, head.last_offset
        found.migration = MigrationZnode(head.migration_offset, -1, head.migration_epoch, -1)
        found.notes.append(
            f"ZooKeeper is out of use: compared was the state that a MATCH (digest {head.digest}) proved at offsets"
            f" {head.migration_offset} to {head.end_offset}; later changes exist in KRaft only"
        )
        with session(spark) as ready:
            _look_at_file(ready, found, sealed, log, path)
    return True


def _look_at_file(spark: SparkSession, found: Findings, sealed: Sealed, log: LogFollower, path: Path) -> None:
    """One look, with the rows of the file in ZooKeeper's place. What was looked at again then, stands row by row in the
    file, and has its versions up to the E of that look.
    """
    rows = list(read_rows(path))
    as_one = {row.key: row for row in rows if row.kind is Kind.WHOLE_TOPIC}

    def versions(topics: Topics) -> Iterable[Version]:
        log.read_to(found.last)
        by_row = [name for name in topics.in_question if canonical_rows.whole_topic(name, "").key not in as_one]
        told = chain(
            log.replay.versions_of_topics(by_row),
            log.replay.versions_beside_topics(),
            quorum_versions(sealed.spec, log.quorum, offset=found.start, secrets=sealed.secrets),
        )
        return (version for version in told if outlives_zookeeper(version.kind))

    beside = (row for row in rows if row.kind is not Kind.WHOLE_TOPIC)
    topics = _first_look(spark, found, log, log.replay.prints(), rows_frame(spark, as_one.values()), beside, versions)
    keys = [canonical_rows.whole_topic(name, "").key for name in topics.in_question]
    found.differences += tuple(
        Difference(Kind.WHOLE_TOPIC, key, '"as it was proven"', '"something else"') for key in keys if key in as_one
    )
