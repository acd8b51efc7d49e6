"""The tasks of the way back that act on the whole cluster: what each asks before it acts, and in what order it acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from acted import BACK, Acted
from airflow.sdk.exceptions import AirflowFailException
from kept_observations import end_untold, never_elected
from observations import (
    SPEC,
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    observation,
    on_host,
    part,
    tree,
    with_quorum,
    zookeeper,
)
from signed_run import DAG, RUN, Run, told
from structlog.testing import capture_logs

from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerEpochs,
    Found,
    MigrationZnode,
    Unread,
    ZkMigrationState,
)
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused, StepFailed, TimedOut
from kraft_runbook.migration.leaving import Departure, FencePlan
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.way_back import quorum_is_lost
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.procedures import give_back, leave_kraft
from kraft_runbook.procedures.give_back import Departed
from kraft_runbook.steps import waiting
from kraft_runbook_airflow.base.journal import record_for

LEAVE, RESTORE, PLAN, PARITY = "leave_kraft", "restore_quorum", "plan.way_back", "parity_before_leaving"
DOWN = Unread("it does not run")
ALL_DOWN = both(
    part(quorum=Unread("no controller runs")),
    *(a_controller(i, running=False, mode=DOWN, metrics=DOWN) for i in (101, 102, 103)),
)
LEADERLESS = ALL_DOWN(observation(Phase.HYBRID))
"""The copy was made (/migration has an offset), and no controller runs."""
DIED_IN_THE_COPY = zookeeper(migration=MigrationZnode(-1, 101, 4, -1))(LEADERLESS)
NEVER_COPIED = {
    f"controller-{i}": {"node_id": str(i), "states": [2], "end": 9, "open_since": 4} for i in (101, 102, 103)
}


class Left:
    """In place of the way out of KRaft: what it was given, and whether it asked who has the cluster right before."""

    def __init__(self, acted: Acted) -> None:
        self.acted, self.given, self.deleted = acted, dict[str, Any](), tuple[str, ...]()
        self.fails: StepFailed | None = None
        self.killed = False
        self.begun: Departure | None = None

    def leave(self, spec: Any, plan: FencePlan, *, still_mine: Callable[[], None] | None, **given: Any) -> Departure:
        assert still_mine is not None
        still_mine()
        self.acted.did.append(f"left, {plan.active} led")
        self.given = given
        if self.killed:
            now = datetime.now(UTC)
            given["departing"](Departure(began_at=now, fenced_at=now, deleted=("/controller",), controller_epoch=4))
            raise KeyboardInterrupt
        return self._departed(given["departed"], ("/controller", "/migration"))

    def settle(self, *_: Any, departed: Departed, begun: Departure | None, **__: Any) -> Departure:
        self.acted.did.append("settled")
        self.begun = begun
        if self.killed and begun is not None:
            now = datetime.now(UTC)
            found = replace(begun, resumed_at=now, elected_at=now, known_at=now, controller=2)
            departed(found)
            return found
        return self._departed(departed, self.deleted)

    def _departed(self, departed: Departed, deleted: tuple[str, ...]) -> Departure:
        now = datetime.now(UTC)
        moments = Departure(began_at=now, deleted=deleted, deleted_at=now)
        if deleted:
            departed(moments)
        if self.fails:
            raise self.fails
        return replace(moments, controller=2)


@pytest.fixture
def left(acted: Acted) -> Left:
    made = Left(acted)
    acted.replace(leave_kraft.leave_kraft, made.leave)
    acted.replace(give_back.settle_in_zookeeper, made.settle)
    return made


def stand(acted: Acted, seen: ClusterObservation, *without: str, verdict: Verdict | None = Verdict.MATCH) -> None:
    """The rollback was signed here, and parity (of this verdict) is on record."""
    Run(Gate.ROLLBACK, *without, seen=seen).write()
    acted.seen = seen
    if verdict is not None:
        report = {"verdict": verdict.value, "digest": "d", "offset": 640, "final": True}
        record_for(SPEC.name, DAG, RUN, PARITY, told({"outcome": "compared", **report}))
        acted.pulled[PARITY] = {"digest": "d", "verdict": "MATCH", "offset": 640}


def refused(acted: Acted, task: str, why: str) -> None:
    with pytest.raises(AirflowFailException, match=why):
        acted.run(task, dag=BACK, goal="ZOOKEEPER")
    assert not [each for each in acted.did if each.startswith(("left", "settled", "played"))]


# -- leave_kraft -------------------------------------------------------------------------------------------------------


def test_it_claims_waits_and_leaves_on_the_offset_that_parity_proved(acted: Acted, left: Left) -> None:
    stand(acted, observation(Phase.HYBRID))
    acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert acted.did == [
        "claimed",
        "awaited the active controller to write to ZooKeeper",
        "claimed",
        "left, 101 led",
    ], "the claim is renewed right before, since what came between may have taken long"
    assert acted.awaited_groups == [["claimed"]], "nobody acts on a consumer group while the quorum is left"
    assert left.given["proven_since"] == 640
    assert acted.outcomes(LEAVE) == ["begins", "left_kraft", "left_kraft"]


def test_when_it_left_is_on_record_though_no_election_was_seen(acted: Acted, left: Left) -> None:
    left.fails = StepFailed("the ZooKeeper controller elected none of 3 leaders", way_out="look in its log")
    stand(acted, observation(Phase.HYBRID))
    with pytest.raises(AirflowFailException, match="elected none"):
        acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert acted.outcomes(LEAVE) == ["begins", "left_kraft", "failed"]
    acted.seen, left.deleted = part(quorum=WHY)(observation(Phase.ZOOKEEPER)), ("/controller",)
    with pytest.raises(AirflowFailException, match="elected none"):
        acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert acted.outcomes(LEAVE)[3:] == ["left_kraft", "failed"]


def test_a_try_that_is_killed_at_the_deletion_is_taken_up_by_the_next_and_stays_one_departure(
    acted: Acted, left: Left
) -> None:
    left.killed = True
    stand(acted, observation(Phase.HYBRID))
    with pytest.raises(KeyboardInterrupt):
        acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    acted.seen = part(quorum=WHY)(observation(Phase.ZOOKEEPER))
    acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    noted, *told = [body for body in acted.recorded() if body["outcome"] in ("leaves_kraft", "left_kraft")]
    assert left.begun is not None and left.begun.began_at.isoformat() == noted["began_at"]
    assert {(each["began_at"], each["fenced_at"], each["phase"]) for each in told} == {
        (noted["began_at"], noted["fenced_at"], "HYBRID")
    }
    assert told[-1]["elected_at"] and not told[-1]["deleted_at"] and told[-1]["window_seconds"] is None


@pytest.mark.parametrize("without", ["approve", "confirm", "prove"])
def test_it_leaves_nothing_without_its_gate(acted: Acted, left: Left, without: str) -> None:
    stand(acted, observation(Phase.HYBRID), without)
    refused(acted, LEAVE, "gate rollback")


def test_it_leaves_nothing_while_another_run_has_the_cluster(acted: Acted, left: Left) -> None:
    stand(acted, observation(Phase.HYBRID))
    acted.held_by = "run two of zk_to_kraft_migration__lab"
    refused(acted, LEAVE, "is being changed by run two")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (broker(2, mode=WHY), "cluster is in UNKNOWN|broker 2 is not proven"),
        (part(zookeeper=WHY), "ZooKeeper can't be read"),
        (zookeeper(brokers={}), "brokers 1, 2, 3 are not in /brokers/ids"),
        (
            lambda seen: replace(seen, undeclared_controllers=frozenset({104})),
            "voters that the cluster file does not|controllers that the cluster file does not name: were none, now 104",
        ),
        (a_controller(103, running=WHY), "it is not known whether controller 103"),
    ],
)
@pytest.mark.parametrize("when", ["since it was signed", "already when it was signed"])
def test_it_fences_nothing_where_something_could_be_lost(
    acted: Acted, left: Left, spoil: Spoil, why: str, when: str
) -> None:
    """Whether the proof shows it or only this look does."""
    stand(acted, observation(Phase.HYBRID) if when == "since it was signed" else spoil(observation(Phase.HYBRID)))
    acted.seen = spoil(observation(Phase.HYBRID))
    refused(acted, LEAVE, why)


def test_a_broker_in_kraft_mode_must_come_back_first(acted: Acted, left: Left) -> None:
    """Before the copy no phase tells of it."""
    seen = broker(2, mode=BrokerMode.KRAFT)(observation(Phase.PRE_MIGRATION))
    stand(acted, seen)
    refused(acted, LEAVE, "broker 2 is not proven to run in migration or ZooKeeper mode")


def test_a_controller_that_is_down_must_be_said_to_be_so_by_its_host(acted: Acted, left: Left) -> None:
    """Its port refuses; its host can't be asked: with the active one it could be a majority in a moment."""
    down = a_controller(103, running=False, mode=DOWN, metrics=DOWN)
    stand(acted, both(down, with_quorum(leader_id=101))(observation(Phase.HYBRID)))
    with pytest.raises(AirflowFailException, match="its host can't be asked to keep it stopped"):
        acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert not [each for each in acted.did if each.startswith("left")]


