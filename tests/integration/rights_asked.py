"""What this tool asks of brokers and controllers, a question for each line of the table of rights, and what it says
where it may not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import by_hand
import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from labs import Lab

from kraft_runbook.cluster.assignment import Answer, Move, TopicPartition
from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.connection import FetchSnapshotRequest, connect_to
from kraft_runbook.io.kafka.drill_probes import Probes, make_topic, own_partitions, remove_topics, topic_of
from kraft_runbook.io.kafka.dynamic_configs import ALL_BROKERS, Entity, EntityKind, alter_configs
from kraft_runbook.io.kafka.feature_calls import UpgradeType, update_feature
from kraft_runbook.io.kafka.group_anchor import Anchor
from kraft_runbook.io.kafka.group_commits import commit_offsets
from kraft_runbook.io.kafka.group_members import remove_static_members
from kraft_runbook.io.kafka.groups_seen import read_kafka_groups
from kraft_runbook.io.kafka.leader_elections import elect_preferred_leaders
from kraft_runbook.io.kafka.log_dirs import alter_replica_log_dirs, describe_log_dirs
from kraft_runbook.io.kafka.log_ends import read_log_ends
from kraft_runbook.io.kafka.metadata_log_reader import METADATA_TOPIC
from kraft_runbook.io.kafka.metadata_quorum import (
    broker_mode,
    describe_quorum,
    quorum_cluster_id,
    read_cluster_records,
)
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.kafka.replica_ids import ask_for_ids
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.levels.answers import NOT_ALLOWED, refused
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.offsets_retention import read_offsets_retention
from kraft_runbook.procedures.short_together import short_without
from kraft_runbook.procedures.unregister_broker import unregister_broker
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.rights import CLUSTER, GROUP, KAFKA, TOPIC, Acl, Right
from lab.clients import client_settings
from lab.layout import ROOT
from lab.logins import LIMITED, OF_LIMITED
from lab.seed.records import GROUP as SEEDED_GROUP

USER = f"User:{LIMITED}"
READ_ON_BROKERS = Acl("Read", TOPIC, at="brokers")
KINDS = {CLUSTER: ResourceType.BROKER, TOPIC: ResourceType.TOPIC, GROUP: ResourceType.GROUP}
OPERATIONS = {
    "Alter": AclOperation.ALTER,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
    "ClusterAction": AclOperation.CLUSTER_ACTION,
    "Create": AclOperation.CREATE,
    "Delete": AclOperation.DELETE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
}
IMPLIES = {"Describe": ("Read", "Write", "Delete", "Alter"), "DescribeConfigs": ("AlterConfigs",)}
"""Whoever may one of these may that too (``AclAuthorizer``, ``StandardAuthorizerData``)."""
ORDERS, PAYMENTS = "orders", "payments"
OLD_GROUP = "rights-old"
"""A group that Kafka has, and that is below /consumers as well."""


@dataclass(frozen=True)
class Limited:
    """This tool as a user that has no right but what is granted to it. ``at_controllers``: there too."""

    lab: Lab
    at_controllers: bool = False

    @property
    def spec(self) -> ClusterSpec:
        spec, secret = self.lab.spec, SecretRef(env=OF_LIMITED)
        own = {"username": LIMITED, "password": secret}
        changed = {"broker_security": spec.broker_security.model_copy(update=own)}
        if self.at_controllers:
            changed["controller_security"] = spec.controller_security.model_copy(update=own)
        return spec.model_copy(update=changed)

    @property
    def secrets(self) -> Secrets:
        return self.lab.secrets


def _admin(lab: Lab, *of: Broker) -> AdminClient:
    """An administrator's client, of these brokers first."""
    return AdminClient({**client_settings(lab.spec, of=of)})


def write_limited_cluster_file(directory: Path) -> Path:
    """The secured lab's cluster file, with the limited user at brokers. Returns the directory."""
    document = yaml.safe_load((ROOT / "lab" / "secured" / "lab.yaml").read_text())
    document["broker_security"] |= {"username": LIMITED, "password": {"env": OF_LIMITED}}
    text = yaml.safe_dump(document, sort_keys=False)
    (directory / "lab.yaml").write_text(text.replace("${PROJECT_ROOT}", str(ROOT)))
    return directory


