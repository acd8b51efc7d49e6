"""Can this cluster still go back? Each yes has its steps, each no its reason, and what can't be read is never a yes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from kept_observations import end_untold
from observations import SPEC, WHY, a_controller, both, broker, observation, on_host, part, tree, with_quorum, zookeeper

from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerEpochs,
    ControllerMode,
    ControllerZnode,
    Found,
    MigrationZnode,
    Unread,
    was_read,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import conditions
from kraft_runbook.migration.explain import explain
from kraft_runbook.migration.leaving import FencePlan, fence_plan, why_no_fence
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.runbook.lost_disk import why_not_anew

Spoil = Callable[[ClusterObservation], ClusterObservation]


@pytest.mark.parametrize(
    ("phase", "first"),
    [
        (Phase.PRE_MIGRATION, "deprovision_controllers"),
        (Phase.HYBRID, "leave_kraft"),
        (Phase.DUAL_WRITE, "roll_brokers_back_to_hybrid: broker"),
    ],
)
def test_until_finalization_there_is_a_way_with_its_time_and_window(phase: Phase, first: str) -> None:
    plan = way_back(observation(phase), SPEC)
    assert plan.possible
    assert plan.steps[0].startswith(first)
    assert plan.seconds > 0
    assert plan.window_seconds > 0


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_partitions_that_lie_behind_are_named_with_the_step_that_mends_them(phase: Phase) -> None:
    behind = "1 of 31 state znodes have a version lower than their partition epoch: orders-1 (version 7, epoch 11)"
    (step,) = [
        step
        for step in way_back(observation(phase), SPEC, lies_behind=behind).steps
        if step.startswith("leave_kraft: ")
    ]
    assert behind in step
    assert "lower than its partition's epoch" in step.split(". Now: ")[0]
    assert not any("Now: " in step for step in way_back(observation(phase), SPEC).steps)


def in_epoch(epoch: int) -> Spoil:
    """Controller 101 leads in this epoch, and has claimed both znodes in it."""
    return both(
        with_quorum(leader_epoch=epoch),
        zookeeper(controller=ControllerZnode(101, epoch), migration=MigrationZnode(999, 101, 4, epoch)),
    )


ABOVE = ControllerEpochs(claimed=3, greatest=9, states=44, above=Found(2, ("orders-0", "orders-1")))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (part(), "/controller_epoch is 3, KRaft's epoch is 3, the greatest epoch in 44 partition states is 3: nothing"),
        (in_epoch(7), "/controller_epoch is 3, KRaft's epoch is 7, .* is 3: it is set to 7"),
        (tree(controller_epochs=ABOVE), "the greatest epoch in 44 partition states is 9: it is set to 9"),
        (tree(controller_epochs=WHY), r"the epochs in partition states were not read \(leave_kraft reads them\)$"),
        (zookeeper(tree=WHY), "KRaft's epoch is 3, the epochs in partition states were not read"),
    ],
    ids=["enough", "the quorum's is above", "a state's is above", "no states", "no deep read"],
)
def test_both_counters_of_controller_epochs_are_told_with_what_leaving_does(spoil: Spoil, told: str) -> None:
    seen = observation(Phase.HYBRID)
    plan = way_back(spoil(in_epoch(3)(zookeeper(controller_epoch=3)(seen))), SPEC)
    (step,) = [step for step in plan.steps if step.startswith("leave_kraft: ")]
    assert re.search(told, step), step


def test_a_zookeeper_controller_that_can_elect_no_leader_is_named_with_its_cure() -> None:
    seen = tree(controller_epochs=ABOVE)(observation(Phase.ZOOKEEPER))
    (step,) = way_back(seen, SPEC).steps
    assert step.startswith("leave_kraft: set /controller_epoch from 3 to 9, delete /controller")
    assert "2 of 44 partition states" in step
    assert way_back(observation(Phase.ZOOKEEPER), SPEC).steps == ()


CUT_OFF = zookeeper(controller=ControllerZnode(2, -1, epoch_set_after=True))


def test_a_zookeeper_controller_that_can_write_nothing_is_named_with_its_cure() -> None:
    (step,) = way_back(CUT_OFF(observation(Phase.ZOOKEEPER)), SPEC).steps
    assert step.startswith("leave_kraft: delete /controller, let a broker be elected: /controller_epoch was set after")
    assert "broker 2 was elected controller" in step


@pytest.mark.parametrize(
    ("spoil", "no", "why"),
    [
        (
            tree(controller_epochs=ABOVE),
            {"epoch_not_writable": "may not write"},
            "may not write, which must be set to 9",
        ),
        (tree(controller_epochs=ABOVE), {"not_deletable": "may not delete"}, "may not delete"),
        (CUT_OFF, {"not_deletable": "may not delete"}, "may not delete"),
    ],
)
def test_what_settling_must_change_in_zookeeper_it_must_be_allowed_to(
    spoil: Spoil, no: dict[str, str], why: str
) -> None:
    seen = observation(Phase.ZOOKEEPER)
    assert (way_back(spoil(seen), SPEC, **no).possible, way_back(spoil(seen), SPEC, **no).why) == (False, why)
    assert way_back(seen, SPEC, **no).possible, "nothing must be changed"


def test_what_an_unread_right_does_not_hinder_is_no_no() -> None:
    no = {"epoch_not_writable": "may not write"}
    assert way_back(CUT_OFF(observation(Phase.ZOOKEEPER)), SPEC, **no).possible, "it deletes alone"


def test_finalized_says_no_and_what_remains() -> None:
    plan = way_back(observation(Phase.FINALIZED), SPEC)
    assert not plan.possible
    assert "what remains: go forward" in plan.why


def test_a_rollback_that_was_interrupted_names_the_brokers_left() -> None:
    plan = way_back(broker(2, mode=BrokerMode.HYBRID)(observation(Phase.ZOOKEEPER)), SPEC)
    assert plan.possible
    assert plan.steps[0].startswith("roll_brokers_to_zookeeper: broker 2:")


def all_controllers_down(seen: ClusterObservation) -> ClusterObservation:
    for i in SPEC.controller_ids:
        seen = a_controller(i, running=False, mode=WHY, metrics=WHY)(seen)
    return part(quorum=WHY)(seen)


NOES: dict[str, tuple[Spoil, str]] = {
    "ZooKeeper unread": (part(zookeeper=WHY), "ZooKeeper can't be read"),
    "a controller unread": (a_controller(102, running=WHY), "it is not known whether controller 102"),
    "a controller without the flag": (
        a_controller(102, mode=ControllerMode.KRAFT),
        "controller 102 runs without the migration flag",
    ),
    "a voter that nobody declared": (
        lambda seen: replace(seen, undeclared_controllers=frozenset({999})),
        "voters that the cluster file does not name: 999",
    ),
}


@pytest.mark.parametrize("name", NOES)
@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_says_no_before_anything_would_be_lost(name: str, phase: Phase) -> None:
    spoil, why = NOES[name]
    plan = way_back(spoil(observation(phase)), SPEC)
    assert not plan.possible
    assert why in plan.why
    assert plan.steps == ()


def test_a_dual_write_that_stopped_turns_it_to_no() -> None:
    plan = way_back(observation(Phase.DUAL_WRITE), SPEC, dual_write_stopped="/migration stands still at 7")
    assert not plan.possible
    assert "would be lost: /migration stands still at 7" in plan.why


def test_a_quorum_of_one_cannot_be_fenced() -> None:
    alone = SPEC.model_copy(update={"controllers": SPEC.controllers[:1]})
    assert "a quorum of one" in way_back(observation(Phase.HYBRID), alone).why


def test_a_leader_whose_majority_was_stopped_counts_as_lost() -> None:
    """It goes on for about three seconds; whoever looks just then must not take the quorum for whole."""
    seen = observation(Phase.HYBRID)
    for i in SPEC.controller_ids[1:]:
        seen = a_controller(i, running=False, mode=WHY, metrics=WHY)(seen)
    assert "only 1 of 3 controllers run, which is no majority" in (quorum_is_lost(seen) or "")
    assert not way_back(seen, SPEC).possible
    assert quorum_is_lost(observation(Phase.HYBRID)) is None


def test_a_lost_quorum_is_brought_back_first() -> None:
    plan = way_back(all_controllers_down(observation(Phase.HYBRID)), SPEC)
    assert not plan.possible
    assert plan.steps[0].startswith("restore_quorum")


def down(node_id: int) -> Spoil:
    """Its port refuses connections; of its host nobody was asked."""
    return lambda seen: a_controller(node_id, running=False, mode=WHY, metrics=WHY)(seen)


def unexamined(seen: ClusterObservation) -> ClusterObservation:
    return replace(seen, hosts=WHY)


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_a_controller_that_is_down_counts_as_fenced_where_its_host_says_so(phase: Phase) -> None:
    seen = down(103)(observation(phase))
    assert way_back(unexamined(seen), SPEC).possible
    assert way_back(on_host(103, service_state="stopped")(seen), SPEC).possible
    silent = way_back(on_host(103, service_state=Unread("the host can't be reached: timed out"))(seen), SPEC)
    assert not silent.possible
    assert "its host can't be asked to keep it stopped (the host can't be reached: timed out)" in silent.why
    assert "name the controller under 'Controllers whose hosts are gone'" in silent.why


def test_what_leaving_waits_for_comes_with_a_controller_down() -> None:
    """One of three stopped: the leave waited for a state that it could never show, after the brokers had been rolled
    back.
    """
    earlier = down(103)(observation(Phase.HYBRID))
    seen = zookeeper(migration=MigrationZnode(1200, 101, 4, 4))(earlier)
    assert not conditions.METADATA_COPIED.progress(seen, SPEC, earlier=earlier).done
    assert conditions.READY_TO_LEAVE.progress(seen, SPEC, earlier=earlier).done
    behind = zookeeper(migration=MigrationZnode(900, 101, 4, 4))(earlier)
    assert "/migration is at 900" in conditions.READY_TO_LEAVE.progress(behind, SPEC, earlier=earlier).waiting_for


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (zookeeper(controller=ControllerZnode(102, 4)), "/controller names 102, the quorum's leader is 101"),
        (zookeeper(migration=MigrationZnode(999, 102, 4, 4)), "/migration names 102, the quorum's leader is 101"),
        (zookeeper(controller=ControllerZnode(101, 3)), "/controller names 101 in epoch 3, the quorum is in epoch 4"),
        (zookeeper(migration=MigrationZnode(999, 101, 4, 9)), "/migration names 101 in epoch 9"),
    ],
)
def test_two_controllers_on_the_two_sides_turn_it_to_no_before_a_broker_is_rolled(spoil: Spoil, told: str) -> None:
    plan = way_back(spoil(observation(Phase.DUAL_WRITE)), SPEC)
    assert not plan.possible
    assert told in plan.why


def test_a_copy_whose_end_nothing_tells_zookeeper_is_told_by_hand_first() -> None:
    seen = end_untold()
    plan = way_back(seen, SPEC)
    assert not plan.possible and "Give /migration an offset by hand" in plan.why
    told = explain(seen, SPEC, earlier=seen)
    assert told.forward[0].startswith("give /migration an offset by hand")
    assert "the controller that copied it died" in told.means
    assert explain(seen, SPEC, earlier=observation(Phase.HYBRID)).forward[0].startswith("roll_brokers_to_kraft")


def test_a_controller_whose_host_is_gone_counts_as_fenced_on_the_operators_word_and_the_risk_is_signed() -> None:
    seen = a_controller(103, running=WHY, mode=WHY, metrics=WHY)(observation(Phase.HYBRID))
    assert not way_back(seen, SPEC).possible
    plan = way_back(seen, SPEC, gone=[103])
    assert plan.possible
    assert "controller 103 counts as stopped on the operator's word only" in plan.risks[-1]
    assert fence_plan(seen, gone=[103]) == FencePlan(101, (102,), (103,))
    assert "controller 102 answers, though named as gone" in way_back(seen, SPEC, gone=[102]).why
    assert "named as gone, but not in the cluster file: controller 7" in way_back(seen, SPEC, gone=[7]).why


def test_what_may_not_be_deleted_in_the_end_is_said_in_the_beginning() -> None:
    said = "this tool may not delete /controller and /migration (NoAuth)"
    for seen in (
        observation(Phase.HYBRID),
        observation(Phase.PRE_MIGRATION),
        all_controllers_down(observation(Phase.HYBRID)),
    ):
        plan = way_back(seen, SPEC, not_deletable=said)
        assert not plan.possible
        assert plan.steps == ()
        assert said in plan.why


def test_the_right_to_write_the_epoch_closes_the_way_back_only_where_it_must_be_set() -> None:
    no = "this tool may not write /controller_epoch (NoAuth)"
    seen = in_epoch(3)(zookeeper(controller_epoch=3)(observation(Phase.HYBRID)))
    plan = way_back(seen, SPEC, epoch_not_writable=no)
    assert plan.possible and any(risk.startswith(f"{no}: if leave_kraft finds a greater epoch") for risk in plan.risks)
    seen = tree(controller_epochs=ABOVE)(seen)
    assert way_back(seen, SPEC).possible
    plan = way_back(seen, SPEC, epoch_not_writable=no)
    assert (plan.possible, plan.why) == (False, f"{no}, which must be set to 9")


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.ZOOKEEPER])
def test_an_epoch_that_kafka_can_t_count_on_from_closes_the_way_back(phase: Phase) -> None:
    beyond = ControllerEpochs(3, 2**31 - 1, 44, Found(2, ("orders-7", "orders-1")), Found(1, ("orders-7",)))
    plan = way_back(tree(controller_epochs=beyond)(observation(phase)), SPEC)
    assert not plan.possible and plan.steps == ()
    assert "can't count on from (2147483647): 1: orders-7 (no Kafka wrote that" in plan.why


def test_a_leader_that_the_cluster_file_does_not_name_can_t_be_fenced() -> None:
    """Though no voter is a stranger to the file: it may have been told of them before."""
    assert why_no_fence(with_quorum(leader_id=104)(observation(Phase.HYBRID)), SPEC) == (
        "the quorum's leader 104 is not in the cluster file"
    )


def test_a_broker_in_kraft_mode_that_the_cluster_file_does_not_name_closes_the_way_back() -> None:
    """It would go on leading what ZooKeeper's controller gives to others. One in migration mode is known to both."""
    seen = replace(observation(Phase.DUAL_WRITE), undeclared_brokers=frozenset({4}))
    plan = way_back(seen, SPEC)
    assert not plan.possible and "broker 4 runs in KRaft mode and is not in the cluster file" in plan.why
    hybrid = observation(Phase.HYBRID).zookeeper
    assert was_read(seen.zookeeper) and was_read(hybrid)
    in_both = zookeeper(brokers={**seen.zookeeper.brokers, 4: hybrid.brokers[1]})(seen)
    assert way_back(in_both, SPEC).possible


