"""A run of days outlives a lost broker, an election, a time-out: each error that ended it, and what ends it still."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC
from placements import one_volume_each
from test_reassignment_steps import MB, MOVING, NOTHING, PLACEMENT, PLAN, THERE, A, B, Scene, look, move, why_awake

from kraft_runbook.cluster.assignment import Ongoing
from kraft_runbook.errors import Refused, RunbookError, StepFailed, TimedOut, Unreachable
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.procedures.look_at_replicas import look_at_plan, look_at_replicas
from kraft_runbook.procedures.move_replicas import StartedInPart, prefer_first_replicas, start_next_batch
from kraft_runbook.procedures.throttle_replication import list_moves, set_rate
from kraft_runbook.reassignment.batches import Limits
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook.steps.reassignment.ending import prefer_leaders
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.looks import MOMENT_SECONDS
from kraft_runbook.steps.reassignment.signed import BrokerLost
from kraft_runbook.steps.reassignment.throttling import put_throttles_back
from kraft_runbook.steps.reassignment.troubles import AGAIN_SECONDS, GOES_ON, wait_out
from kraft_runbook.steps.reassignment.waiting import WhileMoving
from kraft_runbook_airflow.reassignment.trigger import ReassignmentTrigger

LOST, REFUSED = SPEC.reassignment.lost_broker, SPEC.reassignment.refused
NO_ANSWER = Unreachable("no broker answers", way_out="start one")
NO_CONTROLLER = TimedOut("no controller was found", way_out="look for it")
DIED = StepFailed("Kafka did not start 1 of 1 reassignments: brokers that are not alive", way_out="again")
NOT_SHOWN = StepFailed("the throttle is not in force after 10 s", way_out="again")


class Outlives(Scene):
    """A run under way whose clock a test moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.later_by = 0.0
        self.wanted = replace(self.wanted, throttle=5 * MB)
        vars(self.cluster)["now"] = lambda: time.time() + self.later_by + self.cluster.paused
        files = files_of(self.run)
        files.store_plan(PLAN, PLACEMENT.present)
        files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())

    def begin(self, *did: str) -> None:
        for what in did or ("planned", "started"):
            self.run.journal.record(Moves(what=what, partitions=1))

    def fails_at(self, act: Any, error: RunbookError) -> Any:
        """From now on, until the answer that this returns is put back."""
        before = self.cluster.answers[act]

        def fail(*_: Any, **__: Any) -> Any:
            raise error

        self.cluster.answers[act] = fail
        return before


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Outlives:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return Outlives()


TROUBLES = [
    pytest.param(look_at_plan, NO_ANSWER, "waits", LOST, id="a look without an answer"),
    pytest.param(start_next_batch, NO_CONTROLLER, "waits", LOST, id="an election that lasts"),
    pytest.param(start_next_batch, DIED, "tries again", REFUSED, id="a target that died just before"),
    pytest.param(set_rate, NO_ANSWER, "waits", LOST, id="a throttle that no broker takes"),
    pytest.param(list_moves, NOT_SHOWN, "tries again", REFUSED, id="a list that a broker does not show"),
]


@pytest.mark.parametrize(("where", "error", "what", "most"), TROUBLES)
def test_a_trouble_is_waited_out_and_the_run_goes_on(
    scene: Outlives, where: Any, error: RunbookError, what: str, most: float
) -> None:
    scene.begin()
    before = scene.fails_at(where, error)
    for _ in range(2):
        wait = move(scene)
        assert isinstance(wait, WhileMoving) and wait.rests == AGAIN_SECONDS
    assert scene.told().count(what) == 1, "on record once, however often it is tried"
    assert ("start", [A]) not in scene.done
    scene.cluster.answers[where] = before
    wait = move(scene)
    assert wait.rests == 0 and scene.told()[-1] == GOES_ON[what]
    assert [each[0] for each in scene.done if each[0] == "throttle"], "also a rate that was noted and not yet set"
    assert ("start", [A]) in scene.done


@pytest.mark.parametrize(("where", "error", "what", "most"), TROUBLES)
def test_what_lasts_too_long_asks_a_person_and_a_cleared_task_waits_anew(
    scene: Outlives, where: Any, error: RunbookError, what: str, most: float
) -> None:
    scene.begin()
    scene.fails_at(where, error)
    move(scene)
    scene.later_by = most - 60
    assert move(scene).rests
    scene.later_by = most + 60
    with pytest.raises(type(error)) as raised:
        move(scene)
    assert raised.value is error and scene.told()[-1] == "gave up"
    assert move(scene).rests and scene.told()[-1] == what


