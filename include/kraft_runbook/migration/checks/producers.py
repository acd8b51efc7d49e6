"""Whether a restart stops producers that wait for all replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Found, ZookeeperTree, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED, check
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, sample, unknown
from kraft_runbook.runbook.checklist import Needs

MIN_ISR = "min.insync.replicas"


@check(
    "KRB-PRE-065",
    severity=Severity.BLOCKING,
    fix=(
        "lower min.insync.replicas of these topics below their replication factor while the brokers are rolled"
        " (kafka-configs --alter --entity-type topics), or give them another replica (kafka-reassign-partitions)"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def a_restart_leaves_enough_replicas(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every topic with several replicas has min.insync.replicas below their number.

    If both are equal, each restart of a broker stops every producer with acks=all of that broker's partitions, until
    the broker is in sync again.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    return _told(
        _topics(tree, spec, lambda least, replicas: least == replicas > 1), "every topic has a replica to spare"
    )


@check(
    "KRB-PRE-066",
    severity=Severity.WARNING,
    fix=(
        "give these topics another replica (kafka-reassign-partitions), or lower their min.insync.replicas; or warn"
        " their users"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def every_topic_outlives_a_restart(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every topic has at least two replicas, and at least min.insync.replicas.

    A partition with one replica is offline while its broker restarts. With fewer replicas than min.insync.replicas,
    producers with acks=all are refused already, restart or not.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    return _told(_topics(tree, spec, lambda least, replicas: replicas == 1 or least > replicas), "every topic does")


def _topics(
    tree: ZookeeperTree, spec: ClusterSpec, is_wrong: Callable[[int, int], bool]
) -> Iterator[tuple[str, Found]]:
    """The groups of topics for which ``is_wrong`` holds, in words. Any broker may lead, so if a topic has no
    min.insync.replicas, that of each broker counts.
    """
    of_brokers = _of_brokers(tree, spec)
    for group in tree.min_isr_groups:
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


def _of_brokers(tree: ZookeeperTree, spec: ClusterSpec) -> list[int]:
    """The min.insync.replicas in force on the brokers, the greatest first. In order of precedence: the broker's dynamic
    value, the dynamic default, its file, Kafka's default of 1.
    """
    found = set()
    for broker in spec.brokers:
        in_file = broker_properties(spec, broker, BrokerMode.ZOOKEEPER).get(MIN_ISR, "1").strip()
        static = int(in_file) if in_file.isdecimal() else 1
        found.add(tree.min_isr_of_brokers.get(str(broker.id), tree.min_isr_of_brokers.get("<default>", static)))
    return sorted(found, reverse=True)


def _told(groups: Iterator[tuple[str, Found]], fine: str) -> Finding:
    wrong = [f"{what}: {sample(topics.samples, topics.count)}" for what, topics in groups]
    return failed("; ".join(wrong)) if wrong else passed(fine)
