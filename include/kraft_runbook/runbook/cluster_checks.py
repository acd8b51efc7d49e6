"""Checks that any operation may need of a cluster: its nodes, partitions and phase (its hosts: ``host_checks``). Each
operation takes those that it needs, for its own stages.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import BLOCKING, Finding, passed, sample, settle, unknown
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.health import quorum_whole
from kraft_runbook.runbook.read_parts import broker_versions, split_read, unread_reasons
from kraft_runbook.runbook.shown_topics import cut_off, names_beside_gauges, shown
from kraft_runbook.runbook.versions import name_versions

CLUSTER_CHECKS = Checklist()
"""Checks without a stage: an operation's own list takes them (``Checklist.take``)."""

check = CLUSTER_CHECKS.check

BACK_IN_SYNC = "bring the replicas back into sync first: each restart takes away one more replica"
SHOW_ALL = (
    "let this tool's user Describe every topic (kafka-acls --add --allow-principal User:NAME --operation Describe"
    " --topic '*'), and remove what denies it"
)


@check(
    "KRB-PRE-004",
    severity=BLOCKING,
    fix=(
        "start the broker, or remove it from the cluster file if it is gone for good (KRB-PRE-028 then names its"
        " replicas)"
    ),
)
def every_declared_broker_runs(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker of the cluster file runs and answers.

    The migration waits for every broker that is live or in an assignment. A roll with one broker down can make
    partitions unavailable.
    """
    wrong = [
        f"broker {b.id} {b.closed} ({spec.broker_address(spec.broker(b.id))} refuses connections)"
        for b in seen.brokers.values()
        if b.running is False
    ]
    unread = unread_reasons("broker {}", {b.id: b.running for b in seen.brokers.values()})
    unread += unread_reasons("broker {}'s mode", {b.id: b.mode for b in seen.brokers.values() if b.running is True})
    return settle(wrong, unread, f"{len(seen.brokers)} of {len(seen.brokers)} run")


@check(
    "KRB-PRE-005",
    severity=BLOCKING,
    fix=(
        "declare the node in the cluster file, or stop it: an undeclared broker would keep its mode and its software,"
        " an undeclared controller would vote in the quorum"
    ),
)
def no_node_is_undeclared(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The cluster file declares every live broker and controller.

    The runbook restarts only the nodes in the file; a broker that is not in it would keep its mode and its software.
    """
    wrong = [f"broker {i} is live and not in the cluster file" for i in sorted(seen.undeclared_brokers)]
    wrong += [f"controller {i} is a voter and not in the cluster file" for i in sorted(seen.undeclared_controllers)]
    unread = [] if was_read(seen.topics) else [seen.topics.reason]
    if not was_read(seen.zookeeper) and seen.has_zookeeper and detect_phase(seen).phase is not Phase.FINALIZED:
        unread.append(seen.zookeeper.reason)
    return settle(wrong, unread, "every live node is declared")


@check(
    "KRB-PRE-009",
    severity=BLOCKING,
    fix=(
        "make the endpoint answer (see 'metrics' and 'metrics_port' in the cluster file); every gate depends on these"
        " gauges"
    ),
)
def metrics_can_be_read(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The metrics of every running node can be read.

    Only the controllers' gauges show the migration's progress.
    """
    brokers = {b.id: b.metrics for b in seen.brokers.values() if b.running is not False}
    controllers = {c.id: c.metrics for c in seen.controllers.values() if c.running is not False}
    unread = unread_reasons("broker {}", brokers) + unread_reasons("controller {}", controllers)
    return settle([], unread, "all answered")


@check(
    "KRB-PRE-029",
    severity=BLOCKING,
    fix=BACK_IN_SYNC,
)
def every_partition_is_in_sync(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No partition is under-replicated or offline.

    The brokers' gauges and their Metadata responses count them.
    """
    wrong, unread = [], []
    if was_read(seen.topics):
        if seen.topics.offline_count:
            wrong.append(f"offline: {sample(seen.topics.offline, seen.topics.offline_count)}")
        if seen.topics.under_replicated_count:
            wrong.append(
                f"under-replicated: {sample(seen.topics.under_replicated, seen.topics.under_replicated_count)}"
            )
    else:
        unread.append(seen.topics.reason)
    gauges, unread_gauges = split_read("broker {}", {b.id: b.metrics for b in seen.brokers.values()})
    unread += unread_gauges
    named = bool(was_read(seen.topics) and seen.topics.under_replicated_count)
    for broker_id, metrics in gauges.items():
        if count := metrics.under_replicated_partitions:
            wrong.append(f"broker {broker_id} leads {count} under-replicated partitions")
            if not named:
                wrong[-1] += f" ({names_beside_gauges(seen, metrics.under_replicated, count)})"
        if metrics.offline_log_dirs:
            wrong.append(f"broker {broker_id} has {metrics.offline_log_dirs} offline log directories")
    fine = f"{seen.topics.partition_count} partitions are in sync" if was_read(seen.topics) else ""
    found = settle(wrong, unread, fine)
    copied = wrong and detect_phase(seen).phase in (Phase.HYBRID, Phase.DUAL_WRITE)
    without_id = cut_off(seen) if copied else ()
    if not without_id:
        return found
    # KAFKA-21022: waiting, or moving leaders, brings nothing back here.
    cause = (
        f"{found.evidence}. On {nodes('broker', {each.broker_id for each in without_id})} replicas lack"
        f" partition.metadata: {sample(each.path for each in without_id)}. Since the metadata copy such a broker"
        " refuses the controller's LeaderAndIsr and follows no leader"
    )
    return replace(
        found,
        evidence=cause,
        fix=f"{BACK_IN_SYNC}. The named broker comes back only once what KRB-PRE-085 says is done",
    )


@check(
    "KRB-PRE-100",
    severity=BLOCKING,
    fix=SHOW_ALL,
)
def every_topic_is_shown(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """This tool's user may describe every topic.

    A broker leaves the others out of Metadata without an error, so that "all partitions are in sync" is said of a part
    of them. So the topics that ZooKeeper or the metadata log has and no broker shows are asked for by name.
    """
    return shown(seen.topics)


def zookeeper_behind(seen: ClusterObservation) -> Finding:
    """Whether the migration is final, or there never was one."""
    reading = detect_phase(seen)
    wrong = [] if reading.phase in (Phase.FINALIZED, Phase.KRAFT, Phase.UNKNOWN) else [f"it is in {reading.phase}"]
    unread = reading.reasons if reading.phase is Phase.UNKNOWN else ()
    return settle(wrong, unread, f"it is in {reading.phase}")


def phase_known(seen: ClusterObservation) -> Finding:
    """Whether the observation proves the cluster's phase. An unread part, or a contradiction, is never guessed."""
    reading = detect_phase(seen)
    because = "; ".join(reading.reasons)
    return unknown(because) if reading.phase is Phase.UNKNOWN else passed(f"{reading.phase}: {because}")


def whole_quorum(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None) -> Finding:
    """Whether a controller leads, and every controller runs and is caught up."""
    progress = quorum_whole(seen, spec, earlier=earlier)
    return settle([] if progress.done else [progress.waiting_for], (), f"{len(spec.controllers)} of them")


@check(
    "KRB-PRE-012",
    severity=BLOCKING,
    fix="finish the rolling upgrade, and set kafka.version in the cluster file to the running version",
)
def brokers_run_one_version(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """All brokers run the version that the cluster file declares.

    During a half-done upgrade every failure of the migration could have two causes.
    """
    read, unread = broker_versions(seen)
    return settle(
        [
            f"broker {i} runs Kafka {v}, the cluster file says {spec.kafka.version}"
            for i, v in read.items()
            if v != spec.kafka.version
        ],
        unread,
        name_versions(read),
    )
