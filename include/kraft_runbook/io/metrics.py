"""The metrics of controllers and brokers, from the JMX Prometheus exporter or from Jolokia, as the same gauges."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, TypeVar

import httpx

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.spec_parts import MetricsSource
from kraft_runbook.errors import TimedOut, Unreachable
from kraft_runbook.io.jolokia_answer import (
    DEPRECATED_MBEAN,
    OF_PARTITIONS,
    REQUEST_MBEANS,
    parse_jolokia,
    partitions_of_jolokia,
)
from kraft_runbook.io.node_metrics import ATTRIBUTED, UNDER_REPLICATED, NodeMetrics, is_number
from kraft_runbook.io.own_files import require_own_file
from kraft_runbook.io.prometheus_page import parse_prometheus, samples_of
from kraft_runbook.io.secrets import Secrets

T = TypeVar("T")


class MetricSource(Protocol):
    """Reads one node's metrics. Raises Unreachable, naming the endpoint."""

    def read(self, host: str, port: int) -> NodeMetrics: ...

    def numbers(self, host: str, port: int, metric: str, labels: Mapping[str, str]) -> tuple[float, ...]: ...


class MetricsClient:
    """A context manager around one HTTP client and the source that the cluster file names. Safe to use from several
    threads. Raises Unreachable for a ``metrics.ca_file`` that can't be read.
    """

    def __init__(self, settings: MetricsSource, *, secrets: Secrets, timeout: float = 4.0) -> None:
        auth = (settings.username, secrets(settings.password)) if settings.username and settings.password else None
        require_own_file(settings.ca_file if settings.scheme == "https" else None, "metrics.ca_file")
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
    """The JMX Prometheus exporter (``prometheus_page``)."""

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
            *(f"kafka.server:type={kind},*" for kind in ATTRIBUTED),
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
        return (float(value),) if value is not None and is_number(value) else ()

    def _url(self, host: str, port: int) -> str:
        path = "/jolokia" if self._settings.path == "/metrics" else self._settings.path.rstrip("/")
        return f"{self._settings.scheme}://{address(host, port)}{path}/"

    def _ask(self, url: str, mbeans: Iterable[str]) -> Any:
        return _send(url, lambda: self._http.post(url, json=[{"type": "read", "mbean": m} for m in mbeans])).json()


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
    return Unreachable(
        f"{url} answers with something else than metrics: {type(error).__name__}: {error}", way_out=_WAY_OUT
    )
