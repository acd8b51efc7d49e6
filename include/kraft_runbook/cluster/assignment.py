"""Which brokers hold which partition: what was seen, what is wanted, and what moves between the two (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kraft_runbook.errors import Refused


class TopicPartition(NamedTuple):
    """One partition of a topic. Written as Kafka writes it: ``orders-3``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Replicas = tuple[int, ...]
"""The ids of the brokers that hold a partition, in order. The first is its preferred leader."""

Assignment = Mapping[TopicPartition, Replicas]


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """A partition as Metadata shows it. ``replicas`` holds those that a reassignment adds or removes as well;
    ``leader`` is None while there is none.
    """

    replicas: Replicas
    leader: int | None
    isr: Replicas


@dataclass(frozen=True, slots=True)
class Ongoing:
    """A partition that is being reassigned (ListPartitionReassignments).

    ``replicas``: the target in its order, then those that leave. ``adding`` keeps a replica that has joined the ISR
    until the whole reassignment ends (measured on 3.9.2).
    """

    replicas: Replicas
    adding: Replicas
    removing: Replicas

    @property
    def target(self) -> Replicas:
        """The replicas that it will have, in their order."""
        return tuple(each for each in self.replicas if each not in self.removing)

    @property
    def original(self) -> Replicas:
        """The replicas that it had, not in their former order: Kafka no longer knows that."""
        return tuple(each for each in self.replicas if each not in self.adding)


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's way from the replicas that it has to those that it is to have."""

    partition: TopicPartition
    present: Replicas
    target: Replicas

    @property
    def adding(self) -> Replicas:
        """The brokers that must copy the partition."""
        return tuple(each for each in self.target if each not in self.present)

    @property
    def removing(self) -> Replicas:
        """The brokers that delete their copy when all that are added are in sync."""
        return tuple(each for each in self.present if each not in self.target)


def partitions_named(text: str) -> tuple[TopicPartition, ...]:
    """The partitions that a person names, separated by blanks or commas, as Kafka writes them: ``orders-3``. Raises
    Refused for a name that is none.
    """
    found = []
    for each in text.replace(",", " ").split():
        topic, _, number = each.rpartition("-")
        if not topic or not (number.isascii() and number.isdigit()):
            raise Refused(f"{each!r} names no partition", way_out="write topic and number, such as orders-3")
        found.append(TopicPartition(topic, int(number)))
    return tuple(dict.fromkeys(found))


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, as Kafka's requests have them."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


class Answer(StrEnum):
    """What Kafka answers of one partition to AlterPartitionReassignments, in the words of its error codes
    (``org.apache.kafka.common.protocol.Errors``).

    NOT_APPLIED: nothing answered in time, and a later look did not show it. It may still come to pass while a busy
    controller works off its queue; sending the same again is harmless.
    """

    ACCEPTED = "accepted"
    INVALID_REPLICA_ASSIGNMENT = "invalid replica assignment"
    INVALID_REPLICATION_FACTOR = "invalid replication factor"
    NO_REASSIGNMENT_IN_PROGRESS = "no reassignment in progress"
    UNKNOWN_TOPIC_OR_PARTITION = "unknown topic or partition"
    CLUSTER_AUTHORIZATION_FAILED = "cluster authorization failed"
    NOT_CONTROLLER = "not the controller"
    REQUEST_TIMED_OUT = "request timed out"
    NOT_APPLIED = "not applied"
    OTHER = "other error"


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """Kafka's answer about one partition, with its own text where it gave one."""

    partition: TopicPartition
    answer: Answer
    text: str = ""

    @property
    def accepted(self) -> bool:
        return self.answer is Answer.ACCEPTED

    def __str__(self) -> str:
        return f"{self.partition}: {self.answer}{f' ({self.text})' if self.text else ''}"
