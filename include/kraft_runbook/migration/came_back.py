"""Controllers of a migration that was left run again, with the data that was to be set aside: a host was started anew
and its service with it. What shows it, and what proves that ZooKeeper lacks nothing of theirs. Pure.

Such a quorum shows ZkMigrationState 1 and writes nothing to ZooKeeper: /migration is there again and blank, and its
driver stays INACTIVE (``KRaftMigrationDriver``, "KRaft controller indicates an active migration, but the ZK state does
not"; measured on 3.9.2). Brokers follow the ZooKeeper controller. But the quorum takes changes from whoever asks it.
When KRaft was left, ZooKeeper had everything before the high watermark of that moment. So the logs hold newer truth
only if they hold records of metadata from there on.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ZkMigrationState, was_read
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.migration.never_copied import COPIED, LogAccount

NO_TRUTH = frozenset(
    {
        RecordType.NO_OP,
        RecordType.REGISTER_BROKER,
        RecordType.FENCE_BROKER,
        RecordType.UNFENCE_BROKER,
        RecordType.BROKER_REGISTRATION_CHANGE,
        RecordType.REGISTER_CONTROLLER,
        RecordType.PARTITION_CHANGE,
        RecordType.BEGIN_TRANSACTION,
        RecordType.END_TRANSACTION,
        RecordType.ABORT_TRANSACTION,
    }
)
"""What a quorum writes by itself once it is up, as brokers come and go. Of partitions these are leaders and ISRs, which
the ZooKeeper controller decides now.
"""


def came_back(seen: ClusterObservation) -> tuple[int, ...]:
    """The controllers that run although a ZooKeeper controller leads and ZooKeeper holds no migration; none where they
    show no copy, or a broker is in KRaft mode, or that is not known.
    """
    if not was_read(seen.zookeeper) or seen.zookeeper.controller is None:
        return ()
    if seen.zookeeper.controller.kraft_controller_epoch >= 0:
        return ()
    if seen.zookeeper.migration is not None and not seen.zookeeper.migration.is_blank:
        return ()
    if any(b.mode not in (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID) for b in seen.brokers.values() if b.running):
        return ()
    shown = {c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)}
    shown |= {seen.quorum.migration_state_record} if was_read(seen.quorum) else set()
    if ZkMigrationState.MIGRATION not in shown or ZkMigrationState.POST_MIGRATION in shown:
        return ()
    return tuple(c.id for c in seen.controllers.values() if c.running is not False)


def why_they_may_hold_more(logs: Sequence[LogAccount], since: int | None) -> str | None:
    """Why these logs may hold what ZooKeeper lacks; None: they do not. The controllers must be stopped. ``since``: the
    quorum's high watermark when KRaft was left; None: it is not on record.
    """
    if since is None:
        return (
            "this run has no record of how far ZooKeeper was written when KRaft was left, so it can't be told whether"
            " they hold more"
        )
    unread = [str(log) for log in logs if log.states is None or log.begins is None]
    if unread:
        return "; ".join(unread)
    for log in logs:
        if log.begins is not None and log.begins > since:
            return f"the log of controller {log.controller_id} begins at offset {log.begins}, after {since}"
    found = {
        log.controller_id: sorted(_name(kind) for kind, at in log.last.items() if at >= since and kind not in NO_TRUTH)
        for log in logs
    }
    holding = [each for each, kinds in found.items() if kinds]
    if holding:
        kinds = sorted({kind for each in holding for kind in found[each]})
        return (
            f"the log of {nodes('controller', holding)} holds records that were written after KRaft was left, at offset"
            f" {since} or later: {', '.join(kinds)}"
        )
    if not any(log.states and log.states & COPIED for log in logs):
        return "no log holds the end of a metadata copy, so they are not those of the migration that was left"
    return None


def _name(kind: int) -> str:
    return RecordType(kind).name if kind in set(RecordType) else f"kind {kind}"
