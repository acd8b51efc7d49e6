"""One look at the controller quorum: what it shows, and what its log holds of the cluster."""

from __future__ import annotations

import time

from kraft_runbook.cluster.observation import QuorumState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.metadata_quorum import ClusterRecords, describe_committed, read_cluster_records
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.look_deadline import SOURCE_SECONDS

RECORDS_KEPT_SECONDS = 30.0
"""Seconds during which a look continues the log's last read. No quorum can be removed and created again in that time.
"""

_kept: dict[tuple[str, str], tuple[float, ClusterRecords]] = {}
"""The last read of each cluster's log, so that a wait reads only what is new. After 30 s everything is read again."""


def look_at_quorum(spec: ClusterSpec, secrets: Secrets) -> tuple[QuorumState, frozenset[str]]:
    """The quorum, and the names of the topics in its log. Raises Unreachable."""
    description = describe_committed(spec, secrets=secrets, timeout=SOURCE_SECONDS)
    key = (spec.name, spec.quorum_voters)
    at, records = _kept.get(key, (0.0, None))
    since = records if time.monotonic() - at < RECORDS_KEPT_SECONDS else None
    found = read_cluster_records(spec, secrets=secrets, timeout=SOURCE_SECONDS, since=since)
    _kept[key] = (time.monotonic(), found)
    state = QuorumState(
        leader_id=description.leader_id,
        leader_epoch=description.leader_epoch,
        high_watermark=description.high_watermark,
        voters=description.voters,
        registrations=found.registrations,
        metadata_version=found.metadata_version,
        migration_state_record=found.migration_state_record,
        copy=found.copy,
        kraft_only_configs=found.kraft_only,
        observers=description.observers,
    )
    return state, found.topics
