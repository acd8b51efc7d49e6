"""What a comparison covers: every field of every record of Kafka 3.9's metadata log, and every znode that Kafka knows,
compared or not, and why not.

``NOT_COMPARED`` stands whole in each report. A test holds both tables against the jars of Kafka: what is in neither
fails it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kraft_runbook.metadata.canonical_rows import Kind


@dataclass(frozen=True, slots=True)
class Omission:
    """Something that is not compared. ``what``: in Kafka's words, with its znode or record; ``why``: the reason."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"not compared: {self.what}: {self.why}"


# -- what is not compared ----------------------------------------------------------------------------------------------

ELR = Omission("eligible leader replicas (EligibleLeaderReplicas, LastKnownElr)", "ZooKeeper has no place for them")
DIRECTORIES = Omission("log directories (Directories and LogDirs, ids of JBOD)", "ZooKeeper has no place for them")
REGISTRATIONS = Omission(
    "registrations of KRaft-mode brokers and of controllers, and of hybrid brokers all but endpoints, rack and fencing",
    "ZooKeeper holds hybrid brokers alone, and Kafka writes the rest (epochs, incarnations, features, ports of JMX) for"
    " each store by itself",
)
FEATURES = Omission(
    "feature levels other than metadata.version, and /feature",
    "the migration does not carry /feature; KRaft keeps its own levels",
)
OTHER_CONFIGS = Omission(
    "configs of client metrics and of groups (CLIENT_METRICS, GROUP)",
    "ZooKeeper can't hold them; dual write ends at the next election while there are any (KRB-PRE-067)",
)
PRODUCERS = Omission(
    "which broker was given the last block of producer ids", "a dual write puts -1 there; the block itself is compared"
)
TRANSACTIONS = Omission(
    "NoOpRecord, and where transactions of the log begin and end", "they carry no metadata; their effect is compared"
)
MIGRATION_STATE = Omission(
    "ZkMigrationStateRecord", "ZooKeeper has no such state; the comparison demands that it says MIGRATION"
)
IDS_OF_ACLS = Omission("the ids of ACLs", "KRaft draws them; ZooKeeper has none")
CONTROLLER_EPOCH = Omission(
    "/controller_epoch, and controller_epoch in a partition's state",
    "ZooKeeper's own; KRaft's controller epoch stands in /controller",
)
OFFSET = Omission(
    "offset and epoch in /migration",
    "they say up to where ZooKeeper was written, which is what the comparison begins with",
)
CONSUMERS = Omission("/consumers", "offsets and owners of the old consumers are not migrated")
NOTIFICATIONS = Omission(
    "/config/changes, /isr_change_notification, /log_dir_event_notification, /kafka-acl-changes,"
    " /kafka-acl-extended-changes, /delegation_token/token_changes",
    "notifications to brokers in ZooKeeper mode, not metadata",
)
ADMIN = Omission(
    "/admin/delete_topics, /admin/reassign_partitions, /admin/preferred_replica_election",
    "requests to ZooKeeper's controller; they are checked to be empty",
)
SEQUENCE = Omission("/brokers/seqid", "a counter for generated broker ids, which KRaft does not have")
ZNODE_ACLS = Omission("the ZooKeeper ACLs of znodes", "they are no metadata of Kafka; KRaft has none")
OWN_CLAIM = Omission("/kraft_runbook_claim", "this tool's own: which run may change the cluster")
UNKNOWN_ZNODES = Omission(
    "znodes that Kafka does not read, and znodes that hold no data", "they say nothing of Kafka's metadata"
)

OMISSIONS = (
    ELR,
    DIRECTORIES,
    REGISTRATIONS,
    FEATURES,
    OTHER_CONFIGS,
    PRODUCERS,
    TRANSACTIONS,
    MIGRATION_STATE,
    IDS_OF_ACLS,
    CONTROLLER_EPOCH,
    OFFSET,
    CONSUMERS,
    NOTIFICATIONS,
    ADMIN,
    SEQUENCE,
    ZNODE_ACLS,
    OWN_CLAIM,
    UNKNOWN_ZNODES,
)

NOT_COMPARED = tuple(map(str, OMISSIONS))
"""One line each, for every report."""

# -- the log -----------------------------------------------------------------------------------------------------------

Covered = tuple[Kind, ...] | Omission
"""The kinds by which something is compared, or why it is not."""

