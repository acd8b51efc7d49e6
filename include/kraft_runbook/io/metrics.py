"""The metrics of controllers and brokers, from the JMX Prometheus exporter or from Jolokia, as the same gauges."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol, TypeVar

import httpx
from prometheus_client.parser import text_string_to_metric_families

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.observation import BrokerMetrics, ControllerMetrics, Timed, Unread, ZkMigrationState
from kraft_runbook.cluster.quorum_gauges import QuorumGauges
from kraft_runbook.cluster.spec_parts import MetricsSource
from kraft_runbook.errors import TimedOut, Unreachable
from kraft_runbook.io.secrets import Secrets

T = TypeVar("T")
KINDS = ("KafkaController", "ReplicaManager", "LogManager", "raft-metrics", "SnapshotEmitter")
"""The MBean types whose gauges are read (of domains kafka.controller, kafka.server and kafka.log)."""
EVENTS, QUEUE_TIME, P99 = "controllereventmanager", "eventqueuetimems", "99thpercentile"
"""Parts of the names of kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs and of its attribute
99thPercentile, as exporters spell them, without anything but letters and digits.
"""
QUEUE_P99 = f"{EVENTS}.{QUEUE_TIME}.p99"
REQUESTS, DEPRECATED, COUNTS = "requestmetrics", "deprecatedrequests", ("count", "total")
"""Parts of the names of kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec and of its attribute Count, as
exporters spell them, without anything but letters and digits. Kafka registers it with the first such request.
"""
DEPRECATED_MBEAN = "kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,*"

FAILED = ("FailedProduceRequestsPerSec", "FailedFetchRequestsPerSec")
PRODUCE_COUNT, PRODUCE_MEAN = "produce.count", "produce.mean"
TOTAL_TIME = "TotalTimeMs"
DEPRECATED_REQUESTS = ("RequestMetrics", "DeprecatedRequestsPerSec")
CANARY_REQUESTS = frozenset({("RequestMetrics", TOTAL_TIME), *(("BrokerTopicMetrics", name) for name in FAILED)})
"""MBeans by type and name."""
REQUEST_MBEANS = (
    f"kafka.network:type=RequestMetrics,name={TOTAL_TIME},request=Produce",
    *(f"kafka.server:type=BrokerTopicMetrics,name={name}" for name in FAILED),
)
"""Kafka registers these at its start (RequestMetrics; BrokerTopicStats.allTopicsStats)."""

UNDER_REPLICATED = "ReplicaManager.UnderReplicatedPartitions"
OF_PARTITIONS = "kafka.cluster:type=Partition,name=UnderReplicated,*"
"""One gauge for each partition that a broker leads. Jolokia is asked for them where the broker counts any; the exporter
shows them if its rules pass them.
"""
SAMPLES = 20


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """Gauges by lower-case MBean type and name, as ``kafkacontroller.zkmigrationstate``; NaN is left out."""

    gauges: Mapping[str, float]
    software_version: str | None
    under_replicated: tuple[str, ...] = ()
    """Partitions whose own gauge says so (``kafka.cluster:type=Partition,name=UnderReplicated``), where it is read."""
    deprecated_requests: Mapping[str, int] | None = None
    """Requests in deprecated versions, by what was asked and by whom; None: no metric of requests was there."""
    requests: Mapping[str, float] = field(default_factory=dict)
    """What is compared of a canary broker (``REQUEST_NUMBERS``), as far as it is there."""


class MetricSource(Protocol):
    """Reads one node's metrics. Raises Unreachable, naming the endpoint."""

    def read(self, host: str, port: int) -> NodeMetrics: ...

    def numbers(self, host: str, port: int, metric: str, labels: Mapping[str, str]) -> tuple[float, ...]: ...