@pytest.mark.parametrize("verdict", [None, Verdict.MISMATCH, Verdict.INCONCLUSIVE])
def test_it_leaves_nothing_without_a_full_parity_of_this_run(acted: Acted, left: Left, verdict: Verdict | None) -> None:
    """Whatever the task's XCom says."""
    stand(acted, observation(Phase.HYBRID), verdict=verdict)
    acted.pulled[PARITY] = {"digest": "d", "verdict": "MATCH", "offset": 640}
    refused(acted, LEAVE, "no full parity of this run is on record")


def test_before_the_copy_there_is_nothing_to_prove(acted: Acted, left: Left) -> None:
    stand(acted, observation(Phase.PRE_MIGRATION), verdict=None)
    acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert left.given["proven_since"] is None and "left, 101 led" in acted.did


def test_what_is_left_of_a_former_try_is_deleted_behind_the_same_gate(acted: Acted, left: Left) -> None:
    seen = part(quorum=WHY)(observation(Phase.ZOOKEEPER))
    stand(acted, seen)
    with capture_logs() as said:
        assert "already_done" in acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert acted.did == ["claimed", "settled"]
    assert acted.outcomes(LEAVE) == [] and "None" not in str(said)


def test_a_broker_that_was_elected_anew_is_on_record(acted: Acted, left: Left) -> None:
    left.deleted = ("/controller",)
    stand(acted, part(quorum=WHY)(observation(Phase.ZOOKEEPER)))
    acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert acted.outcomes(LEAVE) == ["left_kraft", "left_kraft"]


