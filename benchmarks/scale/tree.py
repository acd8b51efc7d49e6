"""Kafka's tree at any size, and the ZooKeeper snapshot file that holds it: two million partitions are written in
seconds, not created one by one.

A real server loads it at its start and needs no transaction log beside it. Measured: 1M partitions are 2.3M znodes,
413 MB.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

from kraft_runbook.io.zookeeper.snapshot_file import Snapshot, made_up, snapshot_file

ZXID = 0x100000010
"""The transaction that every node carries, and the snapshot's own."""
MADE_AT = 1_735_689_600_000
"""The nodes' times, in milliseconds: fixed, so that one shape is one file."""
OPEN = -1
"""The ACL "anyone may do anything" (``ReferenceCountedACLCache``)."""

_STAT = struct.Struct("!qqqqiiiqq")

AREAS = ("orders", "payments", "inventory", "shipping", "customers", "pricing", "clickstream", "audit")
EVENTS = ("created", "updated", "cancelled", "settled", "snapshot", "enriched", "deadletter", "changelog")


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the cluster is. ``partitions`` is a multiple of ``a_topic``; broker ids are 1 to ``brokers``,
    replication is 3. ``in_sync``: every replica is in its ISR, as the start gate asks; else one partition in 97 has
    lost its last one.
    """

    partitions: int
    brokers: int = 30
    a_topic: int = 10
    in_sync: bool = False

    def __post_init__(self) -> None:
        if self.partitions < self.a_topic or self.partitions % self.a_topic or self.brokers < 3:
            raise ValueError(
                f"{self.partitions} partitions on {self.brokers} brokers: give a multiple of {self.a_topic}, and at"
                " least three brokers"
            )

    @property
    def topics(self) -> int:
        return self.partitions // self.a_topic

    @property
    def znodes(self) -> int:
        """The znodes of topics alone: topic, its partitions, its config, and two a partition."""
        return 3 * self.topics + 2 * self.partitions


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What the tree says of one partition. ``epoch``: the state znode's version, which is the partition epoch."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    epoch: int


def topic_name(topic: int) -> str:
    return f"{AREAS[topic % 8]}.{EVENTS[topic // 8 % 8]}.{topic:06d}"


def topic_id(topic: int) -> str:
    """As Kafka writes ids: base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.md5(b"topic %d" % topic, usedforsecurity=False).digest())[:22].decode()


def topic_config(topic: int) -> dict[str, str]:
    return {"retention.ms": str(86_400_000 * (1 + topic % 14)), "min.insync.replicas": "2"}


