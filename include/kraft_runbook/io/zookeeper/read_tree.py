"""The deep read of ZooKeeper: facts that need every topic's znodes, and every other znode that a migration carries.
Counts are exact, samples capped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.cluster.copy_groups import RECORDS_AT_ONCE
from kraft_runbook.cluster.observation import ZookeeperTree
from kraft_runbook.io.slices import slices
from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.read_entities import read_entities
from kraft_runbook.io.zookeeper.read_epochs import compared
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.metadata.znodes.copied_records import CopiedRecords
from kraft_runbook.metadata.znodes.min_isr_groups import MinIsrGroups
from kraft_runbook.metadata.znodes.state_columns import repeats
from kraft_runbook.metadata.znodes.state_epochs import StateEpochs
from kraft_runbook.metadata.znodes.tally import Tally, found_in
from kraft_runbook.metadata.znodes.znode_columns import is_plain_name
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets, ZnodeFindings
from kraft_runbook.metadata.znodes.znode_json import parse_object
from kraft_runbook.metadata.znodes.znode_rows import Decoding

TOPICS_AT_ONCE = 2000
SETTLING_SECONDS = 1.0
"""In which a topic that is created or deleted is whole, or gone (some milliseconds, measured)."""
KRAFTS_OWN = "__cluster_metadata"
"""Kafka takes it as a topic's name, and keeps the metadata log below it (``Topic.CLUSTER_METADATA_TOPIC_NAME``)."""
KAFKA_ZNODES = ("/brokers/topics", "/config/topics", "/cluster/id", "/controller_epoch")
"""Znodes whose ACL tells whether ``zookeeper.set.acl`` was in force."""


@dataclass(slots=True)
class _Topics:
    """What was seen of the topics."""

    findings: ZnodeFindings
    partitions: int = 0
    assigned: set[int] = field(default_factory=set)
    without_id: Tally = field(default_factory=Tally)
    without_state: Tally = field(default_factory=Tally)
    under_replicated: Tally = field(default_factory=Tally)
    offline: Tally = field(default_factory=Tally)
    reassigning: Tally = field(default_factory=Tally)
    bad_replicas: Tally = field(default_factory=Tally)
    large: Tally = field(default_factory=Tally)
    min_isr: MinIsrGroups = field(default_factory=MinIsrGroups)
    copied: CopiedRecords = field(default_factory=CopiedRecords)
    first_with: dict[str, str] = field(default_factory=dict)
    """The first topic with each id."""
    shared_ids: Tally = field(default_factory=Tally)
    epochs: StateEpochs = field(default_factory=StateEpochs)
    ids: dict[str, str] = field(default_factory=dict)
    """The id of each topic that has one."""

    def see_id(self, name: str, topic_id: str) -> None:
        self.ids[name] = topic_id
        first = self.first_with.setdefault(topic_id, name)
        if first != name:
            self.shared_ids.add(f"{name} has the id of {first}")

    def see_replicas(self, name: str, partition: object, replicas: Sequence[int] | NDArray[np.int32]) -> None:
        """A replica list that no controller makes: an empty one, or one that names a broker twice."""
        if not len(replicas) or len(set(replicas)) < len(replicas):
            self.bad_replicas.add(f"{name}-{partition} [{','.join(map(str, replicas))}]")


def read_tree(
    reader: ZookeeperReader, decoding: Decoding, secrets: PasswordSecrets, topic_ids: dict[str, str] | None = None
) -> ZookeeperTree:
    """Read every topic, partition state, config entity, ACL and token. ``topic_ids`` is given the id
    of each topic that has one. Raises Unreachable.
    """
    findings = ZnodeFindings(decoding, secrets)
    names = reader.children("/brokers/topics") or ()
    seen = _Topics(findings)
    unusual: list[str] = []
    for topics in slices(names, TOPICS_AT_ONCE):
        columns, odd = read_topic_columns(reader, topics, epochs=seen.epochs)
        _see_columns(seen, columns)
        unusual += odd
    _see_what_lasts(seen, reader, unusual)
    epochs = compared(reader, seen.epochs)
    if topic_ids is not None:
        topic_ids |= seen.ids
    entities = read_entities(reader, findings, topics=names, copied=seen.copied)
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
        bad_replica_lists=seen.bad_replicas.found,
        bad_topic_names=found_in(repr(name) for name in names if not is_plain_name(name) or name == KRAFTS_OWN),
        longest_list=entities.longest_list,
        unreadable=tuple(findings.unreadable.samples),
        unreadable_count=findings.unreadable.count,
        faults=findings.faults,
        stored_passwords=findings.passwords,
        tiered_topics=findings.tiered.found,
        large_topics=seen.large.found,
        shared_topic_ids=seen.shared_ids.found,
        min_isr_groups=seen.min_isr.groups,
        min_isr_of_brokers=entities.min_isr_of_brokers,
        late_configs_of_brokers=entities.late_configs_of_brokers,
        acl_count=entities.acl_count,
        delegation_tokens=entities.delegation_tokens,
        config_entity_types=entities.config_entity_types,
        encoded_broker_configs=entities.encoded_broker_configs,
        copied=seen.copied.groups,
        znode_acl_restricted=any(reader.is_restricted(path) for path in KAFKA_ZNODES),
        controller_epochs=epochs,
    )


