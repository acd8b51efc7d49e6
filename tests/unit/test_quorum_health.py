"""Each check of the quorum where something is wrong, where it can't be told, and where all is well; by samples as real
controllers of 3.9.2 gave them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from feature_looks import all_registered, in_log, kafka3
from feature_looks import look as look_at_levels
from observations import SECRETS, SPEC
from test_registrations import missing, of_before, unflagged

from kraft_runbook.cli.outputs import QuorumOutput, to_json
from kraft_runbook.cli.quorum_command import show_quorum
from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.observation import ControllerMetrics
from kraft_runbook.cluster.quorum_gauges import BrokerApplied, EnsembleServer, QuorumGauges
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.io.jolokia_answer import parse_jolokia
from kraft_runbook.io.node_metrics import quorum_gauges
from kraft_runbook.io.prometheus_page import parse_prometheus
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.ensemble import ensemble_servers, parse_srvr
from kraft_runbook.io.zookeeper.servers import ServerStatus
from kraft_runbook.quorum.catalogue import OF_QUORUM, QUEUE_RULE, QUORUM_CHECKS
from kraft_runbook.quorum.checks import judge, told
from kraft_runbook.quorum.look import (
    BrokerHealth,
    ControllerHealth,
    KeptEpoch,
    Mode,
    Quorum,
    QuorumLook,
    Replica,
    Series,
    ZookeeperControl,
    replica_of,
)
from kraft_runbook.quorum.page import render
from kraft_runbook.quorum.quorum_checks import RAFT_RULE, SNAPSHOT_RULE
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.registrations import way_out
from kraft_runbook.runbook.warm import APPLY_RULE, RULE, Warmth

ROOT = Path(__file__).parents[2]
AT = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
WHY = Unread("a test did not read it")
END = 1000


def voter(node_id: int, **changes: Any) -> Replica:
    return replace(Replica(node_id, END, 0, 0.2), **changes)


def a_controller(node_id: int, **changes: Any) -> ControllerHealth:
    leads = node_id == 101
    gauges = QuorumGauges(3.0, 4.2 if leads else None, 30.0, 600_000, 20_000, True)
    metrics = ControllerMetrics(
        None, leads, None, None, last_applied_offset=END - 1, last_applied_lag_ms=0 if leads else 431
    )
    return replace(ControllerHealth(node_id, True, metrics, gauges, Warmth.WARM), **changes)


def kraft() -> QuorumLook:
    observers = tuple(voter(i) for i in SPEC.broker_ids)
    quorum = Quorum(101, 7, END, tuple(voter(i) for i in SPEC.controller_ids), observers)
    brokers = {i: BrokerHealth(i, BrokerApplied(END - 1, 431), Warmth.WARM) for i in SPEC.broker_ids}
    return QuorumLook("lab", AT, quorum, {i: a_controller(i) for i in SPEC.controller_ids}, WHY, brokers=brokers)


def by_zookeeper() -> QuorumLook:
    servers = {"zk1:2181": EnsembleServer("leader", 0), "zk2:2181": EnsembleServer("follower", 3)}
    control = ZookeeperControl(2, False, 5, 18000, QuorumGauges(event_queue_p99_ms=12.0), servers)
    down = Unread("it does not run")
    controllers = {i: ControllerHealth(i, False, down, down, down) for i in SPEC.controller_ids}
    return QuorumLook("lab", AT, Unread("no leader was found"), controllers, control)


def series(look: QuorumLook, *, first: QuorumLook | None = None, before: KeptEpoch | None = None) -> Series:
    """The look, four seconds after ``first``, or after one like it."""
    later = replace(look, looked_at=AT + timedelta(seconds=4))
    return Series((first or look, first or look, later), before, all_registered())


def lost(seen: FeatureObservation | Unread, look: QuorumLook | None = None) -> Series:
    """A healthy quorum whose registrations are these."""
    return replace(series(look or kraft()), registrations=seen)


def migrating() -> QuorumLook:
    return replace(kraft(), zookeeper=by_zookeeper().zookeeper)


def q(**changes: Any) -> QuorumLook:
    look = kraft()
    return replace(look, quorum=replace(look.quorum, **changes))


def of_kraft(look: QuorumLook) -> QuorumLook:
    """ZooKeeper was read too, and names the quorum's leader as the controller."""
    control = by_zookeeper().zookeeper
    assert isinstance(control, ZookeeperControl)
    return replace(look, zookeeper=replace(control, controller_id=101, of_kraft=True))


