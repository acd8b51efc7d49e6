"""The deep read of ZooKeeper: facts that need every topic's znodes. Counts are exact, samples capped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.clients.zookeeper_topics import read_topic_columns
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.observation import ZookeeperTree

SAMPLES = 20
TOPICS_AT_ONCE = 2000
REPLY_HEADER = 88
"""What a reply of getChildren2 has beside the names: its header (16), their number (4), the znode's stat (68)."""
KAFKA_ZNODES = ("/brokers/topics", "/config/topics", "/cluster/id", "/controller_epoch")
"""Znodes whose ACL tells whether ``zookeeper.set.acl`` was in force."""


class Tally:
    """Counts all and keeps the first few."""

    def __init__(self) -> None:
        self.count = 0
        self.samples: list[str] = []

    def add(self, item: str) -> None:
        self.count += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(item)


@dataclass(slots=True)
class _Topics:
    """What was seen of the topics."""

    unreadable: Tally
    partitions: int = 0
    assigned: set[int] = field(default_factory=set)
    without_id: Tally = field(default_factory=Tally)
    without_state: Tally = field(default_factory=Tally)
    under_replicated: Tally = field(default_factory=Tally)
    offline: Tally = field(default_factory=Tally)
    reassigning: Tally = field(default_factory=Tally)


def read_tree(reader: ZookeeperReader) -> ZookeeperTree:
    """Read every topic, partition state, config entity, ACL and consumer group. Raises Unreachable."""
    unreadable = Tally()
    names = reader.children("/brokers/topics") or ()
    seen = _Topics(unreadable)
    for topics in _slices(names, TOPICS_AT_ONCE):
        columns, odd = read_topic_columns(reader, topics)
        _see_columns(seen, columns)
        _see_one_by_one(seen, reader, odd)
    acl_count, bad_principals = _acls(reader, unreadable)
    return ZookeeperTree(
        topics=len(names),
        partitions=seen.partitions,
        topics_without_id=tuple(seen.without_id.samples),
        partitions_without_state=tuple(seen.without_state.samples),
        partitions_without_state_count=seen.without_state.count,
        under_replicated=tuple(seen.under_replicated.samples),
        under_replicated_count=seen.under_replicated.count,
        offline=tuple(seen.offline.samples),
        offline_count=seen.offline.count,
        reassigning=tuple(seen.reassigning.samples),
        assigned_broker_ids=frozenset(seen.assigned),
        topic_list_bytes=REPLY_HEADER + sum(4 + len(name.encode()) for name in names),
        unreadable=tuple(unreadable.samples),
        acl_count=acl_count,
        acls_with_bad_principal=bad_principals,
        config_entity_types=_config_entity_types(reader),
        encoded_broker_configs=_encoded_broker_configs(reader, unreadable),
        live_zookeeper_consumers=_live_consumers(reader),
        znode_acl_restricted=any(reader.is_restricted(path) for path in KAFKA_ZNODES),
    )


def _see_columns(seen: _Topics, columns: TopicColumns) -> None:
    """Topics in which every partition has its state, and all reads well."""
    held = columns.partitions
    seen.partitions += len(held)
    seen.assigned.update(np.unique(held.replicas.values).tolist())
    for at in np.unique(held.topic[(held.adding.lengths > 0) | (held.removing.lengths > 0)]).tolist():
        seen.reassigning.add(columns.names[at])
    replicas, in_sync = (np.repeat(np.arange(len(held)), each.lengths) << 32 | each.values for each in (held.replicas, held.isr))
    for tally, places in ((seen.under_replicated, np.unique(replicas[~np.isin(replicas, in_sync)] >> 32)), (seen.offline, np.flatnonzero(held.leader < 0))):
        for at in places.tolist():
            tally.add(f"{columns.names[held.topic[at]]}-{held.partition[at]}")


