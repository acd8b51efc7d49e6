"""Whether the software can still go back, and what it takes: known before the way forward is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, FeatureObservation, NodeOnDisk, SoftwareLevels
from kraft_runbook.cluster.observation import ClusterObservation, Unread, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.metadata.metadata_version import BRINGS, LEVELS, highest_level
from kraft_runbook.runbook.obstacle import Obstacle
from kraft_runbook.software.readable import SNAPSHOT_INTERVAL_MS, unreadable

INTERVAL = "metadata.log.max.snapshot.interval.ms"


@dataclass(frozen=True, slots=True)
class SoftwareWay:
    """Whether every node can start on a version now. ``closed``: no, and not by waiting or lowering either.
    ``in_the_way``: what stands there, node by node. ``may_be_closed``: why it is not known whether it is closed.
    """

    version: str
    in_the_way: Mapping[int, tuple[Obstacle, ...]]
    closed: tuple[str, ...] = ()
    may_be_closed: str = ""

    @property
    def open(self) -> bool:
        return not self.closed and not any(self.in_the_way.values())

    @property
    def unknown(self) -> bool:
        """Whether nothing but what was not read stands in the way, or what stands there may be there for good."""
        found = [each for of_node in self.in_the_way.values() for each in of_node]
        return not self.closed and bool(found) and (bool(self.may_be_closed) or all(each.unknown for each in found))

    @property
    def why(self) -> str:
        """What closes it, what stands in the way, or what was not read, without the answer itself: in one line."""
        found = [str(each).removesuffix(".") for of_node in self.in_the_way.values() for each in of_node]
        may_be = [self.may_be_closed] if self.may_be_closed else []
        return "; ".join(self.closed or [*may_be, *found])

    def render_text(self) -> str:
        """The answer for a person: open, not yet (and until when), not known (and why), or closed (and by what)."""
        if self.open:
            return f"every node can start on {self.version} now"
        if self.closed:
            return f"closed: {'; '.join(self.closed)}"
        lines = [str(each) for found in self.in_the_way.values() for each in found]
        told = f"not yet: {len(lines)} things keep nodes from starting on {self.version}"
        if self.unknown and self.may_be_closed:
            unread = f"{self.may_be_closed[0].upper()}{self.may_be_closed[1:]}"
            told = f"not known: whether the way to {self.version} is closed for good. {unread}"
        elif self.unknown:
            told = f"not known: whether every node can start on {self.version}"
        return "\n".join([told, *(f"  {line}" for line in lines)])


def way_to(seen: FeatureObservation, software: SoftwareLevels, now: SoftwareLevels) -> SoftwareWay:
    """Whether each node can start on ``software``, which is read out of its own jar. ``now``: the levels of the version
    that runs, by which a level may be lowered again.
    """
    in_the_way = {}
    for node_id in seen.nodes:
        host = seen.hosts[node_id]
        disk = host if isinstance(host, Unread) else host.disk
        found = unreadable(seen.who(node_id), disk, software, interval_ms=snapshot_interval(seen, node_id))
        if found:
            in_the_way[node_id] = found
    closed = tuple(_closed(seen, software, now))
    may_be = "" if closed or not isinstance(seen.log, Unread) else _may_be_closed(seen.log)
    return SoftwareWay(software.version, in_the_way, closed, may_be)


def software_way(seen: ClusterObservation, spec: ClusterSpec, software: Software | None) -> SoftwareWay | Unread:
    """Whether every node can start on that software; Unread where its jar was not read on any host."""
    features = seen.features
    if isinstance(features, Unread):
        return features
    if software is None:
        return Unread("the cluster file names no kafka.upgrade_to")
    target = _levels_in(features, software.home)
    if target is None:
        return Unread(f"the levels of Kafka {software.version} could not be read in {software.home} on any host")
    newest = _levels_in(features, spec.kafka.upgrade_to.home) if spec.kafka.upgrade_to else None
    return way_to(features, target, newest or target)


def level_beyond(seen: ClusterObservation, version: str) -> str | None:
    """What shows without any host that no node can start on that version: metadata.version is above the highest level
    of its release, by this tool's own list. None where that does not show it, which is no yes.
    """
    level, highest = seen.quorum.metadata_version if was_read(seen.quorum) else None, highest_level(version)
    if level is None or highest is None or level <= highest:
        return None
    return f"metadata.version is {level}, and Kafka {version} knows no level above {highest}: no node can start on it"


def _levels_in(features: FeatureObservation, home: str) -> SoftwareLevels | None:
    for host in features.hosts.values():
        found = None if isinstance(host, Unread) else host.software.get(home)
        if isinstance(found, SoftwareLevels):
            return found
    return None


def snapshot_interval(seen: FeatureObservation, node_id: int) -> int:
    """How often the node takes a snapshot, in milliseconds, by its own file; 0: by the size of its log alone."""
    host = seen.hosts[node_id]
    config = None if isinstance(host, Unread) else host.config
    return interval_in(None if isinstance(config, Unread) else config)


def interval_in(config: Mapping[str, str] | None) -> int:
    """The same of one file; Kafka's default where it does not say, or was not read."""
    given = (config or {}).get(INTERVAL, "")
    return int(given) if given.isdigit() else SNAPSHOT_INTERVAL_MS


