"""The rights that this tool needs in ZooKeeper, on brokers, on controllers and on hosts: one table. Pure.

docs/rights.md is made of it. A test compares it with the code: with each request that ``io.kafka`` sends, with who
may write to ZooKeeper, with each playbook, and with Kafka's own classes (``KafkaApis``, ``ControllerApis``; in words:
security.html, "Protocols"). ``tests/integration/test_rights_in_zookeeper.py`` takes each right in ZooKeeper away,
``tests/playbooks/test_rights_on_hosts.py`` those on hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

NONE = "none"
CLUSTER, TOPIC, GROUP = "Cluster", "Topic", "Group"


@dataclass(frozen=True, slots=True)
class Acl:
    """An ACL of Kafka. ``operation``, ``resource``: as kafka-acls calls them. It is for all topics or groups, or for
    those whose names begin with ``prefix``. ``at``: which nodes ask for it, where not all do.
    """

    operation: str
    resource: str
    prefix: str = ""
    at: str = ""

    def __str__(self) -> str:
        name = "" if self.resource == CLUSTER else f" {self.prefix}*"
        return f"{self.operation} {self.resource}{name}{f' on {self.at}' if self.at else ''}"


@dataclass(frozen=True, slots=True)
class ZnodeRight:
    """A permission of a znode's ACL. ``path``: below Kafka's root (the chroot), which is ``/``; words in capitals stand
    for any name. ``below``: on every znode below it too.
    """

    permission: str
    path: str
    below: bool = False

    def __str__(self) -> str:
        where = "Kafka's root" if self.path == "/" else self.path
        return f"{self.permission} on {where}{' and all below it' if self.below else ''}"


@dataclass(frozen=True, slots=True)
class Right:
    """One line. ``asks``: the request, the part of this tool or the playbook. ``needs``: the rights, in the words of
    whoever grants them. ``what_for``: what is not possible without them. ``changes``: whether it changes anything.
    ``seldom``: whether most clusters are never asked, or only as long as this tool is a super user there.
    """

    asks: str
    needs: Sequence[Acl] | Sequence[ZnodeRight] | Sequence[str]
    what_for: str
    changes: bool = False
    seldom: bool = False

    @property
    def needed(self) -> str:
        """In words."""
        return ", ".join(map(str, self.needs)) or NONE


DRILLS = "kraft-runbook-drill-"
"""How the names of a drill's own topics begin."""
CLUSTER_ACTION, ALTER, DESCRIBE = Acl("ClusterAction", CLUSTER), Acl("Alter", CLUSTER), Acl("Describe", CLUSTER)
TOPICS, GROUPS, READ_GROUPS = Acl("Describe", TOPIC), Acl("Describe", GROUP), Acl("Read", GROUP)
ALTER_AT_CONTROLLERS = Acl("Alter", CLUSTER, at="controllers")

_THROWAWAY = "in a rehearsal's own throwaway; never asked of a real cluster"