def climbing(*epochs: int) -> Series:
    """One look an epoch, four seconds apart."""
    looks = (replace(q(leader_epoch=epoch), looked_at=AT + timedelta(seconds=4 * i)) for i, epoch in enumerate(epochs))
    return Series(tuple(looks), None, all_registered())


def c(node_id: int, **changes: Any) -> QuorumLook:
    look = kraft()
    return replace(look, controllers={**look.controllers, node_id: a_controller(node_id, **changes)})


def g(node_id: int, **changes: Any) -> QuorumLook:
    return c(node_id, gauges=replace(a_controller(node_id).gauges, **changes))


def b(node_id: int, applied: BrokerApplied | Unread, current: Warmth | Unread) -> QuorumLook:
    look = kraft()
    return replace(look, brokers={**look.brokers, node_id: BrokerHealth(node_id, applied, current)})


def z(**changes: Any) -> QuorumLook:
    look = by_zookeeper()
    return replace(look, zookeeper=replace(look.zookeeper, **changes))


def voters(*found: Replica) -> QuorumLook:
    return q(voters=found)


def a_cold(offset: int, lag: int) -> ControllerMetrics:
    return ControllerMetrics(None, False, None, None, last_applied_offset=offset, last_applied_lag_ms=lag)


NO_GAUGE = Unread("its metrics hold no last-applied-record-offset", way_out=APPLY_RULE)
UNREACHED = {i: ControllerHealth(i, WHY, WHY, WHY, WHY) for i in SPEC.controller_ids}
UNLED = Unread("no leader of the controller quorum was found: controller 101 does not lead")
ALL_SAY_NO = frozenset(SPEC.controller_ids)
FRESH = replace(kraft(), quorum=replace(kraft().quorum, leader_epoch=6))  # type: ignore[type-var]