def _see_columns(seen: _Topics, columns: TopicColumns) -> None:
    """Topics in which every partition has its state, and all reads well."""
    held = columns.partitions
    seen.partitions += len(held)
    seen.assigned.update(np.unique(held.replicas.values).tolist())
    for at in np.unique(held.topic[(held.adding.lengths > 0) | (held.removing.lengths > 0)]).tolist():
        seen.reassigning.add(columns.names[at])
    for at in np.flatnonzero(np.bincount(held.topic, minlength=1) > RECORDS_AT_ONCE).tolist():
        seen.large.add(columns.names[at])
    replicas, in_sync = (
        np.repeat(np.arange(len(held)), each.lengths) << 32 | each.values for each in (held.replicas, held.isr)
    )
    for tally, places in (
        (seen.under_replicated, np.unique(replicas[~np.isin(replicas, in_sync)] >> 32)),
        (seen.offline, np.flatnonzero(held.leader < 0)),
    ):
        for at in places.tolist():
            tally.add(f"{columns.names[held.topic[at]]}-{held.partition[at]}")
    for at in np.flatnonzero(repeats(held.replicas)).tolist():
        seen.see_replicas(columns.names[held.topic[at]], held.partition[at], held.replicas.take(np.array([at])).values)
    for name, topic_id in zip(columns.names, columns.ids, strict=True):
        seen.see_id(name, topic_id)
    seen.min_isr.see_columns(columns)
    seen.copied.see_columns(columns)
    seen.findings.see_topic_configs(columns)


def _see_what_lasts(
    seen: _Topics, reader: ZookeeperReader, names: Sequence[str], *, sleep: Callable[[float], object] = time.sleep
) -> None:
    """A topic that is being created lacks its partitions' states for a moment, one that is being deleted too: what is
    missing is read again before it counts.
    """
    first = _Topics(seen.findings.begun_anew())
    _see_one_by_one(first, reader, names)
    if first.without_state.count or first.without_id.count:
        sleep(SETTLING_SECONDS)
    _see_one_by_one(seen, reader, names)


def _see_one_by_one(seen: _Topics, reader: ZookeeperReader, names: Sequence[str]) -> None:
    """Topics in which something is unusual."""
    configs = _objects(seen, reader, [f"/config/topics/{name}" for name in names])
    expected: list[tuple[str, str, tuple[int, ...]]] = []
    for name, topic, config in zip(
        names, _objects(seen, reader, [f"/brokers/topics/{name}" for name in names]), configs, strict=True
    ):
        if topic is None:
            continue
        if not topic.get("topic_id"):
            seen.without_id.add(name)
        else:
            seen.see_id(name, topic["topic_id"])
        if any(topic.get("adding_replicas", {}).values()) or any(topic.get("removing_replicas", {}).values()):
            seen.reassigning.add(name)
        partitions: dict[str, list[int]] = topic.get("partitions", {})
        if len(partitions) > RECORDS_AT_ONCE:
            seen.large.add(name)
        expected += [
            (name, number, tuple(replicas))
            for number, replicas in sorted(partitions.items(), key=lambda item: int(item[0]))
        ]
        own: dict[str, str] = (config or {}).get("config", {})
        seen.min_isr.see(name, own, map(len, partitions.values()))
        seen.copied.see_topic(name, map(len, partitions.values()), own)
    seen.partitions += len(expected)
    states = _objects(
        seen,
        reader,
        [f"/brokers/topics/{name}/partitions/{number}/state" for name, number, _ in expected],
        missing=seen.without_state,
    )
    for (name, number, replicas), state in zip(expected, states, strict=True):
        seen.assigned.update(replicas)
        seen.see_replicas(name, number, replicas)
        if state is None:
            continue
        seen.epochs.see(name, int(number), int(state["controller_epoch"]))
        if set(replicas) - set(state["isr"]):
            seen.under_replicated.add(f"{name}-{number}")
        if state["leader"] < 0:
            seen.offline.add(f"{name}-{number}")


def _objects(
    seen: _Topics, reader: ZookeeperReader, paths: Sequence[str], *, missing: Tally | None = None
) -> list[dict[str, Any] | None]:
    """The JSON object of each znode; None where there is none, where it is empty, or where it is not what Kafka writes
    there (which is noted).
    """
    found: list[dict[str, Any] | None] = []
    for path, znode in zip(paths, reader.get_many(paths), strict=True):
        if znode is None and missing is not None:
            missing.add(path.removeprefix("/brokers/topics/").removesuffix("/state").replace("/partitions/", "-"))
        readable = znode is not None and seen.findings.see(path, znode.data)
        found.append(parse_object(znode.data) if znode is not None and readable and znode.data else None)
    return found
