"""What a broker has applied of the metadata log: read under every usual name, judged against what was committed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from observations import SECRETS, SPEC, WHY, observation
from test_metrics_command import exposition, parsed
from test_quorum_health import NO_GAUGE, answer, b, by_zookeeper, kraft, series

from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.quorum_gauges import BrokerApplied
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.jolokia_answer import parse_jolokia
from kraft_runbook.io.node_metrics import NodeMetrics, broker_applied
from kraft_runbook.io.prometheus_page import parse_prometheus
from kraft_runbook.procedures import see_quorum
from kraft_runbook.quorum.page import render
from kraft_runbook.quorum.samples import sample_of
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.warm import APPLY_RULE, Warmth, warmth

BEHIND = b(2, BrokerApplied(100, 70_661), Warmth.COLD)
PAGE = (
    "kafka_server_broker_metadata_metrics_last_applied_record_offset 990.0\n"
    "kafka_server_broker_metadata_metrics_last_applied_record_lag_ms 431.0\n"
)


def test_what_a_broker_has_applied_is_found_in_its_metrics() -> None:
    assert broker_applied(parse_prometheus(PAGE)) == BrokerApplied(990, 431)


def test_jolokia_shows_the_same() -> None:
    values = {
        "kafka.server:type=broker-metadata-metrics": {
            "last-applied-record-offset": 990,
            "last-applied-record-lag-ms": 431,
            "metadata-load-error-count": 0,
        }
    }
    assert broker_applied(parse_jolokia([{"status": 200, "value": values}])) == BrokerApplied(990, 431)


def test_the_rules_that_pass_errors_alone_tell_nothing_of_it() -> None:
    assert (
        broker_applied(parse_prometheus("kafka_server_broker_metadata_metrics_metadata_load_error_count 0\n")) is None
    )


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (BrokerApplied(979, 70_661), Warmth.COLD),
        (BrokerApplied(980, 70_661), Warmth.WARM),
        (BrokerApplied(100, 1999), Warmth.WARM),
        (BrokerApplied(100, -5), Warmth.COLD),
        (BrokerApplied(-1, 10**12), Warmth.COLD),
    ],
    ids=["21 records behind", "20 behind", "a burst just now", "a clock that is behind", "nothing since its start"],
)
def test_a_broker_is_current_within_twenty_records_or_two_seconds(applied: BrokerApplied, expected: Warmth) -> None:
    assert warmth(applied, 1000) is expected


def test_what_was_committed_at_the_first_look_is_enough_however_much_is_written() -> None:
    assert warmth(BrokerApplied(999, 5000), 90_000, 1000) is Warmth.WARM
    assert warmth(BrokerApplied(998, 5000), 90_000, 1000) is Warmth.COLD


class Pages:
    """The metrics of brokers: 1 shows what it has applied, 2 nothing of it, 3 can't be read."""

    def read(self, host: str, port: int) -> NodeMetrics:
        broker = next(each.id for each in SPEC.brokers if (each.host, each.metrics_port) == (host, port))
        if broker == 3:
            raise Unreachable("the metrics of broker 3 hang", way_out="")
        return parse_prometheus(PAGE if broker == 1 else "kafka_server_app_info 1\n")


def applied(monkeypatch: pytest.MonkeyPatch, broker_id: int, *, runs: bool = True, mode: Any = BrokerMode.KRAFT) -> Any:
    def mode_of(*_: object, **given: object) -> BrokerMode:
        if isinstance(mode, Exception):
            raise mode
        found: BrokerMode = mode
        return found

    monkeypatch.setattr(see_quorum, "accepts", lambda *_: runs)
    monkeypatch.setattr(see_quorum, "broker_mode", mode_of)
    return see_quorum._applied(SPEC, SPEC.broker(broker_id), SECRETS, Pages())  # type: ignore[arg-type]


def test_a_broker_in_kraft_mode_whose_exporter_lacks_the_gauge_names_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert applied(monkeypatch, 1) == BrokerApplied(990, 431)
    assert applied(monkeypatch, 2) == NO_GAUGE
    assert applied(monkeypatch, 2, mode=Unreachable("broker 2 hangs", way_out="")) == NO_GAUGE
    assert applied(monkeypatch, 3).reason == "the metrics of broker 3 hang"


@pytest.mark.parametrize("mode", [BrokerMode.ZOOKEEPER, BrokerMode.HYBRID])
def test_a_broker_in_zookeeper_mode_or_down_applies_none(monkeypatch: pytest.MonkeyPatch, mode: BrokerMode) -> None:
    for broker_id in (2, 3):
        assert applied(monkeypatch, broker_id, mode=mode) is None
        assert applied(monkeypatch, broker_id, runs=False) is None


def test_brokers_in_zookeeper_mode_alone_pass() -> None:
    assert answer("KRB-QRM-018", series(replace(kraft(), brokers={}))).verdict is Verdict.PASS
    assert answer("KRB-QRM-018", series(kraft())).evidence == "3 of 3 have"


def test_metrics_that_hang_are_unknown_with_the_checks_own_way_out() -> None:
    hangs = Unread("the metrics of broker 3 hang")
    found = answer("KRB-QRM-018", series(b(3, hangs, hangs)))
    assert found.verdict is Verdict.UNKNOWN and found.fix != APPLY_RULE


def test_the_page_the_sample_and_the_metrics_show_how_far_a_broker_is() -> None:
    assert "observer 2: log end 1000, lag 0 records, fetched 0.2 s ago, lags in applying, it has applied up to" in (
        render(BEHIND)
    )
    assert "observer 2: log end 1000, lag 0 records, fetched 0.2 s ago, what it has applied was not read: its" in (
        render(b(2, NO_GAUGE, NO_GAUGE))
    )
    assert sample_of(BEHIND)["unapplied_by_brokers"] == 899
    assert sample_of(by_zookeeper())["unapplied_by_brokers"] is None
    found = parsed(exposition(observation(Phase.DUAL_WRITE), series(BEHIND), SPEC))
    assert found["broker_unapplied_records"] == {("1",): 0.0, ("2",): 899.0, ("3",): 0.0}
    assert found["broker_last_applied_seconds"][("2",)] == 70.661
    assert found["broker_current"] == {("1",): 1.0, ("2",): 0.0, ("3",): 1.0}
    dark = parsed(exposition(observation(Phase.DUAL_WRITE), series(b(2, NO_GAUGE, NO_GAUGE)), SPEC))
    assert ("2",) not in {*dark["broker_unapplied_records"], *dark["broker_current"]}


def test_only_the_last_look_of_a_series_asks_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(see_quorum, "see_registrations", lambda *_, **__: WHY)
    monkeypatch.setattr(see_quorum, "see_quorum", lambda *_, **given: asked.append(given["ask_brokers"]) or kraft())
    see_quorum.see_series(SPEC, secrets=SECRETS, sleep=lambda _: None)
    assert asked == [False, False, True]
