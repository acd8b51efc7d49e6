"""Committing offsets to a group of Kafka that has no members (OffsetCommit with generation -1), at its coordinator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.consumer import OffsetCommitRequest

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.groups.look import Partition
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.kafka.coordinator import AGAIN_SECONDS, NOT_AUTHORIZED, NOT_AVAILABLE, NOT_READY, Coordinator
from kraft_runbook.io.secrets import Secrets

COMMIT_VERSION, KEPT_VERSION = 8, 4
"""The last before KIP-848's epochs, and the last that says for how long an offset is kept."""
KEPT_MILLISECONDS = 10 * 365 * 24 * 3600 * 1000
"""Ten years: longer than any move. The first commit of a member puts the brokers' own time in its place."""
PARTITIONS_A_REQUEST = 2000
UNKNOWN_MEMBER, UNKNOWN_TOPIC = 25, 3
_AGAIN = NOT_READY | {7, UNKNOWN_TOPIC}
"""7: the replicas of the coordinator's partition were too slow. UNKNOWN_TOPIC: a coordinator that has just started, or
a topic that was just made: it has not heard of it yet.
"""
_FORBIDDEN = {29: "may not read the topic", NOT_AUTHORIZED: "may not commit for the group"}


def commit_offsets(
    spec: ClusterSpec,
    group: str,
    offsets: Mapping[Partition, int],
    *,
    secrets: Secrets,
    kept: bool = False,
    timeout: float = 30.0,
    apart: float = AGAIN_SECONDS,
    at_once: int = PARTITIONS_A_REQUEST,
    connect: Connect = connect_to,
) -> None:
    """Commit these, each the offset of the next record to read. ``kept``: they expire after KEPT_MILLISECONDS, whatever
    offsets.retention.minutes says, and since when the group has had no members
    (``OffsetExpirationConditionImpl.isOffsetExpired``, ``GroupMetadata.removeExpiredOffsets``). A coordinator that
    moves is looked for again, and asked again where it does not know a partition, for ``timeout`` seconds.

    Raises Refused where the group has members (Kafka answers UNKNOWN_MEMBER_ID) or this tool's identity may not do it;
    StepFailed, which names what was not taken, where some may be committed; Unreachable.
    """
    left = sorted(offsets.items())
    coordinator = Coordinator(spec, group, secrets=secrets, timeout=timeout, apart=apart, connect=connect)
    while left:
        part = left[:at_once]
        codes = _codes(coordinator.ask(_request(group, part, kept=kept)), part)
        _require_allowed(group, codes)
        again = [each for each in part if codes.get(each[0]) in _AGAIN]
        waits = bool(again) and coordinator.again()
        final = _AGAIN if waits else _AGAIN - {UNKNOWN_TOPIC}
        bad = {p: code for p, code in codes.items() if code and code not in final}
        bad |= {p: -1 for p, _ in part if p not in codes}
        if bad:
            named = some(f"{p[0]}-{p[1]} ({_told(code)})" for p, code in sorted(bad.items()))
            raise StepFailed(
                f"Kafka did not take {len(bad)} offsets of group {group}: {named}",
                way_out="correct what is named, then do this step again: it leaves alone whatever is already so",
            )
        left = again + left[at_once:]
        if again and not waits:
            raise StepFailed(
                f"the coordinator of group {group} was not ready in {timeout:g} s:"
                f" error {codes[again[0][0]]} for {again[0][0][0]}-{again[0][0][1]}",
                way_out="see that __consumer_offsets has leaders and enough replicas in sync, then do this step again",
            )


def _request(group: str, some: Sequence[tuple[Partition, int]], *, kept: bool) -> OffsetCommitRequest:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition
    by_topic: dict[str, list[object]] = {}
    for (name, number), offset in some:
        by_topic.setdefault(name, []).append(partition(partition_index=number, committed_offset=offset))
    topics = [topic(name=name, partitions=each) for name, each in by_topic.items()]
    if kept:
        return OffsetCommitRequest(
            version=KEPT_VERSION, group_id=group, retention_time_ms=KEPT_MILLISECONDS, topics=topics
        )
    return OffsetCommitRequest(version=COMMIT_VERSION, group_id=group, topics=topics)


def _codes(answer: Any, some: Sequence[tuple[Partition, int]]) -> dict[Partition, int]:
    """The error code of each partition; 0: committed."""
    if answer is None:
        return {p: NOT_AVAILABLE for p, _ in some}
    return {(t.name, int(p.partition_index)): int(p.error_code) for t in answer.topics for p in t.partitions}


def _require_allowed(group: str, codes: Mapping[Partition, int]) -> None:
    if UNKNOWN_MEMBER in codes.values():
        raise Refused(
            f"group {group} has members in Kafka, so it takes no offsets from outside (UNKNOWN_MEMBER_ID)",
            way_out="stop them, then do this step again",
        )
    for code, what in sorted(_FORBIDDEN.items()):
        if code in codes.values():
            raise Refused(
                f"this tool's identity {what}: group {group}",
                way_out="grant it READ on the group and on its topics, then do this step again",
            )


def _told(code: int) -> str:
    if code == -1:
        return "no answer"
    return "there is no such partition" if code == UNKNOWN_TOPIC else f"error {code}"
