"""What Jolokia's bulk answer says: the attributes of each MBean that was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kraft_runbook.io.node_metrics import (
    ATTRIBUTED,
    BROKER_HANDLERS,
    BROKER_HANDLERS_IDLE,
    FAILED,
    HANDLERS,
    HANDLERS_IDLE,
    KINDS,
    PERCENTILES,
    PRODUCE_COUNT,
    PRODUCE_MEAN,
    NodeMetrics,
    OldKind,
    count_deprecated,
    is_number,
    plain_name,
)

TOTAL_TIME = "TotalTimeMs"
DEPRECATED_MBEAN = "kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,*"
DEPRECATED_REQUESTS = ("RequestMetrics", "DeprecatedRequestsPerSec")
POOL = "KafkaRequestHandlerPool"
IDLE = {HANDLERS: HANDLERS_IDLE, BROKER_HANDLERS: BROKER_HANDLERS_IDLE}
OF_REQUESTS = frozenset(
    {
        ("RequestMetrics", TOTAL_TIME),
        *(("BrokerTopicMetrics", name) for name in FAILED),
        *((POOL, name) for name in IDLE),
    }
)
"""MBeans by type and name."""
REQUEST_MBEANS = (
    f"kafka.network:type=RequestMetrics,name={TOTAL_TIME},request=Produce",
    *(f"kafka.server:type=BrokerTopicMetrics,name={name}" for name in FAILED),
    *(f"kafka.server:type={POOL},name={name}" for name in IDLE),
)
"""Kafka registers these at its start (RequestMetrics; BrokerTopicStats.allTopicsStats; KafkaRequestHandlerPool); the
last one from 4.2 on.
"""
OF_PARTITIONS = "kafka.cluster:type=Partition,name=UnderReplicated,*"
"""One gauge for each partition that a broker leads. Jolokia is asked for them where the broker counts any; the exporter
shows them if its rules pass them.
"""


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
    deprecated: dict[OldKind, int] | None = None
    requests: dict[str, float] = {}
    for part in answer:
        asked = _keys(part.get("request", {}).get("mbean", ""))
        if (asked.get("type"), asked.get("name")) == DEPRECATED_REQUESTS and part["status"] in (200, 404):
            deprecated = {}
        if part["status"] != 200:
            continue
        if (asked.get("type"), asked.get("name")) in OF_REQUESTS:
            requests |= _of_jolokia(asked["name"], part["value"])
            continue
        for mbean, attributes in part["value"].items():
            keys = _keys(mbean)
            if keys.get("type") == "app-info":
                version = attributes.get("Version") or attributes.get("version")
            elif keys.get("type") == "RequestMetrics":
                deprecated = {} if deprecated is None else deprecated
                count_deprecated(deprecated, {key.lower(): value for key, value in keys.items()}, attributes["Count"])
            elif (kind := keys.get("type")) in ATTRIBUTED:
                gauges |= {
                    f"{plain_name(kind)}.{plain_name(k)}": float(v) for k, v in attributes.items() if is_number(v)
                }
            elif percentile := PERCENTILES.get((keys.get("type", "").lower(), keys.get("name", "").lower())):
                if is_number(attributes.get("99thPercentile")):
                    gauges[percentile] = float(attributes["99thPercentile"])
            elif keys.get("type") in KINDS and is_number(attributes.get("Value")):
                gauges[f"{keys['type']}.{keys['name']}".lower()] = float(attributes["Value"])
    return NodeMetrics(gauges, version, deprecated_requests=deprecated, requests=requests)


def _keys(mbean: str) -> dict[str, str]:
    """The key properties of an MBean's name. Jolokia gives a name back in its canonical order, which is another than
    that in which it was asked for.
    """
    return dict(pair.split("=", 1) for pair in mbean.partition(":")[2].split(",") if "=" in pair)


def _of_jolokia(name: str, attributes: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of one MBean, whose attributes come as they are where its name has no pattern."""
    if name in IDLE:
        rate = attributes["OneMinuteRate"]
        return {IDLE[name]: float(rate)} if is_number(rate) else {}
    if name == TOTAL_TIME:
        return {PRODUCE_COUNT: float(attributes["Count"]), PRODUCE_MEAN: float(attributes["Mean"])}
    return {name: float(attributes["Count"])}