KAFKA = (
    Right("ApiVersionsRequest", (), "a node's mode"),
    Right("MetadataRequest", (TOPICS,), "topics, leaders and ISRs: a topic without it is left out, without an error"),
    Right(
        "DescribeClusterRequest",
        (ALTER_AT_CONTROLLERS,),
        "the cluster id that the quorum has: parity, and changes of a dynamic quorum's voters",
        seldom=True,
    ),
    Right("DescribeQuorumRequest", (DESCRIBE,), "the quorum's leader, and how far each voter is"),
    Right("FetchRequest", (Acl("ClusterAction", CLUSTER, at="controllers"),), "the metadata log"),
    Right(
        "FetchRequest",
        (Acl("Read", TOPIC, at="brokers"),),
        "a replica's topic id where its host can't be read",
        seldom=True,
    ),
    Right("FetchSnapshotRequest", (Acl("ClusterAction", CLUSTER, at="controllers"),), "the metadata log's snapshot"),
    Right(
        "DescribeConfigsRequest",
        (Acl("DescribeConfigs", TOPIC), Acl("DescribeConfigs", CLUSTER)),
        "dynamic configurations",
    ),
    Right("DescribeLogDirsRequest", (DESCRIBE,), "sizes of replicas"),
    Right("ListOffsetsRequest", (TOPICS,), "log ends, which show that nothing was lost"),
    Right("ListPartitionReassignmentsRequest", (DESCRIBE,), "what is being moved"),
    Right("FindCoordinatorRequest", (GROUPS,), "consumer groups"),
    Right("DescribeGroupsRequest", (GROUPS,), "consumer groups"),
    Right("ListGroupsRequest", (GROUPS,), "consumer groups: whether one that DescribeGroups calls Dead is there"),
    Right("ListGroupsRequest", (), "whether a broker still loads groups after its restart: the error alone tells"),
    Right("ListTransactionsRequest", (), "whether it still loads transactions: the error alone tells"),
    Right("ConsumerGroupDescribeRequest", (GROUPS, TOPICS), "consumer groups of the consumer protocol"),
    Right(
        "OffsetFetchRequest",
        (GROUPS, TOPICS),
        "consumer groups' offsets: those of a topic without it are left out, without an error",
    ),
    Right("OffsetCommitRequest", (READ_GROUPS, Acl("Read", TOPIC)), "moves of consumer groups", changes=True),
    Right("LeaveGroupRequest", (READ_GROUPS,), "moves of consumer groups", changes=True),
    Right("JoinGroupRequest", (READ_GROUPS,), "groups that are kept warm while they start", changes=True),
    Right("SyncGroupRequest", (READ_GROUPS,), "groups that are kept warm while they start", changes=True),
    Right("HeartbeatRequest", (READ_GROUPS,), "groups that are kept warm while they start", changes=True),
    Right("AlterPartitionReassignmentsRequest", (ALTER,), "moves of replicas", changes=True),
    Right("ElectLeadersRequest", (ALTER,), "preferred leaders after a move", changes=True),
    Right(
        "AlterReplicaLogDirsRequest",
        (ALTER,),
        "moves between the disks of a broker; replicas that a plan wants in a certain directory",
        changes=True,
    ),
    Right(
        "IncrementalAlterConfigsRequest",
        (Acl("AlterConfigs", TOPIC), Acl("AlterConfigs", CLUSTER)),
        "throttles of moves",
        changes=True,
    ),
    Right("CreateTopicsRequest", (Acl("Create", TOPIC, DRILLS),), "a drill's topics", changes=True),
    Right("DeleteTopicsRequest", (Acl("Delete", TOPIC, DRILLS),), "a drill's topics, at its end", changes=True),
    Right(
        "InitProducerIdRequest", (Acl("Write", TOPIC, DRILLS),), "a drill's records, which are idempotent", changes=True
    ),
    Right(
        "ProduceRequest",
        (Acl("Write", TOPIC, DRILLS),),
        "a drill's records; on partitions that its form names, Write on their topics",
        changes=True,
    ),
    Right("UpdateFeaturesRequest", (ALTER_AT_CONTROLLERS,), "feature levels", changes=True),
    Right("UnregisterBrokerRequest", (ALTER_AT_CONTROLLERS,), "a broker that is gone for good", changes=True),
    Right("AddRaftVoterRequest", (ALTER_AT_CONTROLLERS,), "a controller added to a dynamic quorum", changes=True),
    Right(
        "RemoveRaftVoterRequest", (ALTER_AT_CONTROLLERS,), "a controller removed from a dynamic quorum", changes=True
    ),
    Right("BrokerRegistrationRequest", (), f"stand-ins for brokers {_THROWAWAY}", changes=True),
    Right("BrokerHeartbeatRequest", (), f"stand-ins for brokers {_THROWAWAY}", changes=True),
)
"""Of brokers and controllers. Before the metadata copy the controllers know no ACL: there the tool must be one of
``super_users``.
"""

ROOT_CREATE, ROOT_DELETE = ZnodeRight("CREATE", "/"), ZnodeRight("DELETE", "/")

