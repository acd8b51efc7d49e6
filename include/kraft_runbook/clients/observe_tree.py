"""The deep read of ZooKeeper: facts that need every topic's znodes. Counts are exact, samples capped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.observation import ZookeeperTree

SAMPLES = 20
TOPICS_AT_ONCE = 2000
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


def read_tree(reader: ZookeeperReader) -> ZookeeperTree:
    """Read every topic, partition state, config entity, ACL and consumer group. Raises Unreachable."""
    unreadable = Tally()
    names = reader.children("/brokers/topics") or ()
    without_id, without_state, under_replicated, offline, reassigning = Tally(), Tally(), Tally(), Tally(), Tally()
    assigned: set[int] = set()
    partitions = 0
    for topics in _slices(names, TOPICS_AT_ONCE):
        expected: list[tuple[str, tuple[int, ...]]] = []
        for name, topic in zip(topics, _values(reader, [f"/brokers/topics/{t}" for t in topics], unreadable), strict=True):
            if topic is None:
                continue
            if not topic.get("topic_id"):
                without_id.add(name)
            if any(topic.get("adding_replicas", {}).values()) or any(topic.get("removing_replicas", {}).values()):
                reassigning.add(name)
            expected += [(f"{name}-{p}", tuple(replicas)) for p, replicas in sorted(topic.get("partitions", {}).items(), key=lambda item: int(item[0]))]
        partitions += len(expected)
        states = _values(reader, [_state_path(partition) for partition, _ in expected], unreadable, missing=without_state)
        for (partition, replicas), state in zip(expected, states, strict=True):
            assigned.update(replicas)
            if state is None:
                continue
            if set(replicas) - set(state["isr"]):
                under_replicated.add(partition)
            if state["leader"] < 0:
                offline.add(partition)
    acl_count, bad_principals = _acls(reader, unreadable)
    return ZookeeperTree(
        topics=len(names),
        partitions=partitions,
        topics_without_id=tuple(without_id.samples),
        partitions_without_state=tuple(without_state.samples),
        partitions_without_state_count=without_state.count,
        under_replicated=tuple(under_replicated.samples),
        under_replicated_count=under_replicated.count,
        offline=tuple(offline.samples),
        offline_count=offline.count,
        reassigning=tuple(reassigning.samples),
        assigned_broker_ids=frozenset(assigned),
        unreadable=tuple(unreadable.samples),
        acl_count=acl_count,
        acls_with_bad_principal=bad_principals,
        config_entity_types=_config_entity_types(reader),
        encoded_broker_configs=_encoded_broker_configs(reader, unreadable),
        live_zookeeper_consumers=_live_consumers(reader),
        znode_acl_restricted=any(reader.is_restricted(path) for path in KAFKA_ZNODES),
    )


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
