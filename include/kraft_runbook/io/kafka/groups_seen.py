"""Kafka's groups of given names: who coordinates each (FindCoordinator), its members (DescribeGroups, or
ConsumerGroupDescribe where it is of the consumer protocol) and its committed offsets (OffsetFetch), many groups a
request.

A group, or a coordinator, that does not answer makes these groups Unread and no other.
"""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import TimedOut, Unreachable
from kraft_runbook.groups.classify import DEAD
from kraft_runbook.groups.look import CLASSIC, CONSUMER, SHARE, KafkaMember, KafkaSide, Partition
from kraft_runbook.io.kafka.connection import Connect, KafkaConnection, connect_to
from kraft_runbook.io.kafka.log_ends import BROKERS_THAT_AGREE, UNKNOWN_TOPIC, metadata_request
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.slices import slices

COORDINATOR_VERSION, DESCRIBE_VERSION, OFFSETS_VERSION = 4, 5, 8
"""The first that take many groups (Kafka 3.0); OffsetFetch asks for no stable offsets."""
GROUPS_A_REQUEST = 200
TRIES, APART_SECONDS = 5, 0.3
"""A group whose coordinator moves, or loads it, is looked for again: so often, so many seconds apart."""
OFFSETS_TOPIC = "__consumer_offsets"
TOPIC_NOT_AUTHORIZED, NOT_AUTHORIZED, ID_NOT_FOUND = 29, 30, 69
_ERRORS = {
    14: "its coordinator loads it",
    15: "its coordinator is not available",
    16: "its coordinator has just changed",
    TOPIC_NOT_AUTHORIZED: "this tool's identity may not describe a topic that the group's members subscribe to",
    NOT_AUTHORIZED: "this tool's identity may not describe the group",
}
_CHANGES = "it comes or goes at this moment"
_MOVING = frozenset({_CHANGES, *(_ERRORS[code] for code in (14, 15, 16))})
GroupSide = KafkaSide | Unread | None