FAILS: dict[str, list[tuple[Series, str]]] = {
    "KRB-QRM-001": [(series(replace(kraft(), quorum=UNLED, say_no=ALL_SAY_NO)), "controller 101 does not lead")],
    "KRB-QRM-002": [
        (
            series(voters(voter(101), voter(102, seconds_since_fetch=5.1), voter(103))),
            "voter 102 has not fetched for 5.1 s",
        ),
        (
            series(voters(voter(101), voter(102), voter(103, log_end_offset=None, seconds_since_fetch=None))),
            "voter 103 has not fetched since controller 101 was elected",
        ),
        (
            series(
                q(
                    high_watermark=1400,
                    voters=(voter(101, log_end_offset=1400), voter(102, log_end_offset=999, lag=401)),
                ),
                first=kraft(),
            ),
            "voter 102 is at offset 999, 1000 was committed at the first of 3 looks (it lags 401 records)",
        ),
    ],
    "KRB-QRM-003": [
        (
            series(c(102, warm=Warmth.COLD, metrics=a_cold(100, 70_661))),
            "controller 102 is cold: it has applied up to offset 100 of 999, its last record is 70661 ms old",
        )
    ],
    "KRB-QRM-004": [
        (series(q(leader_epoch=9), first=kraft()), "epoch 7 at 12:00:00, 9 at 12:00:04"),
        (climbing(7, 8, 9), "a leader was elected at look after look: epochs 7, 8, 9"),
        (series(kraft(), before=KeptEpoch(5, AT - timedelta(minutes=10))), "epoch 5 at 11:50:00, 7 at 12:00:00"),
    ],
    "KRB-QRM-005": [(series(g(101, commit_latency_ms=100.5)), "100.5 ms on average on controller 101")],
    "KRB-QRM-006": [(series(g(103, event_queue_p99_ms=501.0)), "controller 103: 501 ms")],
    "KRB-QRM-007": [
        (series(g(102, snapshot_age_ms=7_260_000)), "controller 102: the last one was made 121 min"),
        (series(g(102, snapshot_age_ms=7_260_000, snapshot_bytes=0)), "controller 102: none for 121 min"),
    ],
    "KRB-QRM-008": [
        (series(voters(voter(101), voter(102))), "2 voters: 0 may fail"),
        (series(voters(voter(101))), "1 voters: 0 may fail"),
    ],
    "KRB-QRM-009": [
        (
            series(voters(voter(101), voter(102), voter(104))),
            "voter 104 is not in the cluster file; controller 103 does not vote",
        )
    ],
    "KRB-QRM-010": [
        (
            series(replace(kraft(), quorum=UNLED)),
            "controller 101 does; nobody leads",
        )
    ],
    "KRB-QRM-012": [
        (
            series(q(observers=(voter(1), voter(2, seconds_since_fetch=61.0), voter(3)))),
            "broker 2 has not fetched for 61.0 s",
        ),
        (
            series(of_kraft(q(observers=(voter(1), voter(2)))), first=q(observers=(voter(1),))),
            "controller 101, which leads, knows of no fetch by broker 3",
        ),
    ],
    "KRB-QRM-018": [
        (
            series(b(2, BrokerApplied(100, 70_661), Warmth.COLD)),
            "broker 2: it has applied up to offset 100 of 999, its last record is 70661 ms old",
        ),
        (series(b(2, BrokerApplied(-1, 10**12), Warmth.COLD)), "broker 2: it has applied nothing of 999 yet"),
    ],
    "KRB-QRM-017": [
        (lost(missing(102)), "controller 102 has not registered"),
        (
            lost(replace(missing(102), controllers={**missing(102).controllers, 103: WHY})),
            "controller 102 has not registered (not read: controller 103: a test did not read it)",
        ),
        (
            lost(of_before(103)),
            "controller 103 runs software with metadata.version 7-27 and is registered with 1-21",
        ),
        (
            lost(unflagged(101), migrating()),
            "controller 101 is registered without zookeeper.metadata.migration.enable",
        ),
    ],
    "KRB-QRM-013": [
        (series(z(controller_id=None)), "/controller is not there"),
        (series(z(controller_id=9)), "/controller names 9, which is no broker of the cluster file"),
    ],
    "KRB-QRM-014": [(series(z(gauges=QuorumGauges(event_queue_p99_ms=700.0))), "broker 2: 700 ms")],
    "KRB-QRM-015": [
        (series(z(servers={"zk1:2181": EnsembleServer("follower", 0)})), "0 servers lead"),
        (
            series(
                z(servers={"zk1:2181": EnsembleServer("leader", 0), "zk2:2181": EnsembleServer("", 0, "zk2 is down")})
            ),
            "zk2 is down",
        ),
        (
            series(z(servers={"zk1:2181": WHY, "zk2:2181": EnsembleServer("", 0, "zk2 serves nobody")})),
            "zk2 serves nobody (not read: a test did not read it)",
        ),
    ],
    "KRB-QRM-016": [
        (series(z(servers={"zk1:2181": EnsembleServer("standalone", 101)})), "101 wait in server zk1:2181"),
        (
            series(by_zookeeper(), first=z(servers={"zk1:2181": EnsembleServer("leader", 400)})),
            "400 wait in server zk1:2181",
        ),
    ],
}
UNTOLD: dict[str, tuple[Series, str, str | None]] = {
    "KRB-QRM-001": (series(replace(kraft(), quorum=Unread("DescribeQuorum failed with error 31"))), "error 31", None),
    "KRB-QRM-002": (
        series(voters(voter(101), voter(102, log_end_offset=None, seconds_since_fetch=None)), first=FRESH),
        "voter 102 has not fetched since controller 101 was elected",
        None,
    ),
    "KRB-QRM-003": (series(c(102, warm=Unread("its metrics hold no gauge", way_out=RULE))), "controller 102", RULE),
    "KRB-QRM-004": (series(replace(kraft(), quorum=UNLED)), "two looks with a leader", None),
    "KRB-QRM-005": (series(g(101, commit_latency_ms=None, has_raft=False)), "no commit-latency-avg", RAFT_RULE),
    "KRB-QRM-006": (series(g(103, event_queue_p99_ms=None)), "controller 103: its metrics hold no", QUEUE_RULE),
    "KRB-QRM-007": (series(g(103, snapshot_age_ms=None)), "controller 103: no LatestSnapshot", SNAPSHOT_RULE),
    "KRB-QRM-008": (series(replace(kraft(), quorum=UNLED)), "no leader", None),
    "KRB-QRM-009": (series(replace(kraft(), quorum=UNLED)), "no leader", None),
    "KRB-QRM-010": (series(c(103, metrics=WHY)), "controller 103: a test did not read it", None),
    "KRB-QRM-012": (series(replace(kraft(), quorum=UNLED)), "no leader", None),
    "KRB-QRM-018": (
        series(b(2, NO_GAUGE, NO_GAUGE)),
        "broker 2: its metrics hold no last-applied-record-offset",
        APPLY_RULE,
    ),
    "KRB-QRM-017": (
        lost(replace(all_registered(), log=Unread("nobody leads", way_out="start 102"))),
        "nobody leads",
        "start 102",
    ),
    "KRB-QRM-014": (series(z(gauges=WHY)), "broker 2: a test did not read it", None),
    "KRB-QRM-015": (series(z(servers={"zk1:2181": WHY})), "a test did not read it", None),
    "KRB-QRM-016": (series(z(servers={"zk1:2181": WHY})), "a test did not read it", None),
}


