"""The metrics of one node as gauges, whatever showed them, and what the core knows by them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_runbook.cluster.observation import BrokerMetrics, ControllerMetrics, Timed, Unread, ZkMigrationState
from kraft_runbook.cluster.old_requests import FIRST_ANSWERED, UNNAMED, OldRequests
from kraft_runbook.cluster.quorum_gauges import BrokerApplied, QuorumGauges
from kraft_runbook.errors import Unreachable

ATTRIBUTED = ("raft-metrics", "broker-metadata-metrics")
"""MBean types of kafka.server whose gauges are attributes, not MBeans each (Kafka's own metrics)."""
KINDS = ("KafkaController", "ReplicaManager", "LogManager", "SnapshotEmitter", *ATTRIBUTED)
"""The MBean types whose gauges are read (of domains kafka.controller, kafka.server and kafka.log)."""
QUEUE_P99, WRITE_P99 = "controllereventmanager.eventqueuetimems.p99", "kafkacontroller.zkwritedeltatimems.p99"
PERCENTILES = {
    ("controllereventmanager", "eventqueuetimems"): QUEUE_P99,
    ("kafkacontroller", "zkwritedeltatimems"): WRITE_P99,
}
"""Histograms of kafka.controller whose 99th percentile is read, by MBean type and name without anything but letters and
digits (``QuorumControllerMetrics`` of Kafka 3.9).
"""
FAILED = ("FailedProduceRequestsPerSec", "FailedFetchRequestsPerSec")
PRODUCE_COUNT, PRODUCE_MEAN = "produce.count", "produce.mean"
HANDLERS, HANDLERS_IDLE = "RequestHandlerAvgIdlePercent", "handlers.idle"
BROKER_HANDLERS, BROKER_HANDLERS_IDLE = f"Broker{HANDLERS}", "handlers.idle.broker"
"""How idle the handlers of a node's broker are, in a Kafka that shows them apart (4.2 on)."""
METADATA_ERRORS = (
    "brokermetadatametrics.metadataloaderrorcount",
    "brokermetadatametrics.metadataapplyerrorcount",
)
UNDER_REPLICATED = "ReplicaManager.UnderReplicatedPartitions"
UNDER_MIN_ISR = "ReplicaManager.UnderMinIsrPartitionCount"
SAMPLES = 20
FETCHES = ("fetchconsumer", "fetchfollower")
"""Under these names Kafka counts each Fetch once more."""
OldKind = tuple[str, str, str, str]
"""The client software's name and version, the API, and the API's version, of a request (``OldRequests``)."""


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """Gauges by lower-case MBean type and name, as ``kafkacontroller.zkmigrationstate``; NaN is left out."""

    gauges: Mapping[str, float]
    software_version: str | None
    under_replicated: tuple[str, ...] = ()
    """Partitions whose own gauge says so (``kafka.cluster:type=Partition,name=UnderReplicated``), where it is read."""
    deprecated_requests: Mapping[OldKind, int] | None = None
    """How many requests in deprecated versions; None: whether any were counted can't be told."""
    requests: Mapping[str, float] = field(default_factory=dict)
    """What is compared of a canary broker, and the part of the time in which request handlers are idle, over the last
    minute; as far as it is there.
    """


def plain_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)


def count_deprecated(found: dict[OldKind, int], keys: Mapping[str, str], count: float) -> None:
    """Count a client's requests in one deprecated version. ``keys`` in lower case, as the MBean has them. Kafka counts
    each Fetch twice: as that, and as a consumer's or a follower's.
    """
    if keys.get("request", "").lower() in FETCHES:
        return
    if count > 0:
        client = (keys.get("clientsoftwarename", UNNAMED), keys.get("clientsoftwareversion", ""))
        kind = (*client, keys.get("request", "a request"), keys.get("version", "?"))
        found[kind] = found.get(kind, 0) + int(count)


def without_a_name(counted: Mapping[OldKind, int], asked: Mapping[tuple[str, str], int]) -> dict[OldKind, int]:
    """The requests that Kafka 4 does not answer among all (``asked``: by API and version), where ``counted`` has none
    of them: an exporter whose rules pass RequestsPerSec may pass nothing that names the client.
    """
    known = {(api, version) for _, _, api, version in counted}
    return {
        (UNNAMED, "", api, version): count
        for (api, version), count in asked.items()
        if count > 0 and (api, version) not in known and int(version) < FIRST_ANSWERED.get(api, 0)
    }