def test_of_two_troubles_at_once_each_ends_the_run_after_its_own_time(scene: Outlives) -> None:
    """Broker 3 is lost, and no broker takes the throttle: either would have the other begin anew for ever."""
    scene.begin()
    scene.now = look(racks={1: "x", 2: "y"})
    scene.fails_at(set_rate, NOT_SHOWN)
    for _ in range(3):
        move(scene)
    assert scene.told()[2:] == ["waits", "tries again"]
    scene.later_by = REFUSED - 60
    move(scene)
    scene.later_by = REFUSED + 60
    with pytest.raises(StepFailed, match="not in force"):
        move(scene)


def test_what_was_refused_and_then_taken_while_a_broker_is_lost_counts_no_more(scene: Outlives) -> None:
    scene.begin()
    lost = BrokerLost("broker 3 does not run", way_out="start it")
    for trouble in (lost, DIED):
        wait_out(scene.run, trouble)
    scene.run.journal.record(Moves(what="started", partitions=1))
    scene.later_by = max(REFUSED, LOST) + 60
    wait_out(scene.run, DIED)
    with pytest.raises(BrokerLost):
        wait_out(scene.run, lost)
    assert scene.told()[2:] == ["waits", "tries again", "started", "tries again", "gave up"]


def test_two_refusals_of_a_moment_hours_apart_end_no_run_that_waits_for_a_broker(scene: Scene) -> None:
    """While it waits no move is taken that would say so: what ends the first is a try that meets no refusal."""
    scene.begin()
    scene.now = look(racks={1: "x", 2: "y"})
    for hours in (0, 3):
        scene.later_by = hours * 3600
        before = scene.fails_at(set_rate, NOT_SHOWN)
        assert move(scene).rests == AGAIN_SECONDS
        scene.cluster.answers[set_rate] = before
        files_of(scene.run).throttles_are_back()
        for _ in range(3):
            assert move(scene).rests == 0
        files_of(scene.run).throttles_are_back()
    tried = ["tries again", "throttled", "refused no more"]
    assert scene.told()[2:] == ["waits", *tried, *tried], "no look adds to the evidence"
    scene.later_by = LOST + 60
    with pytest.raises(BrokerLost):
        move(scene)


def test_two_silences_of_a_moment_days_apart_end_no_run_of_which_kafka_refuses_a_part(scene: Scene) -> None:
    scene.begin()
    scene.wanted = replace(scene.wanted, partitions=2)
    in_part = StartedInPart("Kafka did not start 1 of 2 reassignments: a-1", way_out="again", done=PLAN.moves[:1])
    scene.fails_at(start_next_batch, in_part)
    for later in (0.0, LOST + 60):
        scene.later_by = later
        before = scene.fails_at(look_at_plan, NO_ANSWER)
        assert move(scene).rests == AGAIN_SECONDS
        scene.cluster.answers[look_at_plan] = before
        for _ in range(2):
            assert move(scene).rests == AGAIN_SECONDS
    assert scene.told().count("waits") == scene.told().count("goes on") == 2


def test_a_silence_that_has_passed_gives_what_is_refused_no_more_time(scene: Scene) -> None:
    scene.begin()
    scene.fails_at(start_next_batch, StartedInPart("Kafka did not start a-1", way_out="again", done=()))
    move(scene)
    before = scene.fails_at(look_at_plan, NO_ANSWER)
    move(scene)
    scene.cluster.answers[look_at_plan] = before
    move(scene)
    assert scene.told()[-3:] == ["tries again", "waits", "goes on"]
    scene.later_by = REFUSED + 60
    with pytest.raises(StartedInPart):
        move(scene)


def test_before_anything_has_begun_an_error_is_told_at_once(scene: Outlives) -> None:
    scene.fails_at(look_at_plan, NO_ANSWER)
    with pytest.raises(Unreachable):
        move(scene)
    assert scene.told() == []


def test_what_kafka_took_beside_a_refused_move_is_on_record_and_the_refused_one_is_tried_again(scene: Outlives) -> None:
    """The first batch: without that record the task would end at once, though data moves."""
    scene.begin("planned")
    scene.wanted = replace(scene.wanted, partitions=2)
    in_part = StartedInPart("Kafka did not start 1 of 2 reassignments: a-1", way_out="again", done=PLAN.moves[:1])
    before = scene.fails_at(start_next_batch, in_part)
    assert move(scene).rests == AGAIN_SECONDS
    assert scene.told() == ["planned", "throttled", "started", "tries again"]
    scene.now = look(ongoing=MOVING)
    scene.fails_at(start_next_batch, StartedInPart("Kafka did not start a-1", way_out="again", done=()))
    scene.later_by = REFUSED + 60
    with pytest.raises(StartedInPart):
        move(scene)
    scene.cluster.answers[start_next_batch] = before
    move(scene)
    assert scene.done[-1] == ("start", [B])