def answer(code: str, seen: Series) -> Any:
    return QUORUM_CHECKS[code].run(seen, SPEC)


@pytest.mark.parametrize(("code", "case"), [(code, case) for code, cases in FAILS.items() for case in cases])
def test_what_is_wrong_fails_and_says_where(code: str, case: tuple[Series, str]) -> None:
    found = answer(code, case[0])
    assert (found.verdict, found.evidence) == (Verdict.FAIL, case[1]) or (
        code == "KRB-QRM-001" and found.verdict is Verdict.FAIL and case[1] in found.evidence
    )
    assert found.fix


@pytest.mark.parametrize("code", UNTOLD)
def test_what_could_not_be_read_is_unknown_and_names_the_rule_to_add(code: str) -> None:
    seen, evidence, fix = UNTOLD[code]
    found = answer(code, seen)
    assert found.verdict is Verdict.UNKNOWN
    assert evidence in found.evidence
    assert fix is None or found.fix == fix


def test_a_node_with_both_roles_fetches_as_a_voter() -> None:
    both = series(of_kraft(q(voters=tuple(voter(i) for i in SPEC.broker_ids), observers=())))
    assert answer("KRB-QRM-012", both).evidence == "3 of 3 brokers fetch"


def test_brokers_that_may_be_in_zookeeper_mode_need_not_fetch() -> None:
    unread = replace(q(observers=()), zookeeper=Unread("it hangs"))
    assert answer("KRB-QRM-012", series(unread)).verdict is Verdict.PASS


def test_every_check_has_a_failure_and_an_unknown_in_these_tables() -> None:
    assert FAILS.keys() == QUORUM_CHECKS.keys()
    assert QUORUM_CHECKS.keys() - UNTOLD.keys() == {"KRB-QRM-013"}  # applies only where ZooKeeper was read


def test_a_healthy_quorum_passes_every_check_of_its_mode() -> None:
    report = judge(series(kraft(), before=KeptEpoch(6, AT - timedelta(minutes=10))), SPEC)
    assert {each.code: each.verdict for each in report.results if not each.passed} == {}
    assert {each.code for each in report.results} == {
        code for code, each in QUORUM_CHECKS.items() if each.stages and set(OF_QUORUM) & set(each.stages)
    } - {"KRB-QRM-013", "KRB-QRM-014", "KRB-QRM-015", "KRB-QRM-016"}


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (lost(unflagged(101)), Verdict.PASS),
        (lost(in_log(look_at_levels(kafka3(), 14), controllers={})), Verdict.PASS),
        (lost(WHY), Verdict.UNKNOWN),
        (lost(replace(all_registered(), controllers={**all_registered().controllers, 103: WHY})), Verdict.UNKNOWN),
    ],
    ids=["the flag, after the copy", "below 3.7-IV0", "not looked at", "one does not answer"],
)
def test_a_registration_is_judged_where_there_is_one_and_unread_is_no_yes(seen: Series, verdict: Verdict) -> None:
    assert answer("KRB-QRM-017", seen).verdict is verdict


def test_a_lost_registration_is_cured_as_levels_say() -> None:
    assert answer("KRB-QRM-017", lost(missing(102))).fix == way_out([102])


