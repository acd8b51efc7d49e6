"""The controller quorum, asked directly: who leads it, in which mode each controller runs, and which brokers the
metadata log holds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, DescribeQuorumRequest
from kafka.protocol.metadata import ApiVersionsRequest

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.observation import (
    BrokerMode,
    BrokerRegistration,
    ControllerMode,
    CopySpan,
    Voter,
    ZkMigrationState,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection, connect_to
from kraft_runbook.io.kafka.metadata_log_reader import METADATA_TOPIC, LogTruncated, MetadataLogReader, Position
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.log.cluster_records import BrokersAndFeatures

LEADER_AND_ISR = 4
"""Offered by a broker in ZooKeeper mode and in migration mode, which a controller calls (ApiKeys, zkBroker listener).
"""
DESCRIBE_QUORUM = 55
"""Offered by a broker in KRaft mode, which forwards it to the quorum."""
LOOKS_AT_AN_ELECTION = 15
"""How often a quorum without a leader that knows what is committed is asked again. A failed candidacy costs up to 2 s
(controller.quorum.election.timeout.ms and the backoff), and on a busy machine several follow each other.
"""
ELECTION_PAUSE = 1.0
"""Seconds between these looks."""


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """DescribeQuorum's answer. ``high_watermark``: every offset below it is committed."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[Voter, ...]
    observers: tuple[Voter, ...] = ()
    """Whoever else fetches the log: brokers, above all. They stay listed for five minutes after their last fetch
    (``LeaderState`` of Kafka's raft).
    """


@dataclass(frozen=True, slots=True)
class ClusterRecords:
    """Brokers, features, topics and the migration state from the metadata log, up to ``position``. Hand it in again to
    read on from there.
    """

    registrations: Mapping[int, BrokerRegistration]
    metadata_version: int | None
    migration_state_record: ZkMigrationState | None
    copy: CopySpan | None
    topics: frozenset[str]
    kraft_only: tuple[str, ...]
    position: Position
    _state: BrokersAndFeatures = field(repr=False, compare=False)


class NoLeader(Unreachable):
    """No controller answered that it leads. ``say_no``: those that answered that they do not."""

    def __init__(self, problem: str, *, way_out: str, say_no: frozenset[int]) -> None:
        super().__init__(problem, way_out=way_out)
        self.say_no = say_no


def describe_quorum(spec: ClusterSpec, *, secrets: Secrets, timeout: float = 5.0) -> QuorumDescription:
    """The quorum as its leader describes it; all controllers are asked at once, since only the leader answers.

    Raises NoLeader, which says of each controller why it gave no answer.
    """
    say_no: set[int] = set()

    def ask(controller: Controller) -> QuorumDescription | str:
        try:
            with connect_to(spec, controller, secrets=secrets, timeout=timeout) as connection:
                found = _describe(connection)
            if found is None:
                say_no.add(controller.id)
            return found or f"controller {controller.id} does not lead"
        except Unreachable as error:
            return error.problem

    reasons = []
    pool = ThreadPoolExecutor(len(spec.controllers))
    try:
        for future in as_completed([pool.submit(ask, controller) for controller in spec.controllers]):
            answer = future.result()
            if isinstance(answer, QuorumDescription):
                return answer
            reasons.append(answer)
    finally:
        pool.shutdown(wait=False)
    raise NoLeader(
        f"no leader of the controller quorum was found: {'; '.join(sorted(reasons))}",
        way_out="start the controllers, or wait for their election; a majority must run and reach each other. A"
        " controller that the cluster file does not name is not asked: where one leads, put it back into the file",
        say_no=frozenset(say_no),
    )


def describe_committed(spec: ClusterSpec, *, secrets: Secrets, timeout: float = 5.0) -> QuorumDescription:
    """The quorum, by a leader that knows what is committed. One that was just elected does not, until a majority has
    fetched from it (``LeaderState`` of Kafka's raft: -1 is its high watermark): its log tells nothing before.

    Raises Unreachable.
    """
    quorum = describe_quorum(spec, secrets=secrets, timeout=timeout)
    if quorum.high_watermark < 0:
        raise Unreachable(
            f"controller {quorum.leader_id} leads the quorum and does not know yet what is committed",
            way_out="look again: it knows once a majority of the controllers has fetched from it",
        )
    return quorum


def describe_elected(
    spec: ClusterSpec, *, secrets: Secrets, looks: int = LOOKS_AT_AN_ELECTION, pause: float = ELECTION_PAUSE
) -> QuorumDescription:
    """The quorum as ``describe_committed`` has it, with an election that is under way waited for: asked up to ``looks``
    times, ``pause`` seconds apart. For what reads long, and would begin again for one election.

    Raises Unreachable as the last look did.
    """
    for left in range(looks - 1, -1, -1):
        try:
            return describe_committed(spec, secrets=secrets)
        except Unreachable:
            if not left:
                raise
        time.sleep(pause)
    raise ValueError(f"looks must be at least 1, not {looks}")


class QuorumConnection:
    """One open connection to the controller that leads, for looks that must be quick. A context manager."""

    def __init__(self, spec: ClusterSpec, leader_id: int, *, secrets: Secrets, timeout: float = 2.0) -> None:
        self._connection = connect_to(spec, spec.controller(leader_id), secrets=secrets, timeout=timeout)
        self.leader_epoch = -1
        """The quorum's epoch at the last look."""

    def __enter__(self) -> QuorumConnection:
        self._connection.__enter__()
        self.high_watermark()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, trace)

    def high_watermark(self) -> int:
        """What is committed now, as this controller says while it leads. Raises Unreachable when it does not (any
        more).
        """
        found = _describe(self._connection)
        if found is None:
            raise self._connection.unreachable("it does not lead the quorum any more")
        self.leader_epoch = found.leader_epoch
        return found.high_watermark