class Grants:
    """The ACLs of the limited user, made and removed by an administrator."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._admin = _admin(lab)
        self.held: frozenset[Acl] = frozenset()

    def only(self, wanted: Collection[Acl]) -> None:
        """Let the user have these and no other, by every broker's word."""
        wanted = frozenset(Acl(each.operation, each.resource, each.prefix) for each in wanted)
        if made := [binding(each) for each in wanted - self.held]:
            by_hand.answered(self._admin.create_acls(made, request_timeout=30))
        if gone := [filtering(each) for each in self.held - wanted]:
            by_hand.answered(self._admin.delete_acls(gone, request_timeout=30))
        self.held = wanted
        for broker in self._lab.spec.brokers:
            by_hand.wait_until(f"broker {broker.id} knows the ACLs", partial(self._knows, broker, len(wanted)))

    def without(self, acl: Acl) -> None:
        """Take this one away, and each that holds it too."""
        lost = (acl.operation, *IMPLIES.get(acl.operation, ()))
        self.only([each for each in self.held if each.resource != acl.resource or each.operation not in lost])

    def _knows(self, broker: Broker, wanted: int) -> bool:
        client = _admin(self._lab, broker)
        found = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            USER,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        return len(client.describe_acls(found, request_timeout=30).result()) == wanted


def binding(acl: Acl) -> AclBinding:
    return AclBinding(*_parts(acl), USER, "*", OPERATIONS[acl.operation], AclPermissionType.ALLOW)


def filtering(acl: Acl) -> AclBindingFilter:
    return AclBindingFilter(*_parts(acl), USER, "*", OPERATIONS[acl.operation], AclPermissionType.ALLOW)


def _parts(acl: Acl) -> tuple[ResourceType, str, ResourcePatternType]:
    name = "kafka-cluster" if acl.resource == CLUSTER else acl.prefix or "*"
    return KINDS[acl.resource], name, ResourcePatternType.PREFIXED if acl.prefix else ResourcePatternType.LITERAL


def remove_what_everybody_may(lab: Lab) -> None:
    """The seed lets every user describe every topic."""
    found = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:*", None, AclOperation.ANY, AclPermissionType.ANY
    )
    admin = _admin(lab)  # its requests end with it
    by_hand.answered(admin.delete_acls([found], request_timeout=30))


# -- what is asked -----------------------------------------------------------------------------------------------------

Asks = Callable[[Limited], str]
"""What the tool says: nothing where all is well."""


def said(asks: Asks, tool: Limited) -> str:
    """The same; an error with its way out."""
    try:
        return asks(tool)
    except RunbookError as error:
        return f"{error.problem}; {error.way_out}"


def _mode(tool: Limited) -> str:
    for broker in tool.spec.brokers:
        broker_mode(tool.spec, broker, secrets=tool.secrets)
    return ""


def _topics(tool: Limited) -> str:
    seen = observe(tool.spec, secrets=tool.secrets)
    found = CHECKS["KRB-PRE-100"].run(seen, tool.spec)
    return "" if found.verdict is Verdict.PASS else f"{found.verdict}: {found.evidence}; {found.fix}"


def _controllers(tool: Limited) -> str:
    quorum_cluster_id(tool.spec, tool.spec.controllers[0].id, secrets=tool.secrets)
    return ""


def _quorum(tool: Limited) -> str:
    describe_quorum(tool.spec, secrets=tool.secrets)
    return ""


def _metadata_log(tool: Limited) -> str:
    read_cluster_records(tool.spec, secrets=tool.secrets)
    return ""


def _snapshot(tool: Limited) -> str:
    """There is none on a young cluster: Kafka asks for the right before it looks."""
    topic = FetchSnapshotRequest.TopicSnapshot
    asked = topic.PartitionSnapshot(
        partition=0,
        current_leader_epoch=-1,
        snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=1, epoch=1),
        position=0,
    )
    request = FetchSnapshotRequest(
        version=0, replica_id=-1, max_bytes=1, topics=[topic(name=METADATA_TOPIC, partitions=[asked])]
    )
    with connect_to(tool.spec, tool.spec.controllers[0], secrets=tool.secrets) as connection:
        answer = connection.send(request)
    return "ClusterAction on the cluster is missing" if answer.error_code == 31 else ""


