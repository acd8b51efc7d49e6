"""What each task that changes a host asks before it does, and what it leaves on record: tasks of the lab's own DAGs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from acted import BACK, FORWARD, Acted
from airflow.sdk.exceptions import AirflowFailException
from observations import (
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    ended,
    observation,
    part,
    zookeeper,
)
from signed_run import Run

from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    MigrationZnode,
    Unread,
)
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.migration.transitions import Gate


def out_of_sync(broker_id: int) -> Spoil:
    return lambda seen: replace(seen, topics=replace(seen.topics, out_of_sync_by_broker={broker_id: 7}))  # type: ignore[type-var]


@dataclass(frozen=True)
class Step:
    """A task, where the cluster stands when it acts, what it plays, and how its work looks when it is done.

    ``wrong``: what its own guard refuses, by the words of the refusal.
    """

    task: str
    gate: Gate
    phase: Phase
    plays: str
    done: Spoil
    wrong: dict[str, Spoil]
    dag: str = FORWARD
    stands: Spoil = lambda seen: seen

    @property
    def seen(self) -> ClusterObservation:
        return self.stands(observation(self.phase))


NO_QUORUM = part(quorum=Unread("no controller runs"))
OTHERS_WELL = {
    "broker 3 does not answer; stopping": broker(3, running=False),
    "broker 3 does not answer": broker(3, running=WHY),
    "replicas on other brokers are out of sync": out_of_sync(3),
    "the state of the partitions could not be read": part(topics=WHY),
}
FLAG = {"controller 103 runs without the migration flag": a_controller(103, mode=ControllerMode.KRAFT)}

STEPS = (
    Step(
        "provision_controllers.controller_101.provision",
        Gate.START,
        Phase.ZOOKEEPER,
        "provision_controller on controller-101",
        a_controller(101, running=True, mode=ControllerMode.MIGRATION),
        {
            "/migration of an earlier try still exists": zookeeper(migration=MigrationZnode(207, 102, 3, 5)),
            "the cluster's id could not be read": zookeeper(cluster_id=None),
        },
        stands=NO_QUORUM,
    ),
    Step(
        "roll_brokers_to_hybrid.broker_1.restart",
        Gate.START,
        Phase.PRE_MIGRATION,
        "restart_broker on broker-1",
        broker(1, mode=BrokerMode.HYBRID),
        {**OTHERS_WELL, **FLAG},
    ),
    Step(
        "roll_brokers_to_kraft.broker_1.restart",
        Gate.DUAL_WRITE,
        Phase.HYBRID,
        "restart_broker on broker-1",
        broker(1, mode=BrokerMode.KRAFT),
        {**OTHERS_WELL, **FLAG},
    ),
    Step(
        "finalize_controllers.controller_102.restart",
        Gate.FINALIZE,
        Phase.DUAL_WRITE,
        "finalize_controller on controller-102",
        a_controller(102, mode=ControllerMode.KRAFT),
        {
            "broker 2 is not proven to be in KRaft mode": broker(2, mode=WHY),
            "controller 103 does not answer": a_controller(103, running=WHY),
        },
    ),
    Step(
        "roll_brokers_back_to_hybrid.broker_1.restart",
        Gate.ROLLBACK,
        Phase.DUAL_WRITE,
        "restart_broker on broker-1",
        broker(1, mode=BrokerMode.HYBRID),
        OTHERS_WELL,
        dag=BACK,
    ),
    Step(
        "roll_brokers_to_zookeeper.broker_1.restart",
        Gate.ROLLBACK,
        Phase.ZOOKEEPER,
        "restart_broker on broker-1",
        broker(1, mode=BrokerMode.ZOOKEEPER),
        {**OTHERS_WELL, "ZooKeeper names no controller": zookeeper(controller=None)},
        dag=BACK,
        stands=both(NO_QUORUM, *(broker(i, mode=BrokerMode.HYBRID) for i in (1, 2, 3))),
    ),
    Step(
        "set_controllers_aside.controller_101",
        Gate.ROLLBACK,
        Phase.ZOOKEEPER,
        "set_controller_aside on controller-101",
        lambda seen: seen,
        {"broker 2 is not proven to be back in ZooKeeper mode": broker(2, mode=WHY)},
        dag=BACK,
        stands=NO_QUORUM,
    ),
)
each_step = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.task)


def stand(acted: Acted, step: Step, *without: str, spoil: Spoil = lambda seen: seen) -> None:
    """The gate was signed where the cluster stood; now it shows this."""
    Run(step.gate, *without, seen=spoil(step.seen)).write()
    acted.seen = spoil(step.seen)


def refused(acted: Acted, step: Step, why: str) -> None:
    with pytest.raises(AirflowFailException, match=why):
        acted.run(step.task, dag=step.dag)
    assert acted.played == []
    assert acted.outcomes(step.task)[-1] == "refused"


@each_step
def test_it_claims_the_cluster_says_that_it_begins_and_plays_once(acted: Acted, step: Step) -> None:
    stand(acted, step)
    acted.run(step.task, dag=step.dag)
    assert acted.did == ["claimed", f"played {step.plays}"]
    assert acted.outcomes(step.task) == ["begins", "played"]


@each_step
@pytest.mark.parametrize(
    ("without", "why"), [("approve", "0 of 1 approvals"), ("confirm", "was not confirmed"), ("prove", "no proof is on")]
)
def test_it_does_nothing_without_its_gate(acted: Acted, step: Step, without: str, why: str) -> None:
    stand(acted, step, without)
    refused(acted, step, why)


@each_step
def test_another_gate_s_signature_is_none(acted: Acted, step: Step) -> None:
    other = Gate.ROLLBACK if step.gate is not Gate.ROLLBACK else Gate.START
    Run(other, seen=step.seen).write()
    acted.seen = step.seen
    refused(acted, step, f"no proof is on record for gate {step.gate.value}")


@each_step
def test_it_does_nothing_while_another_run_has_the_cluster(acted: Acted, step: Step) -> None:
    stand(acted, step)
    acted.held_by = "run two of zk_to_kraft_rollback__lab"
    refused(acted, step, "is being changed by run two")


@each_step
def test_it_does_nothing_in_a_phase_that_nobody_can_tell(acted: Acted, step: Step) -> None:
    unknown = both(
        *(a_controller(i, metrics=WHY, running=WHY, mode=WHY) for i in (101, 102, 103)), part(quorum=WHY, zookeeper=WHY)
    )
    Run(step.gate, seen=step.seen).write()
    acted.seen = unknown(step.seen)
    assert detect_phase(acted.look()).phase is Phase.UNKNOWN
    refused(acted, step, "the cluster is in UNKNOWN")


@each_step
def test_a_rehearsal_claims_nothing_changes_nothing_and_records_what_it_would_do(acted: Acted, step: Step) -> None:
    acted.seen = step.seen
    acted.run(step.task, dag=step.dag, dry_run=True)
    assert acted.did == [f"rehearsed {step.plays}"]
    assert acted.outcomes(step.task) == ["rehearsed"]


@pytest.mark.parametrize("step", [s for s in STEPS if "aside" not in s.task], ids=lambda step: step.task)
def test_what_is_done_already_is_left_alone_and_said_so(acted: Acted, step: Step) -> None:
    stand(acted, step, spoil=step.done)
    assert "already_done" in acted.run(step.task, dag=step.dag)
    assert acted.did == ["claimed"]
    assert acted.outcomes(step.task) == ["already_done"]


@pytest.mark.parametrize(
    ("task", "phase"),
    [
        ("provision_controllers.controller_101.provision", Phase.FINALIZED),
        ("roll_brokers_to_hybrid.broker_1.restart", Phase.DUAL_WRITE),
        ("roll_brokers_to_hybrid.broker_1.restart", Phase.FINALIZED),
    ],
)
def test_where_the_cluster_lies_beyond_a_step_nothing_of_it_is_left(acted: Acted, task: str, phase: Phase) -> None:
    """Whatever the node itself shows, and without a signature."""
    step = next(each for each in STEPS if each.task == task)
    Run(step.gate, "approve", seen=step.seen).write()
    acted.seen = broker(1, mode=BrokerMode.ZOOKEEPER)(observation(phase))
    assert f"the cluster is in {phase}, beyond" in acted.run(task)["already_done"]
    assert acted.did == ["claimed"]


@pytest.mark.parametrize(
    "step", [s for s in STEPS if "restart" in s.task or "provision" in s.task], ids=lambda step: step.task
)
def test_what_shows_its_new_mode_and_does_not_run_is_not_done(acted: Acted, step: Step) -> None:
    """A look may know a mode of before; a node that is down has its turn all the same."""
    node = int(step.plays.rpartition("-")[2])
    down: Spoil = a_controller(node, running=False) if node > 100 else ended(node)
    stand(acted, step, spoil=both(step.done, down))
    acted.run(step.task, dag=step.dag)
    assert acted.played == [f"played {step.plays}"]


@pytest.mark.parametrize(
    ("step", "why"), [(s, why) for s in STEPS for why in s.wrong], ids=lambda each: getattr(each, "task", each)
)
def test_its_own_guard_stops_it_though_the_gate_is_signed(acted: Acted, step: Step, why: str) -> None:
    stand(acted, step, spoil=step.wrong[why])
    refused(acted, step, why)


def test_before_a_broker_goes_back_to_zookeeper_mode_it_knows_its_controller(acted: Acted) -> None:
    """Else it would hang for five minutes."""
    step = next(each for each in STEPS if each.task == "roll_brokers_to_zookeeper.broker_1.restart")
    stand(acted, step)
    acted.unknowing = "broker 1 names 103"
    refused(acted, step, "broker 1 names 103")


def test_no_broker_leaves_zookeeper_once_dual_write_has_died(acted: Acted) -> None:
    step = next(each for each in STEPS if each.task == "roll_brokers_to_kraft.broker_1.restart")
    stand(acted, step)
    acted.dual_write_died = True
    refused(acted, step, "KRB-DW-001")


@each_step
def test_before_a_step_that_relies_on_the_way_back_the_controllers_are_proven_on_their_hosts(
    acted: Acted, step: Step
) -> None:
    """Not where the quorum is gone, and not of finalization itself, which has its own gate."""
    stand(acted, step)
    acted.run(step.task, dag=step.dag)
    asked = step.task.startswith(("provision", "roll_brokers_to_hybrid", "roll_brokers_to_kraft", "roll_brokers_back"))
    assert bool(acted.proven_first) == asked


def test_once_final_a_broker_left_behind_is_restarted_whatever_the_controllers_files_say(acted: Acted) -> None:
    step = next(each for each in STEPS if each.task == "roll_brokers_to_kraft.broker_1.restart")
    seen = broker(1, mode=BrokerMode.HYBRID)(observation(Phase.FINALIZED))
    Run(step.gate, seen=seen).write()
    acted.seen = seen
    acted.run(step.task)
    assert acted.played == [f"played {step.plays}"] and acted.proven_first == ()
