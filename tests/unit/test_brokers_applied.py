"""What a broker has applied of the metadata log: read under every usual name, judged against what was committed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from feature_looks import all_registered
from observations import SECRETS, SPEC, observation
from test_metrics_command import exposition, parsed
from test_quorum_health import NO_GAUGE, answer, b, by_zookeeper, kraft, series

from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.quorum_gauges import BrokerApplied
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.jolokia_answer import parse_jolokia
from kraft_runbook.io.node_metrics import NodeMetrics, broker_applied
from kraft_runbook.io.prometheus_page import parse_prometheus
from kraft_runbook.procedures.see_quorum import applied_by, see_series
from kraft_runbook.quorum.look import QuorumLook
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


SHOWN, NOTHING = parse_prometheus(PAGE), parse_prometheus("kafka_server_app_info 1\n")
HANGS = Unread("the metrics of broker 3 hang")


def applied(
    page: NodeMetrics | Unread, *, runs: bool = True, mode: BrokerMode | Unread = BrokerMode.KRAFT
) -> BrokerApplied | Unread | None:
    return applied_by(page, runs=lambda: runs, mode=lambda: mode)


def test_a_broker_in_kraft_mode_whose_exporter_lacks_the_gauge_names_the_rule() -> None:
    assert applied(SHOWN) == BrokerApplied(990, 431)
    assert applied(NOTHING) == NO_GAUGE
    assert applied(NOTHING, mode=Unread("broker 2 hangs")) == NO_GAUGE
    assert applied(HANGS) == HANGS


def test_a_broker_whose_metrics_tell_is_asked_nothing_more() -> None:
    assert applied_by(SHOWN, runs=pytest.fail, mode=pytest.fail) == BrokerApplied(990, 431)


@pytest.mark.parametrize("mode", [BrokerMode.ZOOKEEPER, BrokerMode.HYBRID])
def test_a_broker_in_zookeeper_mode_or_down_applies_none(mode: BrokerMode) -> None:
    for page in (NOTHING, HANGS):
        assert applied(page, mode=mode) is None
        assert applied(page, runs=False) is None


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


def test_only_the_last_look_of_a_series_asks_brokers() -> None:
    asked: list[bool] = []

    def look(*_: object, ask_brokers: bool, **__: object) -> QuorumLook:
        asked.append(ask_brokers)
        return kraft()

    see_series(SPEC, secrets=SECRETS, sleep=lambda _: None, look=look, registered=lambda *_, **__: all_registered())
    assert asked == [False, False, True]