_PARTITION: Mapping[str, Covered] = {
    "PartitionId": (Kind.ASSIGNMENT, Kind.PARTITION_STATE),
    "TopicId": (Kind.TOPIC,),
    "Replicas": (Kind.ASSIGNMENT,),
    "RemovingReplicas": (Kind.ASSIGNMENT,),
    "AddingReplicas": (Kind.ASSIGNMENT,),
    "Isr": (Kind.PARTITION_STATE,),
    "Leader": (Kind.PARTITION_STATE,),
    "LeaderRecoveryState": (Kind.PARTITION_STATE,),
    "Directories": DIRECTORIES,
    "EligibleLeaderReplicas": ELR,
    "LastKnownElr": ELR,
}
_BROKER, _SCRAM, _TOKEN, _ACL = (Kind.BROKER,), (Kind.SCRAM_CREDENTIAL,), (Kind.DELEGATION_TOKEN,), (Kind.ACL,)

RECORDS: Mapping[str, Mapping[str, Covered]] = {
    "RegisterBrokerRecord": {
        "BrokerId": _BROKER,
        "IsMigratingZkBroker": _BROKER,
        "EndPoints": _BROKER,
        "Rack": _BROKER,
        "Fenced": _BROKER,
        "IncarnationId": REGISTRATIONS,
        "BrokerEpoch": REGISTRATIONS,
        "Features": REGISTRATIONS,
        "InControlledShutdown": REGISTRATIONS,
        "LogDirs": DIRECTORIES,
    },
    "UnregisterBrokerRecord": {"BrokerId": _BROKER, "BrokerEpoch": REGISTRATIONS},
    "TopicRecord": {"Name": (Kind.TOPIC,), "TopicId": (Kind.TOPIC,)},
    "PartitionRecord": {
        **_PARTITION,
        "LeaderEpoch": (Kind.PARTITION_STATE,),
        "PartitionEpoch": (Kind.PARTITION_EPOCH,),
    },
    "ConfigRecord": {
        name: (Kind.TOPIC_CONFIG, Kind.BROKER_CONFIG) for name in ("ResourceType", "ResourceName", "Name", "Value")
    },
    "PartitionChangeRecord": _PARTITION,
    "FenceBrokerRecord": {"Id": _BROKER, "Epoch": REGISTRATIONS},
    "UnfenceBrokerRecord": {"Id": _BROKER, "Epoch": REGISTRATIONS},
    "RemoveTopicRecord": {"TopicId": (Kind.TOPIC,)},
    "DelegationTokenRecord": {
        name: _TOKEN
        for name in (
            "Owner",
            "Requester",
            "Renewers",
            "IssueTimestamp",
            "MaxTimestamp",
            "ExpirationTimestamp",
            "TokenId",
        )
    },
    "UserScramCredentialRecord": {
        name: _SCRAM for name in ("Name", "Mechanism", "Salt", "StoredKey", "ServerKey", "Iterations")
    },
    "FeatureLevelRecord": {"Name": (Kind.METADATA_VERSION,), "FeatureLevel": (Kind.METADATA_VERSION,)},
    "ClientQuotaRecord": {name: (Kind.CLIENT_QUOTA,) for name in ("Entity", "Key", "Value", "Remove")},
    "ProducerIdsRecord": {"BrokerId": PRODUCERS, "BrokerEpoch": PRODUCERS, "NextProducerId": (Kind.PRODUCER_IDS,)},
    "BrokerRegistrationChangeRecord": {
        "BrokerId": _BROKER,
        "Fenced": _BROKER,
        "BrokerEpoch": REGISTRATIONS,
        "InControlledShutdown": REGISTRATIONS,
        "LogDirs": DIRECTORIES,
    },
    "AccessControlEntryRecord": {
        "Id": IDS_OF_ACLS,
        **{
            name: _ACL
            for name in (
                "ResourceType",
                "ResourceName",
                "PatternType",
                "Principal",
                "Host",
                "Operation",
                "PermissionType",
            )
        },
    },
    "RemoveAccessControlEntryRecord": {"Id": _ACL},
    "NoOpRecord": {},
    "ZkMigrationStateRecord": {"ZkMigrationState": MIGRATION_STATE},
    "RemoveUserScramCredentialRecord": {"Name": _SCRAM, "Mechanism": _SCRAM},
    "BeginTransactionRecord": {"Name": TRANSACTIONS},
    "EndTransactionRecord": {},
    "AbortTransactionRecord": {"Reason": TRANSACTIONS},
    "RemoveDelegationTokenRecord": {"TokenId": _TOKEN},
    "RegisterControllerRecord": {
        name: REGISTRATIONS for name in ("ControllerId", "IncarnationId", "ZkMigrationReady", "EndPoints", "Features")
    },
}
"""By record and field, named as in Kafka's schemas (``common/metadata/*.json``)."""

# -- ZooKeeper ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Znode:
    """Znodes of one form. ``defined_by``: the objects of Kafka's ``ZkData`` that know their paths."""

    defined_by: tuple[str, ...]
    covered: Covered