def partition_facts(shape: Shape, topic: int, partition: int) -> PartitionFacts:
    """Assignments go round the brokers; the first replica leads."""
    number = topic * shape.a_topic + partition
    replicas = _replicas(
        (topic * 7 + partition) % shape.brokers, 1 + topic % max(1, (shape.brokers - 1) // 2), shape.brokers
    )
    leader_epoch = number % 50
    return PartitionFacts(
        replicas,
        replicas[:2] if number % 97 == 0 and not shape.in_sync else replicas,
        replicas[0],
        leader_epoch,
        leader_epoch + number % 7,
    )


@cache
def _replicas(first: int, step: int, brokers: int) -> tuple[int, ...]:
    return tuple(1 + (first + step * each) % brokers for each in range(3))


# -- the nodes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """One persistent node. ``data`` None: a container that Kafka made without any."""

    path: str
    data: bytes | None = None
    version: int = 0
    children: int = 0


def skeleton(cluster_id: str) -> Iterator[Node]:
    """What a broker of Kafka 3.9 makes at its start, parents first, without the topics."""
    data: dict[str, object] = {
        "/cluster/id": {"version": "1", "id": cluster_id},
        "/latest_producer_id_block": {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"},
        "/feature": {"features": {}, "version": 2, "status": 1},
        "/controller_epoch": 1,
        "/kafka-acl": None,
    }
    resources = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken")
    paths = [
        *(
            "",
            "/zookeeper",
            "/zookeeper/quota",
            "/zookeeper/config",
            "/cluster",
            "/cluster/id",
            "/brokers",
            "/brokers/ids",
            "/brokers/seqid",
        ),
        *(
            "/brokers/topics",
            "/config",
            "/config/changes",
            "/config/topics",
            "/config/clients",
            "/config/users",
            "/config/brokers",
            "/config/ips",
        ),
        *(
            "/admin",
            "/admin/delete_topics",
            "/consumers",
            "/isr_change_notification",
            "/log_dir_event_notification",
            "/latest_producer_id_block",
        ),
        *(
            "/feature",
            "/controller_epoch",
            "/kafka-acl",
            *(f"/kafka-acl/{each}" for each in resources),
            "/kafka-acl-changes",
        ),
        *(
            "/kafka-acl-extended",
            "/kafka-acl-extended/prefixed",
            *(f"/kafka-acl-extended/prefixed/{each}" for each in resources),
            "/kafka-acl-extended-changes",
        ),
    ]
    for path in paths:
        value = data.get(path)
        yield Node(path, None if value is None else json.dumps(value, separators=(",", ":")).encode())


def encode(node: Node) -> bytes:
    """One node as ``DataTree.serializeNode`` writes it."""
    return made_up(
        node.path.encode(), node.data, zxid=ZXID, at_ms=MADE_AT, version=node.version, children=node.children
    )


@cache
def _tail(version: int, children: int = 0) -> bytes:
    """The ACL and the stat of a node of this data version with so many children (each made once)."""
    return struct.pack("!q", OPEN) + _STAT.pack(ZXID, ZXID, MADE_AT, MADE_AT, version, children, 0, 0, ZXID)


def encode_topic(shape: Shape, topic: int) -> bytes:
    """All nodes of one topic: 3 and two a partition. Written out flat, since two million partitions come
    through here.
    """
    name = topic_name(topic)
    facts = [partition_facts(shape, topic, partition) for partition in range(shape.a_topic)]
    assignment = ",".join(f'"{number}":[{",".join(map(str, each.replicas))}]' for number, each in enumerate(facts))
    body = (
        f'{{"partitions":{{{assignment}}},"topic_id":"{topic_id(topic)}",'
        f'"adding_replicas":{{}},"removing_replicas":{{}},"version":3}}'
    )
    base = f"/brokers/topics/{name}"
    parts = [encode(Node(base, body.encode(), 0, 1)), encode(Node(f"{base}/partitions", None, 0, shape.a_topic))]
    none, length = struct.pack("!i", -1), struct.Struct("!i").pack
    for number, each in enumerate(facts):
        path = f"{base}/partitions/{number}".encode()
        isr = ",".join(map(str, each.isr))
        epoch = each.leader_epoch
        state = (
            f'{{"controller_epoch":1,"leader":{each.leader},"version":1,"leader_epoch":{epoch},"isr":[{isr}]}}'.encode()
        )
        parts += (length(len(path)), path, none, _tail(0, 1))
        parts += (length(len(path) + 6), path, b"/state", length(len(state)), state, _tail(each.epoch))
    config = json.dumps({"version": 1, "config": topic_config(topic)}, separators=(",", ":")).encode()
    parts.append(encode(Node(f"/config/topics/{name}", config)))
    return b"".join(parts)


# -- the file ----------------------------------------------------------------------------------------------------------


def write_snapshot(data_dir: Path, shape: Shape, cluster_id: str, others: Iterable[Node] = ()) -> Path:
    """Write ``<data_dir>/version-2/snapshot.<zxid>``; the path of the file. ``others``: nodes besides the topics',
    parents first; one with a path of the skeleton's takes that one's place.
    """
    with snapshot_file(data_dir) as snapshot:
        _write(snapshot, shape, cluster_id, others)
        snapshot.zxid = ZXID
    assert snapshot.path is not None
    return snapshot.path


def write_tree(file: BinaryIO, shape: Shape, cluster_id: str) -> None:
    """The whole snapshot, sealed."""
    snapshot = Snapshot(file)
    _write(snapshot, shape, cluster_id, ())
    snapshot.seal()


def _write(snapshot: Snapshot, shape: Shape, cluster_id: str, others: Iterable[Node]) -> None:
    nodes = {node.path: node for node in skeleton(cluster_id)} | {node.path: node for node in others}
    snapshot.write(encode(node) for node in nodes.values())
    for topic in range(shape.topics):
        snapshot.write([encode_topic(shape, topic)])
