"""A run whose moves at once follow the brokers: what waits judges it, and the task takes it up with a record of why."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from observations import SPEC
from recording import run_on
from test_reassignment_steps import FORM, MB, MOVING, NOTHING, PLACEMENT, PLAN, A, B, Scene, look, move, why_awake

from kraft_runbook.cluster.assignment import Ongoing
from kraft_runbook.cluster.observation import Timed
from kraft_runbook.cluster.operation_settings import Concurrency
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.procedures.read_load import read_load
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.batches import Limits
from kraft_runbook.reassignment.concurrency import BrokerLoad, Load, Pace
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook.reassignment.throttles import FOLLOWER_RATE, Former
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.moving import move_on
from kraft_runbook.steps.reassignment.planning import plan_moves, shows_plan
from kraft_runbook.steps.reassignment.waiting import WhileMoving
from kraft_runbook.steps.reassignment.wanted import asks_for_goal
from kraft_runbook_airflow.reassignment.trigger import ReassignmentTrigger

BOUNDS = Concurrency(least=1, most=2, request_time_ms=100)
FOLLOWING = SPEC.model_copy(update={"reassignment": SPEC.reassignment.model_copy(update={"concurrency": BOUNDS})})
MORE = "2 copies at once at a broker, instead of 1: every broker has time for more"
FEWER = "1 copies at once at a broker, instead of 2: Produce requests take broker 2 300 ms, more than 100"


class Follows(Scene):
    """A run that has started one of its two moves, one at once. ``takes``: how long each broker's Produce requests take
    from now on; None: its metrics do not answer.
    """

    def __init__(self) -> None:
        super().__init__()
        vars(self.cluster)["spec"] = FOLLOWING
        self.wanted = replace(self.wanted, moves=None, follows=BOUNDS, partitions=5)
        self.takes: dict[int, float | None] = dict.fromkeys(SPEC.broker_ids, 4.0)
        self.asked: list[Collection[int]] = []
        self._made: dict[int, tuple[int, float]] = dict.fromkeys(SPEC.broker_ids, (0, 0.0))
        self.cluster.answers[read_load] = self.load
        self.files = files_of(self.run)
        self.files.store_plan(PLAN, PLACEMENT.present)
        self.files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
        self.files.keep_pace(Pace(1))
        self.now = look(ongoing=MOVING)
        self.wait = WhileMoving(self.files, Limits(5, 1), say=1e9)

    def load(self, brokers: Collection[int]) -> tuple[Mapping[int, BrokerLoad], Mapping[int, str]]:
        self.asked.append(brokers)
        read = {}
        for broker in brokers:
            took = self.takes[broker]
            if took is not None:
                count, spent = self._made[broker]
                self._made[broker] = (count + 10, spent + 10 * took)
                read[broker] = BrokerLoad(Timed(count + 10, (spent + 10 * took) / (count + 10)), 0)
        return read, {broker: "no answer" for broker in brokers if broker not in read}

    def looks(self, seconds: float = 30.0) -> str:
        self.cluster.pause(seconds)
        return self.wait.look(self.cluster)

    def said(self) -> list[str]:
        return [each.told for _, each in of_kind(self.run.journal.records(), Moves) if each.what == "moves at once"]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Follows:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return Follows()


def test_idle_brokers_wake_the_task_which_starts_more_and_says_why(scene: Follows) -> None:
    assert [scene.looks(), scene.looks(29.0), scene.looks(1.0)] == ["", "", MORE]
    assert len(scene.asked) == 2, "only where it is due"
    move(scene)
    assert scene.done == [("start", [B])] and scene.said() == [MORE]
    assert MORE in scene.cluster.told
    move(scene)
    assert scene.said() == [MORE], "on record once"
    assert scene.files.pace is not None and not scene.files.pace.changes


def test_a_busy_broker_lets_no_next_batch_start(scene: Follows) -> None:
    scene.files.keep_pace(Pace(2))
    scene.wait.limits = Limits(5, 2)
    scene.now = look(ongoing={A: MOVING[A], B: Ongoing((*PLAN.target[B], 1), (3,), (1,))})
    scene.looks()
    scene.takes[2] = 300.0
    assert scene.looks() == FEWER
    scene.now = look(ongoing=MOVING)  # one of them has ended
    waits = move(scene)
    assert scene.done == [] and scene.said() == [FEWER]
    assert waits.limits.moves == 1


def test_metrics_that_do_not_answer_change_nothing_and_are_named(scene: Follows) -> None:
    scene.takes[3] = None
    assert [scene.looks() for _ in range(5)] == [""] * 5
    assert scene.cluster.told.count("No more than 1 copies at once at a broker: broker 3: no answer") == 1
    scene.takes[3] = 4.0
    assert [scene.looks(), scene.looks()] == ["", MORE]


def test_a_disk_that_takes_nothing_ends_no_wait(scene: Follows, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(type(scene.files), "keep_pace", full)
    assert [scene.looks() for _ in range(3)] == [""] * 3
    assert "How many moves go on at once stays as it is: no space left" in scene.cluster.told


def test_a_run_that_is_paused_takes_no_more(scene: Follows) -> None:
    scene.files.pause(2.0**34)
    assert [scene.looks() for _ in range(4)] == [""] * 4


def test_numbers_from_before_a_pause_of_the_run_count_no_more(scene: Follows) -> None:
    brokers = {broker: BrokerLoad(Timed(10, 1.0), 0) for broker in SPEC.broker_ids}
    scene.files.keep_pace(Pace(2, Load(scene.cluster.now(), brokers, {})))
    bounds = BOUNDS.model_copy(update={"most": 40})
    scene.files.keep_pace(Pace(40, Load(scene.cluster.now(), brokers, {})))
    scene.wanted = replace(scene.wanted, follows=bounds)
    scene.cluster.pause(3600)
    assert move(scene).limits.moves == 20
    assert scene.said() == ["20 copies at once at a broker, instead of 40: the brokers' numbers are too old to go by"]


@pytest.mark.parametrize("text", ["[]", "{}", "", '{"moves": 9, "load": {"at": 1, "brokers": [], "unread": {}}}'])
def test_a_file_that_is_no_pace_begins_anew(scene: Follows, text: str) -> None:
    (scene.files.directory / "pace.json").write_text(text)
    assert move(scene).limits.moves == 2
    assert scene.said() == ["2 copies at once at a broker; 1 to 2, as busy as the brokers are"]


def test_a_drained_broker_that_does_not_run_does_not_count(scene: Follows) -> None:
    """Its numbers will never be read. One that does not run and keeps replicas holds the run as it is."""
    placement = look(racks={2: "y", 3: "x"}, ongoing=MOVING)
    scene.now = placement
    scene.looks()
    assert scene.asked.pop() == {2, 3}
    scene.now = look(racks={1: "x", 3: "x"}, ongoing=MOVING)
    scene.looks()
    assert scene.asked.pop() == {1, 2, 3}


def test_without_bounds_in_the_file_nothing_is_asked_and_the_form_counts(scene: Follows) -> None:
    vars(scene.cluster)["spec"] = SPEC
    scene.wanted = replace(scene.wanted, moves=7, follows=None)
    assert scene.looks() == "" and scene.looks() == "" and not scene.asked
    assert move(scene).limits.moves == 7 and scene.said() == []


@pytest.mark.parametrize(("form", "bounds"), [(None, (1, 2)), (1, (1, 1)), (20, (1, 2))])
def test_a_number_in_the_form_is_the_most(form: int | None, bounds: tuple[int, int], scene: Follows) -> None:
    wanted = asks_for_goal(run_on(scene.cluster, **FORM | {"moves_a_broker": form}))
    assert wanted.follows is not None
    assert (wanted.follows.least, wanted.follows.most) == bounds and wanted.most_moves == bounds[1]


@pytest.mark.parametrize(("form", "moves"), [(None, 20), (3, 3)])
def test_without_bounds_the_form_says_how_many(form: int | None, moves: int, scene: Follows) -> None:
    vars(scene.cluster)["spec"] = SPEC
    wanted = asks_for_goal(run_on(scene.cluster, **FORM | {"moves_a_broker": form}))
    assert (wanted.most_moves, wanted.limits(scene.cluster.observe()).moves) == (moves, moves)


def test_no_more_go_on_at_once_than_the_throttle_lets_end_and_idle_brokers_change_nothing(scene: Follows) -> None:
    """One copy at a time would end, two would not."""
    scene.now, scene.wanted = look(), replace(scene.wanted, throttle=3 * MB)
    scene.later = look(at=5.0, sizes={A: 15 * MB, B: 15 * MB})
    plan_moves(scene.run, asks=scene.asks)
    said = "at 3 MB/s a broker no more than 1 copies go on at once at each, instead of 2: with more, broker 1: its "
    assert scene.said() == [next(each for each in scene.cluster.told if each.startswith(said))]
    (exhibit,) = shows_plan(scene.run).exhibits
    assert f"- {said}" in exhibit.rendered
    scene.wait = move(scene)
    assert scene.done == [("throttle", 3 * MB), ("list", ["a-0"]), ("start", [A])]
    assert (scene.wait.limits.moves, scene.wait.most) == (1, 1)
    scene.now = scene.later = look(ongoing=MOVING)
    assert [scene.looks() for _ in range(5)] == [""] * 5
    scene.files.keep_throttle(9 * MB)  # lets both end
    scene.wait = move(scene)
    assert scene.files.most_at_once(9 * MB) is None and scene.files.throttles.rate == 9 * MB
    assert scene.looks() == MORE


def test_a_brokers_own_rate_under_which_one_at_a_time_would_end_is_not_refused(scene: Follows) -> None:
    scene.now, scene.wanted = look(), replace(scene.wanted, throttle=9 * MB)
    scene.later = look(at=5.0, sizes={A: 15 * MB, B: 15 * MB})
    scene.throttles = Former({}, {3: {FOLLOWER_RATE: str(3 * MB)}}, {})
    scene.cluster.answers[read_throttles] = lambda *_, **__: scene.throttles
    plan_moves(scene.run, asks=scene.asks)
    assert scene.files.most_at_once(9 * MB) == 1 and "with more, broker 3: its own" in scene.said()[0]


def test_a_throttle_under_which_not_even_one_at_a_time_would_end_is_refused_with_both_rates(scene: Follows) -> None:
    scene.now, scene.wanted = look(), replace(scene.wanted, throttle=MB)
    scene.later = look(at=5.0, sizes={A: 15 * MB, B: 15 * MB})
    with pytest.raises(Refused, match="would never let it end") as refused:
        plan_moves(scene.run, asks=scene.asks)
    assert refused.value.way_out == (
        "give a throttle well above 4.0 MB/s, or none; above 2.0 MB/s fewer copies at once would end"
    )


def test_the_trigger_keeps_to_the_forms_number(scene: Follows, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.wanted = replace(scene.wanted, moves=1, follows=BOUNDS.within(1))
    wait = move_on(scene.run, asks=scene.asks)
    assert isinstance(wait, WhileMoving)
    trigger = ReassignmentTrigger.of("lab", wait)
    made = ReassignmentTrigger(**trigger.serialize()[1])
    assert (made.given["most"], made.given["limits"]) == (1, [5, 1, None])
    monkeypatch.setattr(ReassignmentTrigger, "hand", lambda _: scene.cluster)
    made.poll, made.awake = 0.001, 0.05
    vars(scene.cluster)["now"] = iter(range(10**9, 2 * 10**9, 30)).__next__
    assert asyncio.run(why_awake(made)) == "the claim is renewed"
    assert scene.files.pace is not None and scene.files.pace.moves == 1
