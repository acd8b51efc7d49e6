"""Every controller died in the copy: what proves that nothing was ever acknowledged by them. Pure.

Whatever goes wrong in Kafka's copy from ZooKeeper ends the active controller, and then the next
(``KRaftMigrationDriver``, the fatal fault handler): /controller stays KRaft's, and nobody elects leaders. Started
again, they copy again, and die again. Until ZkMigrationState 1, the last record of the copy's transaction, is
committed, the quorum refuses every change (``QuorumController``, pre-migration mode), so that ZooKeeper lacks nothing.
/migration alone does not prove that: its offset is written after the commit, and a controller may die in between. The
controllers' own logs do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ZkMigrationState, was_read

COPIED = frozenset({ZkMigrationState.MIGRATION.value, ZkMigrationState.POST_MIGRATION.value})


@dataclass(frozen=True, slots=True)
class LogAccount:
    """What a stopped controller's own log holds. ``states``: every migration state whose record stands outside a
    transaction that did not end, committed or not, in segments and snapshots; None: the log was not read, for
    ``reason``. ``end``: the offset behind its last record. ``open_since``: where a transaction begins that has no end.
    """

    controller_id: int
    states: frozenset[int] | None
    end: int = 0
    open_since: int | None = None
    reason: str = ""

    @property
    def tells(self) -> bool:
        """Whether it is a log of this migration: an empty one, on a disk that was formatted anew, proves nothing."""
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

    A committed record is in the logs of a majority, so it is in at least one of any majority of logs. One that holds
    the end of the copy counts against it even if it was never committed: started again, that controller may yet commit
    it.
    """
    ended = [log.controller_id for log in logs if log.states is not None and log.states & COPIED]
    if ended:
        return f"the log of controller {_ids(ended)} holds the end of the copy"
    told = [log for log in logs if log.tells]
    needed = len(controller_ids) // 2 + 1
    if len(told) < needed:
        silent = [log for log in logs if not log.tells]
        missing = sorted(set(controller_ids) - {log.controller_id for log in logs})
        reasons = [*(str(log) for log in silent), *(f"controller {each}: said to be gone" for each in missing)]
        return (
            f"the logs of {len(told)} of {len(controller_ids)} controllers tell, and {needed} are needed:"
            f" {'; '.join(reasons)}"
        )
    return None


def may_have_died_in_the_copy(seen: ClusterObservation) -> bool:
    """Whether KRaft holds the office, no quorum leads, and nothing seen says that the copy was completed. The logs
    decide (``why_not_proven``).
    """
    if was_read(seen.quorum) or not was_read(seen.zookeeper) or seen.zookeeper.controller is None:
        return False
    if seen.brokers_in(BrokerMode.KRAFT) or seen.zookeeper.controller.kraft_controller_epoch < 0:
        return False
    states = {c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)}
    if states & {ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION}:
        return False
    return seen.zookeeper.migration is None or seen.zookeeper.migration.kraft_metadata_offset < 0


def _ids(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))