ZOOKEEPER = (
    Right("io.zookeeper.reader", (ZnodeRight("READ", "/", below=True),), "what the cluster is; parity"),
    Right(
        "io.zookeeper.handover",
        (ROOT_DELETE, ZnodeRight("DELETE", "/admin"), ZnodeRight("WRITE", "/controller_epoch")),
        "the way back: /controller and /migration are deleted",
        changes=True,
    ),
    Right(
        "procedures.raise_versions",
        (ZnodeRight("WRITE", "/brokers/topics/TOPIC/partitions/NUMBER/state"),),
        "the way back: a version that is too low is raised",
        changes=True,
    ),
    Right(
        "io.zookeeper.claim_znode",
        (ROOT_CREATE, ROOT_DELETE, ZnodeRight("CREATE", "/consumers/GROUP"), ZnodeRight("DELETE", "/consumers/GROUP")),
        "one run at a time on a cluster, or on a consumer group that moves",
        changes=True,
    ),
    Right(
        "io.zookeeper.group_znodes",
        tuple(ZnodeRight(each, "/consumers", below=True) for each in ("CREATE", "WRITE", "DELETE")),
        "moves and toggles of consumer groups",
        changes=True,
    ),
    Right(
        "io.zookeeper.depose",
        (ROOT_DELETE,),
        "a drill in ZooKeeper mode: another broker becomes the controller",
        changes=True,
    ),
    Right("io.zookeeper.broker_znodes", (), f"stand-ins for brokers {_THROWAWAY}", changes=True),
    Right("io.zookeeper.clock", (ROOT_CREATE, ROOT_DELETE), "the time by ZooKeeper's clock", changes=True),
)
"""Simplest is the brokers' own identity: a znode's ACL names its creator."""

FILES = "to read the node's files, and their owner"
SERVICE = "to write the node's files as their owner, and to start and stop its service"

HOSTS = (
    Right(
        "gather_host_facts",
        (
            f"{FILES}; each JVM's environment, unless its systemd unit tells that it sets no JAVA_TOOL_OPTIONS or the"
            " like; its login file (java.security.auth.login.config), often 0600 of Kafka's own user; the files of its"
            " unit's EnvironmentFile=; of a secured cluster also stores and what references in the files name, and to"
            " run keytool",
        ),
        "preflight. Where it may not read a login file, `KRB-PRE-129` to `KRB-PRE-131` are UNKNOWN, and `KRB-PRE-140`"
        " where a listener's login is not in the broker's properties; without the"
        " environment and the unit's word `KRB-PRE-076` too",
    ),
    Right("read_feature_state", (FILES,), "feature levels and classes"),
    Right("prove_migration_mode", (FILES,), "whether a start could make the migration final"),
    Right("read_metadata_logs", (f"{FILES}; to stop its service",), "the way back where no quorum leads", changes=True),
    Right("provision_controller", (SERVICE,), "the controllers; one that lost its disk", changes=True),
    Right("restart_broker", (SERVICE,), "the rolls, forward and back", changes=True),
    Right("restart_node", (SERVICE,), "a rolling restart; the leadership of the quorum", changes=True),
    Right(
        "read_cpu",
        ("to see its service's process; for ZooKeeper's, to be its user or root",),
        "a drill: processor time of the controllers and of ZooKeeper",
    ),
    Right("stop_node", (SERVICE,), "a drill", changes=True),
    Right("start_node", (SERVICE,), "a drill, and its end", changes=True),
    Right("finalize_controller", (SERVICE,), "the end of the migration", changes=True),
    Right("forget_zookeeper_secrets", ("to write the secrets file",), "the end of the migration", changes=True),
    Right("leave_kraft", (SERVICE,), "the way back", changes=True),
    Right("start_controllers", (SERVICE,), "the way back, where it was broken off", changes=True),
    Right("set_controller_aside", (f"{SERVICE}; to rename its data",), "the end of the way back", changes=True),
    Right("switch_software", (f"{SERVICE}; to replace its link",), "another version of Kafka", changes=True),
)
"""By SSH and, where ``reach.become`` is set, sudo."""


