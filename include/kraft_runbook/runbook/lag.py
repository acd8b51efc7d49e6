"""What lags behind, judged by two looks at the cluster.

Topics come and go, and no two parts of a cluster are read at the same moment, so nothing here is compared for equality:
what was so at the earlier look must have arrived by now, and what was missing at both looks is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    QuorumState,
    TopicsState,
    Unread,
    Voter,
    ZookeeperState,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.read_parts import needed

CAUGHT_UP_WITHIN = 10
"""Records that a voter may lag and still count as caught up: NoOp records alone append two a second (measured on
3.9.2).
"""
SILENT = 20.0
"""Seconds without a fetch of a broker that is not behind: in a log that stands still nobody can be. It asks twice a
second (``MAX_FETCH_WAIT_MS`` of Kafka's raft); the leader's entry of itself has the leader's clock.
"""
NAMED = 5
"""How many topics are named as examples."""


def voters_behind(
    seen: ClusterObservation, earlier: ClusterObservation | None, ids: Iterable[int]
) -> Mapping[int, int]:
    """The offsets of those voters that are far from the high watermark, and have not even reached what it was at the
    earlier look.
    """
    return _behind(seen.quorum.voters, seen.quorum, earlier, ids) if was_read(seen.quorum) else {}


def not_fetching(seen: ClusterObservation, earlier: ClusterObservation | None) -> Iterator[str]:
    """Each broker in KRaft mode that does not follow the metadata log: the leader lists it at neither look of one
    epoch, or it is behind as a voter may not be, or has not fetched for ``SILENT`` seconds. It heartbeats on another
    connection, so it stays unfenced, and serves with old metadata (KAFKA-20514).
    """
    if not was_read(seen.quorum):
        return
    now = seen.quorum
    listed = {each.id for each in now.observers}
    if earlier is not None and was_read(earlier.quorum) and earlier.quorum.leader_epoch == now.leader_epoch:
        listed |= {each.id for each in earlier.quorum.observers}
    in_kraft = [each.id for each in seen.brokers.values() if each.mode is BrokerMode.KRAFT]
    behind = _behind(now.observers, now, earlier, in_kraft)
    clock = leaders_clock(now)
    fetched = {each.id: each.last_fetch_ms for each in sorted(now.observers, key=lambda each: each.last_fetch_ms)}
    for broker_id in in_kraft:
        if broker_id not in listed:
            yield f"controller {now.leader_id}, which leads, knows of no fetch by broker {broker_id}"
        elif broker_id in behind:
            yield f"broker {broker_id} is at offset {behind[broker_id]} of {now.high_watermark}"
        elif clock is not None and 0 <= fetched.get(broker_id, -1) < clock - SILENT * 1000:
            yield f"broker {broker_id} has not fetched for {(clock - fetched[broker_id]) / 1000:.0f} s"


def leaders_clock(quorum: QuorumState) -> int | None:
    """In milliseconds since the epoch: its own entry shows it as the time of its last fetch. None: it shows none."""
    shown = (each.last_fetch_ms for each in quorum.voters if each.id == quorum.leader_id)
    return next((clock for clock in shown if clock > 0), None)


def since_fetch(seen: ClusterObservation, replica: Voter) -> float | None:
    """Seconds since a voter or an observer fetched from the leader, by the leader's clock, or by this machine's where
    the leader shows none; None: the leader knows of no fetch.
    """
    clock = leaders_clock(needed(seen.quorum))
    if replica.last_fetch_ms < 0:
        return None
    now = clock if clock is not None else seen.observed_at.timestamp() * 1000
    return max(0.0, now - replica.last_fetch_ms) / 1000


def following(seen: ClusterObservation, spec: ClusterSpec, node: int) -> tuple[Voter, ...]:
    """Each directory that fetches the log from the leader now under this controller's id, as a voter or an observer;
    more than one: two processes have the id.
    """
    quorum = needed(seen.quorum)
    if node == quorum.leader_id:  # it fetches from nobody
        return tuple(each for each in quorum.voters if each.id == node)
    return tuple(each for each in (*quorum.voters, *quorum.observers) if each.id == node and _fetches(seen, spec, each))


def _fetches(seen: ClusterObservation, spec: ClusterSpec, replica: Voter) -> bool:
    seconds = since_fetch(seen, replica)
    return seconds is not None and seconds * 1000 < spec.quorum_health.silent


def _behind(
    replicas: Iterable[Voter], now: QuorumState, earlier: ClusterObservation | None, ids: Iterable[int]
) -> Mapping[int, int]:
    wanted = now.high_watermark - CAUGHT_UP_WITHIN
    if earlier is not None and was_read(earlier.quorum):
        wanted = min(wanted, earlier.quorum.high_watermark)
    # a node whose disk was replaced is listed twice for a while, by the ids of its directories
    offsets = {each.id: each.log_end_offset for each in sorted(replicas, key=lambda each: each.log_end_offset)}
    return {i: offsets[i] for i in ids if i in offsets and offsets[i] < wanted}


def unwritten(zookeeper: ZookeeperState, quorum: QuorumState, earlier: ClusterObservation) -> str | None:
    """What is not in ZooKeeper though it was committed at the earlier look, or that /migration is of another log; None
    where neither is so. An earlier look without the quorum proves nothing.
    """
    if not was_read(earlier.quorum):
        return f"the offset committed at the look before is not known: {earlier.quorum.reason}"
    foreign = of_another_log(quorum, earlier)
    if foreign:
        return foreign
    target = earlier.quorum.high_watermark - 1
    offset = zookeeper.migration.kraft_metadata_offset if zookeeper.migration else -1
    return None if offset >= target else f"it was to be written up to offset {target}, /migration is at {offset}"


def of_another_log(quorum: QuorumState, earlier: ClusterObservation) -> str | None:
    """What shows that /migration was not written from this quorum's log: at the earlier look it named an offset that is
    not committed even now. A controller writes to ZooKeeper what is committed (``KRaftMigrationDriver``), so in one log
    that can't be: the controllers have older disks, or their quorum was formed anew. None where nothing shows it.
    """
    if not was_read(earlier.zookeeper) or earlier.zookeeper.migration is None:
        return None
    offset, end = earlier.zookeeper.migration.kraft_metadata_offset, quorum.high_watermark - 1
    if offset <= end:
        return None
    return f"/migration was at offset {offset}, and the metadata log has reached only {end} since: it is of another log"


def topics_apart(seen: ClusterObservation, earlier: ClusterObservation | None) -> tuple[str, ...] | Unread:
    """The topics that the quorum has and ZooKeeper has not, or the other way round, at both looks. Unread where one
    look leaves it open.
    """
    now = seen.topics_apart
    if not was_read(now):
        return now
    if not now.only_in_quorum and not now.only_in_zookeeper:
        return ()
    if earlier is None or not was_read(earlier.topics_apart):
        return Unread(
            f"the quorum has {now.in_quorum} topics, ZooKeeper {now.in_zookeeper}; a second look tells whether one"
            " stays apart"
        )
    lacks = (
        ("ZooKeeper", now.only_in_quorum & earlier.topics_apart.only_in_quorum),
        ("the quorum", now.only_in_zookeeper & earlier.topics_apart.only_in_zookeeper),
    )
    return tuple(
        f"{who} lacks {_named(names)} (the quorum has {now.in_quorum} topics, ZooKeeper {now.in_zookeeper})"
        for who, names in lacks
        if names
    )


def unaware_brokers(topics: TopicsState, earlier: ClusterObservation | None) -> Iterator[str]:
    """Each broker that knew nothing, at both looks, of a topic that another names: it has not heard of the topic, or
    the other not of its end.
    """
    before = earlier.topics.topics_unknown_to if earlier is not None and was_read(earlier.topics) else {}
    for broker_id, names in sorted(topics.topics_unknown_to.items()):
        lasting = names & before.get(broker_id, names)
        if lasting:
            yield f"broker {broker_id} lacks {_named(lasting)}"


def _named(names: frozenset[str]) -> str:
    shown = some(sorted(names), NAMED)
    return f"{len(names)} topics: {shown}" if len(names) > 1 else f"topic {shown}"