def test_what_was_not_measured_is_left_out_of_the_words(acted: Acted, left: Left) -> None:
    """Where no copy was made, nothing was written to ZooKeeper and no key was proven."""
    stand(acted, observation(Phase.PRE_MIGRATION))
    with capture_logs() as said:
        acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert "offset None" not in str(said) and "None s" not in str(said)


def test_a_rehearsal_stops_nothing(acted: Acted, left: Left) -> None:
    for seen in (observation(Phase.HYBRID), LEADERLESS, observation(Phase.ZOOKEEPER)):
        acted.seen = seen
        acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER", dry_run=True)
    assert acted.did == []


def test_a_run_that_is_to_end_in_hybrid_leaves_nothing(acted: Acted, left: Left) -> None:
    stand(acted, observation(Phase.HYBRID))
    assert "not_asked_for" in acted.run(LEAVE, dag=BACK, goal="HYBRID")
    assert acted.did == []


@pytest.mark.parametrize("task", [LEAVE, PARITY])
def test_a_rehearsal_of_a_run_that_is_to_end_in_hybrid_says_what_it_leaves_out(acted: Acted, task: str) -> None:
    acted.seen = observation(Phase.DUAL_WRITE)
    with capture_logs() as said:
        acted.run(task, dag=BACK, goal="HYBRID", dry_run=True)
    assert [each["event"] for each in said] == ["not asked for: the goal of this run is HYBRID"]