def test_in_zookeeper_mode_zookeeper_s_controller_is_judged_and_no_quorum() -> None:
    look = by_zookeeper()
    assert look.mode is Mode.ZOOKEEPER
    report = judge(series(look), SPEC)
    assert [each.code for each in report.results] == [f"KRB-QRM-0{n}" for n in (13, 14, 15, 16)]
    assert report.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("look", "mode"),
    [
        (replace(kraft(), zookeeper=by_zookeeper().zookeeper), Mode.MIGRATING),
        (replace(kraft(), zookeeper=z(controller_id=101, of_kraft=True).zookeeper), Mode.KRAFT),
        (replace(by_zookeeper(), zookeeper=WHY), Mode.KRAFT),
        (replace(by_zookeeper(), controllers=UNREACHED), Mode.ZOOKEEPER),
        (replace(by_zookeeper(), controllers=UNREACHED, zookeeper=WHY), Mode.KRAFT),
        (replace(by_zookeeper(), controllers={**UNREACHED, 101: a_controller(101)}), Mode.MIGRATING),
        (replace(z(controller_id=None), controllers=UNREACHED), Mode.KRAFT),
        (z(controller_id=101, of_kraft=True), Mode.KRAFT),
    ],
)
def test_zookeeper_mode_is_proven_never_assumed(look: QuorumLook, mode: Mode) -> None:
    assert look.mode is mode


def test_a_majority_that_is_down_and_nobody_who_leads_is_a_failure() -> None:
    down = {i: replace(a_controller(i), running=False) for i in (101, 102)}
    look = replace(kraft(), quorum=UNLED, controllers={**kraft().controllers, **down}, say_no=frozenset({103}))
    assert answer("KRB-QRM-001", series(look)).verdict is Verdict.FAIL


def test_one_who_claims_to_be_active_during_an_election_is_not_yet_one_who_is_wrong() -> None:
    unled = replace(kraft(), quorum=UNLED)
    assert answer("KRB-QRM-010", series(unled, first=kraft())).verdict is Verdict.PASS


def test_a_snapshot_interval_of_its_own_counts_and_none_by_time_is_not_overdue() -> None:
    for value, age, verdict in (("60000", 120_001, Verdict.FAIL), ("0", 10**9, Verdict.PASS)):
        spec = SPEC.model_copy(update={"controller_properties": {"metadata.log.max.snapshot.interval.ms": value}})
        found = QUORUM_CHECKS["KRB-QRM-007"].run(
            series(replace(kraft(), controllers={101: g(101, snapshot_age_ms=age).controllers[101]})), spec
        )
        assert found.verdict is verdict


def test_lag_and_silence_are_by_the_leader_s_clock() -> None:
    now = 1_700_000_010_000
    assert replica_of(102, 990, now - 1500, leader_end=1000, leader_now_ms=now) == Replica(102, 990, 10, 1.5)
    assert replica_of(102, -1, -1, leader_end=1000, leader_now_ms=now) == Replica(102, None, None, None)


def test_what_blocks_is_told_with_its_way_out() -> None:
    (line,) = told(judge(series(c(102, warm=Warmth.COLD, metrics=a_cold(100, 70_661))), SPEC))
    assert line.startswith("KRB-QRM-003 Every controller is warm")
    assert "What to do: wait until the named controller has applied the log" in line


@pytest.mark.parametrize(
    "look", [kraft(), by_zookeeper(), replace(kraft(), quorum=UNLED)], ids=["kraft", "zk", "unled"]
)
def test_the_json_is_as_its_schema_says(look: QuorumLook) -> None:
    report = judge(series(look), SPEC)
    found = json.loads(to_json("quorum", QuorumOutput(look, look.mode, report.verdict, report.results)))
    jsonschema.validate(found, json.loads((ROOT / "docs/schemas/quorum.json").read_text()))
    assert found["look"]["cluster"] == "lab"


