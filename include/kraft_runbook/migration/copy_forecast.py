"""The expected metadata copy of an observed cluster: its size, and the size in its controllers' files. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.copy_groups import CopyGroups
from kraft_runbook.cluster.observation import ClusterObservation, HostState, Unread, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.controller_files import settled_size
from kraft_runbook.migration.copy_tuning import CopyTuning, size_of, tune

COPY_AHEAD = frozenset({Phase.ZOOKEEPER, Phase.PRE_MIGRATION})
"""The phases in which the metadata is still to be copied."""


def copy_tuning(seen: ClusterObservation, spec: ClusterSpec) -> CopyTuning | Unread:
    """The tuning of the cluster as it was observed. Unread: its partitions could not be counted."""
    partitions = _partitions(seen)
    if not was_read(partitions):
        return partitions
    settled = settled_size(spec, files_of(seen.hosts)) if was_read(seen.hosts) else None
    return tune(spec, partitions, topics=_topics(seen), size=settled or size_of(partitions, copied_of(seen)))


def copied_of(seen: ClusterObservation) -> CopyGroups | Unread:
    """What the copy has to append, by the deep read of ZooKeeper."""
    return seen.tree.copied if was_read(seen.tree) else seen.tree


def _partitions(seen: ClusterObservation) -> int | Unread:
    """Counted in ZooKeeper if its tree was read, else in the brokers' Metadata (in ZooKeeper mode that comes from
    ZooKeeper).
    """
    if was_read(seen.zookeeper) and was_read(seen.zookeeper.tree):
        return seen.zookeeper.tree.partitions
    return seen.topics.partition_count if was_read(seen.topics) else seen.topics


def _topics(seen: ClusterObservation) -> int | None:
    return seen.zookeeper.topic_count if was_read(seen.zookeeper) else None


def files_of(hosts: Mapping[int, HostState]) -> dict[int, Mapping[str, str]]:
    """The configuration of each host that has one and could be read."""
    return {i: host.config for i, host in hosts.items() if was_read(host.config) and host.config is not None}