def _ids(tool: Limited) -> str:
    held = ask_for_ids(tool.spec, tool.spec.brokers[0], _topic_ids(tool.lab), secrets=tool.secrets)
    return "; ".join(f"{topic}: {why}" for topic, why in held.unread.items())


def _topic_ids(lab: Lab) -> Mapping[str, str]:
    return {name: each.id for name, each in read_log_ends(lab.spec, secrets=lab.secrets).topics.items()}


def _configs(tool: Limited) -> str:
    short_without(tool.spec, tool.spec.brokers[0].id, secrets=tool.secrets)
    read_offsets_retention(tool.spec, secrets=tool.secrets)
    return ""


def _sizes(tool: Limited) -> str:
    assert describe_log_dirs(tool.spec, tool.spec.brokers[0], secrets=tool.secrets).sizes
    return ""


def _log_ends(tool: Limited) -> str:
    found = read_log_ends(tool.spec, secrets=tool.secrets, also=[ORDERS], patience=0)
    return "; ".join(f"{partition}: {why}" for partition, why in found.unread.items())


def _moving(tool: Limited) -> str:
    Reassignments(tool.spec, secrets=tool.secrets).ongoing()
    return ""


def _group(tool: Limited) -> str:
    found = read_kafka_groups(tool.spec, [SEEDED_GROUP, "no-such-group"], secrets=tool.secrets)
    unread = [each for side in found.values() if side is not None for each in _unread(side)]
    assert unread or (found[SEEDED_GROUP] is not None and found["no-such-group"] is None)
    return "; ".join(unread)


def _unread(side: object) -> Iterator[str]:
    if isinstance(side, Unread):
        yield side.reason
    elif isinstance(offsets := getattr(side, "offsets", {}), Unread):
        yield offsets.reason
    else:
        yield from (each.reason for each in offsets.values() if isinstance(each, Unread))


def _commit(tool: Limited) -> str:
    commit_offsets(tool.spec, OLD_GROUP, {(ORDERS, 0): 1}, secrets=tool.secrets)
    return ""


def _leave(tool: Limited) -> str:
    remove_static_members(tool.spec, SEEDED_GROUP, ["nobody"], secrets=tool.secrets)
    return ""


def _warm(tool: Limited) -> str:
    with Anchor(tool.spec, "rights-warm", ["range"], tool.secrets) as anchor:
        ends = time.monotonic() + 30
        while anchor.said != "it is in the group" and not anchor.over.is_set() and time.monotonic() < ends:
            time.sleep(0.1)
        was = anchor.said
    return "" if was == "it is in the group" else anchor.said


def _reassign(tool: Limited) -> str:
    """To where it is."""
    partition = TopicPartition(ORDERS, 0)
    present = _replicas(tool.lab, partition)
    answer = Reassignments(tool.spec, secrets=tool.secrets).alter([Move(partition, present, present)])[partition]
    return str(answer) if answer.answer is Answer.CLUSTER_AUTHORIZATION_FAILED else ""


def _replicas(lab: Lab, partition: TopicPartition) -> tuple[int, ...]:
    client = _admin(lab)
    return tuple(client.list_topics(timeout=10).topics[partition.topic].partitions[partition.partition].replicas)


def _elect(tool: Limited) -> str:
    found = elect_preferred_leaders(tool.spec, [TopicPartition(ORDERS, 0)], secrets=tool.secrets, timeout=20)
    return "; ".join(found.values())


def _to_another_disk(tool: Limited) -> str:
    broker, partition = tool.spec.brokers[0], TopicPartition(ORDERS, 0)
    found = alter_replica_log_dirs(tool.spec, broker, {partition: broker.log_dirs[0]}, secrets=tool.secrets)
    return "; ".join(found.values())


def _throttle(tool: Limited) -> str:
    for entity in (Entity(EntityKind.TOPIC, ORDERS), ALL_BROKERS):
        key = f"{'leader' if entity is ALL_BROKERS else 'follower'}.replication.throttled." + (
            "rate" if entity is ALL_BROKERS else "replicas"
        )
        alter_configs(tool.spec, {entity: {key: None}}, secrets=tool.secrets)
    return ""


DRILL = topic_of("rights")


def _make(tool: Limited) -> str:
    make_topic(tool.spec, DRILL, secrets=tool.secrets)
    return ""