def test_the_page_says_of_each_controller_whether_it_is_warm() -> None:
    page = render(c(102, warm=Warmth.COLD, metrics=a_cold(100, 70_661)))
    assert page.splitlines()[0] == "controller 101 leads in epoch 7, high watermark 1000"
    assert (
        "controller 102: log end 1000, lag 0 records, fetched 0.2 s ago, cold, it has applied up to offset 100 of 999,"
        " its last record is 70661 ms old, 99 % of events wait less than 3.0 ms"
    ) in page
    assert (
        "observer 3: log end 1000, lag 0 records, fetched 0.2 s ago, has applied what was committed, it has applied up"
        " to offset 999 of 999, its last record is 431 ms old"
    ) in page
    assert "server zk2:2181: follower, 3 outstanding requests" in render(by_zookeeper())


LAB = (
    "kafka_server_raft_metrics_commit_latency_avg 4.5\nkafka_server_raft_metrics_election_latency_avg NaN\n"
    "kafka_server_snapshotemitter_latestsnapshotgeneratedagems 8000.0\n"
    "kafka_server_snapshotemitter_latestsnapshotgeneratedbytes 0.0\n"
    'kafka_controller_controllereventmanager_eventqueuetimems{quantile="0.99",} 7.0\n'
)
PLAIN = (
    "kafka_server_raft_metrics_commit_latency_avg 4.5\n"
    'kafka_server_SnapshotEmitter_Value{name="LatestSnapshotGeneratedAgeMs",} 8000.0\n'
    'kafka_server_SnapshotEmitter_Value{name="LatestSnapshotGeneratedBytes",} 0.0\n'
    'kafka_controller_ControllerEventManager_50thPercentile{name="EventQueueTimeMs",} 1.0\n'
    'kafka_controller_ControllerEventManager_99thPercentile{name="EventQueueTimeMs",} 7.0\n'
    'kafka_controller_ControllerEventManager_999thPercentile{name="EventQueueTimeMs",} 4000.0\n'
    'kafka_controller_ControllerEventManager_99thPercentile{name="EventQueueProcessingTimeMs",} 99.0\n'
)
QUANTILES = LAB.replace('{quantile="0.99",} 7.0', '{quantile="0.50",} 1.0') + (
    'kafka_controller_controllereventmanager_eventqueuetimems{quantile="0.99",} 7.0\n'
    'kafka_controller_controllereventmanager_eventqueueprocessingtimems{quantile="0.99",} 99.0\n'
)
AS_READ = QuorumGauges(7.0, 4.5, None, 8000, 0, True)


@pytest.mark.parametrize("page", [LAB, PLAIN, QUANTILES], ids=["the lab's rules", "no rules", "with quantiles"])
def test_the_quorum_s_gauges_are_found_under_every_usual_name(page: str) -> None:
    assert quorum_gauges(parse_prometheus(page)) == AS_READ


def test_jolokia_gives_the_same_gauges() -> None:
    values: dict[str, dict[str, Any]] = {
        "kafka.server:type=raft-metrics": {
            "commit-latency-avg": 4.5,
            "election-latency-avg": float("nan"),
            "current-state": "leader",
        },
        "kafka.server:name=LatestSnapshotGeneratedAgeMs,type=SnapshotEmitter": {"Value": 8000},
        "kafka.server:name=LatestSnapshotGeneratedBytes,type=SnapshotEmitter": {"Value": 0},
        "kafka.controller:name=EventQueueTimeMs,type=ControllerEventManager": {
            "50thPercentile": 1,
            "99thPercentile": 7,
        },
        "kafka.controller:name=EventQueueProcessingTimeMs,type=ControllerEventManager": {"99thPercentile": 99},
    }
    assert quorum_gauges(parse_jolokia([{"status": 200, "value": values}])) == AS_READ


def test_an_exporter_without_these_mbeans_shows_none_of_them() -> None:
    assert (
        quorum_gauges(parse_prometheus("kafka_controller_kafkacontroller_activecontrollercount 1.0\n"))
        == QuorumGauges()
    )


SRVR = (
    "Zookeeper version: 3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c, built on 2024-02-12 22:16 UTC\n"
    "Latency min/avg/max: 0/0.6/37\nReceived: 1024\nSent: 1057\nConnections: 4\nOutstanding: 12\nZxid: 0x1b2\n"
    "Mode: follower\nNode count: 183\n"
)