class ConsumerGroupDescribeRequest(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """ConsumerGroupDescribe (api 69, KIP-848), version 0."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json="kraft_runbook.io.kafka.schemas"):  # type: ignore[misc, call-arg]
    """The answer: each group with its members and their partitions."""


def read_kafka_groups(
    spec: ClusterSpec,
    names: Sequence[str],
    *,
    secrets: Secrets,
    silent: dict[int, str] | None = None,
    apart: float = APART_SECONDS,
    at_once: int = GROUPS_A_REQUEST,
    connect: Connect = connect_to,
) -> Mapping[str, GroupSide]:
    """Each group by its name: None where Kafka has none, Unread with the reason. Raises nothing for what can't be
    reached.

    ``silent``: brokers that took all their time before and did not answer, with the reason. They are not asked again,
    and those of this call are added: who asks some hundred groups at a time waits for a broker that hangs once.

    FindCoordinator has Kafka create __consumer_offsets where it is missing, so that is asked first; where no two
    brokers know it there is no group. A group whose coordinator has moved, or still loads it, is asked for again; the
    next broker names its coordinator then.
    """
    silent = {} if silent is None else silent
    ask = partial(connect, spec, secrets=secrets, timeout=10.0)
    found: dict[str, GroupSide] = {}
    left = list(names)
    for turn in range(TRIES):
        if turn and left:
            time.sleep(apart)
        found |= _once(spec, left, ask, silent, at_once, turn) if left else {}
        left = [each for each in left if _moves(found[each])]
    return found


def _moves(found: GroupSide) -> bool:
    """Whether a coordinator says that another one has the group, or that it does not have it yet."""
    reason = found if isinstance(found, Unread) else found.offsets if found is not None else None
    return isinstance(reason, Unread) and reason.reason in _MOVING


def _once(
    spec: ClusterSpec, names: Sequence[str], ask: Connect, silent: dict[int, str], at_once: int, turn: int
) -> dict[str, GroupSide]:
    by_coordinator, found = _coordinators(spec, names, ask, silent, at_once, turn)
    declared = {broker.id: broker for broker in spec.brokers}

    def of(node: int) -> dict[str, GroupSide]:
        groups = by_coordinator[node]
        if node not in declared:
            return dict.fromkeys(groups, Unread(f"its coordinator {node} is not in the cluster file"))
        return _asked(declared[node], groups, ask, silent, at_once)

    with ThreadPoolExecutor(max(1, min(len(by_coordinator), 16))) as pool:
        for some in pool.map(of, by_coordinator):
            found |= some
    return found


def _coordinators(
    spec: ClusterSpec, names: Sequence[str], ask: Connect, silent: dict[int, str], at_once: int, turn: int
) -> tuple[dict[int, list[str]], dict[str, GroupSide]]:
    """The groups by their coordinator, and those of which none is known, with the reason. The first broker that
    answers is asked, from another one on at each turn. One that does not know __consumer_offsets may have just
    started: there is no group where another one does not know it either, or the cluster file names no other.
    """
    why, without = "the cluster file names no broker", 0
    start = turn % max(1, len(spec.brokers))
    for broker in (*spec.brokers[start:], *spec.brokers[:start]):
        if broker.id in silent:
            why = silent[broker.id]
            continue
        try:
            with ask(broker) as connection:
                found = _found(connection, names, at_once)
        except Unreachable as error:
            why = error.problem
            _keep_if_late(error, broker, silent)
            continue
        if found is not None:
            return found
        without += 1
        if without == min(BROKERS_THAT_AGREE, len(spec.brokers)):
            return {}, dict.fromkeys(names, None)
    if without:
        why = f"a broker does not know {OFFSETS_TOPIC}, and no other could be asked: {why}"
    return {}, dict.fromkeys(names, Unread(why))


def _found(
    connection: KafkaConnection, names: Sequence[str], at_once: int
) -> tuple[dict[int, list[str]], dict[str, GroupSide]] | None:
    """None: this broker does not know __consumer_offsets."""
    topic = connection.send(metadata_request([OFFSETS_TOPIC])).topics[0]
    if topic.error_code == UNKNOWN_TOPIC:
        return None
    by_coordinator: dict[int, list[str]] = defaultdict(list)
    unread: dict[str, GroupSide] = {}
    for some in slices(names, at_once):
        answer = connection.send(FindCoordinatorRequest(version=COORDINATOR_VERSION, key_type=0, coordinator_keys=some))
        told = {each.key: each for each in answer.coordinators}
        for name in some:
            each = told.get(name)
            if each is None:
                unread[name] = Unread("no broker names its coordinator")
            elif each.error_code:
                unread[name] = Unread(_error(each.error_code))
            else:
                by_coordinator[int(each.node_id)].append(name)
    return by_coordinator, unread


def _asked(
    broker: Broker, names: Sequence[str], ask: Connect, silent: dict[int, str], at_once: int
) -> dict[str, GroupSide]:
    """The groups of one coordinator."""
    if broker.id in silent:
        return dict.fromkeys(names, Unread(silent[broker.id]))
    found: dict[str, GroupSide] = {}
    try:
        with ask(broker) as connection:
            for some in slices(names, at_once):
                found |= _described(connection, some)
            if dead := [name for name in names if name not in found]:
                found |= _not_classic(connection, dead, at_once)
    except Unreachable as error:
        _keep_if_late(error, broker, silent)
        found |= {name: Unread(error.problem) for name in names if name not in found}
    return found


def _keep_if_late(error: Unreachable, broker: Broker, silent: dict[int, str]) -> None:
    if isinstance(error, TimedOut):
        silent[broker.id] = error.problem


def _described(connection: KafkaConnection, names: Sequence[str]) -> dict[str, GroupSide]:
    """The classic groups. One that DescribeGroups calls Dead is left out: there is none, or it is no classic one."""
    answer = connection.send(
        DescribeGroupsRequest(version=DESCRIBE_VERSION, groups=list(names), include_authorized_operations=False)
    )
    groups = {each.group_id: each for each in answer.groups}
    found, there = _sorted_out(names, groups)
    offsets = _offsets(connection, there)
    for name in there:
        group = groups[name]
        found[name] = KafkaSide(
            group.group_state,
            group.protocol_type,
            group.protocol_data,
            tuple(map(_member, group.members)),
            offsets[name],
        )
    return found


def _sorted_out(names: Sequence[str], groups: Mapping[str, Any]) -> tuple[dict[str, GroupSide], list[str]]:
    """The groups that could not be described, with the reason, and those that were. One that is Dead, or not found, is
    in neither.
    """
    unread: dict[str, GroupSide] = {}
    there: list[str] = []
    for name in names:
        group = groups.get(name)
        if group is None:
            unread[name] = Unread("its coordinator did not name it")
        elif group.error_code and group.error_code != ID_NOT_FOUND:
            unread[name] = Unread(_error(group.error_code))
        elif not group.error_code and group.group_state != DEAD:
            there.append(name)
    return unread, there


def _not_classic(connection: KafkaConnection, names: Sequence[str], at_once: int) -> dict[str, GroupSide]:
    """The groups that DescribeGroups calls Dead. It says so of every group that is not classic
    (``GroupMetadataManager.describeGroups``): only ListGroups tells such a one, with its type, from none at all.
    """
    answer = connection.send(ListGroupsRequest(states_filter=[], types_filter=[]))
    if answer.error_code:
        return dict.fromkeys(names, Unread(_error(answer.error_code)))
    types = {each.group_id: (each.group_type or "").lower() for each in answer.groups}
    found: dict[str, GroupSide] = {name: None for name in names if name not in types}
    for some in slices([name for name in names if types.get(name) == CONSUMER], at_once):
        found |= _of_the_consumer_protocol(connection, some)
    others = [name for name in names if name not in found]
    offsets = _offsets(connection, [name for name in others if types[name] != SHARE])
    for name in others:
        other = KafkaSide("", "", offsets=offsets.get(name, {}), group_type=types[name])
        found[name] = Unread(_CHANGES) if types[name] in ("", CLASSIC) else other
    return found


def _of_the_consumer_protocol(connection: KafkaConnection, names: Sequence[str]) -> dict[str, GroupSide]:
    answer = connection.send(
        ConsumerGroupDescribeRequest(version=0, group_ids=list(names), include_authorized_operations=False)
    )
    groups = {each.group_id: each for each in answer.groups}
    found, there = _sorted_out(names, groups)
    offsets = _offsets(connection, there)
    for name in there:
        group = groups[name]
        members = tuple(map(_new_member, group.members))
        found[name] = KafkaSide(group.group_state, CONSUMER, group.assignor_name, members, offsets[name], CONSUMER)
    return {name: Unread(_CHANGES) for name in names} | found


def _new_member(found: Any) -> KafkaMember:
    held = {(each.topic_name, number) for each in found.assignment.topic_partitions for number in each.partitions}
    return KafkaMember(
        found.member_id, found.client_id, found.client_host.removeprefix("/"), found.instance_id, frozenset(held)
    )


def _member(found: Any) -> KafkaMember:
    return KafkaMember(
        found.member_id,
        found.client_id,
        found.client_host.removeprefix("/"),
        found.group_instance_id,
        assigned(bytes(found.member_assignment or b"")),
    )


def _offsets(connection: KafkaConnection, names: Sequence[str]) -> dict[str, Mapping[Partition, int | Unread] | Unread]:
    """Of each of these groups; where there is none nobody is asked."""
    if not names:
        return {}
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    answer = connection.send(
        OffsetFetchRequest(
            version=OFFSETS_VERSION, groups=[group(group_id=name, topics=None) for name in names], require_stable=False
        )
    )
    found: dict[str, Mapping[Partition, int | Unread] | Unread] = {}
    for each in answer.groups:
        found[each.group_id] = Unread(_error(each.error_code)) if each.error_code else dict(_committed(each))
    unnamed = [name for name in names if name not in found]
    return found | dict.fromkeys(unnamed, Unread("its coordinator did not name its offsets"))


def _committed(group: Any) -> Iterator[tuple[Partition, int | Unread]]:
    """-1 is Kafka's word for no offset."""
    for topic in group.topics:
        for each in topic.partitions:
            if each.error_code:
                yield (topic.name, int(each.partition_index)), Unread(_error(each.error_code))
            elif each.committed_offset >= 0:
                yield (topic.name, int(each.partition_index)), int(each.committed_offset)


def assigned(data: bytes) -> frozenset[Partition] | Unread:
    """The partitions of a member's assignment as Kafka's assignors write it (``ConsumerProtocol``: version, topics each
    with partitions, user data).
    """
    if not data:
        return frozenset()
    found: set[Partition] = set()
    try:
        topics, at = struct.unpack_from("!i", data, 2)[0], 6
        for _ in range(topics):
            (length,) = struct.unpack_from("!H", data, at)
            topic = data[at + 2 : at + 2 + length].decode()
            (count,) = struct.unpack_from("!I", data, at + 2 + length)
            at += 6 + length
            found.update((topic, number) for number in struct.unpack_from(f"!{count}i", data, at))
            at += 4 * count
    except (struct.error, UnicodeDecodeError):
        return Unread("the assignment is not what Kafka's assignors write")
    return frozenset(found)


def _error(code: int) -> str:
    return _ERRORS.get(code, f"Kafka answers error {code}")
