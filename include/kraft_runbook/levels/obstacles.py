"""Who and what stands in the way of a change of a level, each with a way out: by the facts that the server goes by
(Kafka 3.9 and 4.x, ``FeatureControlManager``), and some that it does not ask for.

The server's validate-only has the last word. This explains it, and refuses before it where Kafka would accept what does
nothing, or what can't be undone by surprise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.addresses import one_spelling
from kraft_runbook.cluster.feature_levels import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureObservation,
    LevelsInLog,
    NodeFeatures,
    Range,
    Registered,
    SoftwareLevels,
)
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.levels.change import Direction, LevelChange
from kraft_runbook.levels.losses import Loss
from kraft_runbook.levels.min_isr import ELIGIBLE, MIN_ISR, min_isr_changes
from kraft_runbook.metadata.log.record_schemas import not_read
from kraft_runbook.metadata.log.schemas import NEWEST
from kraft_runbook.metadata.metadata_version import NEWEST_LEVEL, highest_level
from kraft_runbook.runbook.obstacle import Obstacle
from kraft_runbook.runbook.registrations import CONTROLLERS_REGISTER, not_their_own, way_out

LEADER_FIRST = "let the quorum elect a leader"
"""The way out of an unread log, where whoever could not read it has no better."""
IN_MIGRATION = (1, 2)
"""The migration states in which metadata.version stays as it is: waiting for the copy, and dual write."""
LEAST_SET = 4
"""The least metadata.version that 3.9 sets, though it supports 1 (``MetadataVersion.MINIMUM_BOOTSTRAP_VERSION``,
``FeatureControlManager``: Unable to set a metadata.version less than 3.3-IV0). 4.x supports none below 7.
"""
KRAFT_VERSION_WORKS = (4, 1)
"""3.9 accepts kraft.version 1 on a static quorum, and nothing changes but what it shows (KAFKA-18979)."""


@dataclass(frozen=True, slots=True)
class LevelObstacle(Obstacle):
    """``server_accepts``: the server does not ask for it. ``momentary``: it may be over seconds later."""

    server_accepts: bool = False
    momentary: bool = False


def running_software(seen: FeatureObservation) -> SoftwareLevels | Obstacle:
    """The levels of the one version that every node runs, read out of its own jar; else what is unknown, or mixed."""
    versions: dict[str, list[str]] = {}
    for node_id, node in seen.nodes.items():
        if isinstance(node, Unread):
            return Obstacle(f"{seen.who(node_id)} could not be asked: {node.reason}", "bring it to run", unknown=True)
        if isinstance(node.software_version, Unread):
            return Obstacle(
                f"the version of {seen.who(node_id)} is not known: {node.software_version.reason}",
                "let its metrics show kafka.server:type=app-info",
                unknown=True,
            )
        versions.setdefault(node.software_version, []).append(seen.who(node_id))
    if len(versions) > 1:
        told = "; ".join(f"{version}: {', '.join(who)}" for version, who in sorted(versions.items()))
        return Obstacle(f"the nodes run several versions of Kafka ({told})", "end the roll first (upgrade_software)")
    (version,) = versions
    for host in seen.hosts.values():
        for software in () if isinstance(host, Unread) else host.software.values():
            if not isinstance(software, Unread) and software.version == version:
                return software
    reasons = {host.reason for host in seen.hosts.values() if isinstance(host, Unread)}
    return Obstacle(
        f"the levels of Kafka {version} could not be read out of its jar on any host"
        + (f" ({'; '.join(sorted(reasons))})" if reasons else ""),
        "let kafka.home in the cluster file be the installation that runs",
        unknown=True,
    )


def obstacles(
    seen: FeatureObservation,
    change: LevelChange,
    software: SoftwareLevels,
    losses: tuple[Loss, ...] = (),
    *,
    voters: Mapping[int, str] | None = None,
) -> tuple[LevelObstacle, ...]:
    """Everything that stands in the way of the change, as far as it can be seen from here. None: ask the server.
    ``voters``: each controller's ``NAME://host:port`` by the cluster file, for kraft.version.
    """
    if change.direction is Direction.NONE:
        return ()
    log = seen.log
    if isinstance(log, Unread):
        return (LevelObstacle(f"the metadata log could not be read: {log.reason}", log.way_out or LEADER_FIRST, True),)
    return (
        *_migration(log, change),
        *_kraft_version(change, software),
        *_voters(log, change, voters or {}),
        *_down(change, losses),
        *_least(change),
        *_nodes(seen, change),
        *_registrations(seen, log, change),
        *_needs(log, change, software),
        *_records(change, software),
        *_min_isr(seen, log, change),
    )


def _migration(log: LevelsInLog, change: LevelChange) -> Iterator[LevelObstacle]:
    if change.feature == METADATA_VERSION and log.migration_state in IN_MIGRATION:
        yield LevelObstacle(
            f"the migration from ZooKeeper is not final (ZkMigrationStateRecord {log.migration_state}), and the server"
            " changes no metadata.version while it lasts",
            "finalize the migration first, or go back to ZooKeeper",
        )


def _kraft_version(change: LevelChange, software: SoftwareLevels) -> Iterator[LevelObstacle]:
    if change.feature != KRAFT_VERSION:
        return
    if change.direction is Direction.DOWN:
        yield LevelObstacle("kraft.version can't be lowered, by any release", "leave it as it is")
    elif release_of(software.version) < KRAFT_VERSION_WORKS:
        yield LevelObstacle(
            f"Kafka {software.version} would accept kraft.version {change.target}, write a record that does nothing and"
            " show it for ever (KAFKA-18979)",
            "bring every node to 4.1 or later first (upgrade_software)",
        )


def _voters(log: LevelsInLog, change: LevelChange, voters: Mapping[int, str]) -> Iterator[LevelObstacle]:
    """Kafka writes each voter's address into the log as the controller registered it: both are what its listener had
    at its start (``ControllerServer``, ``SharedServer.startForController``). A listener without a host is resolved to
    the machine's own name, which others may not reach (KAFKA-20380). The spelling of a host does not count.
    """
    if change.feature != KRAFT_VERSION or change.direction is not Direction.UP:
        return
    if log.levels.get(METADATA_VERSION, 0) < CONTROLLERS_REGISTER:
        yield LevelObstacle(
            "the addresses that Kafka would write for the voters are not known: controllers register from"
            f" metadata.version {CONTROLLERS_REGISTER} on",
            f"raise metadata.version to {CONTROLLERS_REGISTER} or higher first",
            unknown=True,
            server_accepts=True,
        )
        return
    for node_id, wanted in voters.items():
        registered = log.controllers.get(node_id)
        if registered is not None and one_spelling(wanted) not in map(one_spelling, registered.endpoints):
            yield LevelObstacle(
                f"Kafka would write voter {node_id} into the metadata log at {', '.join(registered.endpoints)}, and the"
                f" cluster file has it at {wanted}. The voters then find each other by the log alone: once the leader"
                " is lost, one that the others don't reach there elects nobody",
                "give its listener the host and port of the cluster file (listeners, or advertised.listeners), and"
                " restart it; or, if every controller reaches it there, write that host and port into the cluster file",
                server_accepts=True,
            )


def _down(change: LevelChange, losses: tuple[Loss, ...]) -> Iterator[LevelObstacle]:
    if change.feature != METADATA_VERSION or change.direction is not Direction.DOWN or not change.starred:
        return
    named = ", ".join(
        f"{step.level} ({step.name}{f': {step.brings}' if step.brings else ''})" for step in change.starred
    )
    lost = f"; it would lose {', '.join(map(str, losses))}" if losses else ""
    lowest = change.starred[0].level
    yield LevelObstacle(
        f"metadata.version {change.now} -> {change.target} crosses what changed metadata: {named}{lost}. Every server"
        " refuses that, as a safe and as an unsafe downgrade",
        f"the lowest that can be had is {lowest}" + (", where it is" if lowest == change.now else ""),
    )


def _least(change: LevelChange) -> Iterator[LevelObstacle]:
    if change.feature == METADATA_VERSION and change.target < LEAST_SET:
        yield LevelObstacle(
            f"metadata.version {change.target} can't be set: 3.9 sets none below {LEAST_SET} (3.3-IV0)",
            f"name a level from {LEAST_SET} on",
        )


def _nodes(seen: FeatureObservation, change: LevelChange) -> Iterator[LevelObstacle]:
    for node_id, node in seen.nodes.items():
        who = seen.who(node_id)
        if isinstance(node, Unread):
            yield LevelObstacle(f"{who} could not be asked: {node.reason}", "bring it to run", unknown=True)
        elif not _supports(node.supported, change):
            yield LevelObstacle(
                f"{who} {_range(node.supported, change.feature)}, not {change.target}",
                "bring it to the new software first (upgrade_software)",
            )


def _registrations(seen: FeatureObservation, log: LevelsInLog, change: LevelChange) -> Iterator[LevelObstacle]:
    for broker in log.brokers.values():
        running = seen.brokers.get(broker.node_id)
        if not _supports(broker.supported, change) and not isinstance(running, NodeFeatures):
            known = "" if broker.node_id in seen.brokers else ", not in the cluster file"
            yield LevelObstacle(
                f"broker {broker.node_id} is registered, not running{known},"
                f" {_range(broker.supported, change.feature)}, not {change.target}",
                "start it on the new software, or unregister it (unregister_broker, docs/unregistering.md)",
            )
    if log.levels.get(METADATA_VERSION, 0) < CONTROLLERS_REGISTER:
        return
    for controller in log.controllers.values():
        declared = controller.node_id in seen.controllers
        running_too = isinstance(seen.controllers.get(controller.node_id), NodeFeatures)
        if not _supports(controller.supported, change) and not running_too:
            yield _ghost(controller, change) if not declared else _dead(controller, change)
    for node_id in seen.controllers:
        if node_id not in log.controllers:
            yield LevelObstacle(
                f"controller {node_id} has not registered, so the server does not know what it supports",
                "restart it, and look at its log: a controller registers within seconds of its start, and of a raise to"
                f" {CONTROLLERS_REGISTER} or beyond",
                momentary=True,
            )
    for node_id, wrong in not_their_own(seen, log).items():
        if node_id in log.controllers and not _supports(log.controllers[node_id].supported, change):
            yield LevelObstacle(
                f"controller {node_id} {wrong}, and the leader goes by that", way_out([node_id]), momentary=True
            )


def _dead(controller: Registered, change: LevelChange) -> LevelObstacle:
    return LevelObstacle(
        f"controller {controller.node_id} is registered, not running, {_range(controller.supported, change.feature)},"
        f" not {change.target}",
        "start it on the new software",
    )


def _ghost(controller: Registered, change: LevelChange) -> LevelObstacle:
    return LevelObstacle(
        f"controller {controller.node_id} is registered and no voter any more, and"
        f" {_range(controller.supported, change.feature)}, not {change.target}",
        "start it once on the new software, with its old data and itself in its own controller.quorum.voters (in a"
        " dynamic quorum: with the addresses of the others, and controller.quorum.auto.join.enable off): it registers"
        " anew within seconds and disturbs no leader; then stop it (unregistering one needs metadata.version 33)",
    )


def _needs(log: LevelsInLog, change: LevelChange, software: SoftwareLevels) -> Iterator[LevelObstacle]:
    table = software.features[change.feature]
    level = table.level(change.target)
    for feature, needed in (level.needs if level else {}).items():
        if log.levels.get(feature, 0) < needed:
            yield LevelObstacle(
                f"{change.feature} {change.target} needs {feature} {needed}, which is at {log.levels.get(feature, 0)}",
                f"raise {feature} to {needed} first",
            )
    for other, other_table in software.features.items():
        held = other_table.level(log.levels.get(other, 0))
        if held is not None and change.target < held.needs.get(change.feature, 0):
            yield LevelObstacle(
                f"{other} {held.number} needs {change.feature} {held.needs[change.feature]}", f"lower {other} first"
            )


def _min_isr(seen: FeatureObservation, log: LevelsInLog, change: LevelChange) -> Iterator[LevelObstacle]:
    """The server asks nothing of that, and lowering the level gives nothing back."""
    if change.feature != ELIGIBLE or change.direction is not Direction.UP:
        return
    set_it = (
        "set it for all brokers first, to what is meant (kafka-configs.sh --alter --entity-type brokers"
        f" --entity-default --add-config {MIN_ISR}=…), and take it away from single brokers; the raise keeps that"
    )
    changes, unread = min_isr_changes(seen, log)
    if changes:
        yield LevelObstacle(f"{MIN_ISR} would change for good: {'; '.join(changes)}", set_it, server_accepts=True)
    if unread:
        told = f"whether {MIN_ISR} would change was not read: {'; '.join(unread)}"
        yield LevelObstacle(told, "let this tool read that, and look again", unknown=True, server_accepts=True)


def _records(change: LevelChange, software: SoftwareLevels) -> Iterator[LevelObstacle]:
    """A level at which the software may write what this tool can't read. Afterwards it could see nothing of the
    cluster, for good where the level can't be lowered.
    """
    of_metadata = change.feature == METADATA_VERSION
    known = change.target <= NEWEST_LEVEL if of_metadata else highest_level(software.version) is not None
    if change.direction is not Direction.UP or known:
        return
    stay = f"; until then stay at {NEWEST_LEVEL} or below" if of_metadata else "; until then leave it as it is"
    way_out = f"use a release of this tool that knows Kafka {software.version}{stay}"
    at = f"{change.feature} {change.target} is beyond what this tool knows (Kafka up to {NEWEST})"
    if isinstance(software.records, Unread):
        yield LevelObstacle(f"{at}, and which records it writes was not read: {software.records.reason}", way_out, True)
    elif unread := not_read(software.records):
        yield LevelObstacle(
            f"{at}, and Kafka {software.version} has records that it can't read: {', '.join(unread)}. Once one is"
            " written, this tool could not look at the cluster any more",
            way_out,
        )


def _supports(supported: Mapping[str, Range], change: LevelChange) -> bool:
    found = supported.get(change.feature)
    return change.target == 0 if found is None else change.target in found


def _range(supported: Mapping[str, Range], feature: str) -> str:
    found = supported.get(feature)
    return f"supports {feature} {found}" if found is not None else f"knows no {feature}"
