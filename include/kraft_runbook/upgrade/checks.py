"""What must hold before the nodes' software is changed, up or back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.feature_levels import FeatureObservation, NodeHost, SoftwareLevels, TopicMargins
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.runbook.check_results import Finding, Severity, settle, unknown
from kraft_runbook.runbook.checklist import Checklist, Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS, hosts_with_java
from kraft_runbook.runbook.health import quorum_whole
from kraft_runbook.upgrade.file_keys import FileFinding, file_findings
from kraft_runbook.upgrade.java import needed_java
from kraft_runbook.upgrade.roll import Rolled, read_roll_of
from kraft_runbook.upgrade.stages import Gate
from kraft_runbook.upgrade.way_back import SoftwareWay, way_to

BLOCKING, WARNING = Severity.BLOCKING, Severity.WARNING

CHECKS = Checklist()
"""Every check of the software roll by its code. What holds for any cluster is taken over by its own code."""

check = CHECKS.check

WHOLE = (Rolled.OLD, Rolled.NEW, Rolled.UNKNOWN)
"""Where every node must be well. In a half-done roll one may be down: not coming up on its software is the very reason
to go back. There each step looks at the nodes besides its own.
"""

CHECKS.take(*(CLUSTER_CHECKS[code] for code in ("KRB-PRE-009", "KRB-PRE-045")))
CHECKS.take(*(CLUSTER_CHECKS[code] for code in ("KRB-PRE-004", "KRB-PRE-029", "KRB-PRE-046")), stages=WHOLE)


@check("KRB-UPG-001", severity=BLOCKING, fix="finalize the migration first; Kafka 4 has no ZooKeeper mode")
def zookeeper_is_behind(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The migration is final, or there never was one.

    What 4.x makes of a migration that is not final was not tried.
    """
    reading = detect_phase(seen)
    wrong = [] if reading.phase in (Phase.FINALIZED, Phase.KRAFT, Phase.UNKNOWN) else [f"it is in {reading.phase}"]
    unread = reading.reasons if reading.phase is Phase.UNKNOWN else ()
    return settle(wrong, unread, f"it is in {reading.phase}")