class MetricsClient:
    """A context manager around one HTTP client and the source that the cluster file names. Safe to use from several
    threads.
    """

    def __init__(self, settings: MetricsSource, *, secrets: Secrets, timeout: float = 4.0) -> None:
        auth = (settings.username, secrets(settings.password)) if settings.username and settings.password else None
        verify: ssl.SSLContext | bool = (
            ssl.create_default_context(cafile=settings.ca_file) if settings.scheme == "https" else False
        )
        self._http = httpx.Client(timeout=timeout, verify=verify, auth=auth, trust_env=False)
        self._source: MetricSource = _SOURCES[settings.kind](self._http, settings)

    def __enter__(self) -> MetricsClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def read(self, host: str, port: int) -> NodeMetrics:
        """One node's metrics. Raises Unreachable."""
        return self._source.read(host, port)

    def numbers(self, host: str, port: int, metric: str, labels: Mapping[str, str]) -> tuple[float, ...]:
        """The values that one node shows for a metric that the cluster file names (``Relief.metric``). Raises
        Unreachable.
        """
        return self._source.numbers(host, port, metric, labels)


class Prometheus:
    """The JMX Prometheus exporter's text page, whichever of the usual naming rules it was given.

    ``kafka_controller_KafkaController_ZkMigrationState``, the same in lower case or with ``_value`` behind, and
    ``kafka_controller_KafkaController_Value{name="ZkMigrationState"}`` are one gauge.
    """

    def __init__(self, http: httpx.Client, settings: MetricsSource) -> None:
        self._http, self._settings = http, settings

    def read(self, host: str, port: int) -> NodeMetrics:
        return self._parsed(host, port, parse_prometheus)

    def numbers(self, host: str, port: int, metric: str, labels: Mapping[str, str]) -> tuple[float, ...]:
        return self._parsed(host, port, lambda text: samples_of(text, metric, labels))

    def _parsed(self, host: str, port: int, parse: Callable[[str], T]) -> T:
        url = f"{self._settings.scheme}://{address(host, port)}{self._settings.path}"
        answer = _send(url, lambda: self._http.get(url))
        try:
            return parse(answer.text)
        except ValueError as error:
            raise _not_metrics(url, error) from None


def samples_of(text: str, metric: str, labels: Mapping[str, str]) -> tuple[float, ...]:
    """The values of the samples with this name and these labels, without NaN. Raises ValueError where it is no
    exporter's page.
    """
    return tuple(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == metric and labels.items() <= sample.labels.items() and not math.isnan(sample.value)
    )


def parse_prometheus(text: str) -> NodeMetrics:
    """The gauges of an exporter's page. Raises ValueError where it is no such page."""
    gauges: dict[str, float] = {}
    version = None
    under_replicated: list[str] = []
    deprecated: dict[str, int] | None = None
    requests: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {k.lower(): v for k, v in sample.labels.items()}
            if REQUESTS in (plain := _plain(sample.name)):
                deprecated = {} if deprecated is None else deprecated
                if DEPRECATED in plain + _plain(labels.get("name", "")) and plain.endswith(COUNTS):
                    _add(deprecated, labels, sample.value)
            if "version" in labels and re.search(r"app_?(info|version)", sample.name, re.IGNORECASE):
                version = labels["version"]
            if sample.value > 0 and {"topic", "partition"} <= labels.keys() and _is_of_a_partition(sample.name, labels):
                under_replicated.append(f"{labels['topic']}-{labels['partition']}")
            if EVENTS in plain and _is_queue_p99(plain, labels) and not math.isnan(sample.value):
                gauges[QUEUE_P99] = sample.value
            if (asked := _request_number(plain, labels)) and not math.isnan(sample.value):
                requests[asked] = sample.value
            name = _gauge_name(sample.name, labels.get("name"))
            if name and not math.isnan(sample.value):
                gauges[name] = sample.value
    return NodeMetrics(gauges, version, tuple(under_replicated), deprecated, requests)


def _request_number(plain: str, labels: Mapping[str, str]) -> str | None:
    """Which of a canary's numbers this sample is: the Count of failed requests over all topics, or the Count or Mean of
    the time of Produce requests.
    """
    named = plain + _plain(labels.get("name", ""))
    if "brokertopicmetrics" in plain and "topic" not in labels and plain.endswith(COUNTS):
        return next((each for each in FAILED if _plain(each.removesuffix("PerSec")) in named), None)
    if REQUESTS in plain and "totaltimems" in named and labels.get("request", "").lower() == "produce":
        return PRODUCE_COUNT if plain.endswith(COUNTS) else PRODUCE_MEAN if plain.endswith("mean") else None
    return None