MADE_OF = (
    "Made of `kraft_runbook.runbook.rights`; do not edit. Tests compare it with this tool's code, so that a request, a"
    " writer to ZooKeeper or a playbook that is not here fails the build, and with Kafka 3.9.2's own classes: what each"
    " of its handlers asks for. In ZooKeeper, on brokers in ZooKeeper mode and in KRaft mode, and on controllers each"
    " right was taken away by itself on real servers: the tool said which one was missing. Left out of that were"
    " AddRaftVoterRequest and RemoveRaftVoterRequest (a dynamic quorum), ConsumerGroupDescribeRequest (the new consumer"
    " protocol), and what is asked of a rehearsal's throwaway alone (BrokerRegistrationRequest,"
    " BrokerHeartbeatRequest). On hosts each playbook's were taken away one by one from a user who had all others, and"
    " what was not allowed was told by name: nothing was taken for missing."
)
WIDTH = 118
SELDOM = (
    "Left out is what most clusters are never asked for, and what controllers are asked for during a migration, while"
    " this tool is one of their `super_users`. Grant it where it is missed:"
)


def acls(*, changes: bool) -> tuple[Acl, ...]:
    """What a user of Kafka needs for all that reads, or with ``changes`` for all that this tool does, each once; not
    what is asked for seldom.
    """
    wanted = [each for right in KAFKA if (changes or not right.changes) and not right.seldom for each in right.needs]
    return tuple(dict.fromkeys(Acl(a.operation, a.resource, a.prefix) for a in wanted if isinstance(a, Acl)))


def commands(granted: Sequence[Acl]) -> Iterator[str]:
    """The arguments of kafka-acls that grant these to User:NAME, a line for each kind of resource."""
    by_resource: dict[tuple[str, str], list[str]] = {}
    for each in granted:
        by_resource.setdefault((each.resource, each.prefix), []).append(each.operation)
    for (resource, prefix), operations in sorted(by_resource.items()):
        named = "--cluster" if resource == CLUSTER else f"--{resource.lower()} '{prefix or '*'}'"
        pattern = " --resource-pattern-type prefixed" if prefix else ""
        asked = " ".join(f"--operation {each}" for each in sorted(operations))
        yield f"--add --allow-principal User:NAME {asked} {named}{pattern}"


def render_rights() -> str:
    """docs/rights.md."""
    lines = [
        "# Which rights does this tool need?",
        "",
        *wrap(MADE_OF, WIDTH),
        "",
        *_table(
            "On brokers and controllers",
            "Before the metadata copy the controllers know no ACL: there the tool must be one of `super_users`"
            " (`KRB-PRE-106`). On brokers it need not be one.",
            KAFKA,
        ),
        "### Grant them",
        "",
        "Run kafka-acls with these arguments, and `--bootstrap-server` and `--command-config` of an administrator. All",
        "that reads (preflight, parity, observe, dry runs):",
        "",
        *_commands(changes=False),
        *wrap(f"{SELDOM} {'; '.join(_seldom())}.", WIDTH),
        "",
        "All that this tool does, reassignments, group moves, drills and feature levels too:",
        "",
        *_commands(changes=True),
        *_table(
            "In ZooKeeper",
            "Simplest is the brokers' own identity: a znode's ACL names its creator, and none is inherited. Another"
            " identity can't read users, brokers' configurations and groups that come later. `CREATE` and `DELETE` are"
            " asked of the parent.",
            ZOOKEEPER,
        ),
        *_table("On hosts", "By SSH and, where `reach.become` is set, sudo. One playbook a line.", HOSTS),
    ]
    return "\n".join(lines)


def _seldom() -> Iterator[str]:
    """What the commands of reading leave out, each with what it is for."""
    for each in KAFKA:
        if each.seldom and not each.changes:
            yield f"{each.needed} (`{each.asks}`: {each.what_for})"


def _commands(*, changes: bool) -> list[str]:
    return ["```", *commands(acls(changes=changes)), "```", ""]


def _table(title: str, said: str, rights: tuple[Right, ...]) -> list[str]:
    rows = [
        f"| `{each.asks}` | {each.needed} | {each.what_for} | {'changes' if each.changes else 'reads'} |"
        for each in rights
    ]
    return [f"## {title}", "", *wrap(said, WIDTH), "", "| who asks | needs | for | |", "|---|---|---|---|", *rows, ""]
