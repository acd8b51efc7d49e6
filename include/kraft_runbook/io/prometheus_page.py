"""What the JMX Prometheus exporter's text page says, whichever of the usual naming rules it was given.

``kafka_controller_KafkaController_ZkMigrationState``, the same in lower case or with ``_value`` behind, and
``kafka_controller_KafkaController_Value{name="ZkMigrationState"}`` are one gauge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from kraft_runbook.cluster.old_requests import FIRST_ANSWERED
from kraft_runbook.io.node_metrics import (
    BROKER_HANDLERS_IDLE,
    FAILED,
    FETCHES,
    HANDLERS,
    HANDLERS_IDLE,
    KINDS,
    PERCENTILES,
    PRODUCE_COUNT,
    PRODUCE_MEAN,
    NodeMetrics,
    OldKind,
    count_deprecated,
    plain_name,
    without_a_name,
)

P99 = "99thpercentile"
"""The attribute 99thPercentile of a histogram, as exporters spell it, without anything but letters and digits."""
REQUESTS, DEPRECATED, COUNTS = "requestmetrics", "deprecatedrequests", ("count", "total")
"""Parts of the names of kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec and of its attribute Count, as
exporters spell them, without anything but letters and digits. Kafka registers it with the first such request, so that
a page without one says nothing: RequestsPerSec, which every broker has, tells that the rules pass such MBeans.
"""
ALL_REQUESTS = "requests"
_POOL = re.compile(f"(controlplane|controller|broker)?{plain_name(HANDLERS)}")
_SQUEEZED = re.compile(r"request_([a-z]+)__version_(\d+)__clientsoftwarename")


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
    deprecated: dict[OldKind, int] = {}
    every: dict[tuple[str, str], int] = {}
    requests: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {k.lower(): v for k, v in sample.labels.items()}
            plain = plain_name(sample.name)
            if REQUESTS in plain and plain.endswith(COUNTS):
                named = plain + plain_name(labels.get("name", ""))
                if DEPRECATED in named:
                    count_deprecated(deprecated, _in_labels(labels), sample.value)
                elif (kind := _asked(named, sample.labels)) and not math.isnan(sample.value):
                    every[kind] = every.get(kind, 0) + int(sample.value)
            if "version" in labels and re.search(r"app_?(info|version)", sample.name, re.IGNORECASE):
                version = labels["version"]
            if sample.value > 0 and {"topic", "partition"} <= labels.keys() and _is_of_a_partition(sample.name, labels):
                under_replicated.append(f"{labels['topic']}-{labels['partition']}")
            if (percentile := _percentile(plain, labels)) and not math.isnan(sample.value):
                gauges[percentile] = sample.value
            if (asked := _request_number(plain, labels)) and not math.isnan(sample.value):
                requests[asked] = sample.value
            name = _gauge_name(sample.name, labels.get("name"))
            if name and not math.isnan(sample.value):
                gauges[name] = sample.value
    told = {**deprecated, **without_a_name(deprecated, every)} if deprecated or every else None
    return NodeMetrics(gauges, version, tuple(under_replicated), told, requests)


def _asked(named: str, labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Of RequestsPerSec: the API and its version. Each Fetch once (``count_deprecated``)."""
    lower = {key.lower(): value for key, value in labels.items()}
    api, version = lower.get("request", ""), lower.get("version", "")
    if ALL_REQUESTS not in named.rpartition(REQUESTS)[2] or not version.isdigit() or api.lower() in FETCHES:
        return None
    return api, version


def _in_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The MBean's keys. The exporter's example rules have room for two, and put the first ones into a label's name:
    ``request_Fetch__version_3__clientSoftwareName``.
    """
    for name, value in labels.items():
        if found := _SQUEEZED.fullmatch(name):
            api = next((each for each in FIRST_ANSWERED if each.lower() == found.group(1)), found.group(1))
            return {**labels, "request": api, "version": found.group(2), "clientsoftwarename": value}
    return labels


def _request_number(plain: str, labels: Mapping[str, str]) -> str | None:
    """Which number this sample is: the Count of failed requests over all topics, the Count or Mean of the time of
    Produce requests, or how idle request handlers are. Of that, no mean since the broker's start, which the exporter's
    example rules pass: it hardly moves.
    """
    named = plain + plain_name(labels.get("name", ""))
    if (pool := _POOL.search(named)) and "oneminuterate" in plain:
        return {None: HANDLERS_IDLE, "broker": BROKER_HANDLERS_IDLE}.get(pool.group(1))
    if "brokertopicmetrics" in plain and "topic" not in labels and plain.endswith(COUNTS):
        return next((each for each in FAILED if plain_name(each.removesuffix("PerSec")) in named), None)
    if REQUESTS in plain and "totaltimems" in named and labels.get("request", "").lower() == "produce":
        return PRODUCE_COUNT if plain.endswith(COUNTS) else PRODUCE_MEAN if plain.endswith("mean") else None
    return None


def _is_of_a_partition(sample: str, labels: Mapping[str, str]) -> bool:
    """Whether this is ``UnderReplicated`` of one partition."""
    plain = plain_name(sample + labels.get("name", "")).replace("value", "")
    return plain.endswith("partitionunderreplicated")


def _percentile(plain: str, labels: Mapping[str, str]) -> str | None:
    """Of which histogram this is the 99th percentile: as a quantile, or by its name."""
    if labels.get("quantile") not in ("0.99", "0.990") and not re.search(rf"(?<!\d){P99}", plain):
        return None
    named = plain + plain_name(labels.get("name", ""))
    return next((gauge for (kind, name), gauge in PERCENTILES.items() if kind in plain and name in named), None)


def _gauge_name(sample: str, label: str | None) -> str | None:
    plain = plain_name(sample)
    for kind in KINDS:
        _, found, rest = plain.rpartition(plain_name(kind))
        if found:
            rest = (rest.removesuffix("value") or label or "").lower()
            return f"{plain_name(kind)}.{rest}" if rest else None
    return None