def _is_of_a_partition(sample: str, labels: Mapping[str, str]) -> bool:
    """Whether this is ``UnderReplicated`` of one partition."""
    plain = _plain(sample + labels.get("name", "")).replace("value", "")
    return plain.endswith("partitionunderreplicated")


def _is_queue_p99(plain: str, labels: Mapping[str, str]) -> bool:
    """Whether this is the 99th percentile of the time in a controller's event queue: as a quantile, or by its name."""
    percentile = labels.get("quantile") in ("0.99", "0.990") or bool(re.search(rf"(?<!\d){P99}", plain))
    return percentile and QUEUE_TIME in plain + _plain(labels.get("name", ""))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _add(found: dict[str, int], keys: Mapping[str, str], count: float) -> None:
    """Count a client's requests in one deprecated version. ``keys`` in lower case, as the MBean has them. Kafka counts
    each Fetch twice: as that, and as a consumer's or a follower's.
    """
    if keys.get("request") in ("FetchConsumer", "FetchFollower"):
        return
    client = f"{keys.get('clientsoftwarename', 'unknown')} {keys.get('clientsoftwareversion', '')}".strip()
    asked = f"{keys.get('request', 'a request')} version {keys.get('version', '?')} by client {client}"
    if count > 0:
        found[asked] = found.get(asked, 0) + int(count)


def _gauge_name(sample: str, label: str | None) -> str | None:
    plain = _plain(sample)
    for kind in KINDS:
        _, found, rest = plain.rpartition(_plain(kind))
        if found:
            rest = (rest.removesuffix("value") or label or "").lower()
            return f"{_plain(kind)}.{rest}" if rest else None
    return None


class Jolokia:
    """Jolokia 2.x: one bulk read. ``path`` is the agent's context, ``/jolokia`` where the cluster file leaves the
    exporter's default.
    """

    def __init__(self, http: httpx.Client, settings: MetricsSource) -> None:
        self._http, self._settings = http, settings

    def read(self, host: str, port: int) -> NodeMetrics:
        mbeans = [
            "kafka.controller:type=KafkaController,name=*",
            "kafka.server:type=ReplicaManager,name=*",
            "kafka.log:type=LogManager,name=*",
            "kafka.server:type=app-info,id=*",
            "kafka.server:type=raft-metrics,*",
            "kafka.server:type=SnapshotEmitter,name=*",
            "kafka.controller:type=ControllerEventManager,name=*",
            DEPRECATED_MBEAN,
            *REQUEST_MBEANS,
        ]
        url = self._url(host, port)
        try:
            found = parse_jolokia(self._ask(url, mbeans))
            if not found.gauges.get(UNDER_REPLICATED.lower()):
                return found
            return replace(found, under_replicated=partitions_of_jolokia(self._ask(url, [OF_PARTITIONS])))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _not_metrics(url, error) from None

    def numbers(self, host: str, port: int, metric: str, labels: Mapping[str, str]) -> tuple[float, ...]:
        """``metric``: ``domain:type=…,name=…/Attribute``; an MBean has no labels."""
        mbean, _, attribute = metric.rpartition("/")
        url = self._url(host, port)
        try:
            (part,) = self._ask(url, [mbean])
            value = part["value"].get(attribute) if part["status"] == 200 else None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _not_metrics(url, error) from None
        return (float(value),) if value is not None and _is_number(value) else ()

    def _url(self, host: str, port: int) -> str:
        path = "/jolokia" if self._settings.path == "/metrics" else self._settings.path.rstrip("/")
        return f"{self._settings.scheme}://{address(host, port)}{path}/"

    def _ask(self, url: str, mbeans: Iterable[str]) -> Any:
        return _send(url, lambda: self._http.post(url, json=[{"type": "read", "mbean": m} for m in mbeans])).json()