# -- where no quorum leads ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [RESTORE, LEAVE])
def test_controllers_that_should_lead_are_started_and_awaited(acted: Acted, left: Left, task: str) -> None:
    assert quorum_is_lost(LEADERLESS)
    stand(acted, LEADERLESS)
    acted.after_playing = lambda _: setattr(acted, "seen", observation(Phase.HYBRID))
    acted.run(task, dag=BACK, goal="ZOOKEEPER")
    assert acted.did[:3] == [
        "claimed",
        "played start_controllers on controller-101, controller-102, controller-103",
        "awaited a majority of the controllers to run and elect a leader",
    ]
    assert acted.awaited_groups == [acted.did[:3]] * (task == LEAVE), "a start takes nothing from an act on a group"
    assert acted.outcomes(task)[:2] == ["begins", "restored"]
    assert ("left, 101 led" in acted.did) == (task == LEAVE)


@pytest.mark.parametrize("task", [RESTORE, LEAVE])
def test_a_leader_that_never_writes_to_zookeeper_is_told_at_once(acted: Acted, left: Left, task: str) -> None:
    stand(acted, LEADERLESS)
    acted.dual_write_died = True
    acted.after_playing = lambda _: setattr(acted, "seen", end_untold())
    with pytest.raises(AirflowFailException, match="/migration has no offset: no controller writes to"):
        acted.run(task, dag=BACK, goal="ZOOKEEPER")
    assert acted.outcomes(task) == ["begins", "restored", "failed"]
    assert "left, 101 led" not in acted.did


def test_controllers_that_were_started_are_on_record_though_none_leads(acted: Acted, left: Left) -> None:
    def nobody_leads(*_: Any, **__: Any) -> ClusterObservation:
        raise TimedOut("no controller leads after 120 s", way_out="look in their logs")

    stand(acted, LEADERLESS)
    acted.replace(waiting.wait_for, nobody_leads)
    with pytest.raises(AirflowFailException, match="no controller leads"):
        acted.run(RESTORE, dag=BACK, goal="ZOOKEEPER")
    assert acted.outcomes(RESTORE) == ["begins", "restored", "failed"]


@pytest.mark.parametrize("task", [RESTORE, LEAVE])
@pytest.mark.parametrize("seen", [LEADERLESS, DIED_IN_THE_COPY], ids=["copied", "died in the copy"])
@pytest.mark.parametrize("held_by", [None, "run two"])
def test_no_controller_is_started_or_ended_without_the_gate_or_the_claim(
    acted: Acted, left: Left, task: str, seen: ClusterObservation, held_by: str | None
) -> None:
    stand(acted, seen, *([] if held_by else ["approve"]))
    acted.held_by = held_by
    refused(acted, task, "being changed by run two" if held_by else "0 of 1 approvals")


@pytest.mark.parametrize("task", [RESTORE, LEAVE])
def test_controllers_that_died_in_their_copy_stay_down_where_their_logs_prove_it(
    acted: Acted, left: Left, task: str
) -> None:
    stand(acted, DIED_IN_THE_COPY)
    acted.facts["read_metadata_logs"] = NEVER_COPIED
    acted.run(task, dag=BACK, goal="ZOOKEEPER")
    assert acted.played == ["played read_metadata_logs on controller-101, controller-102, controller-103"]
    assert acted.awaited_groups == [["claimed"]], "their logs are read once those that run are stopped"
    if task == LEAVE:
        assert acted.did[-2:] == ["claimed", "left, None led"]
        assert left.given["proven_since"] is None
        assert acted.outcomes(LEAVE) == ["logs_read", "begins", "left_kraft", "left_kraft"]


def test_controllers_that_never_had_a_leader_are_left_with_a_signature_and_no_parity(acted: Acted, left: Left) -> None:
    stand(acted, never_elected(), verdict=None)
    acted.run(PARITY, dag=BACK, goal="ZOOKEEPER")
    acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert acted.did[-2:] == ["claimed", "left, None led"]
    assert left.given["proven_since"] is None


