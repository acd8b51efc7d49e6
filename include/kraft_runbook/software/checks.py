"""What must hold before the nodes' software is changed, up or back."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.config_tables import config_table
from kraft_runbook.cluster.feature_levels import NodeHost
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.runbook import quorum_places
from kraft_runbook.runbook.broker_batches import CODE as BATCHES
from kraft_runbook.runbook.canary_check import CODE as CANARY
from kraft_runbook.runbook.check_results import (
    BLOCKING,
    WARNING,
    Finding,
    failed,
    passed,
    sample,
    settle,
    unknown,
)
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS, whole_quorum, zookeeper_behind
from kraft_runbook.runbook.host_checks import HOST_CHECKS, hosts_with_java
from kraft_runbook.runbook.producers import CODES as PRODUCERS
from kraft_runbook.runbook.read_parts import needed
from kraft_runbook.runbook.reference_checks import CODES as REFERENCES
from kraft_runbook.runbook.secret_checks import CODES as SECRETS
from kraft_runbook.software.checklist import CHECKS, WHOLE, both, down, each_host, with_a_turn
from kraft_runbook.software.java import needed_java
from kraft_runbook.software.roll import Rolled, RollReading, read_roll_of
from kraft_runbook.software.stages import Gate
from kraft_runbook.software.way_back import software_way

check = CHECKS.check
SEGMENT = "segment.bytes"

CHECKS.take(
    *CLUSTER_CHECKS.of("KRB-PRE-005", "KRB-PRE-009", quorum_places.SAID, *PRODUCERS, *REFERENCES),
    *HOST_CHECKS.of("KRB-PRE-045", "KRB-PRE-113", "KRB-PRE-126", "KRB-PRE-132", *SECRETS),
)
CHECKS.take(*HOST_CHECKS.of("KRB-PRE-046", "KRB-PRE-087"), of=with_a_turn)
CHECKS.take(*CLUSTER_CHECKS.of(CANARY), *HOST_CHECKS.of("KRB-PRE-124"), stages=(Rolled.OLD,))
CHECKS.take(
    *CLUSTER_CHECKS.of(
        "KRB-PRE-004",
        "KRB-PRE-029",
        "KRB-PRE-100",
        quorum_places.IN_THE_LOG,
        BATCHES,
    ),
    stages=WHOLE,
)


@check("KRB-UPG-001", severity=BLOCKING, fix="finalize the migration first; Kafka 4 has no ZooKeeper mode")
def zookeeper_is_behind(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The migration is final, or there never was one.

    What 4.x makes of a migration that is not final was not tried.
    """
    return zookeeper_behind(seen)


