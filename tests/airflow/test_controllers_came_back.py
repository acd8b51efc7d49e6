"""A host was started anew in the middle of a rollback, and its controller with it: each later task of the way back
stops the controllers, proves that they hold nothing that ZooKeeper lacks, and goes on.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from acted import BACK, Acted
from airflow.sdk.exceptions import AirflowFailException
from observations import SPEC, a_controller, both, broker, observation, part, zookeeper
from signed_run import DAG, RUN
from test_leaving_kraft import LEAVE, Left, left, stand

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerZnode, MigrationZnode, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.kinds import LeftKraft
from kraft_runbook.migration.leaving import Departure
from kraft_runbook_airflow.base.journal import record_for

__all__ = ["left"]

ROLL, ASIDE = "roll_brokers_to_zookeeper.broker_1.restart", "set_controllers_aside.controller_101"
STOPPED = "played read_metadata_logs on controller-101, controller-102, controller-103"
OF_ZOOKEEPER = zookeeper(controller=ControllerZnode(2, -1), migration=MigrationZnode(-1, -1, -1, -1))
HYBRID = both(*(broker(each, mode=BrokerMode.HYBRID) for each in SPEC.broker_ids))
CAME_BACK = both(OF_ZOOKEEPER, part(quorum=Unread("it forms")))(observation(Phase.HYBRID))
NOW_DOWN = both(
    OF_ZOOKEEPER,
    part(quorum=Unread("no controller runs")),
    *(a_controller(i, running=False, mode=Unread("down"), metrics=Unread("down")) for i in SPEC.controller_ids),
)
SINCE = 700


def logs(**last: int) -> dict[str, dict[str, Any]]:
    """Of each controller: by kind, where its last record is."""
    kinds = {"2": 650, "20": 744, **{key.removeprefix("of_"): offset for key, offset in last.items()}}
    one = {"states": [1, 2], "end": 745, "open_since": None, "last": kinds, "begins": 0}
    return {f"controller-{i}": {"node_id": str(i), **one} for i in SPEC.controller_ids}


def signed(acted: Acted, now: ClusterObservation, *without: str) -> None:
    """The rollback was signed in HYBRID, before KRaft was left."""
    stand(acted, observation(Phase.HYBRID), *without)
    acted.seen = now


@pytest.fixture
def rolled_back_halfway(acted: Acted) -> Acted:
    signed(acted, CAME_BACK)
    moments = Departure(began_at=datetime.now(UTC), high_watermark=SINCE, deleted=("/controller", "/migration"))
    record_for(SPEC.name, DAG, RUN, LEAVE, LeftKraft(values=moments.to_dict(), phase="HYBRID"))
    acted.facts["read_metadata_logs"] = logs()

    def stopped(did: str) -> None:
        if "read_metadata_logs" in did:
            acted.seen = NOW_DOWN(acted.look())

    acted.after_playing = stopped
    return acted


def with_brokers_in(mode: BrokerMode, seen: ClusterObservation) -> ClusterObservation:
    return both(*(broker(each, mode=mode) for each in SPEC.broker_ids))(seen)


@pytest.mark.parametrize("led", [False, True])
def test_the_roll_to_zookeeper_stops_them_and_goes_on(rolled_back_halfway: Acted, led: bool) -> None:
    if led:  # the quorum formed, and writes nothing to ZooKeeper
        rolled_back_halfway.seen = OF_ZOOKEEPER(observation(Phase.HYBRID))
        rolled_back_halfway.dual_write_died = True
    rolled_back_halfway.run(ROLL, dag=BACK, goal="ZOOKEEPER")
    assert rolled_back_halfway.played == [STOPPED, "played restart_broker on broker-1"]


def test_setting_aside_stops_all_of_them_before_the_first_is_touched(rolled_back_halfway: Acted) -> None:
    rolled_back_halfway.seen = with_brokers_in(BrokerMode.ZOOKEEPER, CAME_BACK)
    rolled_back_halfway.run(ASIDE, dag=BACK, goal="ZOOKEEPER")
    assert rolled_back_halfway.played == [STOPPED, "played set_controller_aside on controller-101"]


def test_leaving_once_more_stops_them_and_settles(rolled_back_halfway: Acted, left: Left) -> None:
    rolled_back_halfway.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert rolled_back_halfway.played == [STOPPED] and rolled_back_halfway.did[-1] == "settled"


@pytest.mark.parametrize("task", [ROLL, ASIDE, LEAVE])
def test_where_a_log_holds_more_nothing_is_touched(rolled_back_halfway: Acted, left: Left, task: str) -> None:
    rolled_back_halfway.facts["read_metadata_logs"] = logs(of_2=SINCE)
    if task == ASIDE:
        rolled_back_halfway.seen = with_brokers_in(BrokerMode.ZOOKEEPER, CAME_BACK)
    with pytest.raises(AirflowFailException, match=r"may hold what ZooKeeper lacks.*at offset 700 or later: TOPIC"):
        rolled_back_halfway.run(task, dag=BACK, goal="ZOOKEEPER")
    assert rolled_back_halfway.played == [STOPPED]


def test_a_run_that_did_not_leave_kraft_sets_nothing_aside(acted: Acted) -> None:
    signed(acted, with_brokers_in(BrokerMode.ZOOKEEPER, CAME_BACK))
    acted.facts["read_metadata_logs"] = logs()
    with pytest.raises(AirflowFailException, match="no record of how far ZooKeeper was written"):
        acted.run(ASIDE, dag=BACK, goal="ZOOKEEPER")
    assert acted.played == [STOPPED]


def test_without_the_signature_they_are_not_even_stopped(acted: Acted) -> None:
    signed(acted, CAME_BACK, "approve")
    with pytest.raises(AirflowFailException, match="0 of 1 approvals"):
        acted.run(ROLL, dag=BACK, goal="ZOOKEEPER")
    assert acted.played == []


def test_a_rehearsal_stops_none(rolled_back_halfway: Acted) -> None:
    rolled_back_halfway.run(ROLL, dag=BACK, goal="ZOOKEEPER", dry_run=True)
    assert not [each for each in rolled_back_halfway.did if each.startswith("played")]
