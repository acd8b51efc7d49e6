"""Where a cluster's feature levels stand, for a person and for machines: a value and its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.feature_levels import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureObservation,
    Level,
    LevelsInLog,
    NodeFeatures,
    NodeHost,
    SoftwareLevels,
    WrittenLevel,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.levels.obstacles import running_software
from kraft_runbook.metadata.metadata_version import BRINGS, NEWEST_LEVEL
from kraft_runbook.runbook.registrations import CONTROLLERS_REGISTER


@dataclass(frozen=True, slots=True)
class Overview:
    """``software``: the levels of the version that every node runs; what is unknown or mixed is a reason."""

    seen: FeatureObservation
    software: SoftwareLevels | str
    findings: tuple[str, ...]

    def render_text(self) -> str:
        return "\n".join(_lines(self))


def overview(seen: FeatureObservation) -> Overview:
    """One look, summed up."""
    found = running_software(seen)
    software = found if isinstance(found, SoftwareLevels) else found.problem
    return Overview(seen, software, tuple(_findings(seen)))


def _findings(seen: FeatureObservation) -> Iterator[str]:
    for node_id, node in seen.nodes.items():
        if isinstance(node, Unread):
            yield f"{seen.who(node_id)} could not be asked: {node.reason}"
    if isinstance(seen.log, Unread):
        yield f"the metadata log could not be read: {seen.log.reason}"
    elif (level := seen.log.levels.get(METADATA_VERSION, 0)) > NEWEST_LEVEL:
        yield (
            f"metadata.version {level} is beyond what this tool knows (up to {NEWEST_LEVEL}): use a newer release of it"
        )
    yield from not_applied(seen)
    yield from unlike_declared(seen)


def not_applied(seen: FeatureObservation) -> Iterator[str]:
    """The nodes that answer and show other levels than the metadata log gave."""
    if isinstance(seen.log, Unread):
        return
    given = _on(seen.log.levels)
    for node_id, node in seen.nodes.items():
        if not isinstance(node, Unread) and _on(node.finalized) != given:
            yield (
                f"{seen.who(node_id)} shows {_levels(_on(node.finalized))}, the metadata log says {_levels(given)}: it"
                " has not applied the log's end, or shows a level that no record gave"
            )


def unlike_declared(seen: FeatureObservation) -> Iterator[str]:
    """Nodes that are registered and not in the cluster file, and the other way round."""
    log = seen.log
    if isinstance(log, Unread):
        return
    for kind, declared, registered in (
        ("broker", seen.brokers, log.brokers),
        ("controller", seen.controllers, log.controllers),
    ):
        for node_id in sorted(set(registered) - set(declared)):
            yield (
                f"{kind} {node_id} is registered and not in the cluster file: it counts when a level is raised"
                f" (it supports {_ranges(registered[node_id].supported)})"
            )
        if kind == "broker" or log.levels.get("metadata.version", 0) >= CONTROLLERS_REGISTER:
            for node_id in sorted(set(declared) - set(registered)):
                yield f"{kind} {node_id} is in the cluster file and not registered"


def _on(levels: Mapping[str, int]) -> dict[str, int]:
    """What is on, but kraft.version: 4.1 and later keep that in records of the quorum's own."""
    return {name: level for name, level in levels.items() if level and name != KRAFT_VERSION}


def _lines(overview: Overview) -> Iterator[str]:
    seen, software = overview.seen, overview.software
    if isinstance(seen.log, LevelsInLog):
        yield f"{seen.cluster}: {_levels(_on(seen.log.levels)) or 'no feature levels'}"
    if isinstance(software, SoftwareLevels):
        yield f"every node runs Kafka {software.version}, which supports:"
        for name, table in sorted(software.features.items()):
            yield f"  {name} {table.supported}"
            if name == "metadata.version" and isinstance(seen.log, LevelsInLog):
                yield from _next_levels(software, seen.log.levels.get(name, 0))
    else:
        yield software
    yield ""
    for node_id, node in seen.nodes.items():
        yield from _node(seen, node_id, node)
    if isinstance(seen.log, LevelsInLog):
        yield ""
        yield "feature levels that the metadata log gave, in order:"
        yield from (f"  {_record(each)}" for each in seen.log.written)
    if overview.findings:
        yield ""
        yield from overview.findings


def _next_levels(software: SoftwareLevels, now: int) -> Iterator[str]:
    table = software.features["metadata.version"]
    above = [each for each in table.levels if now < each.number <= table.supported.highest]
    lowest = max((each.number for each in table.levels if each.changes_metadata and each.number <= now), default=now)
    if lowest < now:
        yield f"    can be lowered to {lowest}: nothing above it changed metadata"
    if above:
        yield f"    can be raised to: {', '.join(map(_named, above))}"


def _named(level: Level) -> str:
    if not level.changes_metadata:
        return f"{level.number} ({level.name})"
    brings = BRINGS.get(level.number)
    return f"{level.number} ({level.name}, changes metadata{f': {brings}' if brings else ''})"


def _node(seen: FeatureObservation, node_id: int, node: NodeFeatures | Unread) -> Iterator[str]:
    if isinstance(node, Unread):
        yield f"{seen.who(node_id)}: unread: {node.reason}"
        return
    version = node.software_version
    leads = ", leads" if seen.leader_id == node_id else ""
    shown = f"unread ({version.reason})" if isinstance(version, Unread) else version
    yield f"{seen.who(node_id)}{leads}: Kafka {shown}, shows {_levels(node.finalized)}, {_disk(seen.hosts[node_id])}"


def _disk(host: NodeHost | Unread) -> str:
    if isinstance(host, Unread):
        return f"its disk unread: {host.reason}"
    disk = host.disk
    if isinstance(disk, Unread):
        return f"its log unread: {disk.reason}"
    after = (
        f", then {', '.join(f'{each.feature} {each.level} at {each.offset}' for each in disk.after)}"
        if disk.after
        else ""
    )
    if disk.snapshot is None:
        return f"no snapshot{after}"
    return f"newest snapshot ends at {disk.snapshot.end} with {_levels(disk.snapshot.levels)}{after}"


def _record(written: WrittenLevel) -> str:
    where = (
        f"in the snapshot that ends at {written.offset + 1}" if written.in_snapshot else f"at offset {written.offset}"
    )
    return f"{written.feature} {written.level} {where}"


def _levels(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in sorted(levels.items())) or "none"


def _ranges(supported: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {found}" for name, found in sorted(supported.items())) or "nothing"
