"""The metric that a cluster file names for the relief: of every broker the worst, and what is not read is no number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from observations import SPEC

from kraft_runbook.cluster.group_toggles import Relief
from kraft_runbook.cluster.spec_parts import MetricsSource
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.metrics import Jolokia, MetricsClient
from kraft_runbook.io.named_metric import worst_of_brokers
from kraft_runbook.io.prometheus_page import samples_of

PAGE = """
# TYPE load gauge
load{queue="a"} 3.0
load{queue="b"} 7.0
load{queue="c"} NaN
load_max 99.0
"""
LOAD = Relief(metric="load", above=10)


def test_a_sample_is_found_by_its_name_and_labels() -> None:
    assert samples_of(PAGE, "load", {}) == (3.0, 7.0)
    assert samples_of(PAGE, "load", {"queue": "a"}) == (3.0,)
    assert samples_of(PAGE, "nothing", {}) == samples_of(PAGE, "load", {"queue": "c"}) == ()


def jolokia(part: Any) -> Jolokia:
    def answer(request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        assert asked == [{"type": "read", "mbean": "kafka.server:type=Pool,name=Idle/Percent"}]
        assert str(request.url) == "http://b1:7071/jolokia/"
        return httpx.Response(200, json=[part])

    return Jolokia(httpx.Client(transport=httpx.MockTransport(answer)), MetricsSource(kind="jolokia"))


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ({"status": 200, "value": {"OneMinuteRate": 0.4}}, (0.4,)),
        ({"status": 200, "value": {"Other": 0.4}}, ()),
        ({"status": 404}, ()),
    ],
)
def test_jolokia_is_asked_for_an_attribute_of_an_mbean(part: Any, found: tuple[float, ...]) -> None:
    """The attribute stands behind the last slash; a name may hold some."""
    metric = "kafka.server:type=Pool,name=Idle/Percent/OneMinuteRate"
    assert jolokia(part).numbers("b1", 7071, metric, {}) == found


def test_an_answer_of_another_form_is_an_error() -> None:
    with pytest.raises(Unreachable, match="answers with something else than metrics"):
        jolokia({"status": 200}).numbers("b1", 7071, "kafka.server:type=Pool,name=Idle/Percent/OneMinuteRate", {})


class Client:
    """``of``: broker's host → values, or an error."""

    of: Mapping[str, Any] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def numbers(self, host: str, port: int, metric: str, labels: Mapping[str, str]) -> tuple[float, ...]:
        found = self.of[host]
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]


def brokers(*values: Any) -> float | Unread:
    """What is said of brokers that show these values."""
    client = Client()
    client.of = dict(zip((b.host for b in SPEC.brokers), values, strict=True))
    return worst_of_brokers(SPEC, LOAD, secrets=lambda ref: "", client_of=lambda *_, **__: client)  # type: ignore[arg-type, return-value]


def test_the_worst_broker_counts() -> None:
    assert brokers((1.0,), (3.0, 7.0), (2.0,)) == 7.0
    below = Relief(metric="load", below=1)
    assert (below.worst({1: 3.0, 2: 0.5}), below.passed(0.5)) == (0.5, "load is 0.5, below 1")


def test_a_broker_that_does_not_say_is_no_number_unless_another_one_s_is_enough() -> None:
    silent = Unreachable("the metrics at b2 could not be read", way_out="start it")
    found = brokers((1.0,), silent, ())
    assert isinstance(found, Unread)
    assert found.reason == "broker 2: the metrics at b2 could not be read; broker 3 shows no load"
    assert brokers((11.0,), silent, ()) == 11.0
    assert isinstance(brokers((), (), ()), Unread)


def test_a_metrics_client_asks_the_source_of_the_cluster_file() -> None:
    with MetricsClient(MetricsSource(), secrets=lambda ref: "") as client, pytest.raises(Unreachable):
        client.numbers("127.0.0.1", 1, "load", {})