@pytest.mark.parametrize(
    ("plan", "led"),
    [
        (FencePlan(101, (102, 103)), FencePlan(103, (101, 102))),
        (FencePlan(101, (102,), (103,)), FencePlan(102, (101,), (103,))),
        (FencePlan(None, (101, 102, 103)), FencePlan(102, (101, 103))),
    ],
)
def test_where_another_is_elected_that_one_stays_and_everybody_else_is_fenced(plan: FencePlan, led: FencePlan) -> None:
    assert led.active is not None
    assert plan.led_by(led.active) == led


def test_what_is_left_in_zookeeper_and_may_not_be_deleted_closes_the_way_back() -> None:
    """A rollback that was interrupted before its last deletion."""
    no = "this tool may not delete /controller and /migration"
    left = zookeeper(migration=MigrationZnode(7, 101, 4, 4))(part(quorum=WHY)(observation(Phase.ZOOKEEPER)))
    assert (way_back(left, SPEC, not_deletable=no).possible, way_back(left, SPEC, not_deletable=no).why) == (False, no)
    assert way_back(zookeeper(migration=None)(left), SPEC, not_deletable=no).possible


def test_a_controller_that_lost_its_disk_does_not_count_for_itself() -> None:
    """The quorum still knows its old log's end; the disk behind it is empty."""
    down = a_controller(103, running=False)(observation(Phase.HYBRID))
    assert "1 (102) run and hold everything committed, and 2 must" in str(why_not_anew(down, 101))
