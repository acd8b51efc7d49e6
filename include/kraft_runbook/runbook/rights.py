"""The rights that this tool needs in ZooKeeper, on brokers, on controllers and on hosts: one table. Pure.

docs/rights.md is made of it. A test compares it with the code: with each request that ``io.kafka`` imports, with who
may write to ZooKeeper, and with each playbook. The rights are those that Kafka's documentation
names for a request (security.html, "Protocols"); they were not tried one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

NONE = "none"


@dataclass(frozen=True, slots=True)
class Right:
    """One line. ``asks``: the request, the part of this tool or the playbook. ``needs``: the right, in the words of
    whoever grants it. ``what_for``: what is not possible without it. ``changes``: whether it changes anything.
    """

    asks: str
    needs: str
    what_for: str
    changes: bool = False


CLUSTER_ACTION, ALTER, DESCRIBE = "ClusterAction Cluster", "Alter Cluster", "Describe Cluster"
TOPICS, GROUPS = "Describe Topic *", "Describe Group *"

_THROWAWAY = "in a rehearsal's own throwaway; never asked of a real cluster"

KAFKA = (
    Right("ApiVersionsRequest", NONE, "a node's mode"),
    Right("MetadataRequest", TOPICS, "topics, leaders and ISRs: a topic without it is left out, without an error"),
    Right("DescribeClusterRequest", NONE, "the controllers that are registered"),
    Right("DescribeQuorumRequest", DESCRIBE, "the quorum's leader, and how far each voter is"),
    Right(
        "FetchRequest",
        f"{CLUSTER_ACTION} on controllers, Read Topic * on brokers",
        "the metadata log; a replica's topic id where its host can't be read",
    ),
    Right("FetchSnapshotRequest", CLUSTER_ACTION, "the metadata log's snapshot"),
    Right("DescribeConfigsRequest", "DescribeConfigs Topic *, DescribeConfigs Cluster", "dynamic configurations"),
    Right("DescribeLogDirsRequest", DESCRIBE, "sizes of replicas"),
    Right("ListOffsetsRequest", TOPICS, "log ends, which show that nothing was lost"),
    Right("ListPartitionReassignmentsRequest", DESCRIBE, "what is being moved"),
    Right("FindCoordinatorRequest", GROUPS, "consumer groups"),
    Right("DescribeGroupsRequest", GROUPS, "consumer groups"),
    Right("ListGroupsRequest", GROUPS, "consumer groups: whether one that DescribeGroups calls Dead is there"),
    Right("ConsumerGroupDescribeRequest", f"{GROUPS}, {TOPICS}", "consumer groups of the consumer protocol"),
    Right("OffsetFetchRequest", f"{GROUPS}, {TOPICS}", "consumer groups' offsets"),
    Right("OffsetCommitRequest", "Read Group *, Read Topic *", "moves of consumer groups", changes=True),
    Right("LeaveGroupRequest", "Read Group *", "moves of consumer groups", changes=True),
    Right("JoinGroupRequest", "Read Group *", "groups that are kept warm while they start", changes=True),
    Right("SyncGroupRequest", "Read Group *", "groups that are kept warm while they start", changes=True),
    Right("HeartbeatRequest", "Read Group *", "groups that are kept warm while they start", changes=True),
    Right("AlterPartitionReassignmentsRequest", ALTER, "moves of replicas", changes=True),
    Right("ElectLeadersRequest", ALTER, "preferred leaders after a move", changes=True),
    Right("AlterReplicaLogDirsRequest", ALTER, "moves between the disks of a broker", changes=True),
    Right(
        "IncrementalAlterConfigsRequest",
        "AlterConfigs Topic *, AlterConfigs Cluster",
        "throttles of moves",
        changes=True,
    ),
    Right("CreateTopicsRequest", "Create Cluster", "a drill's metadata changes", changes=True),
    Right("UpdateFeaturesRequest", ALTER, "feature levels", changes=True),
    Right("UnregisterBrokerRequest", f"{ALTER} on controllers", "a broker that is gone for good", changes=True),
    Right("AddRaftVoterRequest", f"{ALTER} on controllers", "a controller added to a dynamic quorum", changes=True),
    Right(
        "RemoveRaftVoterRequest", f"{ALTER} on controllers", "a controller removed from a dynamic quorum", changes=True
    ),
    Right("BrokerRegistrationRequest", NONE, f"stand-ins for brokers {_THROWAWAY}", changes=True),
    Right("BrokerHeartbeatRequest", NONE, f"stand-ins for brokers {_THROWAWAY}", changes=True),
)
"""Of brokers and controllers. Before the metadata copy the controllers know no ACL: there the tool must be one of
``super_users``.
"""

ZOOKEEPER = (
    Right("io.zookeeper.reader", "READ on every znode under Kafka's root", "what the cluster is; parity"),
    Right(
        "io.zookeeper.handover",
        "DELETE on Kafka's root and /admin (ZooKeeper asks the parent), WRITE on /controller_epoch",
        "the way back: /controller and /migration are deleted",
        changes=True,
    ),
    Right(
        "procedures.raise_versions",
        "WRITE on the state znodes of partitions",
        "the way back: a version that is too low is raised",
        changes=True,
    ),
    Right(
        "io.zookeeper.claim_znode", "CREATE and DELETE on Kafka's root", "one run at a time on a cluster", changes=True
    ),
    Right(
        "io.zookeeper.group_znodes",
        "CREATE, WRITE and DELETE under /consumers",
        "moves and toggles of consumer groups",
        changes=True,
    ),
    Right(
        "io.zookeeper.depose",
        "DELETE on Kafka's root",
        "a drill in ZooKeeper mode: another broker becomes the controller",
        changes=True,
    ),
    Right("io.zookeeper.broker_znodes", NONE, f"stand-ins for brokers {_THROWAWAY}", changes=True),
    Right("io.zookeeper.clock", "CREATE and DELETE on Kafka's root", "the time by ZooKeeper's clock", changes=True),
)
"""Simplest is the brokers' own identity: a znode's ACL names its creator."""

FILES = "to read the node's files, and their owner"
SERVICE = "to write the node's files as their owner, and to start and stop its service"

HOSTS = (
    Right("gather_host_facts", FILES, "preflight"),
    Right("read_feature_state", FILES, "feature levels and classes"),
    Right(
        "read_stores",
        "to read key stores, trust stores, the node's file and what its references name, and to run keytool",
        "preflight of a secured cluster",
    ),
    Right("prove_migration_mode", FILES, "whether a start could make the migration final"),
    Right("read_metadata_logs", f"{FILES}; to stop its service", "the way back where no quorum leads", changes=True),
    Right("provision_controller", SERVICE, "the controllers; one that lost its disk", changes=True),
    Right("restart_broker", SERVICE, "the rolls, forward and back", changes=True),
    Right("restart_node", SERVICE, "a rolling restart; the leadership of the quorum", changes=True),
    Right(
        "read_cpu",
        "to see its service's process; for ZooKeeper's, to be its user or root",
        "a drill: processor time of the controllers and of ZooKeeper",
    ),
    Right("stop_node", SERVICE, "a drill", changes=True),
    Right("start_node", SERVICE, "a drill, and its end", changes=True),
    Right("finalize_controller", SERVICE, "the end of the migration", changes=True),
    Right("forget_zookeeper_secrets", "to write the secrets file", "the end of the migration", changes=True),
    Right("leave_kraft", SERVICE, "the way back", changes=True),
    Right("start_controllers", SERVICE, "the way back, where it was broken off", changes=True),
    Right("set_controller_aside", f"{SERVICE}; to rename its data", "the end of the way back", changes=True),
    Right("switch_software", f"{SERVICE}; to replace its link", "another version of Kafka", changes=True),
)
"""By SSH and, where ``reach.become`` is set, sudo."""


def render_rights() -> str:
    """docs/rights.md."""
    lines = [
        "# Which rights does this tool need?",
        "",
        "Made of `kraft_runbook.runbook.rights`; do not edit. A test compares it with the code: a request, a writer to",
        "ZooKeeper or a playbook that is not here fails the build. The rights were not tried one by one on",
        "a cluster. Preflight finds some that are missing, not all of them: grant what is listed here first.",
        "",
        *_table(
            "On brokers and controllers",
            "Before the metadata copy the controllers know no ACL: there the tool must be one of `super_users`"
            " (`KRB-PRE-106`).",
            KAFKA,
        ),
        *_table(
            "In ZooKeeper",
            "Simplest is the brokers' own identity: a znode's ACL names its creator. `DELETE` is asked of the parent.",
            ZOOKEEPER,
        ),
        *_table("On hosts", "By SSH and, where `reach.become` is set, sudo. One playbook a line.", HOSTS),
    ]
    return "\n".join(lines)


def _table(title: str, said: str, rights: tuple[Right, ...]) -> list[str]:
    rows = [
        f"| `{each.asks}` | {each.needs} | {each.what_for} | {'changes' if each.changes else 'reads'} |"
        for each in rights
    ]
    return [f"## {title}", "", said, "", "| who asks | needs | for | |", "|---|---|---|---|", *rows, ""]
