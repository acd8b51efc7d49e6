"""Every controller died in the metadata copy: what proves that they acknowledged nothing. Pure.

Any error in Kafka's metadata copy ends the active controller, and then the next (``KRaftMigrationDriver``, the fatal
fault handler). /controller keeps naming a KRaft controller, and nobody elects leaders. Controllers that are started
again copy again, and die again. ZkMigrationState 1 is the last record of the copy's transaction. Until it is committed,
the quorum refuses every change (``QuorumController``, pre-migration mode), so ZooKeeper lacks nothing. /migration alone
does not prove that: its offset is written after the commit, and a controller may die in between. The controllers' own
logs prove it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ZkMigrationState, was_read

COPIED = frozenset({ZkMigrationState.MIGRATION.value, ZkMigrationState.POST_MIGRATION.value})


@dataclass(frozen=True, slots=True)
class LogAccount:
    """The content of a stopped controller's own log. ``states``: every migration state whose record is outside an
    aborted or unfinished transaction, committed or not, in segments and snapshots. None: the log was not read, for
    ``reason``. ``end``: the offset after its last record. ``open_since``: the offset where an unfinished transaction
    begins.
    """

    controller_id: int
    states: frozenset[int] | None
    end: int = 0
    open_since: int | None = None
    reason: str = ""

    @property
    def tells(self) -> bool:
        """Whether it is a log of this migration. An empty log, on a disk that was formatted again, proves nothing."""
        return self.states is not None and bool(self.states & {ZkMigrationState.PRE_MIGRATION.value, *COPIED})

    def __str__(self) -> str:
        if self.states is None:
            return f"controller {self.controller_id}: not read ({self.reason})"
        shown = ", ".join(f"{state} ({ZkMigrationState(state).name})" for state in sorted(self.states)) or "none"
        begun = f", a copy begun at offset {self.open_since} and not ended" if self.open_since is not None else ""
        return f"controller {self.controller_id}: migration states {shown} up to offset {self.end}{begun}"


def why_not_proven(logs: Sequence[LogAccount], controller_ids: Sequence[int]) -> str | None:
    """Why these logs do not prove that the copy was never committed; None when they do. The controllers must be
    stopped.

    A committed record is in the logs of a majority, so any majority of logs has at least one log with it. A log that
    holds the end of the copy counts against the proof even if it was never committed: once started, that controller may
    still commit it.
    """
    ended = [log.controller_id for log in logs if log.states is not None and log.states & COPIED]
    if ended:
        return f"the log of {nodes('controller', ended)} holds the end of the copy"
    told = [log for log in logs if log.tells]
    needed = len(controller_ids) // 2 + 1
    if len(told) < needed:
        silent = [log for log in logs if not log.tells]
        missing = sorted(set(controller_ids) - {log.controller_id for log in logs})
        reasons = [*(str(log) for log in silent), *(f"controller {each}: named as gone" for each in missing)]
        return (
            f"the logs of {len(told)} of {len(controller_ids)} controllers show this migration, and {needed} are"
            f" needed: {'; '.join(reasons)}"
        )
    return None


def may_have_died_in_the_copy(seen: ClusterObservation) -> bool:
    """Whether /controller names a KRaft controller, no quorum has a leader, and nothing observed shows that the copy
    was completed. The logs decide (``why_not_proven``).
    """
    if was_read(seen.quorum) or not was_read(seen.zookeeper) or seen.zookeeper.controller is None:
        return False
    if seen.brokers_in(BrokerMode.KRAFT) or seen.zookeeper.controller.kraft_controller_epoch < 0:
        return False
    states = {c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)}
    if states & {ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION}:
        return False
    return seen.zookeeper.migration is None or not seen.zookeeper.migration.holds_a_copy


def never_elected(seen: ClusterObservation) -> bool:
    """Whether controllers run without a leader, and nothing was copied, so that they can be left.

    What shows it is ZooKeeper: a copy begins with a KRaft controller that takes /controller, and ends with /migration's
    offset (``KRaftMigrationDriver``, BECOME_CONTROLLER). Here a broker holds the one, the other was never written, and
    no broker is in KRaft mode. So it holds where the controllers tell nothing: they can't log in to each other, or
    this tool can't to them. Not where one hangs: that one may lead.
    """
    if was_read(seen.quorum) or not was_read(seen.zookeeper) or seen.zookeeper.controller is None:
        return False
    if seen.zookeeper.controller.kraft_controller_epoch >= 0 or seen.brokers_in(BrokerMode.KRAFT):
        return False
    if seen.zookeeper.migration is not None and seen.zookeeper.migration.holds_a_copy:
        return False
    if any(c.silent for c in seen.controllers.values()):
        return False
    states = {c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)}
    elected = {ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION}
    return not states & elected and any(c.running is True for c in seen.controllers.values())
