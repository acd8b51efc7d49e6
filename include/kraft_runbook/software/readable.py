"""Readable(node, software): whether a node can start on a version of Kafka, by what its own disk holds.

A node that starts loads its newest snapshot and replays every record after it. A controller ends on each
FeatureLevelRecord there whose level its software does not know, whatever was written later; a broker stays alive and
never serves. A level that was raised and lowered again, or raised long ago, still counts, until the node has taken a
snapshot past it (measured on 3.9.2 and 4.1.1; KIP-778 says that a snapshot is taken when a level changes: no release
does).

After its own log a node replays what the quorum's leader sends it. That is the leader's log from there on, though the
leader has a snapshot past it, as long as the log reaches back (``validateOffsetAndEpoch`` of Kafka's raft). So a node
that was down meets records that all others have behind them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.feature_levels import (
    METADATA_VERSION,
    NodeOnDisk,
    Snapshot,
    SoftwareLevels,
    WrittenLevel,
)
from kraft_runbook.cluster.kafka_version import KafkaVersion, release_of
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.runbook.obstacle import Obstacle

SNAPSHOT_INTERVAL_MS = 3_600_000
"""``metadata.log.max.snapshot.interval.ms``, where the configuration does not say."""


def unreadable(
    who: str, disk: NodeOnDisk | Unread, software: SoftwareLevels, *, interval_ms: int = SNAPSHOT_INTERVAL_MS
) -> tuple[Obstacle, ...]:
    """What keeps a node (``who``: "controller 103") from starting on that software; nothing: it can read its log.

    ``interval_ms``: how often it takes a snapshot; 0: by the size of its log alone.
    """
    if isinstance(disk, Unread):
        return (
            Obstacle(
                f"nothing shows whether {who} can run {software.version}: {disk.reason}",
                "let this tool read its metadata log's directory",
                unknown=True,
            ),
        )
    return (
        *_too_new(who, disk, software, interval_ms),
        *_to_come(who, disk.to_come, software),
        *_bootstrap(who, disk, software),
    )


def _to_come(who: str, levels: tuple[WrittenLevel, ...] | Unread, software: SoftwareLevels) -> Iterator[Obstacle]:
    if isinstance(levels, Unread):
        yield Obstacle(
            f"nothing shows whether {who} can run {software.version}: {levels.reason}",
            levels.way_out or "let the quorum elect a leader, and look again",
            unknown=True,
        )
        return
    met = [each for each in levels if not software.supports(each.feature, each.level)]
    if met:
        shown = ", ".join(f"{each.feature} {each.level} at offset {each.offset}" for each in met)
        ranges = ", ".join(dict.fromkeys(software.ranges(each.feature) for each in met))
        yield Obstacle(
            f"{who} cannot run {software.version} yet: it is behind, the quorum's leader will send it {shown}, and"
            f" {software.version} supports {ranges}",
            f"start it on software that knows these levels, and let it take a snapshot past"
            f" {max(each.offset for each in met)}",
        )


def _too_new(who: str, disk: NodeOnDisk, software: SoftwareLevels, interval_ms: int) -> Iterator[Obstacle]:
    snapshot = disk.snapshot if _loads(disk.snapshot, software) else None
    held = dict(snapshot.levels) if snapshot else {}
    last = {**held, **{each.feature: each.level for each in disk.after}}
    features = sorted(
        {*held, *(each.feature for each in disk.after)}, key=lambda name: (name != METADATA_VERSION, name)
    )
    for feature in features:
        records = [
            each for each in disk.after if each.feature == feature and not software.supports(feature, each.level)
        ]
        in_snapshot = feature in held and not software.supports(feature, held[feature])
        if not records and not in_snapshot:
            continue
        lower = not software.supports(feature, last[feature])
        shown = [f"{feature} {each.level} at offset {each.offset}" for each in records]
        what = f"its log holds {', '.join(shown)}" if shown else f"its newest snapshot holds {feature} {held[feature]}"
        past = max((each.offset for each in records), default=snapshot.end if snapshot else 0)
        ends = f"its newest snapshot ends at {snapshot.end}" if snapshot else "it has no snapshot"
        yield Obstacle(
            f"{who} cannot run {software.version} yet: {what}, {ends}, and {software.version} supports"
            f" {software.ranges(feature)}",
            _way_out(feature, last[feature], past, software, interval_ms, lower=lower),
        )


def _loads(snapshot: Snapshot | None, software: SoftwareLevels) -> bool:
    """Whether that software loads the snapshot. One that ends at 0 is what 4.4 formats a directory with: up to 4.2 it
    is a snapshot as any other, from 4.3 on no metadata is read of it.
    """
    return snapshot is not None and (snapshot.end > 0 or release_of(software.version) < (4, 3))


def _way_out(feature: str, now: int, past: int, software: SoftwareLevels, interval_ms: int, *, lower: bool) -> str:
    wait = f"wait for a snapshot past {past}: {_taken(interval_ms)}"
    if not lower:
        return wait
    table = software.features.get(feature)
    below = table is not None and now < table.supported.lowest
    change = f"raise {feature} to {table.supported.lowest} or higher" if below and table else f"lower {feature}"
    return f"{change} first (upgrade_features), if Kafka still allows that; then {wait}"


def _taken(interval_ms: int) -> str:
    """When a node takes its next snapshot."""
    if interval_ms == 0:
        return (
            "it takes them by the log's size alone (metadata.log.max.record.bytes.between.snapshots), for"
            " metadata.log.max.snapshot.interval.ms is 0. Set that to a time in the cluster file and restart it, and it"
            " takes one within that time"
        )
    return (
        f"it takes one within {_span(interval_ms)} of its last one or its start"
        " (metadata.log.max.snapshot.interval.ms, read at the start)"
    )


def _bootstrap(who: str, disk: NodeOnDisk, software: SoftwareLevels) -> Iterator[Obstacle]:
    """bootstrap.checkpoint is read at each start, and never written again. 4.0.1 and later take any level there
    (KAFKA-19192), earlier ones those of their own list, released or not (``BootstrapMetadata.fromRecords``). Which
    release of 4.0 a Confluent Platform 8.0 holds is not known: it is judged as 4.0.0.
    """
    version = KafkaVersion.of(software.version)
    level, table = disk.bootstrap.get(METADATA_VERSION), software.features.get(METADATA_VERSION)
    if level is None or table is None or table.level(level) is not None:
        return
    if version.release < (4, 0) or version.may_be("4.0.0"):
        by_chance = version.release == (4, 0) and version.patch is None
        ends = "Kafka 4.0.0, which that may be," if by_chance else software.version
        yield Obstacle(
            f"{who} cannot run {software.version}: its directory was formatted at {METADATA_VERSION} {level}, and"
            f" {ends} ends on a bootstrap.checkpoint of a level that it does not know",
            "move that file aside on its host (do not delete it): only a quorum that has no log yet begins at its"
            " levels",
        )


def _span(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    if seconds >= 3600 and seconds % 3600 == 0:
        return f"{seconds / 3600:g} h"
    return f"{seconds / 60:g} min" if seconds >= 60 and seconds % 60 == 0 else f"{seconds:g} s"
