"""The kinds of what is wrong with a group: which of them stop a move, why, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class FaultKind(StrEnum):
    NEW_BESIDE_OLD = "new beside old"
    KAFKA_AHEAD = "Kafka is ahead beside a live member"
    SIDES_DIFFER = "sides differ"
    HASHES_COLLIDE = "hashes collide"
    ESCAPED_TWICE = "pattern escaped twice"
    OFFSET_UNUSABLE = "offset unusable"
    OFFSET_OUTSIDE_LOG = "offset outside the log"
    WITHOUT_OFFSET = "without offset"
    STATIC_MEMBERS = "static members"
    OTHER_ASSIGNOR = "other assignor"
    EAGER_ASSIGNOR = "eager assignor"
    FENCED_BESIDE_MIGRATING = "fenced beside migrating members"


STOPPING = frozenset(
    {
        FaultKind.NEW_BESIDE_OLD,
        FaultKind.KAFKA_AHEAD,
        FaultKind.HASHES_COLLIDE,
        FaultKind.ESCAPED_TWICE,
        FaultKind.OFFSET_UNUSABLE,
        FaultKind.OFFSET_OUTSIDE_LOG,
        FaultKind.OTHER_ASSIGNOR,
        FaultKind.FENCED_BESIDE_MIGRATING,
    }
)
"""The others are decided, or waited for, when the group is moved."""
WHY_REFUSED: Mapping[FaultKind, str] = {
    FaultKind.NEW_BESIDE_OLD: "both sides consume every partition",
    FaultKind.KAFKA_AHEAD: "an old member commits to Kafka, and such commits are lost once a new member joins; or these"
    " offsets are left from an earlier try, and whoever begins there skips records",
    FaultKind.HASHES_COLLIDE: "with roundrobin its members may order these partitions differently",
    FaultKind.ESCAPED_TWICE: "1.1.1 escapes such a pattern twice, so that the member owns nothing",
    FaultKind.OFFSET_UNUSABLE: "these offsets can't be carried over",
    FaultKind.OFFSET_OUTSIDE_LOG: "a member would begin where auto.offset.reset says",
    FaultKind.OTHER_ASSIGNOR: "a migrating consumer knows cooperative-sticky, range and roundrobin alone",
    FaultKind.FENCED_BESIDE_MIGRATING: "no member can own these partitions, so nobody consumes those that Kafka assigns"
    " to a migrating one",
}
WAY_OUT: Mapping[FaultKind, str] = {
    FaultKind.NEW_BESIDE_OLD: "stop one side",
    FaultKind.KAFKA_AHEAD: "where they move from one scan to the next: deploy its members with dual.commit.enabled=true"
    " until ZooKeeper has them too, then with offsets.storage=zookeeper and dual.commit.enabled=false. Else stop"
    " whoever is in Kafka's group, and delete them there:"
    " kafka-consumer-groups --delete-offsets --group GROUP --topic TOPIC",
    FaultKind.HASHES_COLLIDE: "set partition.assignment.strategy=range on all its members",
    FaultKind.ESCAPED_TWICE: "write [.] for \\. in the pattern",
    FaultKind.OFFSET_UNUSABLE: "correct or delete these znodes",
    FaultKind.OFFSET_OUTSIDE_LOG: "decide where it is to begin, and write that offset",
    FaultKind.OTHER_ASSIGNOR: "give the new members one of these in partition.assignment.strategy",
    FaultKind.EAGER_ASSIGNOR: "where the new members' list lacks cooperative-sticky (Java's default has it), start"
    " migrating members with coordination.migration.partition.assignment.strategy=range,roundrobin. Where"
    " migrating members run already, change it while the mode is zookeeper, or with all of them stopped: Kafka lets"
    " none in beside those with another strategy",
    FaultKind.FENCED_BESIDE_MIGRATING: "stop the migrating members; then start KafkaConsumers, or go back by"
    " move_consumer_group, which lifts the fence",
}