def _see_one_by_one(seen: _Topics, reader: ZookeeperReader, names: Sequence[str]) -> None:
    """Topics in which something is unusual."""
    expected: list[tuple[str, tuple[int, ...]]] = []
    for name, topic in zip(names, _values(reader, [f"/brokers/topics/{t}" for t in names], seen.unreadable), strict=True):
        if topic is None:
            continue
        if not topic.get("topic_id"):
            seen.without_id.add(name)
        if any(topic.get("adding_replicas", {}).values()) or any(topic.get("removing_replicas", {}).values()):
            seen.reassigning.add(name)
        expected += [(f"{name}-{p}", tuple(replicas)) for p, replicas in sorted(topic.get("partitions", {}).items(), key=lambda item: int(item[0]))]
    seen.partitions += len(expected)
    states = _values(reader, [_state_path(partition) for partition, _ in expected], seen.unreadable, missing=seen.without_state)
    for (partition, replicas), state in zip(expected, states, strict=True):
        seen.assigned.update(replicas)
        if state is None:
            continue
        if set(replicas) - set(state["isr"]):
            seen.under_replicated.add(partition)
        if state["leader"] < 0:
            seen.offline.add(partition)


def _state_path(partition: str) -> str:
    topic, _, number = partition.rpartition("-")
    return f"/brokers/topics/{topic}/partitions/{number}/state"


def _slices(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _values(reader: ZookeeperReader, paths: Sequence[str], unreadable: Tally, *, missing: Tally | None = None) -> list[dict[str, Any] | None]:
    """The JSON object of each znode; None where there is none or it can't be parsed (which is noted)."""
    found: list[dict[str, Any] | None] = []
    for path, znode in zip(paths, reader.get_many(paths), strict=True):
        if znode is None:
            if missing is not None:
                missing.add(path.removeprefix("/brokers/topics/").removesuffix("/state").replace("/partitions/", "-"))
            found.append(None)
            continue
        try:
            value = json.loads(znode.data)
            if not isinstance(value, dict) or (path.endswith("/state") and not {"isr", "leader"} <= value.keys()):
                raise ValueError("not the object that Kafka writes there")
            found.append(value)
        except ValueError:
            unreadable.add(path)
            found.append(None)
    return found


def _children(reader: ZookeeperReader, parents: Sequence[str]) -> list[str]:
    """The paths of all children of all parents."""
    return [f"{parent}/{name}" for parent, names in zip(parents, reader.children_many(parents), strict=True) for name in names or ()]


def _acls(reader: ZookeeperReader, unreadable: Tally) -> tuple[int, tuple[str, ...]]:
    """How many ACL entries there are, and the resources of those whose principal does not begin with ``User:``."""
    types = _children(reader, ["/kafka-acl"]) + _children(reader, _children(reader, ["/kafka-acl-extended"]))
    resources = _children(reader, types)
    count, bad = 0, Tally()
    for path, value in zip(resources, _values(reader, resources, unreadable), strict=True):
        for entry in (value or {}).get("acls", ()):
            count += 1
            if not str(entry.get("principal", "")).startswith("User:"):
                bad.add(path)
    return count, tuple(bad.samples)


def _config_entity_types(reader: ZookeeperReader) -> frozenset[str]:
    types = [name for name in reader.children("/config") or () if name != "changes"]
    return frozenset(t for t, names in zip(types, reader.children_many([f"/config/{t}" for t in types]), strict=True) if names)


def _encoded_broker_configs(reader: ZookeeperReader, unreadable: Tally) -> tuple[str, ...]:
    """Dynamic broker configs in the form that Kafka's PasswordEncoder writes; names only."""
    paths = _children(reader, ["/config/brokers"])
    found = []
    for path, value in zip(paths, _values(reader, paths, unreadable), strict=True):
        entity = path.rpartition("/")[2]
        found += [f"{entity}:{key}" for key, config in (value or {}).get("config", {}).items() if "encryptedPassword:" in str(config)]
    return tuple(found)


def _live_consumers(reader: ZookeeperReader) -> tuple[str, ...]:
    groups = reader.children("/consumers") or ()
    return tuple(g for g, ids in zip(groups, reader.children_many([f"/consumers/{g}/ids" for g in groups]), strict=True) if ids)[:SAMPLES]