@pytest.mark.parametrize("task", [RESTORE, LEAVE])
def test_a_killed_act_on_a_group_keeps_no_lost_quorum_down(acted: Acted, left: Left, task: str) -> None:
    """One of another Airflow says that it acts until its lease ends. What stops controllers waits for it."""

    def acts() -> None:
        raise Refused("group one is being moved", way_out="wait")

    acted.groups_act = acts
    stand(acted, LEADERLESS)
    acted.after_playing = lambda _: setattr(acted, "seen", observation(Phase.HYBRID))
    if task == RESTORE:
        assert acted.run(RESTORE, dag=BACK, goal="ZOOKEEPER")["started"] == [101, 102, 103]
    else:
        with pytest.raises(AirflowFailException, match="group one is being moved"):
            acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert acted.did[-1] == "awaited a majority of the controllers to run and elect a leader"


def test_where_a_leader_came_up_while_a_group_was_awaited_no_controller_is_stopped(acted: Acted, left: Left) -> None:
    stand(acted, DIED_IN_THE_COPY)
    acted.facts["read_metadata_logs"] = NEVER_COPIED
    acted.groups_act = lambda: setattr(acted, "seen", observation(Phase.HYBRID))
    acted.run(RESTORE, dag=BACK, goal="ZOOKEEPER")
    assert not [each for each in acted.played if "read_metadata_logs" in each]


def test_where_a_log_holds_the_end_of_the_copy_they_are_started_instead(acted: Acted, left: Left) -> None:
    stand(acted, DIED_IN_THE_COPY)
    ended = {**NEVER_COPIED["controller-102"], "states": [2, ZkMigrationState.MIGRATION.value]}
    acted.facts["read_metadata_logs"] = {**NEVER_COPIED, "controller-102": ended}
    assert acted.run(RESTORE, dag=BACK, goal="ZOOKEEPER")["started"] == [101, 102, 103]
    assert acted.played[-1].startswith("played start_controllers")


def test_controllers_that_died_in_their_copy_are_left_only_where_they_can_be_fenced(acted: Acted, left: Left) -> None:
    """A host that can't be asked may start its controller again in the middle."""
    stand(acted, a_controller(103, running=WHY)(DIED_IN_THE_COPY))
    acted.facts["read_metadata_logs"] = NEVER_COPIED
    with pytest.raises(AirflowFailException, match="the quorum can't be fenced"):
        acted.run(LEAVE, dag=BACK, goal="ZOOKEEPER")
    assert not [each for each in acted.did if each.startswith("left")]


def test_a_rehearsal_starts_and_ends_no_controller(acted: Acted) -> None:
    for seen in (LEADERLESS, DIED_IN_THE_COPY):
        acted.seen = seen
        acted.run(RESTORE, dag=BACK, goal="ZOOKEEPER", dry_run=True)
    assert acted.did == []


def test_a_rehearsal_that_is_cleared_and_finds_nothing_to_do_lists_nothing(acted: Acted) -> None:
    for seen in (observation(Phase.HYBRID), LEADERLESS, observation(Phase.HYBRID), observation(Phase.HYBRID)):
        acted.seen = seen
        acted.run(RESTORE, dag=BACK, goal="ZOOKEEPER", dry_run=True)
    listed = [body["acts"] for body in acted.recorded() if body["outcome"] == "rehearsed"]
    assert listed == [[f"start controller {each}" for each in (101, 102, 103)], []]


# -- before and after --------------------------------------------------------------------------------------------------


def test_the_plan_refuses_where_there_is_no_way_back(acted: Acted) -> None:
    stand(acted, observation(Phase.FINALIZED))
    refused(acted, PLAN, "no rollback is possible now")
    acted.seen, acted.not_deletable = observation(Phase.HYBRID), "this tool may not delete /controller"
    refused(acted, PLAN, "may not delete /controller")


