"""Whether a broker's restart stops producers that wait for all replicas: for any operation that restarts brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Found, MinIsrGroup, Unread, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, sample, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS

MIN_ISR = "min.insync.replicas"
CODES = ("KRB-PRE-065", "KRB-PRE-066")

check = CLUSTER_CHECKS.check


@check(
    "KRB-PRE-065",
    severity=Severity.BLOCKING,
    fix=(
        "lower min.insync.replicas of these topics below their replication factor while the brokers are rolled"
        " (kafka-configs --alter --entity-type topics), or give them another replica (kafka-reassign-partitions)"
    ),
    needs=Needs.HOSTS,
)
def a_restart_leaves_enough_replicas(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every topic with several replicas has min.insync.replicas below their number.

    If both are equal, each restart of a broker stops every producer with acks=all of that broker's partitions, until
    the broker is in sync again.
    """
    return _told(seen, spec, lambda least, replicas: least == replicas > 1, "every topic has a replica to spare")


@check(
    "KRB-PRE-066",
    severity=Severity.WARNING,
    fix=(
        "give these topics another replica (kafka-reassign-partitions), or lower their min.insync.replicas; or warn"
        " their users"
    ),
    needs=Needs.HOSTS,
)
def every_topic_outlives_a_restart(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every topic has at least two replicas, and at least min.insync.replicas.

    A partition with one replica is offline while its broker restarts. With fewer replicas than min.insync.replicas,
    producers with acks=all are refused already, restart or not.
    """
    return _told(seen, spec, lambda least, replicas: replicas == 1 or least > replicas, "every topic does")


def _told(seen: ClusterObservation, spec: ClusterSpec, is_wrong: Callable[[int, int], bool], fine: str) -> Finding:
    """The groups of topics for which ``is_wrong`` holds. The metadata log has them once ZooKeeper is behind, until then
    ZooKeeper's tree.
    """
    groups: Sequence[MinIsrGroup]
    if detect_phase(seen).phase in (Phase.FINALIZED, Phase.KRAFT):
        if isinstance(seen.margins, Unread):
            return unknown(seen.margins)
        groups, of_brokers = seen.margins.groups, _in_force(spec, BrokerMode.KRAFT, seen.margins.of_brokers)
    else:
        if not was_read(seen.tree):
            return unknown(seen.tree)
        groups = seen.tree.min_isr_groups
        of_brokers = _in_force(spec, BrokerMode.ZOOKEEPER, seen.tree.min_isr_of_brokers)
    wrong = [
        f"{what}: {sample(topics.samples, topics.count)}" for what, topics in _topics(groups, of_brokers, is_wrong)
    ]
    return failed("; ".join(wrong)) if wrong else passed(fine)


def _topics(
    groups: Sequence[MinIsrGroup], of_brokers: Sequence[int], is_wrong: Callable[[int, int], bool]
) -> Iterator[tuple[str, Found]]:
    """Any broker may lead, so if a topic has no min.insync.replicas, that of each broker counts."""
    for group in groups:
        whose = " (the brokers')" if group.own is None else ""
        least = next(
            (each for each in (of_brokers if group.own is None else [group.own]) if is_wrong(each, group.replicas)),
            None,
        )
        if least is not None:
            yield (
                f"min.insync.replicas {least}{whose} of {group.replicas} replica{'s' if group.replicas > 1 else ''}",
                group.topics,
            )


def _in_force(spec: ClusterSpec, mode: BrokerMode, dynamic: Mapping[str, int]) -> list[int]:
    """The min.insync.replicas in force on the brokers, the greatest first. In order of precedence: the broker's dynamic
    value, the dynamic default, its file, Kafka's default of 1.
    """
    found = set()
    for broker in spec.brokers:
        in_file = broker_properties(spec, broker, mode).get(MIN_ISR, "1").strip()
        static = int(in_file) if in_file.isdecimal() else 1
        found.add(dynamic.get(str(broker.id), dynamic.get("<default>", static)))
    return sorted(found, reverse=True)