def test_moves_of_a_task_that_died_before_it_put_them_on_record_are_waited_for_like_any_other(scene: Outlives) -> None:
    scene.begin("planned")
    scene.now = look(ongoing=MOVING)
    scene.fails_at(start_next_batch, DIED)
    assert move(scene).rests == AGAIN_SECONDS
    assert scene.told().count("started") == 1
    scene.begin("planned")
    scene.now = look(ongoing=MOVING, racks={1: "x", 2: "y"})
    assert isinstance(move(scene), WhileMoving) and scene.told()[-3:] == ["started", "waits", "refused no more"]


def test_what_is_refused_ends_the_run_at_once(scene: Outlives) -> None:
    scene.begin()
    scene.fails_at(start_next_batch, Refused("ElectLeaders is not allowed", way_out="allow it"))
    with pytest.raises(Refused):
        move(scene)


def test_moves_that_leave_a_replica_on_a_broker_that_died_are_waited_for_in_words(scene: Outlives) -> None:
    """Broker 2 keeps its replicas and takes no copy. Nothing moves and nothing may start: that is no time to be
    silent, for weeks.
    """
    scene.now = look(racks={1: "x", 3: "x"})
    moving = look(racks={1: "x", 3: "x"}, ongoing={A: Ongoing((*PLAN.target[A], 1), (3,), (1,))})
    with pytest.raises(Refused, match="broker 2 does not run: moves that need a replica there wait for it"):
        move(scene)
    scene.begin()
    assert isinstance(move(scene), WhileMoving)
    assert "waits" in scene.told() and not [each for each in scene.done if each[0] == "start"]
    scene.now, scene.later_by = moving, LOST + 60
    with pytest.raises(Refused, match="broker 2 does not run"):  # Kafka does not end it without broker 2 either
        move(scene)
    scene.now = look()
    move(scene)
    assert [each for each in scene.done if each[0] == "start"] and scene.told()[-1] != "waits"


@pytest.mark.parametrize(
    ("racks", "why", "way_out"),
    [
        pytest.param(
            {2: "y", 3: "x"}, "broker 1 does not run: moves that need a replica", "start it", id="source died"
        ),
        pytest.param(
            {1: "x", 2: "y", 3: "x"}, "1 without a leader to copy from: a-1", "let a broker lead", id="its disk failed"
        ),
    ],
)
def test_what_has_nobody_to_copy_from_hinders_no_other_and_is_waited_for_a_day(
    scene: Outlives, racks: dict[int, str | None], why: str, way_out: str
) -> None:
    """Broker 1 is drained, and was the last in sync of one partition."""
    scene.begin()
    sick: dict[str, Any] = {"racks": racks, "leaderless": frozenset({B})}
    begun = {B: Ongoing((*PLAN.target[B], 1), (3,), (1,))}
    scene.now = look(**sick)
    move(scene)
    assert scene.done[-1] == ("start", [A]) and "waits" not in scene.told(), "all else goes on"
    sick["present"] = {A: PLAN.target[A], B: (1, 2)}
    for ongoing in ({}, begun):
        scene.later_by = 0.0
        scene.now = look(**sick, ongoing=ongoing)
        assert isinstance(move(scene), WhileMoving) and scene.told()[-1] != "goes on"
        scene.later_by = LOST + 60
        with pytest.raises(Refused, match=why) as refused:
            move(scene)
        assert refused.value.way_out.startswith(way_out)
    scene.now = look(present=sick["present"])
    move(scene)
    assert scene.done[-1] == ("start", [B])


def test_a_replica_that_stays_on_a_failed_disk_of_a_broker_that_runs_is_waited_for_a_day(scene: Outlives) -> None:
    """The copy is whole, and Kafka ends the move once broker 2 is in sync again: else the claim is kept for ever."""
    scene.begin()
    scene.wanted = replace(scene.wanted, moves=1)
    scene.now = look(ongoing=MOVING, in_sync={A: (1, 3), B: (1, 2)})
    move(scene)
    assert scene.done[-1] == ("start", [B]) and "waits" not in scene.told(), "all else goes on"
    scene.now = look(present={A: (1, 2), B: PLAN.target[B]}, ongoing=MOVING, in_sync={A: (1, 3)})
    wait = move(scene)
    assert isinstance(wait, WhileMoving) and "waits" in scene.told()
    warned: list[str] = []
    wait.say, wait.warn = 0.0, warned.append
    assert wait.look(scene.cluster) == wait.look(scene.cluster) == ""
    said = "1 have every copy and wait for the replicas that they keep on broker 2, which are not in sync: a-0"
    assert f"{said}, all else goes on" in warned
    scene.later_by = LOST + 60
    with pytest.raises(BrokerLost, match=said) as refused:
        move(scene)
    assert refused.value.way_out.startswith("mend what keeps it from being in sync")
    scene.now, scene.later_by = look(present=dict(PLAN.target)), 0.0
    assert move(scene) == {"there": 2, "deleted_since": 0}