def _describe(connection: KafkaConnection) -> QuorumDescription | None:
    """The description, or None where this node does not lead."""
    topic = DescribeQuorumRequest.TopicData
    asked = topic(topic_name=METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])
    answer = connection.send(DescribeQuorumRequest(version=2, topics=[asked]))
    if answer.error_code:
        raise connection.unreachable(
            f"DescribeQuorum failed with error {answer.error_code} (31: it needs Describe on the cluster)"
        )
    partition = answer.topics[0].partitions[0]
    if partition.error_code:
        return None
    endpoints = {
        node.node_id: tuple(f"{each.name}://{address(each.host, each.port)}" for each in node.listeners)
        for node in answer.nodes
    }

    def replicas(states: Iterable[Any]) -> tuple[Voter, ...]:
        found = (
            Voter(
                s.replica_id,
                s.log_end_offset,
                s.last_fetch_timestamp,
                s.last_caught_up_timestamp,
                s.replica_directory_id,
                endpoints.get(s.replica_id, ()),
            )
            for s in states
        )
        return tuple(sorted(found, key=lambda each: each.id))

    return QuorumDescription(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        replicas(partition.current_voters),
        replicas(partition.observers),
    )


def controller_mode(
    spec: ClusterSpec, controller: Controller, *, secrets: Secrets, timeout: float = 5.0
) -> ControllerMode:
    """Whether the migration flag is in force in a running controller: ``zk_migration_ready`` in its ApiVersions
    (KIP-866).

    Raises Unreachable when it does not answer.
    """
    with connect_to(spec, controller, secrets=secrets, timeout=timeout) as connection:
        answer = connection.send(_api_versions())
        if answer.error_code:
            raise connection.unreachable(f"ApiVersions failed with error {answer.error_code}")
        return ControllerMode.MIGRATION if answer.zk_migration_ready else ControllerMode.KRAFT


def broker_mode(spec: ClusterSpec, broker: Broker, *, secrets: Secrets, timeout: float = 5.0) -> BrokerMode:
    """The mode that a running broker itself shows. A migrating one sets ``zk_migration_ready`` in its ApiVersions,
    whether or not a quorum runs (measured on 3.9.2).

    Raises Unreachable when it does not answer.
    """
    with connect_to(spec, broker, secrets=secrets, timeout=timeout) as connection:
        answer = connection.send(_api_versions())
        offered = {each.api_key for each in answer.api_keys}
        if answer.error_code or (LEADER_AND_ISR in offered) == (DESCRIBE_QUORUM in offered):
            raise connection.unreachable(
                f"its ApiVersions do not tell its mode (error {answer.error_code}, {len(offered)} requests offered)"
            )
        if DESCRIBE_QUORUM in offered:
            return BrokerMode.KRAFT
        return BrokerMode.HYBRID if answer.zk_migration_ready else BrokerMode.ZOOKEEPER


def quorum_cluster_id(spec: ClusterSpec, controller_id: int, *, secrets: Secrets, timeout: float = 5.0) -> str:
    """The cluster id that a controller was formatted with (DescribeCluster of its controller endpoint, KIP-919)."""
    with connect_to(spec, spec.controller(controller_id), secrets=secrets, timeout=timeout) as connection:
        answer = connection.send(DescribeClusterRequest(version=1, endpoint_type=2))
        if answer.error_code:
            raise connection.unreachable(
                f"DescribeCluster failed with error {answer.error_code} (31: there it needs Alter on the cluster)"
            )
        return str(answer.cluster_id)


def read_cluster_records(
    spec: ClusterSpec, *, secrets: Secrets, timeout: float = 10.0, since: ClusterRecords | None = None
) -> ClusterRecords:
    """Broker registrations, ``metadata.version``, the topics' names and the migration state, from the committed log;
    other records are skipped undecoded.

    ``since``: an earlier answer of the same cluster; only what was written after it is read. Raises Unreachable, also
    while the leader does not know yet what is committed (``describe_committed``).
    """
    quorum = describe_committed(spec, secrets=secrets, timeout=timeout)
    with MetadataLogReader(spec, quorum.leader_id, quorum.leader_epoch, secrets=secrets, timeout=timeout) as reader:
        if since is not None:
            try:
                return _read_on(reader, since._state.copy(), quorum.high_watermark - 1, since.position)
            except LogTruncated:
                pass  # the log before our position is gone: read it anew from its snapshot
        return _read_on(reader, BrokersAndFeatures(), quorum.high_watermark - 1, None)


def _read_on(reader: MetadataLogReader, state: BrokersAndFeatures, end: int, start: Position | None) -> ClusterRecords:
    for chunk in reader.chunks(end=end, start=start):
        state.apply(chunk)
    version = state.features.get("metadata.version")
    return ClusterRecords(
        dict(state.registrations),
        version,
        state.migration_state,
        state.copied.span,
        frozenset(state.topics.values()),
        state.kraft_only,
        reader.position,
        state,
    )


def _api_versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(version=3, client_software_name="kraft-runbook", client_software_version="1")
