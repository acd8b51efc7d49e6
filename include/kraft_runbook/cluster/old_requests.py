"""Requests in versions that Kafka's next major release answers no more (KIP-896), as a broker counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.kafka_version import KafkaVersion

UNNAMED = "unknown"
"""What Kafka counts for a client that does not say which software it is (``ClientInformation``). Clients say so from
Kafka 2.4 on (KIP-511), so most of those that matter here do not.
"""

FIRST_ANSWERED: Mapping[str, int] = {
    "Produce": 3,
    "Fetch": 4,
    "ListOffsets": 1,
    "OffsetCommit": 2,
    "OffsetFetch": 1,
    "CreateTopics": 2,
    "DeleteTopics": 1,
    "OffsetForLeaderEpoch": 2,
    "DescribeAcls": 1,
    "CreateAcls": 1,
    "DeleteAcls": 1,
    "DescribeConfigs": 1,
    "AlterReplicaLogDirs": 1,
    "DescribeLogDirs": 1,
    "CreateDelegationToken": 1,
    "RenewDelegationToken": 1,
    "ExpireDelegationToken": 1,
    "DescribeDelegationToken": 1,
}
"""The first version of each API of clients that Kafka 4 answers, where 3.9 answers earlier ones too. Made by
``tests/unit/PrintRequestVersions.java`` from the jars of 3.9.2, 4.0.2, 4.1.1, 4.2.2 and 4.4.0, which agree.
"""
OF_4_0_0: Mapping[str, int] = {**FIRST_ANSWERED, "JoinGroup": 2}
"""4.0.0 alone answers two fewer (KAFKA-19444)."""


def is_answered(api: str, version: str | int, target: str) -> bool:
    """Whether this Kafka 4 answers that request. 3.9.0 and 3.9.1 count more as deprecated than Kafka 4 took away
    (KAFKA-19494). ``api``: in any case, as a request log has FETCH or JOIN_GROUP. What can't be told is not answered.
    """
    answered = OF_4_0_0 if KafkaVersion.of(target).may_be("4.0.0") else FIRST_ANSWERED
    first = {name.lower(): number for name, number in answered.items()}
    return str(version).isdigit() and int(version) >= first.get(api.replace("_", "").lower(), 0)


def not_counted(target: str) -> str | None:
    """Which requests this Kafka 4 does not answer, though no broker of Kafka 3.9 counts them."""
    version = KafkaVersion.of(target)
    if not version.may_be("4.0.0"):
        return None
    may_be = "" if version.patch == 0 else f"{target} may be Kafka 4.0.0, its number does not say; "
    return f"{may_be}Kafka 4.0.0 alone does not answer JoinGroup 0 and 1, which 3.9.2 does not count: 4.0.1 does"


@dataclass(frozen=True, slots=True)
class OldRequests:
    """What one client software asked in one version of one API: ``kafka.network:type=RequestMetrics,
    name=DeprecatedRequestsPerSec,request=…,version=…,clientSoftwareName=…,clientSoftwareVersion=…``.

    ``count``: of requests since the broker's start.
    """

    client: str
    client_version: str
    api: str
    version: str
    count: int

    @property
    def software(self) -> str:
        """Which software asks, for a person."""
        if self.client == UNNAMED:
            return "software that gives no name"
        return f"{self.client} {self.client_version}".rstrip()

    @property
    def asked(self) -> str:
        return f"{self.api} {self.version}"


@dataclass(frozen=True, slots=True)
class LoggedClient:
    """One client that asked so, by a broker's request log. ``api``: as the log names it. ``at``: of its last request
    there, in the log's own words.
    """

    api: str
    version: int
    client_id: str
    principal: str
    address: str
    count: int
    at: str


@dataclass(frozen=True, slots=True)
class LoggedRequests:
    """What a broker's request logs say. ``more``: clients that are left out. ``since``: the time of the first line that
    was read, in the log's own words; empty where none has one.
    """

    clients: tuple[LoggedClient, ...] = ()
    more: int = 0
    since: str = ""