def controller_metrics(found: NodeMetrics) -> ControllerMetrics:
    """The KafkaController gauges. Raises Unreachable where the source shows none of them, or a state that Kafka 3.9
    does not know.
    """

    def gauge(name: str) -> int | None:
        value = found.gauges.get(f"kafkacontroller.{name.lower()}")
        return None if value is None else int(value)

    active = gauge("ActiveControllerCount")
    if active is None:
        raise Unreachable(
            "the metrics hold no gauge KafkaController.ActiveControllerCount",
            way_out="let the exporter's rules pass kafka.controller:type=KafkaController,*",
        )
    state = gauge("ZkMigrationState")
    if state is not None and state not in set(ZkMigrationState):
        raise Unreachable(
            f"ZkMigrationState is {state}, which Kafka 3.9 does not know",
            way_out="check the Kafka version of the controllers",
        )
    return ControllerMetrics(
        zk_migration_state=None if state is None else ZkMigrationState(state),
        active=active == 1,
        migrating_zk_broker_count=gauge("MigratingZkBrokerCount"),
        zk_write_behind_lag=gauge("ZkWriteBehindLag"),
        metadata_error_count=gauge("MetadataErrorCount"),
        last_applied_offset=gauge("LastAppliedRecordOffset"),
        last_applied_lag_ms=gauge("LastAppliedRecordLagMs"),
        zk_write_delta_p99_ms=found.gauges.get(WRITE_P99),
    )


def quorum_gauges(found: NodeMetrics) -> QuorumGauges:
    """What a controller's gauges tell of the quorum, or a broker's of ZooKeeper's controller."""

    def gauge(name: str) -> int | None:
        value = found.gauges.get(name)
        return None if value is None else int(value)

    return QuorumGauges(
        event_queue_p99_ms=found.gauges.get(QUEUE_P99),
        commit_latency_ms=found.gauges.get("raftmetrics.commitlatencyavg"),
        election_latency_ms=found.gauges.get("raftmetrics.electionlatencyavg"),
        snapshot_age_ms=gauge("snapshotemitter.latestsnapshotgeneratedagems"),
        snapshot_bytes=gauge("snapshotemitter.latestsnapshotgeneratedbytes"),
        has_raft=any(name.startswith("raftmetrics.") for name in found.gauges),
    )


def broker_applied(found: NodeMetrics) -> BrokerApplied | None:
    """What a broker has applied of the metadata log. None: its metrics do not say; those of a broker in ZooKeeper mode
    never do.
    """
    offset = found.gauges.get("brokermetadatametrics.lastappliedrecordoffset")
    lag = found.gauges.get("brokermetadatametrics.lastappliedrecordlagms")
    return None if offset is None else BrokerApplied(int(offset), None if lag is None else int(lag))


def broker_metrics(found: NodeMetrics) -> BrokerMetrics:
    """The gauges of one broker. Raises Unreachable where UnderReplicatedPartitions is not among them."""

    def gauge(name: str) -> int | None:
        value = found.gauges.get(name.lower())
        return None if value is None else int(value)

    under_replicated = gauge(UNDER_REPLICATED)
    if under_replicated is None:
        raise Unreachable(
            "the metrics hold no gauge ReplicaManager.UnderReplicatedPartitions",
            way_out="let the exporter's rules pass kafka.server:type=ReplicaManager,*",
        )
    failed = [found.requests[name] for name in FAILED if name in found.requests]
    errors = [found.gauges[name] for name in METADATA_ERRORS if name in found.gauges]
    return BrokerMetrics(
        under_replicated,
        gauge("LogManager.OfflineLogDirectoryCount"),
        tuple(sorted(found.under_replicated)[:SAMPLES]),
        Unread(
            "the metrics hold no kafka.network:type=RequestMetrics,name=RequestsPerSec with request and version, so"
            " whether the exporter passes DeprecatedRequestsPerSec can't be told; let its rules pass both"
        )
        if found.deprecated_requests is None
        else tuple(OldRequests(*kind, count) for kind, count in sorted(found.deprecated_requests.items())),
        offline_replicas=gauge("ReplicaManager.OfflineReplicaCount"),
        failed_requests=int(sum(failed)) if len(failed) == len(FAILED) else None,
        produce=produce_of(found),
        metadata_errors=int(sum(errors)) if errors else None,
    )


def produce_of(found: NodeMetrics) -> Timed | None:
    """A broker's Produce requests since its start; None where the exporter does not pass them."""
    count, mean = found.requests.get(PRODUCE_COUNT), found.requests.get(PRODUCE_MEAN)
    return None if count is None or mean is None else Timed(int(count), mean)