def test_a_broker_whose_disk_somebody_else_has_filled_takes_no_more_and_the_run_says_so(
    scene: Outlives, caplog: pytest.LogCaptureFixture
) -> None:
    """Judged before each batch, however many days after it was planned."""
    full = one_volume_each({1: 10**12, 2: 10**12, 3: 11 * MB})
    said = "broker 3 is to take 10,000,000 bytes and has 11,000,000 free"
    scene.now = look(directories=full)
    with pytest.raises(StepFailed, match=f"nothing else is left than moves without room: {said}"):
        move(scene)
    scene.begin()
    assert move(scene).rests == AGAIN_SECONDS and scene.told()[-1] == "tries again"
    files_of(scene.run).pause(scene.cluster.now() + 3600)
    assert move(scene).rests == 0, "nobody asks for room while a person has paused the run"
    files_of(scene.run).pause(None)
    scene.now = look(directories=full, ongoing=MOVING)
    wait = move(scene)
    assert wait.rests == 0 and wait.full == {3} and f"{said}: what would start there waits" in caplog.text
    assert scene.told()[-1] == "refused no more" and not [each for each in scene.done if each[0] == "start"]
    trigger = ReassignmentTrigger(**ReassignmentTrigger.of("lab", wait).serialize()[1])
    scene.now = look(ongoing=MOVING)
    assert trigger.looks()(scene.cluster) == "", "the task looks whether there is room again, and not the wait"
    move(scene)
    assert scene.done[-1] == ("start", [B])


def test_a_lost_target_is_waited_for_a_day(scene: Outlives) -> None:
    scene.begin()
    scene.now = look(racks={1: "x", 2: "y"})
    assert move(scene).rests == 0, "the wait looks: a broker that is back lets it go on at once"
    assert scene.told()[2:] == ["waits", "throttled"]
    scene.later_by = LOST + 60
    with pytest.raises(Refused, match="broker 3 is to take copies and does not run") as refused:
        move(scene)
    assert "start it, then clear this task" in refused.value.way_out
    assert "cancel_reassignments__lab" in refused.value.way_out
    scene.now = look()
    move(scene)
    assert ("start", [A]) in scene.done


def test_a_rate_that_was_noted_and_not_set_is_set_by_the_next_try(scene: Outlives) -> None:
    """The worker was killed in between; without it the copies would take all that the brokers have."""
    scene.begin()
    files_of(scene.run).will_throttle(RunThrottles((5 * MB,)))
    for _ in range(2):
        move(scene)
    assert [each for each in scene.done if each[0] == "throttle"] == [("throttle", 5 * MB)]


def test_the_triggerer_rests_and_then_lets_the_task_try_again(scene: Outlives) -> None:
    waits = ReassignmentTrigger.of("lab", WhileMoving(files_of(scene.run), Limits(50), rests=0.001))
    _, given = waits.serialize()
    assert asyncio.run(why_awake(ReassignmentTrigger(**given))) == "it is tried again"


def test_what_ends_a_run_is_tried_again_for_a_moment(scene: Outlives) -> None:
    """Days of moves must not fail for an election while leaders are elected, or throttles are put back."""
    scene.begin()
    scene.now = THERE
    tries: list[str] = []

    def busy(*given: Any, **how: Any) -> Any:
        tries.append("")
        if len(tries) < 3:
            raise NO_CONTROLLER
        return scene.look() if not given else {}

    scene.cluster.answers[prefer_first_replicas] = busy
    assert prefer_leaders(scene.run) == {"refused": 0} and len(tries) == 3
    tries.clear()
    files_of(scene.run).will_throttle(RunThrottles((5 * MB,)))
    scene.cluster.answers[look_at_replicas] = busy
    assert put_throttles_back(scene.run) == {"left": []} and len(tries) == 3
    scene.fails_at(look_at_replicas, NO_ANSWER)
    files_of(scene.run).will_throttle(RunThrottles.of(PLAN.moves, 5 * MB))
    before = scene.cluster.paused
    with pytest.raises(Unreachable):
        put_throttles_back(scene.run)
    assert MOMENT_SECONDS <= scene.cluster.paused - before < 2 * MOMENT_SECONDS
