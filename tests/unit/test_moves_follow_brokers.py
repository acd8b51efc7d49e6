"""How many moves go on at once, by how busy the brokers are: the right number at each step, and none by what is not
known.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC
from pydantic import ValidationError

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.observation import Timed
from kraft_runbook.cluster.operation_settings import Concurrency
from kraft_runbook.errors import SecretMissing, Unreachable
from kraft_runbook.io.jolokia_answer import parse_jolokia
from kraft_runbook.io.node_metrics import BROKER_HANDLERS_IDLE, HANDLERS_IDLE, NodeMetrics
from kraft_runbook.io.prometheus_page import parse_prometheus
from kraft_runbook.procedures.read_load import read_load
from kraft_runbook.reassignment.batches import busiest
from kraft_runbook.reassignment.concurrency import (
    BrokerLoad,
    Load,
    Pace,
    as_of_now,
    first_pace,
    is_due,
    judged,
    pace_from_json,
)
from kraft_runbook.reassignment.placement import Placement

BOUNDS = Concurrency(least=2, most=40, request_time_ms=100)
IDLE = BrokerLoad(Timed(1000, 4.0), 0, 0.9)
LATER = BrokerLoad(Timed(1100, 4.0), 0, 0.9)
BOTH_FILE = Path(__file__).resolve().parents[2] / "lab" / "both" / "lab.yaml"
BOTH_ROLES = load_cluster("lab", directory=BOTH_FILE.parent, environment={"KRB_LAB_DIR": "/lab"})
MISSING = SecretMissing("the metrics' password is not set", way_out="set it")


def after(took: float) -> BrokerLoad:
    """A broker whose last 100 Produce requests took so long on average."""
    return replace(LATER, produce=Timed(1100, (1000 * 4.0 + 100 * took) / 1100))


def pace(moves: int = 20, before: BrokerLoad = IDLE) -> Pace:
    return Pace(moves, Load(1000.0, {1: before, 2: IDLE}, {}))


def judge(now: BrokerLoad, was: Pace | None = None, *, bounds: Concurrency = BOUNDS, **how: Any) -> Pace:
    """What is made of it 30 s later; broker 2 has nothing to do."""
    given = {"busiest": 40, "may_rise": True} | how
    unread = given.pop("unread", {})
    brokers = {broker: each for broker, each in {1: now, 2: LATER}.items() if broker not in unread}
    return judged(was or pace(), bounds, Load(1030.0, brokers, unread), **given)


def test_idle_brokers_get_a_quarter_more_up_to_the_most() -> None:
    assert [judge(LATER, pace(moves)).moves for moves in (2, 3, 8, 20, 36, 40)] == [3, 4, 10, 25, 40, 40]
    told = "25 copies at once at a broker, instead of 20: every broker has time for more"
    assert judge(LATER).changes == (told,)


def test_a_broker_that_nobody_produces_to_is_idle() -> None:
    assert judge(IDLE).moves == 25


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (after(101), "Produce requests take broker 1 101 ms, more than 100"),
        (replace(LATER, under_min_isr=1), "1 partitions that broker 1 leads are under min.insync.replicas, 0 were"),
    ],
)
def test_one_busy_broker_halves_it_down_to_the_least(now: BrokerLoad, why: str) -> None:
    assert [judge(now, pace(moves)).moves for moves in (40, 21, 5, 3, 2)] == [20, 10, 2, 2, 2]
    assert judge(now).changes == (f"10 copies at once at a broker, instead of 20: {why}",)
    assert judge(now, pace(2)).changes == ()


def test_fewer_also_where_nothing_new_may_start() -> None:
    assert judge(after(500), may_rise=False, busiest=0).moves == 10


@pytest.mark.parametrize(
    ("now", "held"),
    [
        (after(51), "Produce requests take broker 1 51 ms"),
        (
            replace(LATER, produce=None),
            "how long Produce requests take broker 1 is not known since the last look",
        ),
        (
            replace(LATER, produce=Timed(7, 4.0)),  # it began anew
            "how long Produce requests take broker 1 is not known since the last look",
        ),
        (replace(LATER, under_min_isr=None), "broker 1 does not show ReplicaManager.UnderMinIsrPartitionCount"),
    ],
)
def test_what_is_between_or_not_known_changes_nothing(now: BrokerLoad, held: str) -> None:
    found = judge(now)
    assert (found.moves, found.changes, found.held) == (20, (), held)


def test_partitions_that_stay_under_min_isr_keep_it_where_it_is() -> None:
    short = replace(IDLE, under_min_isr=3)
    found = judge(replace(LATER, under_min_isr=3), pace(before=short))
    assert (found.moves, found.held) == (20, "3 partitions that broker 1 leads are under min.insync.replicas")
    assert judge(replace(LATER, under_min_isr=2), pace(before=short)).moves == 20
    assert judge(replace(LATER, under_min_isr=4), pace(before=short)).moves == 10
    assert judge(replace(LATER, under_min_isr=0), pace(before=short)).moves == 25


def test_a_broker_that_can_not_be_read_holds_it_and_its_first_number_too() -> None:
    away = judge(LATER, unread={2: "the metrics could not be read"})
    assert (away.moves, away.held) == (20, "broker 2: the metrics could not be read")
    back = judged(away, BOUNDS, Load(1060.0, {1: after(4), 2: LATER}, {}), busiest=40, may_rise=True)
    assert (back.moves, back.held) == (20, "how long Produce requests take broker 2 is not known since the last look")
    assert judge(after(500), unread={2: "away"}).moves == 10


@pytest.mark.parametrize("how", [{"busiest": 19}, {"may_rise": False}])
def test_idle_brokers_say_nothing_where_fewer_go_on_than_may_or_none_may_start(how: Any) -> None:
    assert judge(LATER, **how).moves == 20


def test_request_handlers_count_where_the_file_says_so() -> None:
    bounds = BOUNDS.model_copy(update={"handlers_idle": 0.3})
    busy, between, idle = (replace(LATER, handlers_idle=each) for each in (0.29, 0.64, 0.66))
    found = [judge(each, bounds=bounds).moves for each in (busy, between, idle, replace(LATER, handlers_idle=None))]
    assert found == [10, 20, 25, 20]
    assert judge(busy).moves == 25
    why = "request handlers of broker 1 are idle for 29%, less than 30%"
    assert judge(busy, bounds=bounds).changes == (f"10 copies at once at a broker, instead of 20: {why}",)


def test_it_does_not_rise_soon_after_it_was_lowered() -> None:
    lowered = judge(after(500))
    assert lowered.lowered == 1030.0
    for at, moves in ((1060.0, 10), (1329.0, 10), (1330.0, 12)):
        now = Load(at, {1: replace(LATER, produce=lowered.load.brokers[1].produce), 2: LATER}, {})
        found = judged(lowered, BOUNDS, now, busiest=40, may_rise=True)
        assert found.moves == moves
        assert found.held == ("" if moves == 12 else "it was lowered less than 300 s ago")
    assert as_of_now(lowered, BOUNDS, 1331.0).lowered is None


def test_the_first_numbers_are_only_kept() -> None:
    assert judge(after(500), Pace(20)) == Pace(20, Load(1030.0, {1: after(500), 2: LATER}, {}))


def test_it_is_judged_every_so_many_seconds() -> None:
    assert is_due(Pace(20), BOUNDS, 0.0)
    assert [is_due(pace(), BOUNDS, at) for at in (1029.0, 1030.0)] == [False, True]


def test_a_run_begins_as_without_bounds_where_they_allow_it() -> None:
    given = [(1, 50), (1, 5), (30, 50)]
    assert [first_pace(Concurrency(least=least, most=most)).moves for least, most in given] == [20, 5, 30]


def test_the_form_bounds_a_run_below_the_files_most() -> None:
    assert (BOUNDS.within(None), BOUNDS.within(100)) == (BOUNDS, BOUNDS)
    assert [(b.least, b.most) for b in (BOUNDS.within(10), BOUNDS.within(1))] == [(2, 10), (1, 1)]


@pytest.mark.parametrize(("moves", "counts"), [(40, 20), (5, 5)])
@pytest.mark.parametrize("now", [1301.0, 999.0])
def test_numbers_that_are_too_old_leave_no_more_than_a_run_begins_with(moves: int, counts: int, now: float) -> None:
    found = as_of_now(pace(moves), BOUNDS, now)
    assert (found.moves, found.load) == (counts, None)
    why = "20 copies at once at a broker, instead of 40: the brokers' numbers are too old to go by"
    assert found.changes == ((why,) if moves == 40 else ())
    assert as_of_now(pace(moves), BOUNDS, 1300.0) == pace(moves)


def test_bounds_that_are_changed_while_it_moves_count_at_once() -> None:
    fewer = BOUNDS.model_copy(update={"most": 6})
    assert as_of_now(pace(20), fewer, 1001.0).changes == (
        "6 copies at once at a broker, instead of 20: the bounds are 2 and 6",
    )


def test_it_is_kept_as_json() -> None:
    found = replace(
        pace(), changes=("one",), held="why", lowered=2.5, load=Load(3.5, {1: BrokerLoad(None, None)}, {2: "away"})
    )
    assert pace_from_json(found.to_json()) == found
    assert pace_from_json(pace().to_json()) == pace()
    assert pace_from_json(Pace(3).to_json()) == Pace(3)


def test_bounds_that_cross_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"'least' \(3\) is more than 'most' \(2\)"):
        Concurrency(least=3, most=2)


def test_the_busiest_broker_is_told_from_what_moves_whoever_began_it() -> None:
    ongoing = {
        TopicPartition("a", 0): Ongoing((3, 1), (3,), (1,)),
        TopicPartition("a", 1): Ongoing((4, 5, 1), (4, 5), (1,)),
    }
    assert busiest(Placement({1: None}, {}, ongoing=ongoing)) == 3  # broker 1 gives one copy, and two
    assert busiest(Placement({1: None}, {})) == 0


class Pages:
    """What each broker's metrics show, by host."""

    def __init__(self, pages: dict[str, NodeMetrics]) -> None:
        self.pages = pages

    def __call__(self, *_: Any, secrets: Any) -> Pages:
        secrets(None)
        return self

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, host: str, _: int) -> NodeMetrics:
        if host not in self.pages:
            raise Unreachable("the metrics could not be read", way_out="look at the agent")
        return self.pages[host]