def _closed(seen: FeatureObservation, software: SoftwareLevels, now: SoftwareLevels) -> list[str]:
    """What no waiting opens: metadata.version above the software's range, with a level between that changed
    metadata.
    """
    table = software.features.get(METADATA_VERSION)
    if table is None:
        return []
    if isinstance(seen.log, Unread):
        level = _committed_on_disks(seen)
        holds = f"the nodes' disks hold metadata.version {level}"
    else:
        level = seen.log.levels.get(METADATA_VERSION, 0)
        holds = f"metadata.version is {level}"
    between = [
        f"{number} ({name})"
        for number, name in _changed_metadata(now, level)
        if table.supported.highest < number <= level
    ]
    if not between:
        return []
    return [
        f"{holds}, {software.version} supports {table.supported}, and {', '.join(between)} between"
        " changed metadata: no server lowers across that"
    ]


def _committed_on_disks(seen: FeatureObservation) -> int:
    """The highest metadata.version that the nodes' own disks prove to have been committed; 0: they prove none.

    A snapshot holds only what was committed, but for one that ends at 0, which says nothing: 4.4 formats a directory
    with that. A record after it may never be committed: it counts where a majority of the controllers hold it, or a
    higher level.
    """
    disks = {i: host.disk for i, host in seen.hosts.items() if not isinstance(host, Unread)}
    read = {i: disk for i, disk in disks.items() if not isinstance(disk, Unread)}
    in_snapshots = [_last_level(replace(disk, after=())) for disk in read.values()]
    by_controller = sorted((_last_level(read[i]) for i in seen.controllers if i in read), reverse=True)
    of_majority = by_controller[len(seen.controllers) // 2 :][:1]
    return max([*in_snapshots, *of_majority], default=0)


def _last_level(disk: NodeOnDisk) -> int:
    held = disk.snapshot.levels.get(METADATA_VERSION, 0) if disk.snapshot and disk.snapshot.end else 0
    return next((each.level for each in reversed(disk.after) if each.feature == METADATA_VERSION), held)


def _may_be_closed(log: Unread) -> str:
    return (
        f"the metadata log was not read ({log.reason}), and the nodes' disks do not prove that metadata.version passed"
        " a level that changed metadata"
    )


def _changed_metadata(now: SoftwareLevels, level: int) -> list[tuple[int, str]]:
    """The levels that changed metadata: by the running software's own table; by this tool's list where that does not
    know the level, as an older version's does not.
    """
    table = now.features.get(METADATA_VERSION)
    if table is not None and level in table.supported:
        return [(each.number, each.name) for each in table.levels if each.changes_metadata]
    return [(number, name) for name, number in LEVELS.items() if number in BRINGS]
