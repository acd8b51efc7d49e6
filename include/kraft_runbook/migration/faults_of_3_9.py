"""Faults of Kafka 3.9.0 to 3.9.2 that a migration may meet, and which later 3.9 mends each, if one does. Pure.

A release has a fault where the class that the mend changed is still the former one in its jars (3.9.0, 3.9.1 and 3.9.2
were compared). Faults that 3.9.0 mends are not here: no older release can be migrated (``KRB-PRE-010``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kraft_runbook.cluster.fault_uses import Use
from kraft_runbook.cluster.faults_in_both import (
    CUT_OFF,
    FALSE_BREACH,
    HIDDEN_CLOSE,
    LATE_EPOCH,
    LEAKED_MAPS,
    MISSED_HEARTBEATS,
    NEVER_LOADED,
    NO_PRODUCER_IDS,
    NOT_VALID,
    OFFLINE_DIRECTORY,
    TIME_INDEX,
)
from kraft_runbook.cluster.kafka_version import KafkaVersion

LOOKED_AT = 2
"""The last number of the last release of 3.9 that was looked at."""


@dataclass(frozen=True, slots=True)
class OldFault:
    """``what``: what happens. ``mended``: the first 3.9 without it, by its last number, and all before have it; None:
    no 3.9 that was looked at is without it. ``only_with``: without it the fault can't show. ``avoided_by``: how to run
    with a fault that no 3.9 mends.
    """

    issue: str
    what: str
    mended: int | None
    only_with: Use | None = None
    avoided_by: str = ""

    def __str__(self) -> str:
        return f"{self.issue} ({self.what}{', in every 3.9' if self.mended is None else ''})"

    @property
    def can_be_avoided(self) -> bool:
        return self.mended is not None or bool(self.avoided_by)

    def is_in(self, version: KafkaVersion) -> bool:
        """Whether this release of Apache Kafka has it."""
        before = LOOKED_AT + 1 if self.mended is None else self.mended
        return version.release == (3, 9) and version.patch is not None and version.patch < before


LOWER_END = OldFault(
    "KAFKA-17076",
    "a replica of a compacted partition that is copied anew may end before the others, and gives offsets again that"
    " are taken once it leads",
    2,
)
"""The cleaner drops the last batches, and a leader takes a follower that gets an empty answer as being at its own end
(``LogCleaner``, ``LocalLog.read``).
"""
FAULTS = (
    # AbstractFetcherThread
    OldFault(*CUT_OFF, 1),
    # RemoteLogManager.RLMExpirationTask
    OldFault(
        *FALSE_BREACH,
        None,
        only_with=Use.TIERED_STORAGE,
        avoided_by="before you begin set retention.bytes=-1 on every topic with remote.storage.enable=true, and"
        " local.retention.bytes to what retention.bytes was where it is -2 (its default: what retention.bytes says)."
        " Set them back once the brokers run Kafka 4.4.0, the first without it",
    ),
    # LogCleaner
    LOWER_END,
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
    OldFault(*NOT_VALID, 1),
    # GroupMetadataManager
    OldFault("KAFKA-17507", "offsets that a transaction committed may not be seen", 1),
    # LogSegment
    OldFault(*TIME_INDEX, None),
    # UnifiedLog
    OldFault(*LATE_EPOCH, 2),
    # LogSegment
    OldFault(*HIDDEN_CLOSE, None),
    # AbstractIndex
    OldFault(*LEAKED_MAPS, 2),
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
    # LogManager
    OldFault(*OFFLINE_DIRECTORY, None, only_with=Use.DIRECTORIES),
    # TransactionStateManager
    OldFault(*NEVER_LOADED, 2),
)
"""Worst first."""


def faults_of(version: KafkaVersion, unused: Collection[Use] = ()) -> tuple[OldFault, ...]:
    """Those of a release of Apache Kafka 3.9 that can show in a cluster without what is ``unused``; of any other
    none.
    """
    return tuple(each for each in FAULTS if each.is_in(version) and each.only_with not in unused)


def was_looked_at(version: KafkaVersion) -> bool:
    """Whether the list is of this release: one of Apache Kafka 3.9 that was out when the list was made."""
    return version.release == (3, 9) and version.patch is not None and version.patch <= LOOKED_AT