def test_a_brokers_numbers_are_read_and_why_those_of_others_are_not() -> None:
    shown = NodeMetrics(
        {"replicamanager.underminisrpartitioncount": 2.0},
        None,
        requests={"produce.count": 5.0, "produce.mean": 3.0, HANDLERS_IDLE: 0.75},
    )
    hosts = {broker.id: broker.host for broker in SPEC.brokers}
    pages = Pages({hosts[1]: shown, hosts[3]: NodeMetrics({}, None)})
    read, unread = read_load(SPEC, (1, 2, 3), secrets=lambda _: "", client_of=pages)
    assert read == {1: BrokerLoad(Timed(5, 3.0), 2, 0.75), 3: BrokerLoad(None, None, None)}
    assert unread == {2: "the metrics could not be read"}


def test_a_password_that_is_missing_stops_nothing() -> None:
    def missing(_: Any) -> str:
        raise MISSING

    read, unread = read_load(SPEC, (1, 2), secrets=missing, client_of=Pages({}))
    assert (read, unread) == ({}, dict.fromkeys((1, 2), MISSING.problem))


@pytest.mark.parametrize(
    "line",
    [
        'kafka_server_KafkaRequestHandlerPool_OneMinuteRate{name="RequestHandlerAvgIdlePercent",} 0.75',
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate 0.75",
    ],
)
def test_how_idle_request_handlers_are_over_the_last_minute_and_not_since_the_start(line: str) -> None:
    assert parse_prometheus(f"{line}\n").requests == {HANDLERS_IDLE: 0.75}
    since_the_start = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.99\n"
    assert not parse_prometheus(since_the_start).requests