@check(
    "KRB-UPG-002",
    severity=BLOCKING,
    fix="bring the node that is named to run, or correct kafka.version and kafka.upgrade_to in the cluster file",
)
def every_node_shows_one_of_the_two_versions(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node runs the version that the cluster file names, or its target.

    The version is what the node's own metrics say.
    """
    new = spec.kafka.upgrade_to
    reading = read_roll_of(seen, spec.kafka.version, new.version if new else spec.kafka.version)
    return (
        unknown("; ".join(reading.reasons)) if reading.stage is Rolled.UNKNOWN else settle((), (), reading.reasons[0])
    )


@check(
    "KRB-UPG-003",
    severity=BLOCKING,
    stages=WHOLE,
    fix="bring every controller to run and let it catch up",
    twice=True,
)
def the_quorum_is_whole(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None) -> Finding:
    """A controller leads, and every controller runs and is caught up.

    While one restarts, the others must be a majority.
    """
    progress = quorum_whole(seen, spec, earlier=earlier)
    return settle([] if progress.done else [progress.waiting_for], (), f"{len(spec.controllers)} of them")


@check(
    "KRB-UPG-004",
    severity=BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="the text says for each node what to wait for, or which level to change",
)
def every_node_can_start_on_the_target(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node's newest snapshot and every feature record after it are known to the target.

    A controller ends on a record of a level that its software does not know, whatever was written later.
    """
    return _way(seen, spec, spec.kafka.upgrade_to)


@check(
    "KRB-UPG-005",
    severity=BLOCKING,
    gates={Gate.BACK},
    needs=Needs.HOSTS,
    fix="the text says for each node what to wait for, or which level to change",
)
def every_node_can_start_on_the_version_before(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node's newest snapshot and every feature record after it are known to the version before.

    A level that was raised and lowered again counts until the node has taken a snapshot past it.
    """
    return _way(seen, spec, spec.kafka)


@check(
    "KRB-UPG-006",
    severity=BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="correct the cluster file's properties, and let the nodes have them before the roll",
)
def no_file_holds_what_the_target_refuses(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No node's file holds what makes the target exit at its start.

    A node that exits on the new software is down until its file is mended.
    """
    found, unread = _findings(seen, spec)
    return settle(
        (f"{who}: {each}" for who, all_of in found.items() for each in all_of if each.refused), unread, "none does"
    )


@check(
    "KRB-UPG-007",
    severity=WARNING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="take these keys out of the cluster file, or set what takes their place (docs/software.md)",
)
def no_file_holds_what_the_target_reads_over(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No node's file holds a key that the target reads over in silence.

    What such a key asked for is off then, without a word: delegation tokens with delegation.token.master.key alone.
    """
    found, unread = _findings(seen, spec)
    ignored = {who: [each.key for each in all_of if not each.refused] for who, all_of in found.items()}
    return settle((f"{who}: {', '.join(keys)}" for who, keys in ignored.items() if keys), unread, "none does")


@check("KRB-UPG-008", severity=BLOCKING, needs=Needs.HOSTS, fix="install a newer Java on that host")
def java_is_new_enough_for_both(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every host has a Java on which both versions start.

    Kafka 4 needs Java 17 for servers (KIP-1013); the way back needs the former version's.
    """
    versions = [spec.kafka.version, *([spec.kafka.upgrade_to.version] if spec.kafka.upgrade_to else [])]
    return hosts_with_java(seen, spec, max(map(needed_java, versions)))


@check(
    "KRB-UPG-009",
    severity=BLOCKING,
    needs=Needs.HOSTS,
    fix="install that version in the home that the cluster file names, beside the one that runs",
)
def both_versions_are_installed_on_every_host(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The home of each version holds that version, and each node's link leads to one of the two.

    The roll switches a link between two homes, and back again where it must.
    """
    features = seen.features
    if isinstance(features, Unread):
        return unknown(features)
    wrong, unread = [], []
    for node_id, host in features.hosts.items():
        who = features.who(node_id)
        if isinstance(host, Unread):
            unread.append(f"{who}: {host.reason}")
            continue
        wrong += [f"{who}: {text}" for text in _not_installed(host, spec)]
    return settle(wrong, unread, "they are")


@check(
    "KRB-UPG-010",
    severity=BLOCKING,
    needs=Needs.HOSTS,
    fix="give these topics another replica, or lower their min.insync.replicas while the nodes are rolled",
)
def every_topic_has_more_replicas_than_must_be_in_sync(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every topic with several replicas has min.insync.replicas below their number.

    Each restart takes one replica out of the ISR; with as many required as there are, producers with acks=all stop.
    """
    features = seen.features
    if isinstance(features, Unread):
        return unknown(features)
    if isinstance(features.margins, Unread):
        return unknown(features.margins)
    default, unread = _default_min_isr(features, features.margins)
    wrong = [
        f"{group.count} topics with {group.replicas} replicas and min.insync.replicas {least}, such as"
        f" {', '.join(group.topics)}"
        for group in features.margins.groups
        if group.replicas > 1 and (least := default if group.own is None else group.own) >= group.replicas
    ]
    return settle(wrong, unread, "all have")


def _default_min_isr(features: FeatureObservation, margins: TopicMargins) -> tuple[int, tuple[str, ...]]:
    """What a topic without a setting of its own has: any broker may lead, so the highest of them counts."""
    found, unread = [1], []
    for broker_id in features.brokers:
        set_for = margins.of_brokers.get(str(broker_id), margins.of_brokers.get(""))
        host = features.hosts[broker_id]
        config = host if isinstance(host, Unread) else host.config
        if set_for is not None:
            found.append(set_for)
        elif isinstance(config, Unread) or config is None:
            unread.append(f"broker {broker_id}'s file was not read")
        else:
            found.append(int(config.get("min.insync.replicas", "1")))
    return max(found), tuple(unread)


@check(
    "KRB-UPG-011",
    severity=BLOCKING,
    needs=Needs.HOSTS,
    fix="let it end, or cancel it (kafka-reassign-partitions --cancel), and start then",
)
def no_partition_is_being_moved(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No reassignment is under way.

    A broker that restarts takes replicas away that are being copied, and the copy begins anew.
    """
    features = seen.features
    if isinstance(features, Unread):
        return unknown(features)
    margins = features.margins
    if isinstance(margins, Unread):
        return unknown(margins)
    wrong = [f"{margins.moving} partitions, such as {', '.join(margins.moving_names)}"] if margins.moving else []
    return settle(wrong, (), "none is")


def _not_installed(host: NodeHost, spec: ClusterSpec) -> Iterator[str]:
    both = [spec.kafka, *([spec.kafka.upgrade_to] if spec.kafka.upgrade_to else [])]
    for software in both:
        found = host.software.get(software.home, Unread("not looked at"))
        if isinstance(found, Unread):
            yield found.reason
        elif found.version != software.version:
            yield f"{software.home} holds Kafka {found.version}, not {software.version}"
    if isinstance(host.home, Unread):
        yield f"its home_link could not be followed: {host.home.reason}"


def _way(seen: ClusterObservation, spec: ClusterSpec, software: Software | None) -> Finding:
    found = software_way(seen, spec, software)
    if isinstance(found, Unread):
        return unknown(found)
    obstacles = [each for of_node in found.in_the_way.values() for each in of_node]
    wrong = [*found.closed, *(str(each) for each in obstacles if not each.unknown)]
    return settle(wrong, (str(each) for each in obstacles if each.unknown), found.render_text())


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
    newest = [each for home in _homes(spec) if (each := _levels_in(features, home)) is not None]
    return way_to(features, target, max(newest, key=lambda each: _numbers(each.version)))


def _homes(spec: ClusterSpec) -> tuple[str, ...]:
    return (spec.kafka.home, *([spec.kafka.upgrade_to.home] if spec.kafka.upgrade_to else []))


def _levels_in(features: FeatureObservation, home: str) -> SoftwareLevels | None:
    for host in features.hosts.values():
        found = None if isinstance(host, Unread) else host.software.get(home)
        if isinstance(found, SoftwareLevels):
            return found
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _findings(
    seen: ClusterObservation, spec: ClusterSpec
) -> tuple[Mapping[str, tuple[FileFinding, ...]], tuple[str, ...]]:
    """What the target says to each node's file, and which files were not read."""
    features, target = seen.features, spec.kafka.upgrade_to
    if isinstance(features, Unread) or target is None:
        return {}, (features.reason if isinstance(features, Unread) else "no kafka.upgrade_to",)
    found, unread = {}, []
    for node_id, host in features.hosts.items():
        config = host if isinstance(host, Unread) else host.config
        if isinstance(config, Unread):
            unread.append(f"{features.who(node_id)}: {config.reason}")
        elif config is None:
            unread.append(f"{features.who(node_id)} has no file")
        else:
            found[features.who(node_id)] = file_findings(config, target.version)
    return found, tuple(unread)
