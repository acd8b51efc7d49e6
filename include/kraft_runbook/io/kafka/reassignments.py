"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455), with Kafka's own text for each partition.

kafka-python's admin client drops those texts, so the raw requests are sent. They go to the controller: in ZooKeeper
mode no other broker takes them; in KRaft mode every broker names itself as the controller and passes them on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from kraft_runbook.cluster.assignment import (
    Answer,
    Move,
    Ongoing,
    PartitionResult,
    Replicas,
    TopicPartition,
    by_topic,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.kafka.controller_broker import controller_address
from kraft_runbook.io.secrets import Secrets

ALTER_KEY = 45
NOT_CONTROLLER, REQUEST_TIMED_OUT = 41, 7
ANSWERS: Mapping[int, Answer] = {
    0: Answer.ACCEPTED,
    3: Answer.UNKNOWN_TOPIC_OR_PARTITION,
    REQUEST_TIMED_OUT: Answer.REQUEST_TIMED_OUT,
    31: Answer.CLUSTER_AUTHORIZATION_FAILED,
    38: Answer.INVALID_REPLICATION_FACTOR,
    39: Answer.INVALID_REPLICA_ASSIGNMENT,
    NOT_CONTROLLER: Answer.NOT_CONTROLLER,
    85: Answer.NO_REASSIGNMENT_IN_PROGRESS,
}
"""Kafka's error codes (``Errors``). Any other is Answer.OTHER, with its number in the text."""
NEEDS = "it needs Alter on the cluster: kafka-acls --cluster"
PAUSE = 0.5
T = TypeVar("T")


class Reassignments:
    """The two requests for one cluster.

    ``timeout``: seconds a request may take; in ZooKeeper mode it waits behind the controller's other work (8 s were
    seen). ``patience``: seconds in which a controller is looked for anew after an election. ``connected``: makes a
    connection to it.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        secrets: Secrets,
        timeout: float = 60.0,
        patience: float = 30.0,
        pause: float = PAUSE,
        connected: Callable[[], AbstractContextManager[KafkaConnection]] | None = None,
    ) -> None:
        self._connected = connected or partial(_to_controller, spec, secrets, timeout)
        self._timeout = timeout
        self._patience = patience
        self._pause = pause

    def alter(
        self, moves: Iterable[Move], *, allow_replication_factor_change: bool = False
    ) -> dict[TopicPartition, PartitionResult]:
        """Ask for these targets, in one request. Answers are per partition: the good ones run, whatever became of the
        others. The same target again is harmless.

        Raises Refused, before anything is sent, for a partition that is named twice (Kafka would take the last), and
        for a replication factor that would change unless that is asked for: Kafka changes it silently (before KIP-860;
        a server that knows the KIP's flag gets it too). Raises Unreachable where no controller was found.
        """
        wanted = list(moves)
        _refuse_repeated([move.partition for move in wanted])
        changed = [move for move in wanted if len(move.present) != len(move.target)]
        if changed and not allow_replication_factor_change:
            first = changed[0]
            raise Refused(
                f"{len(changed)} of {len(wanted)} moves change the replication factor, such as {first.partition} from"
                f" {len(first.present)} to {len(first.target)}",
                way_out="ask for the change of the replication factor by name, or correct the plan",
            )
        targets = {move.partition: move.target for move in wanted}
        return self._send(targets, allow_replication_factor_change=allow_replication_factor_change)

    def cancel(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionResult]:
        """Cancel the reassignment of these partitions: each gets the replicas that it had, not their order.

        In ZooKeeper mode Kafka also cancels where that loses data (KAFKA-14424): ask
        ``reassignment.cancelling`` first. So a cancel that no controller took is not sent again after an election: the
        replicas may be others then. Raises Refused as ``alter``; Unreachable at once where no controller took it.
        """
        wanted = list(partitions)
        _refuse_repeated(wanted)
        return self._send(dict.fromkeys(wanted), allow_replication_factor_change=True, again=False)

    def ongoing(self, partitions: Collection[TopicPartition] | None = None) -> dict[TopicPartition, Ongoing]:
        """What is being reassigned: of these partitions, or all of it. What is not, or does not exist, is absent.

        Raises Unreachable; Refused where this tool's identity may not describe the cluster.
        """
        if partitions is not None and not partitions:
            return {}
        return self._by_controller(lambda connection: self._listed(connection, partitions))

    def _listed(
        self, connection: KafkaConnection, partitions: Collection[TopicPartition] | None
    ) -> dict[TopicPartition, Ongoing]:
        topic = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
        asked = None
        if partitions is not None:
            asked = [topic(name=name, partition_indexes=ids) for name, ids in by_topic(partitions).items()]
        answer = connection.send(
            ListPartitionReassignmentsRequest(version=0, timeout_ms=int(self._timeout * 1000), topics=asked)
        )
        _raise_top_level(connection, answer, "ListPartitionReassignments")
        return {
            TopicPartition(each.name, p.partition_index): Ongoing(
                tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas)
            )
            for each in answer.topics
            for p in each.partitions
        }

    def _send(
        self,
        targets: Mapping[TopicPartition, Replicas | None],
        *,
        allow_replication_factor_change: bool,
        again: bool = True,
    ) -> dict[TopicPartition, PartitionResult]:
        if not targets:
            return {}

        def ask(connection: KafkaConnection) -> dict[TopicPartition, PartitionResult] | None:
            request = _alter_request(
                targets, allow_replication_factor_change, self._timeout, version=_alter_version(connection)
            )
            try:
                answer = connection.send(request)
            except Unreachable:
                return None  # it may have been taken: what became of it is looked up
            if answer.error_code == REQUEST_TIMED_OUT:
                return None
            if answer.error_code == NOT_CONTROLLER:
                raise _NotController(connection)
            return _results(targets, answer)

        answered = self._by_controller(ask, again=again)
        return answered if answered is not None else self._looked_up(targets)

    def _looked_up(self, targets: Mapping[TopicPartition, Replicas | None]) -> dict[TopicPartition, PartitionResult]:
        """What became of a request that nobody answered: looked at until all of it is seen, or patience ends."""
        deadline = time.monotonic() + self._patience
        while True:
            seen = self._by_controller(lambda connection: self._seen_of(connection, targets))
            left = [partition for partition, applied in seen.items() if not applied]
            if not left or time.monotonic() > deadline:
                break
            time.sleep(self._pause)
        text = f"no answer in {self._timeout:g} s, and not seen in {self._patience:g} s after it"
        return {
            partition: PartitionResult(
                partition, Answer.ACCEPTED if applied else Answer.NOT_APPLIED, "" if applied else text
            )
            for partition, applied in seen.items()
        }

    def _seen_of(
        self, connection: KafkaConnection, targets: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, bool]:
        ongoing = self._listed(connection, list(targets))
        present = _replicas(connection, {topic for topic, _ in targets})
        return {
            partition: partition not in ongoing
            if wanted is None
            else (ongoing[partition].target if partition in ongoing else present.get(partition)) == wanted
            for partition, wanted in targets.items()
        }

    def _by_controller(self, ask: Callable[[KafkaConnection], T], *, again: bool = True) -> T:
        """The answer of the controller, looked for anew while there is none or another was elected, unless ``again`` is
        False.
        """
        deadline = time.monotonic() + self._patience
        while True:
            try:
                with self._connected() as connection:
                    return ask(connection)
            except (Unreachable, _NotController) as error:
                if not again or time.monotonic() > deadline:
                    raise (error.as_unreachable if isinstance(error, _NotController) else error) from None
            time.sleep(self._pause)


@contextmanager
def _to_controller(spec: ClusterSpec, secrets: Secrets, timeout: float) -> Iterator[KafkaConnection]:
    address, who = controller_address(spec, secrets=secrets)
    with KafkaConnection(address, who, spec.broker_security, secrets=secrets, timeout=timeout) as connection:
        yield connection


class _NotController(Exception):
    def __init__(self, connection: KafkaConnection) -> None:
        self.as_unreachable = connection.unreachable("it is not the controller (any more), and no other was found")
        super().__init__(str(self.as_unreachable))


def _refuse_repeated(partitions: list[TopicPartition]) -> None:
    seen: set[TopicPartition] = set()
    for each in partitions:
        if each in seen:
            raise Refused(f"{each} is named twice in one request", way_out="name each partition once")
        seen.add(each)


def _alter_version(connection: KafkaConnection) -> int:
    """1 where the server knows the flag of KIP-860 (Kafka 4.1 on), else 0."""
    answer = connection.send(
        ApiVersionsRequest(version=3, client_software_name="kraft-runbook", client_software_version="1")
    )
    return next((min(1, int(each.max_version)) for each in answer.api_keys if each.api_key == ALTER_KEY), 0)


def _alter_request(
    targets: Mapping[TopicPartition, Replicas | None], allow: bool, timeout: float, *, version: int
) -> Any:
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    topics: dict[str, list[Any]] = {}
    for (name, number), replicas in targets.items():
        topics.setdefault(name, []).append(
            topic.ReassignablePartition(partition_index=number, replicas=None if replicas is None else list(replicas))
        )
    flag = {"allow_replication_factor_change": allow} if version >= 1 else {}
    return AlterPartitionReassignmentsRequest(
        version=version,
        timeout_ms=int(timeout * 1000),
        topics=[topic(name=name, partitions=partitions) for name, partitions in topics.items()],
        **flag,
    )


def _results(targets: Iterable[TopicPartition], answer: Any) -> dict[TopicPartition, PartitionResult]:
    """A top-level error counts for every partition: Kafka then says nothing of each."""
    given = {
        TopicPartition(topic.name, p.partition_index): (int(p.error_code), p.error_message or "")
        for topic in answer.responses
        for p in topic.partitions
    }
    whole = (int(answer.error_code), answer.error_message or "")
    if not whole[0]:
        whole = (-1, "Kafka's answer does not name this partition")
    return {each: _result(each, *(whole if answer.error_code else given.get(each, whole))) for each in targets}


def _result(partition: TopicPartition, code: int, text: str) -> PartitionResult:
    answer = ANSWERS.get(code, Answer.OTHER)
    if answer is Answer.OTHER:
        text = f"error {code}: {text}" if text else f"error {code}"
    # With this code Kafka's text is the request as Java prints it (measured on 3.9.2): it says nothing, at length.
    return PartitionResult(partition, answer, NEEDS if answer is Answer.CLUSTER_AUTHORIZATION_FAILED else text)


def _raise_top_level(connection: KafkaConnection, answer: Any, request: str) -> None:
    code = int(answer.error_code)
    if code == NOT_CONTROLLER:
        raise _NotController(connection)
    if ANSWERS.get(code) is Answer.CLUSTER_AUTHORIZATION_FAILED:
        raise Refused(
            f"{request} is not allowed to this tool's identity",
            way_out="allow it: Describe on the cluster, and Alter for moves (kafka-acls --cluster)",
        )
    if code:
        raise connection.unreachable(f"{request} failed with error {code} {answer.error_message or ''}".rstrip())


def _replicas(connection: KafkaConnection, topics: Collection[str]) -> dict[TopicPartition, Replicas]:
    asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(topics)]
    answer = connection.send(MetadataRequest(version=8, topics=asked, allow_auto_topic_creation=False))
    return {
        TopicPartition(topic.name, p.partition_index): tuple(p.replica_nodes)
        for topic in answer.topics
        for p in topic.partitions
    }