@pytest.mark.parametrize("of", ["ControlPlane", "Controller"])
def test_another_pool_of_handlers_is_not_taken_for_the_brokers(of: str) -> None:
    page = "".join(
        f'kafka_server_KafkaRequestHandlerPool_OneMinuteRate{{name="{name}RequestHandlerAvgIdlePercent",}} {value}\n'
        for name, value in (("", 0.05), (of, 1.0), ("Broker", 0.1))
    )
    assert parse_prometheus(page).requests == {HANDLERS_IDLE: 0.05, BROKER_HANDLERS_IDLE: 0.1}


@pytest.mark.parametrize(
    ("version", "shown", "idle"),
    [
        ("3.9.2", {HANDLERS_IDLE: 1.04}, pytest.approx(0.04)),
        ("4.1.1", {HANDLERS_IDLE: 0.9}, 0.0),
        ("4.2.2", {HANDLERS_IDLE: 0.52}, None),
        ("4.2.2", {HANDLERS_IDLE: 0.52, BROKER_HANDLERS_IDLE: 0.05}, 0.05),
    ],
)
def test_of_a_node_with_both_roles_the_brokers_part_is_told(version: str, shown: dict[str, float], idle: Any) -> None:
    """KAFKA-19606: before 4.2 both pools add to one number."""
    pages = Pages({broker.host: NodeMetrics({}, version, requests=shown) for broker in BOTH_ROLES.brokers})
    read, _ = read_load(BOTH_ROLES, (1,), secrets=lambda _: "", client_of=pages)
    assert read[1].handlers_idle == idle


def test_how_idle_request_handlers_are_by_jolokia() -> None:
    mbean = "kafka.server:name=RequestHandlerAvgIdlePercent,type=KafkaRequestHandlerPool"
    given = {"request": {"mbean": mbean}, "status": 200, "value": {"OneMinuteRate": 0.75, "MeanRate": 0.99}}
    assert parse_jolokia([given]).requests == {HANDLERS_IDLE: 0.75}