def _remove(tool: Limited) -> str:
    make_topic(tool.lab.spec, DRILL, secrets=tool.secrets)
    for broker in tool.lab.spec.brokers:  # in KRaft mode a broker hears of it after the controller's answer
        listed = _admin(tool.lab, broker)
        by_hand.wait_until(f"broker {broker.id} lists it", lambda on=listed: DRILL in on.list_topics(timeout=10).topics)
    remove_topics(tool.spec, DRILL, secrets=tool.secrets)
    return "" if DRILL not in _admin(tool.lab).list_topics(timeout=10).topics else "left"


def _produce(tool: Limited) -> str:
    make_topic(tool.lab.spec, DRILL, secrets=tool.secrets)
    some = own_partitions(tool.spec, DRILL)[:1]
    with Probes(tool.spec, DRILL, "changes", partitions=some, key="x", secrets=tool.secrets) as probes:
        ends = time.monotonic() + 20
        while not probes.answers[str(some[0])] and not probes.failed and time.monotonic() < ends:
            time.sleep(0.1)
    remove_topics(tool.lab.spec, DRILL, secrets=tool.secrets)
    return "" if probes.answers[str(some[0])] else probes.why or "no answer"


def _level(tool: Limited) -> str:
    """The level that is in force."""
    leader = describe_quorum(tool.lab.spec, secrets=tool.secrets).leader_id
    level = read_cluster_records(tool.lab.spec, secrets=tool.secrets).metadata_version
    assert level is not None
    answer = update_feature(
        tool.spec, leader, METADATA_VERSION, level, UpgradeType.UPGRADE, validate_only=True, secrets=tool.secrets
    )
    if answer.code != NOT_ALLOWED:
        return ""
    error = refused(METADATA_VERSION, level, answer.code, answer.refusal)
    return f"{error.problem}; {error.way_out}"


def _unregister(tool: Limited) -> str:
    assert not unregister_broker(tool.spec, 4999, secrets=tool.secrets)
    return ""


OF_BROKERS: Mapping[str, Asks] = {
    "ApiVersionsRequest": _mode,
    "MetadataRequest": _topics,
    "FetchRequest on brokers": _ids,
    "DescribeConfigsRequest": _configs,
    "DescribeLogDirsRequest": _sizes,
    "ListOffsetsRequest": _log_ends,
    "ListPartitionReassignmentsRequest": _moving,
    "FindCoordinatorRequest": _group,
    "DescribeGroupsRequest": _group,
    "ListGroupsRequest": _group,
    "OffsetCommitRequest": _commit,
    "LeaveGroupRequest": _leave,
    "JoinGroupRequest": _warm,
    "SyncGroupRequest": _warm,
    "HeartbeatRequest": _warm,
    "AlterPartitionReassignmentsRequest": _reassign,
    "ElectLeadersRequest": _elect,
    "AlterReplicaLogDirsRequest": _to_another_disk,
    "IncrementalAlterConfigsRequest": _throttle,
    "CreateTopicsRequest": _make,
    "DeleteTopicsRequest": _remove,
    "InitProducerIdRequest": _produce,
    "ProduceRequest": _produce,
}
READING = frozenset(
    each.asks for each in KAFKA if not each.changes and not each.seldom and each.needs and each.asks in OF_BROKERS
)
OF_CONTROLLERS: Mapping[str, Asks] = {
    "DescribeClusterRequest": _controllers,
    "DescribeQuorumRequest": _quorum,
    "FetchRequest": _metadata_log,
    "FetchSnapshotRequest": _snapshot,
    "UpdateFeaturesRequest": _level,
    "UnregisterBrokerRequest": _unregister,
}


def asked_as(right: Right) -> str:
    """The name of a line among the questions."""
    return f"{right.asks} on brokers" if READ_ON_BROKERS in right.needs else right.asks


def lines(questions: Mapping[str, Asks]) -> Iterator[tuple[str, Acl]]:
    """Each right of each line that these questions are of."""
    for right in KAFKA:
        if asked_as(right) in questions:
            yield from ((asked_as(right), each) for each in right.needs if isinstance(each, Acl))


def names(acl: Acl, told: str) -> bool:
    """Whether a person who reads this knows which right is missing: the operation and what it is on."""
    words = told.lower()
    return acl.operation.lower() in words and acl.resource.lower() in words