ZNODES: Mapping[str, Znode] = {
    "/controller": Znode(("ControllerZNode",), (Kind.CONTROLLER,)),
    "/controller_epoch": Znode(("ControllerEpochZNode",), CONTROLLER_EPOCH),
    "/migration": Znode(("MigrationZNode",), (Kind.CONTROLLER,)),
    "/cluster/id": Znode(("ClusterZNode", "ClusterIdZNode"), (Kind.CLUSTER_ID,)),
    "/feature": Znode(("FeatureZNode",), FEATURES),
    "/brokers/ids/<broker>": Znode(("BrokersZNode", "BrokerIdsZNode", "BrokerIdZNode"), (Kind.BROKER,)),
    "/brokers/seqid": Znode(("BrokerSequenceIdZNode",), SEQUENCE),
    "/brokers/topics/<topic>": Znode(("TopicsZNode", "TopicZNode"), (Kind.TOPIC, Kind.ASSIGNMENT)),
    "/brokers/topics/<topic>/partitions/<partition>/state": Znode(
        ("TopicPartitionsZNode", "TopicPartitionZNode", "TopicPartitionStateZNode"),
        (Kind.PARTITION_STATE, Kind.PARTITION_EPOCH),
    ),
    "/config/topics/<topic>": Znode(
        ("ConfigZNode", "ConfigEntityTypeZNode", "ConfigEntityZNode"), (Kind.TOPIC_CONFIG,)
    ),
    "/config/brokers/<broker>": Znode(("ConfigEntityZNode",), (Kind.BROKER_CONFIG,)),
    "/config/users/<user>": Znode(("ConfigEntityZNode",), (Kind.CLIENT_QUOTA, Kind.SCRAM_CREDENTIAL)),
    "/config/users/<user>/clients/<client-id>": Znode(("ConfigEntityZNode",), (Kind.CLIENT_QUOTA,)),
    "/config/clients/<client-id>": Znode(("ConfigEntityZNode",), (Kind.CLIENT_QUOTA, Kind.SCRAM_CREDENTIAL)),
    "/config/ips/<ip>": Znode(("ConfigEntityZNode",), (Kind.CLIENT_QUOTA, Kind.SCRAM_CREDENTIAL)),
    "/config/client-metrics/<subscription>": Znode(("ConfigEntityZNode",), OTHER_CONFIGS),
    "/config/changes": Znode(
        ("ConfigEntityChangeNotificationZNode", "ConfigEntityChangeNotificationSequenceZNode"), NOTIFICATIONS
    ),
    "/isr_change_notification": Znode(
        ("IsrChangeNotificationZNode", "IsrChangeNotificationSequenceZNode"), NOTIFICATIONS
    ),
    "/log_dir_event_notification": Znode(
        ("LogDirEventNotificationZNode", "LogDirEventNotificationSequenceZNode"), NOTIFICATIONS
    ),
    "/admin/delete_topics": Znode(("AdminZNode", "DeleteTopicsZNode", "DeleteTopicsTopicZNode"), ADMIN),
    "/admin/reassign_partitions": Znode(("ReassignPartitionsZNode",), ADMIN),
    "/admin/preferred_replica_election": Znode(("PreferredReplicaElectionZNode",), ADMIN),
    "/consumers": Znode(("ConsumerPathZNode", "ConsumerOffset"), CONSUMERS),
    "/kafka-acl/<type>/<resource>": Znode(("ResourceZNode", "LiteralAclStore"), (Kind.ACL,)),
    "/kafka-acl-extended/prefixed/<type>/<resource>": Znode(
        ("ResourceZNode", "ExtendedAclStore", "ExtendedAclZNode"), (Kind.ACL,)
    ),
    "/kafka-acl-changes": Znode(("LiteralAclChangeStore",), NOTIFICATIONS),
    "/kafka-acl-extended-changes": Znode(("ExtendedAclChangeStore",), NOTIFICATIONS),
    "/latest_producer_id_block": Znode(("ProducerIdBlockZNode",), (Kind.PRODUCER_IDS,)),
    "/delegation_token/tokens/<id>": Znode(
        ("DelegationTokenAuthZNode", "DelegationTokensZNode", "DelegationTokenInfoZNode"), (Kind.DELEGATION_TOKEN,)
    ),
    "/kraft_runbook_claim": Znode((), OWN_CLAIM),
    "/delegation_token/token_changes": Znode(
        ("DelegationTokenChangeNotificationZNode", "DelegationTokenChangeNotificationSequenceZNode"), NOTIFICATIONS
    ),
}
"""By path; what stands for a name is in angle brackets."""