MNTR = (
    "zk_version\t3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c, built on 2024-02-12 22:16 UTC\n"
    "zk_server_state\tfollower\nzk_peer_state\tfollowing - broadcast\n"
    "zk_num_alive_connections\t4\nzk_outstanding_requests\t12\n"
    "zk_avg_request_outstanding\t0.5\nzk_avg_latency\t0.6\n"
)
NOBODY = EnsembleServer("", 0, "ZooKeeper server zk1:2181 runs and serves nobody: it is in no quorum")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (SRVR, EnsembleServer("follower", 12)),
        ("This ZooKeeper instance is not currently serving requests\n", NOBODY),
        ("mntr is not executed because it is not in the whitelist.\n", "allows neither srvr nor mntr"),
        ("", "allows neither srvr nor mntr"),
        (MNTR, EnsembleServer("follower", 12)),
        (MNTR.replace("\t12", "\tNaN"), "allows neither srvr nor mntr"),
    ],
)
def test_a_server_of_the_ensemble_is_what_it_says(answer: str, expected: EnsembleServer | str) -> None:
    found = parse_srvr("zk1:2181", ServerStatus(answer))
    if isinstance(expected, str):
        assert not was_read(found)
        assert expected in found.reason
    else:
        assert found == expected


def test_who_refuses_is_down_who_is_silent_is_unread_and_over_tls_they_are_asked_too() -> None:
    asked: list[object] = []
    tls: Any = object()

    def ask(server: str, **given: object) -> ServerStatus:
        asked.append(given["tls"])
        if server == "zk2:2181":
            raise ConnectionRefusedError
        if server == "zk3:2181":
            raise TimeoutError("timed out")
        return ServerStatus(SRVR)

    assert SPEC.zookeeper is not None
    three = SPEC.zookeeper.model_copy(update={"servers": ("zk1:2181", "zk2:2181", "zk3:2181")})
    assert ensemble_servers(three, secrets=environment_secrets(SECRETS), ask=ask, tls_by=lambda *_, **__: tls) == {
        "zk1:2181": EnsembleServer("follower", 12),
        "zk2:2181": EnsembleServer("", 0, "ZooKeeper server zk2:2181 does not run: it refuses connections"),
        "zk3:2181": Unread("ZooKeeper server zk3:2181 did not answer srvr or mntr: timed out"),
    }
    assert asked == [tls] * 3


def test_watch_reads_the_whole_log_for_registrations_once_a_minute() -> None:
    times, given = iter((0.0, 0.0, 30.0, 61.0, 61.0, 61.0)), []

    def see(spec: Any, *, secrets: Any, before: Any, known: Any) -> Series:
        given.append(known)
        if len(given) == 5:
            raise Enough
        return replace(series(kraft()), registrations=all_registered())

    with pytest.raises(Enough):
        show_quorum(SPEC, as_json=False, watch=True, see=see, sleep=lambda _: None, clock=lambda: next(times))
    assert [each is None for each in given] == [True, False, False, True, False]


class Enough(Exception):
    """The person at the terminal ends the watch."""


def test_watch_looks_again_and_again_and_compares_with_the_look_before(capsys: pytest.CaptureFixture[str]) -> None:
    befores: list[Any] = []

    def see(spec: Any, *, secrets: Any, before: Any, known: Any) -> Series:
        befores.append(before)
        if len(befores) == 4:
            raise Enough
        shown = replace(kraft(), quorum=UNLED) if len(befores) == 2 else q(leader_epoch=7 + 2 * (len(befores) // 2))
        return replace(series(shown), before=before)

    with pytest.raises(Enough):
        show_quorum(SPEC, as_json=False, watch=True, see=see, sleep=lambda seconds: None)
    first, _, third = capsys.readouterr().out.split("\n\nlab, ")[:3]
    assert [each and each.epoch for each in befores] == [None, 7, 7, 9]
    assert "KRB-QRM-004" in third and "epoch 7 at" in third and "epoch 7 at" not in first


def test_an_epoch_that_fell_is_another_quorum_s_and_tells_nothing() -> None:
    """Such as a sample in the state directory that somebody wrote: with a great epoch later rises would be hidden."""
    seen = series(kraft(), before=KeptEpoch(999, AT - timedelta(minutes=10)))
    found = QUORUM_CHECKS["KRB-QRM-004"].run(seen, SPEC)
    assert found.verdict is Verdict.UNKNOWN and "epoch 999 at 11:50:00, 7 at 12:00:00" in found.evidence
