"""When a voter may come back with an empty log. Pure.

A voter that is formatted again has forgotten what it acknowledged and whom it voted for. Records that only it and one
other voter held would be lost: its vote could elect a third voter, which never had them. So each committed record must
be on a majority of the voters without it. Then no voter whose log lacks one can win an election with its vote (Raft's
election restriction; Kafka 3.9 keeps the vote in ``quorum-state``, which is lost too).
"""

from __future__ import annotations

from kraft_runbook.cluster.naming import name_ids
from kraft_runbook.cluster.observation import ClusterObservation, was_read


def why_not_anew(seen: ClusterObservation, node_id: int) -> str | None:
    """Why this controller may not be started on a log that may be empty; None when it may."""
    if not was_read(seen.quorum):
        return f"no quorum has a leader ({seen.quorum.reason}): controller {node_id} may hold what no other holds"
    needed = len(seen.controllers) // 2 + 1
    holding = [
        voter.id
        for voter in seen.quorum.voters
        if voter.id != node_id and voter.log_end_offset >= seen.quorum.high_watermark and _runs(seen, voter.id)
    ]
    if len(holding) >= needed:
        return None
    listed = name_ids(holding) or "none"
    return (
        f"of the controllers other than {node_id}, {len(holding)} ({listed}) run and hold everything committed, and"
        f" {needed} must: with an empty log, controller {node_id} could help to elect one that lacks some of it, and"
        " those records would be lost"
    )


def _runs(seen: ClusterObservation, node_id: int) -> bool:
    return node_id in seen.controllers and seen.controllers[node_id].running is True
