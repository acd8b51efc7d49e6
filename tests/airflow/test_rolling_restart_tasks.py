"""What the rolling restart's tasks ask before they restart a process: as the migration's do."""

from __future__ import annotations

import errno

import pytest
from acted import ROLLING, Acted
from airflow.sdk.exceptions import AirflowFailException
from observations import SPEC, WHY, a_controller, both, broker, observation, part, with_quorum

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.store import append_record

TASKS = {
    "restart_controllers.controller_103.restart": "controller-103",
    "restart_brokers.broker_1.restart": "broker-1",
}
WITHOUT_THE_GATE = SPEC.model_copy(update={"rolling_restart": SPEC.rolling_restart.model_copy(update={"gate": False})})
each_task = pytest.mark.parametrize("task", TASKS)


@pytest.fixture
def acted(acted: Acted) -> Acted:
    acted.begin()
    acted.seen = observation(Phase.FINALIZED)
    return acted


def refused(acted: Acted, task: str, why: str) -> None:
    with pytest.raises(AirflowFailException, match=why):
        acted.run(task, dag=ROLLING, nodes="both")
    assert acted.played == []
    assert acted.outcomes(task)[-1] == "refused"


@each_task
def test_it_restarts_nothing_without_its_gate(acted: Acted, task: str) -> None:
    refused(acted, task, "no proof is on record for gate restart")


@each_task
def test_where_the_cluster_file_asks_for_no_gate_the_claim_is_enough(acted: Acted, task: str) -> None:
    acted.spec = WITHOUT_THE_GATE
    acted.run(task, dag=ROLLING, nodes="both")
    assert acted.played == [f"played restart_node on {TASKS[task]}"]
    assert acted.did[0] == "claimed"


@each_task
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), PermissionError(errno.EACCES, "Permission denied", "/e")],
)
def test_it_restarts_nothing_where_the_evidence_can_not_be_written(acted: Acted, task: str, error: OSError) -> None:
    """Without a gate, nothing else would be written before."""

    def fails(*_: object, **__: object) -> None:
        raise error

    acted.spec = WITHOUT_THE_GATE
    acted.replace(append_record, fails)
    with pytest.raises(AirflowFailException, match=str(error.strerror)):
        acted.run(task, dag=ROLLING, nodes="both")
    assert acted.played == []


@each_task
def test_it_restarts_nothing_while_another_run_has_the_cluster(acted: Acted, task: str) -> None:
    acted.spec, acted.held_by = WITHOUT_THE_GATE, "run two of zk_to_kraft_migration__lab"
    refused(acted, task, "is being changed by run two")


@each_task
def test_it_restarts_nothing_in_a_phase_that_nobody_can_tell(acted: Acted, task: str) -> None:
    acted.spec = WITHOUT_THE_GATE
    unread = (a_controller(i, metrics=WHY, running=WHY, mode=WHY) for i in (101, 102, 103))
    acted.seen = both(*unread, part(quorum=WHY, zookeeper=WHY))(observation(Phase.HYBRID))
    refused(acted, task, "UNKNOWN")


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (broker(3, running=False), "broker 3 does not answer"),
        (broker(3, running=WHY), "broker 3 does not answer"),
        (part(topics=WHY), "the state of the partitions could not be read"),
    ],
)
def test_a_broker_is_not_stopped_where_partitions_could_lose_their_leader(acted: Acted, seen: object, why: str) -> None:
    acted.spec = WITHOUT_THE_GATE
    acted.seen = seen(observation(Phase.FINALIZED))  # type: ignore[operator]
    refused(acted, "restart_brokers.broker_1.restart", why)


def led_by(leader: int) -> ClusterObservation:
    return with_quorum(leader_id=leader)(observation(Phase.FINALIZED))


def test_the_active_controller_comes_last_and_each_is_awaited_before_the_next(acted: Acted) -> None:
    """Another one was elected meanwhile: it was left, too."""
    acted.spec, acted.seen = WITHOUT_THE_GATE, led_by(102)
    acted.run("restart_controllers.controller_101.restart", dag=ROLLING, nodes="both")
    acted.did.clear()
    told = acted.run("restart_controllers.active_controller_last.restart", dag=ROLLING, nodes="both")
    assert told == {"restarted": [103, 102]}
    whole = "awaited every controller to run, to have caught up and to be warm"
    assert [each for each in acted.did if each != "claimed"] == [
        whole,
        "played restart_node on controller-103",
        whole,
        "played restart_node on controller-102",
        whole,
    ]


@each_task
def test_a_rehearsal_restarts_nothing(acted: Acted, task: str) -> None:
    acted.run(task, dag=ROLLING, nodes="both", dry_run=True)
    assert acted.did == [f"rehearsed restart_node on {TASKS[task]}"]


@pytest.mark.parametrize(("nodes", "left_out"), [("brokers", "controller"), ("controllers", "broker")])
def test_what_the_form_does_not_ask_for_is_left_alone(acted: Acted, nodes: str, left_out: str) -> None:
    acted.spec = WITHOUT_THE_GATE
    task = next(each for each in TASKS if left_out in each)
    assert "not_asked_for" in acted.run(task, dag=ROLLING, nodes=nodes)
    assert acted.did == []
