"""Faults of Kafka 3.9.0 and 3.9.1 that a migration may meet, and which later 3.9 mends each. Pure.

A release has a fault where the class that the mend changed is still the former one in its jars (3.9.0, 3.9.1 and 3.9.2
were compared). Faults that 3.9.0 mends are not here: no older release can be migrated (``KRB-PRE-010``).
"""

from __future__ import annotations

from dataclasses import dataclass

from kraft_runbook.cluster.faults_in_both import MISSED_HEARTBEATS, NEVER_LOADED, NO_PRODUCER_IDS
from kraft_runbook.cluster.kafka_version import KafkaVersion


@dataclass(frozen=True, slots=True)
class OldFault:
    """``what``: what happens. ``mended``: the first 3.9 without it, by its last number; all before have it."""

    issue: str
    what: str
    mended: int

    def __str__(self) -> str:
        return f"{self.issue} ({self.what})"


FAULTS = (
    # KafkaZkClient, ZkSecurityMigrator
    OldFault(
        "KAFKA-19480",
        "zookeeper-security-migration leaves an empty /migration, and the migration never begins",
        2,
    ),
    # BrokerLifecycleManager
    OldFault(*MISSED_HEARTBEATS, 2),
    # RPCProducerIdManager
    OldFault(*NO_PRODUCER_IDS, 2),
    # AbstractFetcherThread, KafkaRaftClient
    OldFault("KAFKA-18723", "a follower, or a controller, may take records from an answer that are not valid", 1),
    # QuorumController.registerBroker
    OldFault("KAFKA-18844", "a broker's registration may be judged by feature levels that are out of date", 1),
    # KafkaConfig
    OldFault("KAFKA-18281", "a controller with 0.0.0.0 in 'listeners' ends at its start", 1),
    # AclControlManager
    OldFault("KAFKA-19411", "a request that would delete more than 10,000 ACLs fails without a reason", 2),
    # ZkAdminManager
    OldFault(
        "KAFKA-19026",
        "an AlterConfigPolicy can't be asked as KRaft mode asks it (KRB-PRE-093)",
        2,
    ),
    # TransactionStateManager
    OldFault(*NEVER_LOADED, 2),
)
"""Worst first."""


def faults_of(version: KafkaVersion) -> tuple[OldFault, ...]:
    """Those of a release of Apache Kafka 3.9; none of any other."""
    patch = version.patch
    return tuple(each for each in FAULTS if version.release == (3, 9) and patch is not None and patch < each.mended)
