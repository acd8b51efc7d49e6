"""After the cluster left KRaft: which brokers are restarted before the others, and which are left alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_runbook.conditions import Condition
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.observation import BrokerMode, ClusterObservation, HostState, Unread, was_read
from kraft_runbook.phases import Phase, Step, detect_phase
from kraft_runbook_airflow import cut_off_brokers
from kraft_runbook_airflow.cut_off_brokers import RestartCutOffBrokers
from kraft_runbook_airflow.rollback import RestartBrokerBack
from tests.unit.observations import SPEC, broker, observation

LEFT = {"elected_at": (datetime.now(UTC) - timedelta(minutes=1)).isoformat()}


def left_kraft(*hybrid: int) -> ClusterObservation:
    """No controller runs any more; these brokers are still in migration mode."""
    seen = replace(observation(Phase.ZOOKEEPER), quorum=Unread("no controller runs"))
    for each in hybrid:
        seen = broker(each, mode=BrokerMode.HYBRID)(seen)
    assert detect_phase(seen).phase is Phase.ZOOKEEPER
    return seen


def threads(*dead: int) -> dict[int, HostState]:
    hosts = observation(Phase.HYBRID).hosts
    assert was_read(hosts)
    found: Mapping[int, HostState] = hosts
    return {i: replace(found[i], controller_threads=(f"zk-broker-{i}-lif", *(f"zk-broker-{i}-to-",) * (2 if i in dead else 3))) for i in SPEC.broker_ids}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the task against what is given; returns its answer, whom it restarted, what it awaited, and how long it slept."""

    def go(
        seen: ClusterObservation,
        hosts: Mapping[int, HostState],
        *,
        left: Any = LEFT,
        goal: str = "ZOOKEEPER",
        lags: tuple[int, ...] = (),
        properties: Mapping[str, str] = {},
    ) -> Any:
        restarted: list[int] = []
        awaited: list[tuple[str, int]] = []
        slept: list[float] = []
        recorded: list[int] = []

        def wait_for(spec, condition, *, node_id, **_):
            awaited.append((condition.name, node_id))
            if condition is Condition.BROKER_IN_SYNC and node_id in lags:
                raise StepFailed("out of sync", way_out="")

        monkeypatch.setattr(cut_off_brokers, "wait_for", wait_for)
        monkeypatch.setattr(cut_off_brokers, "is_dry_run", lambda: False)
        monkeypatch.setattr(cut_off_brokers, "airflow_secrets", lambda: None)
        for name in ("observe", "observe_settled"):
            monkeypatch.setattr(cut_off_brokers, name, lambda spec, **_: seen)
        monkeypatch.setattr(cut_off_brokers, "gather_host_facts", lambda spec, ids: {i: hosts[i] for i in ids})
        monkeypatch.setattr(cut_off_brokers, "record", lambda context, cluster, outcome, what: recorded.append(what["node_id"]))
        monkeypatch.setattr(cut_off_brokers.time, "sleep", slept.append)
        monkeypatch.setattr(RestartBrokerBack, "act", lambda self, context, spec: restarted.append(self.node))
        spec = SPEC.model_copy(update={"broker_properties": {**SPEC.broker_properties, **properties}})
        task = RestartCutOffBrokers(task_id="restart_cut_off_brokers", cluster="lab", left_task="leave_kraft")
        answer = task.act({"params": {"goal": goal}, "ti": SimpleNamespace(xcom_pull=lambda task_ids: left)}, spec)
        return SimpleNamespace(
            answer=answer["restarted"], unread=answer.get("not_looked_at"), restarted=restarted, recorded=recorded, awaited=awaited, slept=slept
        )

    return go


BACK, IN_SYNC = Condition.BROKER_IN_ZOOKEEPER_MODE.name, Condition.BROKER_IN_SYNC.name


def test_brokers_that_lost_a_thread_are_restarted_one_after_the_other(run) -> None:
    done = run(left_kraft(1, 2, 3), threads(3, 2))
    assert done.answer == done.restarted == done.recorded == [2, 3]
    assert done.awaited == [(BACK, 2), (IN_SYNC, 2), (BACK, 3)]
    assert done.slept == []


def test_one_that_the_next_does_not_take_back_into_sync_holds_up_nothing(run) -> None:
    assert run(left_kraft(1, 2, 3), threads(2, 3), lags=(2,)).restarted == [2, 3]


def test_what_is_not_in_sync_keeps_other_brokers_from_a_restart_but_not_one_that_is_cut_off() -> None:
    seen = left_kraft(1, 2)
    assert was_read(seen.topics)
    seen = replace(seen, topics=replace(seen.topics, out_of_sync_by_broker={3: 7}))
    RestartCutOffBrokers(task_id="first", cluster="lab", left_task="leave_kraft").require_others_in_sync(seen)
    usual = RestartBrokerBack(task_id="back", cluster="lab", node=1, mode=BrokerMode.ZOOKEEPER, step=Step.ROLL_BROKERS_TO_ZOOKEEPER)
    with pytest.raises(Refused, match="broker 3: 7"):
        usual.require_others_in_sync(seen)


def test_those_that_an_earlier_try_restarted_are_awaited_again(run) -> None:
    done = run(left_kraft(1), threads())
    assert done.awaited == [(IN_SYNC, 2), (IN_SYNC, 3)]


def test_healthy_brokers_and_those_in_zookeeper_mode_are_left_alone(run) -> None:
    assert run(left_kraft(1, 2, 3), threads()).restarted == []
    assert run(left_kraft(1), threads(2, 3)).restarted == []


def test_a_broker_whose_threads_cannot_be_seen_is_left_to_its_turn(run) -> None:
    hosts = threads()
    hosts[2] = replace(hosts[2], controller_threads=Unread("no such host"))
    done = run(left_kraft(1, 2, 3), hosts)
    assert (done.restarted, done.unread) == ([], [2])


def test_the_threads_are_given_the_time_to_notice_their_new_controller(run) -> None:
    just_now = {"elected_at": datetime.now(UTC).isoformat()}
    assert 30 < sum(run(left_kraft(1), threads(), left=just_now).slept) <= 35
    slow = {"controller.socket.timeout.ms": "60000"}
    assert 60 < sum(run(left_kraft(1), threads(), left=just_now, properties=slow).slept) <= 65
    assert sum(run(left_kraft(1), threads(), left={"already_done": "ZooKeeper holds the office"}).slept) == pytest.approx(35, abs=1)


def test_nothing_is_waited_for_where_no_broker_is_in_migration_mode_or_the_goal_is_hybrid(run) -> None:
    assert run(left_kraft(), {}, left=None).slept == []
    assert run(observation(Phase.HYBRID), threads(1), left=None, goal="HYBRID").slept == []
