"""What is kept of one look at a cluster, for whoever must not ask the cluster itself. Pure.

It holds no value of a configuration, so no secret. It is no evidence: nobody signs it, and no step rests on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from kraft_runbook.cluster.observation import ClusterObservation, Unread, unread_parts, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase

WHY = 300
"""Characters of a reason that are kept."""
PARTS = 60
"""Parts that could not be read and are named; there may be more of them than anybody reads."""


@dataclass(frozen=True, slots=True)
class NodeKept:
    """A broker or controller. ``running``, ``mode``, ``version``: None where that was not read; ``why``: the first
    reason. ``out_of_sync``: replicas on this broker that are not in the ISR; None: not known, or a controller.
    ``active``, ``write_behind_lag``: a controller's; None where they were not read.
    """

    id: int
    running: bool | None
    mode: str | None
    version: str | None
    why: str
    out_of_sync: int | None = None
    active: bool | None = None
    write_behind_lag: int | None = None


@dataclass(frozen=True, slots=True)
class QuorumKept:
    """As its leader described it. ``lags``: by voter, records of the log that it has not fetched; None: not known."""

    leader: int
    epoch: int
    high_watermark: int
    lags: Mapping[int, int | None]
    metadata_version: int | None


@dataclass(frozen=True, slots=True)
class LookKept:
    """One look. ``quorum``: what was read, or the reason why not. The counts of partitions: None where they were not
    read. ``unread``: what could not be read, with the reason.
    """

    cluster: str
    at: AwareDatetime
    took_seconds: float
    phase: Phase
    reasons: tuple[str, ...]
    transient: bool
    brokers: tuple[NodeKept, ...]
    controllers: tuple[NodeKept, ...]
    quorum: QuorumKept | str
    partitions: int | None
    under_replicated: int | None
    offline: int | None
    unread: tuple[str, ...]
    version: int = 1

    @property
    def write_behind_lag(self) -> int | None:
        """Of the active controller: changes that ZooKeeper does not have yet."""
        return next((c.write_behind_lag for c in self.controllers if c.active), None)


LOOK: TypeAdapter[LookKept] = TypeAdapter(LookKept)


def look_of(seen: ClusterObservation) -> LookKept:
    """What is kept of an observation."""
    reading, topics = detect_phase(seen), seen.topics
    behind = topics.out_of_sync_by_broker if was_read(topics) else None
    return LookKept(
        cluster=seen.cluster,
        at=seen.observed_at,
        took_seconds=seen.took_seconds,
        phase=reading.phase,
        reasons=tuple(each[:WHY] for each in reading.reasons),
        transient=reading.transient,
        brokers=tuple(
            _node(b, out_of_sync=None if behind is None else behind.get(b.id, 0)) for b in seen.brokers.values()
        ),
        controllers=tuple(
            _node(
                c,
                active=c.metrics.active if was_read(c.metrics) else None,
                write_behind_lag=c.metrics.zk_write_behind_lag if was_read(c.metrics) else None,
            )
            for c in seen.controllers.values()
        ),
        quorum=_quorum(seen),
        partitions=topics.partition_count if was_read(topics) else None,
        under_replicated=topics.under_replicated_count if was_read(topics) else None,
        offline=topics.offline_count if was_read(topics) else None,
        unread=tuple(each[:WHY] for each in unread_parts(seen)[:PARTS]),
    )


def line_of(look: LookKept) -> dict[str, Any]:
    """The look in one short line. What was not read is null."""
    quorum = look.quorum if isinstance(look.quorum, QuorumKept) else None
    return {
        "at": look.at.isoformat(timespec="seconds"),
        "phase": look.phase.value,
        "modes": {str(b.id): b.mode if b.running is not False else "down" for b in look.brokers},
        "out_of_sync": {str(b.id): b.out_of_sync for b in look.brokers if b.out_of_sync != 0},
        "leader": quorum and quorum.leader,
        "epoch": quorum and quorum.epoch,
        "high_watermark": quorum and quorum.high_watermark,
        "lags": quorum and {str(i): lag for i, lag in quorum.lags.items()},
        "write_behind_lag": look.write_behind_lag,
    }


def read_look(text: bytes) -> LookKept:
    """The look in these bytes. Raises ValueError, in a few words, where they hold none of this version."""
    try:
        look = LOOK.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{first['msg']}{f' at {where}' if where else ''}"[:WHY]) from None
    if look.version != 1:
        raise ValueError(f"it is of version {look.version}, and this software reads version 1")
    return look


def moment_of(line: Mapping[str, Any]) -> datetime | None:
    """When the look of this line was made; None where the line does not say."""
    try:
        at = datetime.fromisoformat(str(line.get("at")))
    except ValueError:
        return None
    return at if at.tzinfo else None


def _node(node: Any, **more: Any) -> NodeKept:
    asked = (node.running, node.mode, node.metrics)
    unread = [each.reason for each in asked if isinstance(each, Unread)] if node.running is not False else []
    return NodeKept(
        id=node.id,
        running=node.running if was_read(node.running) else None,
        mode=node.mode.value if was_read(node.mode) else None,
        version=node.software_version if was_read(node.software_version) else None,
        why=next(iter(unread), "")[:WHY],
        **more,
    )


def _quorum(seen: ClusterObservation) -> QuorumKept | str:
    read = seen.quorum
    if not was_read(read):
        return read.reason[:WHY]
    end = next((v.log_end_offset for v in read.voters if v.id == read.leader_id), None)
    lags = {v.id: None if end is None or v.log_end_offset < 0 else max(0, end - v.log_end_offset) for v in read.voters}
    return QuorumKept(read.leader_id, read.leader_epoch, read.high_watermark, lags, read.metadata_version)
