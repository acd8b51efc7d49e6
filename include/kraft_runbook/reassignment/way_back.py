"""How moves are undone: cancelled while they run, moved back afterwards."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.running import why_unknown
from kraft_runbook.runbook.way_back import RollbackPlan, not_known

RESTORE_DAG = "restore_assignment"


def way_back(seen: Any, spec: ClusterSpec, *, gone: Collection[int] = ()) -> RollbackPlan:
    """Whether moves can be undone. ``seen``: an observation, or the operation's own look, which holds one. A replica
    can be moved back only onto a broker that runs.
    """
    cluster: ClusterObservation = seen if isinstance(seen, ClusterObservation) else seen.cluster
    steps = (
        f"while it runs: mark the run failed, then trigger cancel_reassignments__{spec.name}",
        f"afterwards: trigger {RESTORE_DAG}__{spec.name} with this run's name",
    )
    unread = [f"broker {b.id}: {b.running.reason}" for b in cluster.brokers.values() if not was_read(b.running)]
    if why := why_unknown(cluster):
        unread = [why, *unread]
    if unread:
        return not_known("; ".join(unread), steps)
    down = [
        f"broker {b.id} {b.closed}: its replicas can be moved back once it serves"
        for b in cluster.brokers.values()
        if b.running is False
    ]
    return RollbackPlan(
        True,
        "a move can be cancelled while it runs; each run saves the assignment first, and it can be moved back",
        steps,
        tuple(down),
    )
