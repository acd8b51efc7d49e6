"""Clients that Kafka 4 will not answer: what the brokers count, between two looks, and what a person reads of it."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from asked_java import ask_java
from feature_looks import host_module
from observations import WHY, both, broker, later
from recording import RecordingCluster, run_on
from test_upgrade_checks import ALL, PLAIN, cluster, host_changed

from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.observation import BrokerMetrics, ClusterObservation, Unread
from kraft_runbook.cluster.old_requests import (
    FIRST_ANSWERED,
    OF_4_0_0,
    LoggedClient,
    LoggedRequests,
    OldRequests,
    is_answered,
)
from kraft_runbook.cluster.operation_settings import UpgradeSoftware
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.software.known_faults import faults_of
from kraft_runbook.software.old_clients import (
    MOST_LOGGED,
    OldClient,
    old_clients,
    table_of_logged_clients,
    table_of_old_clients,
)
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.stages import Gate
from kraft_runbook.steps.software import examine_with_tables
from lab.installation import JARS, JARS4, OTHERS, fetch_jars, jars_of

NEEDED = "kafka_host installation kafka_user properties_text login_modules references environment_files jvm_options"
for _each in (*NEEDED.split(), "named_classes"):
    host_module(_each)
request_log = host_module("request_log")
CHECK = SOFTWARE.checks["KRB-PRE-094"]
PRINTS = Path(__file__).with_name("PrintRequestVersions.java")
NOBODY = "software that gives no name"


def counted(seen: ClusterObservation, **kinds: Any) -> ClusterObservation:
    """``b2=[("Fetch", "3", 7)]``: what a broker counted of clients without a name, or why that was not read."""
    for name, counts in kinds.items():
        rows = counts if isinstance(counts, Unread) else tuple(OldRequests("unknown", "unknown", *c) for c in counts)
        seen = broker(int(name[1:]), metrics=BrokerMetrics(0, 0, deprecated_requests=rows))(seen)
    return seen


def test_requests_are_summed_over_the_brokers_and_told_by_what_came_between_two_looks() -> None:
    before = counted(cluster(), b1=[("Fetch", "3", 100)], b2=[("Fetch", "3", 7), ("CreateTopics", "1", 9)])
    now = later(counted(before, b1=[("Fetch", "3", 130)], b2=[("Fetch", "3", 7), ("CreateTopics", "1", 9)]), 60)
    found = old_clients(now, before, "4.1.1")
    assert found.window == "1 min" and not found.unread
    assert found.found == (
        OldClient(NOBODY, "Fetch 3", 137, 30, (1, 2)),
        OldClient(NOBODY, "CreateTopics 1", 9, 0, (2,)),
    )
    said = CHECK.run(now, PLAIN, before)
    assert said.verdict is Verdict.FAIL and not said.blocks
    assert said.evidence == (
        f"Fetch 3 of {NOBODY}: 30 in the last 1 min, 137 since their start (brokers 1, 2);"
        f" CreateTopics 1 of {NOBODY}: 0 in the last 1 min, 9 since its start (broker 2)"
    )


def test_a_broker_that_was_restarted_between_the_looks_has_counted_anew() -> None:
    before = counted(cluster(), b1=[("Fetch", "3", 100)])
    (row,) = old_clients(counted(before, b1=[("Fetch", "3", 4)]), before, "4.1.1").found
    assert (row.total, row.lately) == (4, 4)


def test_what_was_not_read_is_unknown_and_never_fine() -> None:
    assert CHECK.run(counted(cluster(), b3=WHY), PLAIN).verdict is Verdict.UNKNOWN
    half = CHECK.run(counted(cluster(), b1=[("Fetch", "3", 1)], b3=WHY), PLAIN)
    assert half.verdict is Verdict.FAIL and "(not read: broker 3: a test did not read it)" in half.evidence
    first = counted(cluster(), b1=WHY)
    now = later(counted(first, b1=[("Fetch", "3", 4)]), 5)
    assert "broker 1 at the first look" in CHECK.run(now, PLAIN, first).evidence
    assert CHECK.run(counted(first, b1=[]), PLAIN, first).verdict is Verdict.PASS, "none since its start"


def test_a_broker_on_the_target_is_not_asked() -> None:
    assert CHECK.run(counted(cluster(ALL), b1=WHY, b2=[("Fetch", "3", 1)]), PLAIN).verdict is Verdict.PASS


def test_what_the_target_answers_is_no_old_client_though_3_9_0_counts_it() -> None:
    """KAFKA-19494: 3.9.0 counts more versions as deprecated than Kafka 4 took away."""
    seen = counted(cluster(), b1=[("JoinGroup", "1", 4), ("Produce", "6", 5), ("AnApiOfLater", "0", 1)])
    assert CHECK.run(seen, PLAIN).verdict is Verdict.PASS
    assert is_answered("JOIN_GROUP", 1, "4.1.1") and not is_answered("JOIN_GROUP", 1, "4.0.0")
    logged = LoggedRequests((LoggedClient("PRODUCE", 6, "x", "User:x", "10.9.8.7", 1, "10:00"),), since="09:59")
    table = table_of_logged_clients(host_changed(1, logged=logged)(cluster()), "4.1.1")
    assert table is not None and "Nobody asked so" in table


def test_4_0_0_alone_does_not_answer_joingroup_0_and_1_which_3_9_2_does_not_count() -> None:
    """KAFKA-19444."""
    clients = old_clients(counted(cluster(), b1=[("JoinGroup", "1", 4)]), None, "4.0.0")
    assert [each.asked for each in clients.found] == ["JoinGroup 1"]
    (unread,) = old_clients(counted(cluster(), b1=[]), None, "4.0.0").unread
    assert "4.0.0 alone does not answer JoinGroup 0 and 1" in unread
    assert old_clients(counted(cluster(), b1=[]), None, "4.0.1").unread == ()
    assert "KAFKA-19444" in {each.issue for each in faults_of(KafkaVersion.of("4.0.0"))}
    assert "KAFKA-19444" not in {each.issue for each in faults_of(KafkaVersion.of("4.0.1"))}


def test_the_gate_looks_twice_and_shows_every_client_in_a_table() -> None:
    rows = [("Fetch", "3", 1234), *(("Produce", str(n), 1) for n in range(7))]
    seen = counted(cluster(), b1=rows)

    def examined(window: float, gate: str = Gate.UP, looked: ClusterObservation = seen) -> tuple[Any, RecordingCluster]:
        spec = PLAIN.model_copy(update={"upgrade_software": UpgradeSoftware(old_clients_window=window)})
        acts = RecordingCluster(looked, spec=spec)
        return examine_with_tables(run_on(acts), gate), acts

    found, acts = examined(60)
    assert acts.paused >= 60
    shown, by_day, defaults = found.exhibits
    assert "Nobody has counted by day. Let cluster_watch__lab run" in by_day.rendered
    assert defaults.rendered.startswith("### Defaults that change")
    assert "### Clients that Kafka 4.1.1 will not answer" in shown.rendered
    assert f"| {NOBODY} | Fetch 3 | 0 | 1,234 | 1 |" in shown.rendered
    assert shown.rendered.count(f"| {NOBODY} |") == 4, "Produce 3 and later are answered"
    once, acts = examined(0)
    assert acts.paused < 60 and f"| {NOBODY} | Fetch 3 | 1,234 | 1 |" in once.exhibits[0].rendered
    assert examined(60, looked=counted(cluster(), b1=[]))[0].exhibits == (by_day, defaults)
    back, acts = examined(60, Gate.BACK, replace(seen))
    assert back.exhibits == () and acts.paused < 60


# -- who they are, by the request logs ---------------------------------------------------------------------------------

LINE = (
    '[2026-11-29 10:00:07,123] INFO Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":1,'
    '"requestApiVersion":3,"correlationId":7,"clientId":"bill|ing","requestApiKeyName":"FETCH",'
    '"requestApiVersionDeprecated":true},"request":{"maxWaitMs":500},"response":"","connection":'
    '"10.0.0.1:9092-10.9.8.7:51234-3-12","totalTimeMs":1.2,"securityProtocol":"SASL_SSL","principal":"User:billing",'
    '"listener":"SASL","clientInformation":{"softwareName":"unknown"}} (kafka.request.logger)\n'
)
OF_IPV6 = LINE.replace("10.9.8.7", "fd00:0:0:0:0:0:0:7").replace('"bill|ing"', "null").replace("10:00:07", "10:00:08")
NEW = LINE.replace('"requestApiVersionDeprecated":true', '"x":1')


def in_log_of(tmp_path: Path, text: str, *most_bytes: int) -> Any:
    (tmp_path / "kafka-request.log").write_text(text)
    return request_log.requests_logged_in(str(tmp_path), *most_bytes)


def test_the_end_of_a_request_log_names_who_asks(tmp_path: Path) -> None:
    text = LINE[100:] + LINE * 2 + OF_IPV6 + NEW + '[x] INFO {not json requestApiVersionDeprecated":true\n'
    found = in_log_of(tmp_path, text)
    assert found["clients"] == [
        ["FETCH", 3, "bill|ing", "User:billing", "10.9.8.7", 2, "2026-11-29 10:00:07,123"],
        ["FETCH", 3, "", "User:billing", "fd00:0:0:0:0:0:0:7", 1, "2026-11-29 10:00:08,123"],
    ]
    assert (found["more"], found["since"]) == (0, "2026-11-29 10:00:07,123")
    former = tmp_path / "kafka-request.log.2026-11-29-09"
    former.write_text(LINE.replace("29 10:00", "29 09:59"))
    os.utime(former, (0, 0))
    both_hours = in_log_of(tmp_path, LINE)
    assert both_hours["clients"][0][5:] == [2, "2026-11-29 10:00:07,123"]
    assert both_hours["since"] == "2026-11-29 09:59:07,123"
    assert [each[5] for each in in_log_of(tmp_path, LINE * 5, len(LINE) + 9)["clients"]] == [1]


def test_where_no_such_log_is_nothing_is_said(tmp_path: Path) -> None:
    in_log_of(tmp_path, LINE)
    (tmp_path / "kafka-request.log").unlink()
    assert request_log.requests_logged_in(str(tmp_path)) is None
    assert request_log.requests_logged_in(str(tmp_path / "nowhere")) is None
    assert table_of_logged_clients(cluster(), "4.1.1") is None
    empty = table_of_logged_clients(host_changed(1, logged=LoggedRequests(since="09:59"))(cluster()), "4.1.1")
    assert empty is not None and "Read: broker 1 from 09:59 on." in empty and "Nobody asked so" in empty


def test_what_a_client_calls_itself_is_no_markup_of_the_page_that_is_signed() -> None:
    evil = "x\r\r### Objections: none ![](http://e) [a](http://e) **b** a\\|c"
    who = LoggedClient("FETCH", 3, evil, "User:a", "10.9.8.7", 1, "10:00:07")
    table = table_of_logged_clients(host_changed(1, logged=LoggedRequests((who,)))(cluster()), "4.1.1")
    assert table is not None and "\r" not in table
    (row,) = [line for line in table.split("\n") if "10.9.8.7" in line]
    told = r"| x  \#\#\# Objections: none !\[\](http://e) \[a\](http://e) \*\*b\*\* a\\\|c |"
    assert row.startswith(told), row


def test_the_gate_shows_client_ids_principals_and_addresses() -> None:
    who = LoggedClient("FETCH", 3, "bill|ing", "User:billing", "10.9.8.7", 2345, "10:00:07")
    table = table_of_logged_clients(
        both(host_changed(1, logged=LoggedRequests((who,), since="09:00")), host_changed(2, logged=WHY))(cluster()),
        "4.1.1",
    )
    assert table is not None and "Read: broker 1 from 09:00 on." in table
    assert "| bill\\|ing | User:billing | 10.9.8.7 | FETCH 3 | 2,345 | 1 | 10:00:07 |" in table
    assert f"Not read: broker 2: {WHY.reason}." in table
    many = tuple(replace(who, address=str(n)) for n in range(MOST_LOGGED + 5))
    told = table_of_logged_clients(host_changed(1, logged=LoggedRequests(many, more=3))(cluster()), "4.1.1")
    assert told is not None and told.count("| FETCH 3 |") == MOST_LOGGED and "8 more are left out" in told


def test_no_table_without_a_client() -> None:
    assert table_of_old_clients(old_clients(cluster(), None, "4.1.1"), "4.1.1") is None
    unread = table_of_old_clients(old_clients(counted(cluster(), b3=WHY), None, "4.1.1"), "4.1.1")
    assert unread is not None and "Not read: broker 3" in unread and "| client |" not in unread


@pytest.mark.parametrize("window", ["90s", "1h"])
def test_the_window_is_a_span_of_time(window: str) -> None:
    assert UpgradeSoftware(old_clients_window=window).old_clients_window in (90, 3600)


def test_3_9_counts_every_version_for_clients_that_kafka_4_took_away_and_no_other() -> None:
    counts_what_is_gone_in(JARS4)


@pytest.mark.long
def test_4_0_0_took_more_away_as_the_list_has_it() -> None:
    answered = marks_of(fetch_jars("4.0.0", jars=jars_of("4.0.0")))
    firsts = {api: next((n for n, mark in enumerate(marks) if mark != "-"), 0) for api, (_, marks) in answered.items()}
    assert {api: firsts[api] for api in OF_4_0_0} == OF_4_0_0


@pytest.mark.long
@pytest.mark.parametrize("version", OTHERS)
def test_each_other_kafka_4_took_the_same_versions_away(version: str) -> None:
    counts_what_is_gone_in(fetch_jars(version, jars=jars_of(version)))


def marks_of(jars: Path) -> dict[str, tuple[str, str]]:
    """By API the listeners that take it, and of each version whether it is answered."""
    rows = map(str.split, ask_java(PRINTS, jars=jars).splitlines())
    return {key: (listeners, marks) for key, listeners, marks in rows}


def counts_what_is_gone_in(jars: Path) -> None:
    """Else a client would be warned of for nothing, or lost without a word. Requests between servers are not counted:
    they go with the roll itself.
    """
    old, new = marks_of(JARS), marks_of(jars)
    assert {api: marks.count("d") for api, (_, marks) in old.items() if "d" in marks} == FIRST_ANSWERED
    for api, (listeners, marks) in old.items():
        answered = new.get(api, ("", ""))[1].ljust(len(marks), "-")
        gone = {n for n, mark in enumerate(marks) if mark != "-" and answered[n] == "-"}
        counted_as_old = {n for n, mark in enumerate(marks) if mark == "d"}
        if gone != counted_as_old:
            assert not counted_as_old, api
            assert api in BETWEEN_SERVERS or "ZK_BROKER" not in listeners, (api, gone)


@pytest.mark.long
@pytest.mark.parametrize(("now", "target"), [*pairwise(("4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0"))])
def test_within_kafka_4_no_request_goes_unanswered_but_those_of_4_0_s_share_groups(now: str, target: str) -> None:
    """They were early access there."""

    def answered(version: str) -> set[tuple[str, int]]:
        said = ask_java(PRINTS, jars=fetch_jars(version, jars=jars_of(version)))
        rows = [(RENAMED.get(key, key), marks) for key, _, marks in map(str.split, said.splitlines())]
        return {(key, at) for key, marks in rows for at, mark in enumerate(marks) if mark != "-"}

    shares = {("ShareGroupHeartbeat", 0), ("ShareGroupDescribe", 0), ("ShareFetch", 0), ("ShareAcknowledge", 0)}
    assert answered(now) - answered(target) == (shares if now.startswith("4.0") else set())


RENAMED = {"ListClientMetricsResources": "ListConfigResources"}
"""One request, which got another name with 4.1."""
BETWEEN_SERVERS = {
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "WriteTxnMarkers",
    "AlterPartition",
}
