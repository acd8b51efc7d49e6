"""Committing offsets to a group of Kafka that has no members (OffsetCommit with generation -1), at its coordinator."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial

from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError, StepFailed, Unreachable
from kraft_runbook.groups.look import Partition
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.secrets import Secrets

COMMIT_VERSION, COORDINATOR_VERSION = 8, 3
"""OffsetCommit 8: the last before KIP-848's epochs; FindCoordinator 3: of one group."""
PARTITIONS_A_REQUEST = 2000
AGAIN_SECONDS = 0.2
LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
_AGAIN = frozenset({LOADING, NOT_AVAILABLE, NOT_COORDINATOR, 7})
"""A coordinator that has just moved, or still loads its groups; 7: its replicas were too slow."""
UNKNOWN_MEMBER, UNKNOWN_TOPIC = 25, 3
_FORBIDDEN = {29: "may not read the topic", 30: "may not commit for the group"}


def commit_offsets(
    spec: ClusterSpec,
    group: str,
    offsets: Mapping[Partition, int],
    *,
    secrets: Secrets,
    timeout: float = 30.0,
    apart: float = AGAIN_SECONDS,
    at_once: int = PARTITIONS_A_REQUEST,
    connect: Connect = connect_to,
) -> None:
    """Commit these, each the offset of the next record to read. A coordinator that moves is looked for again, for
    ``timeout`` seconds.

    Raises Refused where the group has members (Kafka answers UNKNOWN_MEMBER_ID) or this tool's identity may not do it;
    StepFailed, which names what was not taken, where some may be committed; Unreachable.
    """
    left = sorted(offsets.items())
    ask = partial(connect, spec, secrets=secrets, timeout=max(1.0, min(10.0, timeout)))
    ends = time.monotonic() + timeout
    turn = 0
    while left:
        some = left[:at_once]
        codes = _sent(spec, ask, group, some, turn)
        _require_allowed(group, codes)
        again = [each for each in some if codes.get(each[0]) in _AGAIN]
        bad = {p: code for p, code in codes.items() if code and code not in _AGAIN}
        bad |= {p: -1 for p, _ in some if p not in codes}
        if bad:
            named = ", ".join(f"{p[0]}-{p[1]} ({_told(code)})" for p, code in sorted(bad.items())[:5])
            raise StepFailed(
                f"Kafka did not take {len(bad)} offsets of group {group}: {named}",
                way_out="correct what is named, then do this step again: what is already so is left alone",
            )
        left = again + left[at_once:]
        if again:
            if time.monotonic() > ends:
                raise StepFailed(
                    f"the coordinator of group {group} was not ready in {timeout:g} s:"
                    f" error {codes[again[0][0]]} for {again[0][0][0]}-{again[0][0][1]}",
                    way_out="see that __consumer_offsets has leaders and enough replicas in sync, then do this step"
                    " again",
                )
            time.sleep(apart)
            turn += 1


def _sent(
    spec: ClusterSpec, ask: Connect, group: str, some: Sequence[tuple[Partition, int]], turn: int
) -> dict[Partition, int]:
    """The error code of each partition; 0: committed."""
    node = coordinator_of(spec, ask, group, turn)
    if node is None:
        return {p: NOT_AVAILABLE for p, _ in some}
    return _committed(spec, ask, node, group, some)


def coordinator_of(spec: ClusterSpec, ask: Connect, group: str, turn: int = 0) -> int | None:
    """The broker's id; None where there is none now. The first broker that answers is asked, from another one on at
    each turn: what one knows may be old.
    """
    why: RunbookError = Refused("the cluster file names no broker", way_out="name the brokers in it")
    start = turn % max(1, len(spec.brokers))
    for broker in (*spec.brokers[start:], *spec.brokers[:start]):
        try:
            with ask(broker) as connection:
                answer = connection.send(FindCoordinatorRequest(version=COORDINATOR_VERSION, key=group, key_type=0))
        except Unreachable as error:
            why = error
            continue
        if answer.error_code in _FORBIDDEN:
            raise _forbidden(group, answer.error_code)
        return None if answer.error_code else int(answer.node_id)
    raise why


def _committed(
    spec: ClusterSpec, ask: Connect, node: int, group: str, some: Sequence[tuple[Partition, int]]
) -> dict[Partition, int]:
    broker = next((each for each in spec.brokers if each.id == node), None)
    if broker is None:
        raise Refused(
            f"the coordinator of group {group} is broker {node}, which the cluster file does not name",
            way_out="add it to the cluster file",
        )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition
    by_topic: dict[str, list[object]] = {}
    for (name, number), offset in some:
        by_topic.setdefault(name, []).append(partition(partition_index=number, committed_offset=offset))
    with ask(broker) as connection:
        answer = connection.send(
            OffsetCommitRequest(
                version=COMMIT_VERSION,
                group_id=group,
                topics=[topic(name=name, partitions=each) for name, each in by_topic.items()],
            )
        )
    return {(t.name, int(p.partition_index)): int(p.error_code) for t in answer.topics for p in t.partitions}


def _require_allowed(group: str, codes: Mapping[Partition, int]) -> None:
    if UNKNOWN_MEMBER in codes.values():
        raise Refused(
            f"group {group} has members in Kafka, so it takes no offsets from outside (UNKNOWN_MEMBER_ID)",
            way_out="stop them, then do this step again",
        )
    for code in sorted(_FORBIDDEN):
        if code in codes.values():
            raise _forbidden(group, code)


def _forbidden(group: str, code: int) -> Refused:
    return Refused(
        f"this tool's identity {_FORBIDDEN[code]}: group {group}",
        way_out="grant it READ on the group and on its topics, then do this step again",
    )


def _told(code: int) -> str:
    if code == -1:
        return "no answer"
    return "there is no such partition" if code == UNKNOWN_TOPIC else f"error {code}"