def partitions_of_jolokia(answer: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The partitions whose gauge ``UnderReplicated`` is not 0, by a bulk answer."""
    found = []
    for part in answer:
        for mbean, attributes in part["value"].items() if part["status"] == 200 else ():
            keys = _keys(mbean)
            if {"topic", "partition"} <= keys.keys() and attributes.get("Value"):
                found.append(f"{keys['topic']}-{keys['partition']}")
    return tuple(found)


def parse_jolokia(answer: Iterable[Mapping[str, Any]]) -> NodeMetrics:
    """The gauges of a bulk answer; an MBean that is not registered has status 404 and is left out."""
    gauges: dict[str, float] = {}
    version = None
    deprecated: dict[str, int] | None = None
    requests: dict[str, float] = {}
    for part in answer:
        asked = _keys(part.get("request", {}).get("mbean", ""))
        if (asked.get("type"), asked.get("name")) == DEPRECATED_REQUESTS and part["status"] in (200, 404):
            deprecated = {}
        if part["status"] != 200:
            continue
        if (asked.get("type"), asked.get("name")) in CANARY_REQUESTS:
            requests |= _of_jolokia(asked["name"], part["value"])
            continue
        for mbean, attributes in part["value"].items():
            keys = _keys(mbean)
            if keys.get("type") == "app-info":
                version = attributes.get("Version") or attributes.get("version")
            elif keys.get("type") == "RequestMetrics":
                deprecated = {} if deprecated is None else deprecated
                _add(deprecated, {key.lower(): value for key, value in keys.items()}, attributes["Count"])
            elif keys.get("type") == "raft-metrics":
                gauges |= {f"raftmetrics.{_plain(k)}": float(v) for k, v in attributes.items() if _is_number(v)}
            elif keys.get("type") == "ControllerEventManager":
                if keys.get("name", "").lower() == QUEUE_TIME and _is_number(attributes.get("99thPercentile")):
                    gauges[QUEUE_P99] = float(attributes["99thPercentile"])
            elif keys.get("type") in KINDS and _is_number(attributes.get("Value")):
                gauges[f"{keys['type']}.{keys['name']}".lower()] = float(attributes["Value"])
    return NodeMetrics(gauges, version, deprecated_requests=deprecated, requests=requests)


def _keys(mbean: str) -> dict[str, str]:
    """The key properties of an MBean's name. Jolokia gives a name back in its canonical order, which is another than
    that in which it was asked for.
    """
    return dict(pair.split("=", 1) for pair in mbean.partition(":")[2].split(",") if "=" in pair)


def _of_jolokia(name: str, attributes: Mapping[str, Any]) -> dict[str, float]:
    """A canary's numbers of one MBean, whose attributes come as they are where its name has no pattern."""
    if name == TOTAL_TIME:
        return {PRODUCE_COUNT: float(attributes["Count"]), PRODUCE_MEAN: float(attributes["Mean"])}
    return {name: float(attributes["Count"])}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)


_SOURCES: Mapping[str, Callable[[httpx.Client, MetricsSource], MetricSource]] = {
    "prometheus": Prometheus,
    "jolokia": Jolokia,
}


def _send(url: str, call: Callable[[], httpx.Response]) -> httpx.Response:
    try:
        answer = call()
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        raise Unreachable(
            f"the metrics at {url} answered HTTP {error.response.status_code}", way_out=_WAY_OUT
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        kind = TimedOut if isinstance(error, httpx.TimeoutException) else Unreachable
        raise kind(
            f"the metrics at {url} could not be read: {type(error).__name__}: {error}", way_out=_WAY_OUT
        ) from None
    return answer


_WAY_OUT = (
    "check that the agent runs in the node's process, and 'metrics' and the node's 'metrics_port' in the cluster file"
)


def _not_metrics(url: str, error: Exception) -> Unreachable:
    return Unreachable(f"what {url} answers are no metrics: {type(error).__name__}: {error}", way_out=_WAY_OUT)


# -- gauges to what the core knows -------------------------------------------------------------------------------------


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
        has_snapshots=any(name.startswith("snapshotemitter.") for name in found.gauges),
    )


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
    count, mean = found.requests.get(PRODUCE_COUNT), found.requests.get(PRODUCE_MEAN)
    return BrokerMetrics(
        under_replicated,
        gauge("LogManager.OfflineLogDirectoryCount"),
        tuple(sorted(found.under_replicated)[:SAMPLES]),
        Unread("the metrics hold nothing of kafka.network:type=RequestMetrics; let the exporter's rules pass it")
        if found.deprecated_requests is None
        else found.deprecated_requests,
        offline_replicas=gauge("ReplicaManager.OfflineReplicaCount"),
        failed_requests=int(sum(failed)) if len(failed) == len(FAILED) else None,
        produce=None if count is None or mean is None else Timed(int(count), mean),
    )
