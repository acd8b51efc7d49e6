"""What a watch keeps of each look, and what it takes from the one before. Plain values, for a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kraft_runbook.cluster.unread import was_read
from kraft_runbook.quorum.look import KeptEpoch, QuorumLook

Sample = Mapping[str, Any]
KEPT = 1008
"""Samples that are kept of a cluster: a week of one every ten minutes, about 400 bytes each."""


def sample_of(look: QuorumLook) -> dict[str, Any]:
    """The look in a few numbers. What could not be read is None."""
    quorum = look.quorum if was_read(look.quorum) else None
    voters = {each.id: each for each in quorum.voters} if quorum is not None else {}
    controllers: dict[str, Any] = {}
    for i, each in look.controllers.items():
        metrics = each.metrics if was_read(each.metrics) else None
        gauges = each.gauges if was_read(each.gauges) else None
        controllers[str(i)] = {
            "warm": each.warm.value if was_read(each.warm) else None,
            "lag": voters[i].lag if i in voters else None,
            "applied_lag_ms": None if metrics is None else metrics.last_applied_lag_ms,
            "event_queue_p99_ms": None if gauges is None else gauges.event_queue_p99_ms,
            "commit_latency_ms": None if gauges is None else gauges.commit_latency_ms,
        }
    return {
        "at": look.looked_at.isoformat(),
        "mode": look.mode.value,
        "leader": None if quorum is None else quorum.leader_id,
        "epoch": None if quorum is None else quorum.leader_epoch,
        "high_watermark": None if quorum is None else quorum.high_watermark,
        "controllers": controllers,
        "unapplied_by_brokers": _unapplied(look),
        "zookeeper_controller": look.zookeeper.controller_id if was_read(look.zookeeper) else None,
        "zookeeper_controller_epoch": look.zookeeper.controller_epoch if was_read(look.zookeeper) else None,
    }


def _unapplied(look: QuorumLook) -> int | None:
    """Committed records that the slowest of the brokers has not applied; None where none was asked or told."""
    if not was_read(look.quorum) or look.quorum.high_watermark < 0:
        return None
    end = look.quorum.high_watermark - 1
    applied = (each.applied for each in look.brokers.values())
    return max((max(0, end - each.last_applied_offset) for each in applied if was_read(each)), default=None)


def with_sample(samples: Sequence[Sample], new: Sample) -> list[Sample]:
    """The samples with one more, and without the oldest where they are too many."""
    return [*samples, new][-KEPT:]


def kept_epoch(samples: Sequence[Sample]) -> KeptEpoch | None:
    """The epoch of the newest sample that has one."""
    for each in reversed(samples):
        epoch, at = each.get("epoch"), each.get("at")
        if isinstance(epoch, int) and isinstance(at, str):
            try:
                return KeptEpoch(epoch, datetime.fromisoformat(at))
            except ValueError:
                continue
    return None