@check(
    "KRB-UPG-002",
    severity=BLOCKING,
    fix="bring the node that is named to run, or correct kafka.version and kafka.upgrade_to in the cluster file",
)
def every_node_shows_one_of_the_two_versions(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node runs the version that the cluster file names, or its target.

    The version is what the node's own metrics say.
    """
    reading = _roll(seen, spec)
    return unknown("; ".join(reading.reasons)) if reading.stage is Rolled.UNKNOWN else passed(reading.reasons[0])


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
    return whole_quorum(seen, spec, earlier)


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
    "KRB-UPG-008",
    severity=BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="install a newer Java on that host",
)
def java_is_new_enough_forboth(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every host has a Java on which both versions start.

    Kafka 4 needs Java 17 for servers (KIP-1013); the way back needs the former version's.
    """
    return hosts_with_java(seen, spec, max(needed_java(each.version) for each in both(spec)))


@check(
    "KRB-UPG-009",
    severity=BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix=(
        "install that version in the home that the cluster file names, beside the one that runs, and lead the node's"
        " link to one of the two"
    ),
)
def both_versions_are_installed_on_every_host(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The home of each version holds that version, and each node's link leads to one of the two.

    The roll switches a link between two homes, and back again where it must.
    """

    def wrong(host: NodeHost) -> Iterator[str | Unread]:
        for each in both(spec):
            yield from _not_installed(host, each)
        if isinstance(host.home, Unread):
            yield Unread(f"its home_link could not be followed: {host.home.reason}")
        elif host.home not in (homes := [each.home for each in both(spec)]):
            yield f"its home_link leads to {host.home}, which is neither {' nor '.join(homes)}"

    return each_host(seen, wrong, "they are")


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
    moving = needed(seen.margins).moving
    return settle([f"partitions: {sample(moving.samples, moving.count)}"] if moving.count else [], (), "none is")


@check(
    "KRB-UPG-012",
    severity=BLOCKING,
    stages=(Rolled.MIXED,),
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="start it and let it come back into every ISR, and begin the roll then",
)
def what_is_down_was_left_so_by_the_roll(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """A node that does not run was already led to the target, or another node runs that.

    A node that does not come up on the target is half of a roll, which goes on or back. One that was down before the
    roll began is a cluster that is not well: each restart would take one more node away.
    """
    target, reading = spec.kafka.upgrade_to, _roll(seen, spec)
    if reading.on_new or target is None:
        return passed(reading.reasons[0])

    def wrong(host: NodeHost) -> Iterator[str | Unread]:
        if host.node_id in down(seen) and isinstance(host.home, Unread):
            yield Unread(f"it does not run, and its home_link could not be followed: {host.home.reason}")
        elif host.node_id in down(seen) and host.home != target.home:
            yield f"it does not run, and its home_link leads to {host.home}"

    return each_host(seen, wrong, "each was")


@check(
    "KRB-UPG-013",
    severity=BLOCKING,
    gates={Gate.BACK},
    needs=Needs.HOSTS,
    fix="install the version before in the home that the cluster file names",
)
def the_version_before_is_installed_on_every_host(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """kafka.home holds the version before on every host.

    The needs of the target are not checked here: a host that lacks one may be the reason to go back.
    """
    return each_host(seen, lambda host: _not_installed(host, spec.kafka), "it is")


@check(
    "KRB-UPG-014",
    severity=WARNING,
    gates={Gate.UP},
    fix=(
        "add controllers first, or know the way back by hand: lead the controller's home_link to kafka.home and restart"
        " its service"
    ),
)
def a_majority_of_controllers_remains(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """While one controller restarts, the others are a majority.

    With one or two controllers nothing leads meanwhile: metadata does not change, and a broker can't register. If that
    controller does not come up on the target, this tool can't prove the phase any more, so it does not bring it back.
    """
    count = len(spec.controllers)
    return settle([] if count > 2 else [f"the quorum has {count} of them"], (), f"{count - 1} of {count}")


@check(
    "KRB-UPG-015",
    severity=BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix=(
        "raise segment.bytes of these topics to 1048576 or more, or take it away (kafka-configs --alter --entity-type"
        " topics)"
    ),
)
def no_topic_has_smaller_segments_than_the_target_takes(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No topic's own segment.bytes is below 1 MiB, where the target is Kafka 4.1 or later.

    3.9 and 4.0 take 14 bytes and more, later ones at least 1 MiB (KIP-1030). A broker of such a Kafka that finds less
    can't load its logs, and ends.
    """
    small = needed(seen.margins).small_segments
    is_asked = SEGMENT in needed(config_table(both(spec)[-1].version)).topics_least
    return settle([sample(small.samples, small.count)] if small.count and is_asked else [], (), "none has")


# -- what the checks share ---------------------------------------------------------------------------------------------


def _roll(seen: ClusterObservation, spec: ClusterSpec) -> RollReading:
    return read_roll_of(seen, spec.kafka.version, both(spec)[-1].version)


def _not_installed(host: NodeHost, software: Software) -> Iterator[str]:
    found = host.software.get(software.home, Unread("not looked at"))
    if isinstance(found, Unread):
        yield found.reason
    elif found.version != software.version:
        yield f"{software.home} holds Kafka {found.version}, not {software.version}"


def _way(seen: ClusterObservation, spec: ClusterSpec, software: Software | None) -> Finding:
    found = needed(software_way(seen, spec, software))
    obstacles = [each for of_node in found.in_the_way.values() for each in of_node]
    if found.closed:  # what a node waits for on its disk opens nothing then
        return failed(found.render_text(), "stay on the version that runs")
    if found.unknown:
        return unknown(found.render_text())
    wrong = [str(each) for each in obstacles if not each.unknown]
    return settle(wrong, (str(each) for each in obstacles if each.unknown), found.render_text())
