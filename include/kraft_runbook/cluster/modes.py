"""How Kafka's processes run on the way from ZooKeeper to KRaft."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class ZkMigrationState(IntEnum):
    """The gauge ``kafka.controller:type=KafkaController,name=ZkMigrationState`` (Kafka 3.9 ``ZkMigrationState``).

    NOT_PUBLISHED (-1) is what the gauge shows before the controller has published its first image.
    """

    NOT_PUBLISHED = -1
    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3
    ZK = 4


class BrokerMode(StrEnum):
    """How a broker process runs. HYBRID is Kafka's "ZooKeeper broker in migration mode"."""

    ZOOKEEPER = "zookeeper"
    HYBRID = "hybrid"
    KRAFT = "kraft"


class ControllerMode(StrEnum):
    """MIGRATION: the migration flag is in force in the running process (ApiVersions ``zk_migration_ready`` = 1). KRAFT:
    it is not.
    """

    MIGRATION = "migration"
    KRAFT = "kraft"