def test_the_plan_sees_what_only_the_partitions_states_show(acted: Acted) -> None:
    """KRB-PRE-082 sends people to this run."""
    above = ControllerEpochs(claimed=3, greatest=9, states=44, above=Found(2, ("orders-0",)))
    stand(acted, tree(controller_epochs=above)(observation(Phase.ZOOKEEPER)))
    (step,) = acted.run(PLAN, dag=BACK, goal="ZOOKEEPER")["steps"]
    assert step.startswith("leave_kraft: set /controller_epoch from 3 to 9")
    acted.seen = tree(controller_epochs=Unread("it fell silent"))(observation(Phase.ZOOKEEPER))
    with capture_logs() as said:
        assert acted.run(PLAN, dag=BACK, goal="ZOOKEEPER")["steps"] == []
    assert "not the epochs in partition states (it fell silent); leave_kraft reads them" in str(said)


def test_the_plan_of_a_cluster_without_a_leader_is_to_bring_one_back(acted: Acted) -> None:
    stand(acted, LEADERLESS)
    assert acted.run(PLAN, dag=BACK, goal="ZOOKEEPER")["steps"][0].startswith("restore_quorum")
    assert acted.outcomes(PLAN) == ["planned"]


@pytest.mark.parametrize(
    ("seen", "compared"),
    [
        (observation(Phase.ZOOKEEPER), False),
        (observation(Phase.PRE_MIGRATION), False),
        (DIED_IN_THE_COPY, False),
        (
            both(*(a_controller(i, metrics=WHY) for i in (101, 102, 103)), part(quorum=WHY))(observation(Phase.HYBRID)),
            True,
        ),
        (observation(Phase.FINALIZED), True),
    ],
)
def test_the_last_parity_is_left_out_only_where_there_are_no_two_stores(
    acted: Acted, seen: ClusterObservation, compared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand(acted, seen, verdict=None)
    task = acted.dags[BACK].get_task(PARITY)
    monkeypatch.setattr(type(task), "compare", lambda *_, **__: {"compared": True})
    if detect_phase(seen).phase is Phase.UNKNOWN and compared:
        with pytest.raises(AirflowFailException, match="there are no two stores to compare"):
            acted.run(PARITY, dag=BACK, goal="ZOOKEEPER")
    else:
        assert (acted.run(PARITY, dag=BACK, goal="ZOOKEEPER") is not None) == compared


@pytest.mark.parametrize(
    ("goal", "seen", "why"),
    [
        ("ZOOKEEPER", observation(Phase.PRE_MIGRATION), "the cluster is in PRE_MIGRATION, not in ZOOKEEPER"),
        ("ZOOKEEPER", broker(2, running=False)(observation(Phase.ZOOKEEPER)), "preflight found"),
        ("HYBRID", observation(Phase.DUAL_WRITE), "the cluster is in DUAL_WRITE, not in HYBRID"),
        ("HYBRID", part(zookeeper=WHY, quorum=WHY)(ALL_DOWN(observation(Phase.HYBRID))), "in UNKNOWN, not in HYBRID"),
    ],
)
def test_the_run_s_end_is_verified(acted: Acted, goal: str, seen: ClusterObservation, why: str) -> None:
    stand(acted, seen)
    with pytest.raises(AirflowFailException, match=why):
        acted.run("verify", dag=BACK, goal=goal)


def test_of_a_controller_that_is_gone_with_its_host_nothing_is_set_aside_and_the_end_says_so(acted: Acted) -> None:
    """No migration can begin with that host."""
    seen = both(part(quorum=WHY), on_host(103, config=WHY, formatted_cluster_id=WHY, free_bytes=WHY))
    stand(acted, seen(observation(Phase.ZOOKEEPER)))
    told = acted.run("set_controllers_aside.controller_103", dag=BACK, goal="ZOOKEEPER", gone_controllers="103")
    assert "controller 103 is gone with its host" in told["already_done"]
    acted.run("set_controllers_aside.controller_102", dag=BACK, goal="ZOOKEEPER", gone_controllers="103")
    assert acted.played == ["played set_controller_aside on controller-102"]
    with pytest.raises(AirflowFailException, match="controller 103"):
        acted.run("verify", dag=BACK, goal="ZOOKEEPER", gone_controllers="103")
