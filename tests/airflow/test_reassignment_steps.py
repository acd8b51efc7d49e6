"""What each task of a reassignment does wherever the cluster is on its way. What a task calls is recorded."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from in_run import Signed, run_in
from observations import SPEC, broker, observation
from placements import one_volume_each
from recording import RecordingCluster, run_on
from signed_run import PASSED, sign

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.log_dirs import LogDir
from kraft_runbook.cluster.modes import BrokerMode
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.evidence.course import course_of
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.gates.proof import Exhibit, make_proof
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.procedures.look_at_replicas import look_at_plan, look_at_replicas
from kraft_runbook.procedures.move_replicas import prefer_first_replicas, read_state, start_next_batch
from kraft_runbook.procedures.throttle_replication import list_moves, read_throttles, remove_throttles, set_rate, unlist
from kraft_runbook.reassignment.batches import Limits, next_batch
from kraft_runbook.reassignment.goals import DrainBrokers, Explicit, Restore, Topics
from kraft_runbook.reassignment.hours import hours_of
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook.reassignment.stages import MOVE, read_plan
from kraft_runbook.reassignment.throttles import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    RATES,
    UNREADABLE,
    Former,
    Leftover,
    throttled_lists,
)
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook.steps.reassignment.ending import not_done, prefer_leaders, verify_plan
from kraft_runbook.steps.reassignment.files import RunFiles, files_of
from kraft_runbook.steps.reassignment.judged_rate import require_an_end
from kraft_runbook.steps.reassignment.moving import move_on, rehearse_moves, save
from kraft_runbook.steps.reassignment.planning import plan_moves
from kraft_runbook.steps.reassignment.saved_by_runs import saved_by
from kraft_runbook.steps.reassignment.signed import require_signed
from kraft_runbook.steps.reassignment.throttling import (
    list_what_moves,
    put_throttles_back,
    set_throttle,
    throttle,
)
from kraft_runbook.steps.reassignment.waiting import WhileMoving
from kraft_runbook.steps.reassignment.wanted import Wanted, asks_for_goal
from kraft_runbook.steps.run import NothingToDo
from kraft_runbook_airflow.base.report import first_tasks_succeeded
from kraft_runbook_airflow.reassignment.moving import MoveReplicas
from kraft_runbook_airflow.reassignment.pictures import shows_plan_with_picture
from kraft_runbook_airflow.reassignment.trigger import ReassignmentTrigger

MB = 1_000_000
A, B = TopicPartition("a", 0), TopicPartition("a", 1)
NOTHING = Former({}, {}, {})
PLACEMENT = Placement(
    {1: "x", 2: "y", 3: "x"},
    {A: (1, 2), B: (1, 2)},
    sizes={A: 10 * MB, B: 10 * MB},
    directories=one_volume_each(dict.fromkeys((1, 2, 3), 10**12)),
)
PLAN = make_plan(DrainBrokers((1,)), PLACEMENT)


def look(*, at: float = 0.0, **changes: Any) -> ReplicasLook:
    placement = replace(PLACEMENT, **changes)
    seen = {p: PartitionSeen(r, r[0], r) for p, r in placement.present.items()}
    return ReplicasLook("id", placement, seen, {broker: {} for broker in placement.racks}, at)


THERE = look(present=dict(PLAN.target))
HALF = look(present={A: PLAN.target[A], B: (1, 2)})
MOVING = {A: Ongoing((*PLAN.target[A], 1), (3,), (1,))}


class Scene:
    """One run of one cluster; what is done to it is recorded."""

    def __init__(self) -> None:
        self.now = look()
        self.later: ReplicasLook | None = None
        self.done: list[Any] = []
        self.context = {
            "ti": SimpleNamespace(dag_id="reassign_partitions__lab", run_id="one", task_id="t"),
            "params": {},
        }
        self.throttles = NOTHING
        self.rates: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.wanted = Wanted(DrainBrokers((1,)), Topics(), (), 1, None, moves=20)
        self.left: tuple[Leftover, ...] = ()
        self.cluster = RecordingCluster(
            observation(Phase.ZOOKEEPER),
            answers={
                look_at_replicas: self.look,
                look_at_plan: self.look_at_plan,
                topic_ids: lambda topics: {each: self.ids[each] for each in topics if each in self.ids},
                read_throttles: lambda _, live=None: self.throttles if live is None else Former(self.rates, {}, {}),
                set_rate: self.set_rate,
                list_moves: lambda moves: self.done.append(("list", [str(each.partition) for each in moves])),
                unlist: lambda ended, _: self.done.append(("unlist", ended)),
                remove_throttles: self.put_back,
                start_next_batch: self.start,
                prefer_first_replicas: lambda *_: self.done.append("elected") or {},
            },
        )
        self.run = run_in(self.context, self.cluster, Signed)

    def look(self, sizes_of: Any = None, **_: Any) -> ReplicasLook:
        """``later``: what a look shows that asks for the sizes of a plan's partitions."""
        return self.later if self.later is not None and sizes_of else self.now

    def look_at_plan(self, plan: Any, *, known: Any = None, **_: Any) -> Any:
        now = replace(self.now, placement=replace(self.now.placement, topic_ids=self.ids))
        return now, read_plan(plan, now.placement, known=known)

    def start(self, plan: Any, now: ReplicasLook, limits: Any, *, among: Any) -> Any:
        batch = next_batch(plan, now.placement, limits)
        assert batch == among
        self.done.append(("start", [move.partition for move in batch]))
        return batch

    def set_rate(self, rate: int) -> None:
        self.rates = dict.fromkeys(RATES, str(rate))
        self.done.append(("throttle", rate))

    def put_back(self, ours: RunThrottles, former: Former) -> Any:
        self.done.append(("put back", ours.rates))
        return self.left

    def asks(self, _: Any) -> Wanted:
        return self.wanted

    def told(self) -> list[str]:
        return [told.what for _, told in of_kind(self.run.journal.records(), Moves)]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    made = Scene()
    files = files_of(made.run)
    files.store_plan(PLAN, PLACEMENT.present)
    files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
    return made


def move(scene: Scene) -> Any:
    return move_on(scene.run, asks=scene.asks)


def plan(scene: Scene) -> Any:
    return plan_moves(scene.run, asks=scene.asks)


def test_each_time_only_what_is_left_is_started_and_no_worker_waits(scene: Scene) -> None:
    for now, sent in ((look(), [A]), (HALF, [B])):
        scene.now = now
        with pytest.raises(TaskDeferred) as deferred:
            MoveReplicas(task_id="move", cluster="lab", asks=scene.asks).act(scene.context, scene.run)
        assert scene.done.pop() == ("start", sent)
        assert deferred.value.method_name == "resume"
    scene.now = THERE
    assert move(scene) == {"there": 2, "deleted_since": 0}
    assert not scene.done
    assert scene.told() == ["started", "started", "ended"]


def test_moves_of_which_none_is_taken_are_tried_again_later_and_not_on_record(scene: Scene) -> None:
    """Metadata still shows them, and Kafka does not know them any more: the wait would end at once, for ever."""
    scene.cluster.answers[start_next_batch] = lambda *_, **__: ()
    wait = move(scene)
    assert isinstance(wait, WhileMoving) and wait.rests == 30.0
    assert "started" not in scene.told() and "Nothing was taken of 1 moves, trying again" in scene.cluster.told


def test_what_is_left_is_kept_over_time_and_recorded_at_the_end(scene: Scene) -> None:
    """At each start of a batch, while data moves, and at the end."""
    move(scene)
    logs = {1: {A: 10 * MB}, 2: {A: 10 * MB}, 3: {A: 4 * MB}}
    scene.now = replace(look(ongoing=MOVING), logs=logs)
    wait = WhileMoving(files_of(scene.run), Limits(1, 1, None), say=0.0)
    assert wait.look(scene.cluster) == wait.look(scene.cluster) == ""
    scene.now = THERE
    move(scene)
    points = [(each.partitions, each.replicas, each.bytes_left) for each in files_of(scene.run).course]
    assert points == [(2, 2, 0), (2, 2, 6 * MB), (0, 0, 0)]
    *_, (_, ended) = of_kind(scene.run.journal.records(), Moves)
    assert ended.what == "ended"
    assert course_of(ended.course or ()) == files_of(scene.run).course


def test_the_dry_run_lists_the_moves_that_are_then_started_in_their_order(scene: Scene) -> None:
    would = RehearsedCluster(SPEC, lambda _: "", print)
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    rehearse_moves(run_in(scene.context, would), asks=scene.asks)
    for now in (look(), HALF):
        scene.now = now
        move(scene)
    assert would.acts == scene.cluster.acts
    assert [str(each) for each in would.acts] == ["move a-0\n[1, 2] -> [2, 3]", "move a-1\n[1, 2] -> [3, 2]"]


def test_a_throttle_is_set_once_and_anew_after_it_was_put_back_or_changed(scene: Scene) -> None:
    scene.wanted = replace(scene.wanted, throttle=5 * MB)
    files = files_of(scene.run)

    def moved() -> list[Any]:
        scene.done.clear()
        move(scene)
        return [what for what in scene.done if what[0] == "throttle"]

    assert moved() == [("throttle", 5 * MB)]
    assert moved() == []
    (files.directory / "throttle_mb").write_text("7\n")
    assert moved() == [("throttle", 7 * MB)]
    files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
    assert put_throttles_back(scene.run) == {"left": []}
    assert scene.done[-1] == ("put back", (5 * MB, 7 * MB)), "each rate that was set, not the last alone"
    assert moved() == [("throttle", 7 * MB)]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("3", r"would never let it end: .*broker 3: 2,000,000 bytes/s are produced"),
        ("fast", "throttle_mb holds 'fast'"),
        ("0", "throttle_mb holds '0'"),
        ("inf", "throttle_mb holds 'inf'"),
    ],
)
def test_a_throttle_that_cannot_be_had_while_data_moves_leaves_the_one_in_force_and_says_why(
    scene: Scene, caplog: pytest.LogCaptureFixture, written: str, why: str
) -> None:
    later = look(at=5.0, sizes={A: 20 * MB, B: 10 * MB})  # 2 MB/s are produced
    scene.later = later
    scene.wanted = replace(scene.wanted, throttle=5 * MB)
    files = files_of(scene.run)
    files.will_throttle(RunThrottles((5 * MB,)))
    (files.directory / "throttle_mb").write_text(written)
    move(scene)
    said = caplog.text
    assert "The throttle is not changed, it stays 5 MB/s a broker" in said
    assert re.search(why, said)
    assert [what[0] for what in scene.done] == ["list", "start"]
    assert (files.directory / "throttle_mb").read_text().strip() == "5.0"
    assert files.wanted_throttle(None) == 5 * MB, "the wait does not end for it again"


def test_where_none_is_in_force_a_throttle_that_cannot_be_had_leaves_the_runs_own(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Throttles were put back and the task was cleared: data must not move without the one that was asked for."""
    scene.wanted = replace(scene.wanted, throttle=5 * MB)
    (files_of(scene.run).directory / "throttle_mb").write_text("fast")
    move(scene)
    assert "it stays 5 MB/s a broker" in caplog.text
    assert scene.done[0] == ("throttle", 5 * MB)


def test_a_throttle_that_lets_it_end_is_taken_while_data_moves(scene: Scene) -> None:
    scene.later = look(at=5.0, sizes={A: 20 * MB, B: 10 * MB})
    files = files_of(scene.run)
    files.will_throttle(RunThrottles.of(PLAN.moves, 5 * MB))
    (files.directory / "throttle_mb").write_text("4.1")
    move(scene)
    assert scene.done[0] == ("throttle", 4_100_000)


def test_a_run_that_set_no_throttle_takes_none_away(scene: Scene) -> None:
    assert put_throttles_back(scene.run) == {"left": []}
    assert not scene.done


def test_a_throttle_that_is_left_fails_the_task_by_its_name_and_is_tried_again(scene: Scene) -> None:
    files = files_of(scene.run)
    files.will_throttle(RunThrottles.of(PLAN.moves, MB))
    files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
    scene.left = (Leftover("the brokers' default", LEADER_RATE, str(MB)),)
    with pytest.raises(StepFailed, match=f"1 throttles are left: the brokers' default: {LEADER_RATE}={MB}"):
        put_throttles_back(scene.run)
    scene.left = ()
    assert put_throttles_back(scene.run) == {"left": []}
    assert scene.done == [("put back", (MB,))] * 2


@pytest.fixture
def put_back(scene: Scene) -> list[RunThrottles]:
    """What was put back, whole."""
    seen: list[RunThrottles] = []
    scene.cluster.answers[remove_throttles] = lambda ours, former: seen.append(ours) or scene.left
    return seen


def test_a_plan_that_was_made_anew_while_throttled_leaves_no_list_of_the_former_one(
    scene: Scene, put_back: list[RunThrottles]
) -> None:
    """'plan' was cleared while data moved, so that nothing was put back in between."""
    files = files_of(scene.run)
    files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
    throttle(scene.run, MB)
    list_what_moves(scene.run, PLAN.moves)
    other = replace(PLACEMENT, present={TopicPartition("b", 0): (1, 2)})
    anew = make_plan(DrainBrokers((1,)), other)
    files.store_plan(anew, other.present)
    throttle(scene.run, MB)
    files.will_throttle(RunThrottles.of(anew.moves, MB))
    put_throttles_back(scene.run)
    assert set(put_back[0].lists) == {"a", "b"}


def test_the_throttle_counts_for_what_moves_now_and_what_starts_next_alone(scene: Scene) -> None:
    files = files_of(scene.run)
    files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
    scene.wanted = replace(scene.wanted, throttle=5 * MB)
    move(scene)
    assert scene.done == [("throttle", 5 * MB), ("list", ["a-0"]), ("start", [A])]
    assert files.throttles.partitions == {A}, "written down before it was set"
    scene.done.clear()
    scene.now = HALF
    move(scene)
    (what, ended), listed, started = scene.done  # first off, so that no list has what ended beside what begins
    assert (listed, started) == (("list", ["a-1"]), ("start", [B]))
    assert (what, ended) == ("unlist", {"a": {LEADER_LIST: {"0:1", "0:2"}, FOLLOWER_LIST: {"0:3"}}})
    assert files.throttles.partitions == {B}
    scene.done.clear()
    scene.now = look(present={A: PLAN.target[A], B: PLACEMENT.present[B]}, ongoing={B: Ongoing((3, 2, 1), (3,), (1,))})
    move(scene)
    assert scene.done[0] == ("list", ["a-1"]), "what moves on stays listed, also after a kill"
    mine = {"a": {LEADER_LIST: {"1:1", "1:2"}, FOLLOWER_LIST: {"1:3"}}}
    for in_sync, done in (((1, 2, 3), [("unlist", mine), ("list", [])]), ((1, 2), [("list", ["a-1"])])):
        scene.done.clear()
        scene.now = replace(scene.now, placement=replace(scene.now.placement, in_sync={B: in_sync}))
        move(scene)
        assert scene.done == done, "a whole copy is none to slow down"


def test_what_has_no_room_in_a_list_beside_what_others_have_there_waits(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """A list that is longer than a broker can show can never be read again."""
    files_of(scene.run).saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
    scene.wanted = replace(scene.wanted, throttle=5 * MB, partitions=2)
    others = ",".join(f"{number}:9" for number in range(1000, 5571))
    assert len(others) + 1 == 31_997, "a copy's place of 4 bytes is left to none"
    scene.throttles, scene.rates = Former({}, {}, {"a": {FOLLOWER_LIST: others}}), {}
    scene.cluster.answers[read_throttles] = lambda topics, live=None: replace(
        scene.throttles, lists={t: scene.throttles.lists[t] for t in topics if t in scene.throttles.lists}
    )
    with pytest.raises(StepFailed, match="nothing else is left than moves without room: topic a: others have filled"):
        move(scene)
    assert scene.done == [("throttle", 5 * MB), ("list", [])]
    scene.throttles = Former({}, {}, {"a": {LEADER_LIST: UNREADABLE}})
    with pytest.raises(StepFailed, match="nothing else is left than moves without room: topic a: others have filled"):
        move(scene)
    scene.throttles = Former({}, {}, {"a": {FOLLOWER_LIST: others[1:]}})
    wait = move(scene)
    assert scene.done[-2:] == [("list", ["a-0"]), ("start", [A])]
    assert wait.rests == 0 and wait.filled == ("a",)
    scene.now = look(ongoing=MOVING)
    given = ReassignmentTrigger.of("lab", replace(wait, limits=Limits(2, 2, None))).serialize()[1]
    looks = ReassignmentTrigger(**given).looks()
    assert looks(scene.cluster) == "", "there is room for the next batch, but for what others have listed"
    assert "topic a: others have filled its lists of throttled replicas: what would start there waits" in caplog.text


def test_a_throttle_that_another_run_took_away_is_set_again_and_a_person_s_own_stays(scene: Scene) -> None:
    scene.wanted = replace(scene.wanted, throttle=5 * MB)
    move(scene)
    for rates, again in (({}, True), (dict.fromkeys(RATES, "7"), False)):
        scene.done.clear()
        scene.rates = rates
        move(scene)
        assert (("throttle", 5 * MB) in scene.done) is again, rates


def test_the_wait_ends_when_half_of_what_is_throttled_has_ended(scene: Scene) -> None:
    both = {A: Ongoing((*PLAN.target[A], 1), (3,), (1,)), B: Ongoing((3, 2, 1), (3,), (1,))}
    files_of(scene.run).will_throttle(RunThrottles.of(PLAN.moves, MB))
    scene.now = look(ongoing=both)
    assert awakened(scene, throttled=MB) == "the claim is renewed"
    scene.now = look(present={A: PLAN.target[A], B: (3, 2, 1)}, ongoing={B: both[B]})
    assert awakened(scene, throttled=MB) == "half of what is throttled has ended"
    assert awakened(scene) == "the claim is renewed", "without a throttle nothing is to be taken off"
    scene.now = look(ongoing=both, in_sync={A: (1, 3), B: (1, 2)})
    assert awakened(scene, throttled=MB) == "half of what is throttled has ended", "its copy is whole"


def test_a_plan_that_copies_nothing_sets_no_throttle(scene: Scene) -> None:
    order = ReassignmentPlan("order", dict(PLACEMENT.present), {A: (2, 1)}, copies=0, bound=0)
    files_of(scene.run).store_plan(order, PLACEMENT.present)
    scene.wanted = replace(scene.wanted, throttle=MB)
    set_throttle(scene.run, asks=scene.asks)
    assert scene.done == [] and "Nothing is copied: no throttle is set" in scene.cluster.told


def test_a_throttle_that_somebody_else_set_meanwhile_is_named_and_fails_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    files = files_of(scene.run)
    files.will_throttle(RunThrottles.of(PLAN.moves, MB))
    scene.left = (Leftover("broker 3", LEADER_RATE, "5"),)
    assert put_throttles_back(scene.run) == {"left": []}
    assert f"that this run did not set: broker 3: {LEADER_RATE}=5" in caplog.text
    assert files.throttles.rate is None


def test_a_run_that_goes_on_later_gives_back_the_throttle_that_it_found_then(scene: Scene) -> None:
    """Its own came back, somebody set another, and the run was cleared: that one must not be lost."""
    scene.wanted = replace(scene.wanted, throttle=MB)
    files = files_of(scene.run)
    throttle(scene.run, MB)
    put_throttles_back(scene.run)
    scene.throttles = Former({LEADER_RATE: "9"}, {}, {})
    throttle(scene.run, MB)
    assert read_state(files.saved) == SavedState("id", PLACEMENT.present, scene.throttles)
    scene.throttles = Former({LEADER_RATE: str(MB)}, {}, {})
    throttle(scene.run, 2 * MB)
    assert read_state(files.saved).throttles.rates == {LEADER_RATE: "9"}, "what is its own, it does not save"


def other_run(scene: Scene, rate: int, former: Former) -> RunFiles:
    """A run that was killed with its throttle set: what it found, what it set, and of what."""
    files = RunFiles(files_of(scene.run).directory.with_name("reassign_partitions__lab__other"))
    files.store_plan(PLAN, PLACEMENT.present)
    files.saved.write_text(SavedState("id", PLACEMENT.present, former).to_json())
    files.will_throttle(RunThrottles.of(PLAN.moves, rate))
    return files


def set_by(moves: Any, rate: int) -> Former:
    """What a look shows while a run has these set."""
    lists = {topic: {k: ",".join(sorted(e)) for k, e in keys.items()} for topic, keys in throttled_lists(moves).items()}
    return Former({LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}, {}, lists)


@pytest.mark.parametrize("before", [NOTHING, Former({LEADER_RATE: "9", FOLLOWER_RATE: "8"}, {}, {"a": {}})])
def test_what_another_run_has_set_is_never_given_back(scene: Scene, before: Former) -> None:
    """It was killed; this one finds its rate and lists, and saves what was there before both."""
    other_run(scene, 3 * MB, before)
    scene.throttles = set_by(PLAN.moves, 3 * MB)
    throttle(scene.run, MB)
    saved = read_state(files_of(scene.run).saved).throttles
    assert (saved.rates, saved.lists) == (before.rates, {})
    scene.throttles = set_by(PLAN.moves, MB)
    scene.now = THERE
    with_former: list[Former] = []
    scene.cluster.answers[remove_throttles] = lambda _, former: with_former.append(former) or ()
    put_throttles_back(scene.run)
    assert with_former == [saved]


def test_while_another_run_still_moves_its_rate_is_what_is_put_back(scene: Scene) -> None:
    throttle(scene.run, MB)
    files_of(scene.run).throttles_list(RunThrottles())
    other = other_run(scene, 3 * MB, NOTHING)
    with_former: list[Former] = []
    scene.cluster.answers[remove_throttles] = lambda _, former: with_former.append(former) or ()
    scene.now = look(ongoing=MOVING)
    assert put_throttles_back(scene.run) == {"left": []}
    assert with_former[-1].rates == {LEADER_RATE: str(3 * MB), FOLLOWER_RATE: str(3 * MB)}
    other.throttles_are_back()
    throttle(scene.run, MB)
    put_throttles_back(scene.run)
    assert with_former[-1].rates == {}


def test_a_move_that_has_ended_speaks_against_no_rate(scene: Scene) -> None:
    """What is produced into it is not throttled any more."""
    there = {move.partition: move.target for move in PLAN.moves}
    scene.later = look(at=5.0, sizes={A: 20 * MB, B: 10 * MB})
    wanted = replace(scene.wanted, throttle=3 * MB)
    with pytest.raises(Refused, match="would never let it end"):
        require_an_end(scene.run, PLAN, scene.now, 3 * MB, wanted)
    moved = replace(scene.now, placement=replace(scene.now.placement, present={**PLACEMENT.present, **there}))
    require_an_end(scene.run, PLAN, moved, 3 * MB, wanted)


def test_a_rate_that_was_written_before_anything_moves_is_judged_too(scene: Scene) -> None:
    scene.later = look(at=5.0, sizes={A: 20 * MB, B: 10 * MB})
    (files_of(scene.run).directory / "throttle_mb").write_text("3")
    scene.wanted = replace(scene.wanted, throttle=9 * MB)
    with pytest.raises(Refused, match="would never let it end"):
        set_throttle(scene.run, asks=scene.asks)
    assert not scene.done


@pytest.mark.parametrize("both_move", [False, True])
def test_while_data_moves_a_rate_counts_for_all_that_is_copied_and_lets_fewer_begin(
    scene: Scene, both_move: bool
) -> None:
    """At 3 MB/s one copy would end, and two would not: no copy that has begun is taken back."""
    moving = {A: MOVING[A], B: Ongoing((*PLAN.target[B], 1), (3,), (1,))}
    scene.now = look(ongoing=moving if both_move else MOVING)
    scene.later = look(at=5.0, sizes={A: 15 * MB, B: 15 * MB}, ongoing=scene.now.placement.ongoing)
    files, scene.wanted = files_of(scene.run), replace(scene.wanted, throttle=5 * MB)
    files.will_throttle(RunThrottles((5 * MB,)))
    files.keep_throttle(3 * MB)
    wait = move(scene)
    assert files.throttles.rate == (5 * MB if both_move else 3 * MB)
    assert scene.told()[1:] == (["throttle refused"] if both_move else ["moves at once", "throttled"])
    assert ("start", [B]) not in scene.done and wait.limits.moves == (20 if both_move else 1)


def test_the_dry_run_lists_no_more_at_once_than_the_throttle_lets_end(scene: Scene) -> None:
    scene.wanted = replace(scene.wanted, throttle=3 * MB, partitions=5)
    scene.later = look(at=5.0, sizes={A: 15 * MB, B: 15 * MB})
    plan(scene)
    scene.later, seen = None, list[int]()
    would = RehearsedCluster(SPEC, lambda _: "", print)
    does = would.do
    vars(would).update(ask=scene.cluster.ask, observe=scene.cluster.observe)
    vars(would)["do"] = lambda *given, would: seen.append(len(would)) or does(*given, would=would)
    rehearse_moves(run_in(scene.context, would), asks=scene.asks)
    assert seen == [1, 1]


@pytest.mark.parametrize("does", [save, set_throttle, move_on, prefer_leaders])
def test_no_step_acts_without_the_signature(scene: Scene, does: Any) -> None:
    """The tasks before it were marked successful by hand."""
    given = {"asks": scene.asks} if does in (set_throttle, move_on) else {}
    with pytest.raises(Refused, match="no proof is on record for gate move"):
        does(run_in(scene.context, scene.cluster), **given)
    assert not scene.done


def test_throttles_come_back_also_where_the_first_task_left_no_record(scene: Scene) -> None:
    scene.context["dag"] = SimpleNamespace(tasks=[SimpleNamespace(task_id="claim", upstream_task_ids=set())])
    for state, follows in (("failed", False), ("success", True)):
        scene.context["ti"].get_task_states = lambda *_, now=state, **__: {"one": {"claim": now}}
        assert first_tasks_succeeded(scene.context) is follows


def test_a_throttle_stays_while_what_it_slows_down_still_moves(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """The run failed; without the throttle its copies would take all that the brokers have."""
    files = files_of(scene.run)
    files.will_throttle(RunThrottles.of(PLAN.moves, MB))
    files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
    scene.now = look(ongoing=MOVING)
    assert put_throttles_back(scene.run) == {"left": ["a-0"]}
    assert not scene.done and files.throttles.rate == MB
    assert "1 partitions still move, and their throttle stays: a-0" in caplog.text
    assert "clear the failed task" in caplog.text and "cancel_reassignments__lab" in caplog.text
    scene.now = replace(THERE, hidden=MOVING)
    assert put_throttles_back(scene.run) == {"left": ["a-0"]}, "also where its topic is not shown any more"
    scene.now = THERE
    assert put_throttles_back(scene.run) == {"left": []}
    assert scene.done == [("put back", (MB,))]


def test_the_plan_is_kept_with_its_preview_and_picture_for_the_gate(scene: Scene) -> None:
    found = plan(scene)
    assert (found["digest"], found["copies"], found["bound"]) == (PLAN.digest, 2, 2)
    (exhibit,) = shows_plan_with_picture(scene.run).exhibits
    assert exhibit.digest == PLAN.digest and "2 partitions change, 20.0 MB are copied" in exhibit.rendered
    drawn = files_of(scene.run).picture(PLAN.digest).read_text()
    assert drawn.startswith("<svg") and f"/{PLAN.digest}.svg?narrow=true)]" in exhibit.rendered
    ((_, planned),) = of_kind(scene.run.journal.records(), Moves)
    assert planned.picture == drawn and "2 partitions change, 20.0 MB are copied" in planned.told
    assert "New batches start" not in exhibit.rendered
    scene.wanted = replace(scene.wanted, hours=hours_of("22:00-06:00"))
    plan(scene)
    (exhibit,) = shows_plan_with_picture(scene.run).exhibits
    assert "New batches start within **22:00-06:00 UTC** alone" in exhibit.rendered


def test_a_gate_never_shows_a_plan_in_the_words_of_another(scene: Scene) -> None:
    """Killed between the plan and its preview, and the task marked successful by hand."""
    plan(scene)
    other = make_plan(DrainBrokers((2,)), PLACEMENT)
    files_of(scene.run).store_plan(other, PLACEMENT.present)
    with pytest.raises(Refused, match="the preview of this plan can't be read"):
        shows_plan_with_picture(scene.run)


def test_what_was_saved_of_another_cluster_is_not_restored_here(scene: Scene) -> None:
    scene.wanted = replace(scene.wanted, cluster_id="another")
    with pytest.raises(Refused, match="saved of cluster another, and this is id"):
        plan(scene)


def test_a_restore_of_patterns_that_choose_nothing_is_no_success(scene: Scene) -> None:
    scene.wanted = replace(scene.wanted, goal=Restore({A: (3, 2)}), topics=Topics(("ordres",)))
    with pytest.raises(Refused, match="no partition of the cluster is chosen"):
        plan(scene)


def test_where_something_still_moves_the_cluster_is_not_as_wanted(scene: Scene) -> None:
    scene.wanted = replace(scene.wanted, goal=Explicit({A: (1, 2, 3)}))
    scene.now = look(present={A: (1, 2, 3), B: (1, 2)}, ongoing={A: Ongoing((1, 2, 3), (3,), ())})
    with pytest.raises(Refused, match="1 partitions still move: a-0"):
        plan(scene)


def test_nothing_is_planned_while_anything_moves(scene: Scene) -> None:
    """It would be planned from where replicas are, and be wrong once they are where they go: also of other topics."""
    other = TopicPartition("b", 0)
    scene.wanted = replace(scene.wanted, topics=Topics(("a",)))
    moved = look(present={**PLACEMENT.present, other: (1, 2, 3)}, ongoing={other: Ongoing((3, 2, 1), (3,), (1,))})
    for scene.now in (moved, replace(look(), hidden={other: MOVING[A]})):
        with pytest.raises(Refused, match="1 partitions still move: b-0"):
            plan(scene)
    scene.now = look()
    assert plan(scene)["partitions"] == 2


def test_where_nothing_is_to_move_the_run_ends_there(scene: Scene) -> None:
    scene.now = THERE
    with pytest.raises(NothingToDo, match="the cluster is as wanted"):
        plan(scene)


def test_a_throttle_below_what_is_produced_is_refused_with_the_least_that_would_do(scene: Scene) -> None:
    later = look(at=5.0, sizes={A: 20 * MB, B: 10 * MB})
    scene.later = later
    scene.wanted = replace(scene.wanted, throttle=3 * MB)
    with pytest.raises(Refused, match="broker 3: 2,000,000 bytes/s are produced") as refused:
        plan(scene)
    assert "well above 4.0 MB/s" in refused.value.way_out  # a follower in sync and a copy read 2 MB/s each
    scene.wanted = replace(scene.wanted, throttle=5 * MB)
    assert plan(scene)["partitions"] == 2


def sign_plan(scene: Scene, *without: str, age: timedelta = timedelta(), plan: ReassignmentPlan = PLAN) -> None:
    """Leave the evidence of a gate that has shown this plan so long ago."""
    found = observation(Phase.ZOOKEEPER)
    proof = make_proof(
        MOVE,
        found,
        SPEC,
        checks=(PASSED,),
        parity=None,
        rollback=REASSIGNMENT.way_back(found, SPEC),
        made_at=datetime.now(UTC) - age,
        exhibits=(Exhibit("plan", plan.digest, ""),),
    )
    sign(scene.context["ti"], MOVE, proof, *without)


def dies(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


OLD = timedelta(seconds=SPEC.approvals.valid_for + 60)


class TestRequireSigned:
    """What stands between a task and the cluster. The evidence is a real one; the cluster is not."""

    @pytest.fixture
    def asked(self, scene: Scene) -> Any:
        def go(
            *without: str,
            now: ReplicasLook | None = None,
            seen: ClusterObservation | None = None,
            age: timedelta = timedelta(),
            plan: ReassignmentPlan = PLAN,
            begun: bool = True,
        ) -> None:
            scene.now = now or look()
            scene.cluster.shown[:] = [seen or observation(Phase.ZOOKEEPER)]
            sign_plan(scene, *without, age=age, plan=plan)
            if begun:
                scene.run.signatures.begins(MOVE)
            require_signed(run_in(scene.context, scene.cluster))

        return go

    def test_the_plan_that_was_signed_may_be_carried_out(self, asked: Any) -> None:
        asked()

    def test_once_its_own_moves_are_under_way_the_proofs_age_stops_nobody(self, asked: Any) -> None:
        asked(now=HALF, age=OLD)
        for otherwise in ({}, {"now": HALF, "begun": False}):
            with pytest.raises(Refused, match=r"the proof is .* s old"):
                asked(age=OLD, **otherwise)

    @pytest.mark.parametrize("why", ["hours", "pause"])
    def test_while_a_run_waits_until_it_may_start_the_proofs_age_stops_nobody(self, scene: Scene, why: str) -> None:
        """Signed at ten for ten at night, or paused before its first batch."""
        files = files_of(scene.run)
        sign_plan(scene, age=OLD)
        signed = run_in(scene.context, scene.cluster)
        if why == "hours":
            scene.wanted = replace(scene.wanted, hours=hours_of("22:00-06:00"))
        else:
            files.pause(scene.cluster.now() + 3 * 3600)
        with pytest.raises(Refused, match=r"the proof is .* s old"):
            move_on(signed, asks=scene.asks)
        move_on(scene.run, asks=scene.asks)
        assert isinstance(move_on(signed, asks=scene.asks), WhileMoving)
        assert not [each for each in scene.done if each[0] == "start"]
        if why == "hours":
            vars(scene.cluster)["paused"] = 12 * 3600
        else:
            files.pause(None)
        answers = scene.cluster.answers
        start, answers[start_next_batch] = answers[start_next_batch], dies
        with pytest.raises(KeyboardInterrupt):
            move_on(signed, asks=scene.asks)
        answers[start_next_batch] = start
        move_on(signed, asks=scene.asks)
        assert [each for each in scene.done if each[0] == "start"], "killed right before its first batch, it goes on"
        with pytest.raises(Refused, match=r"the proof is .* s old"):
            move_on(signed, asks=scene.asks)  # nothing of it was begun, and it waits for nobody
        sign_plan(scene, age=OLD)
        files.rest("it is not within its hours")
        with pytest.raises(Refused, match=r"the proof is .* s old"):
            move_on(signed, asks=scene.asks)  # what was proven again has not begun

    def test_another_plan_was_signed(self, asked: Any) -> None:
        with pytest.raises(Refused, match="Nobody has signed it"):
            asked(plan=make_plan(DrainBrokers((2,)), PLACEMENT))

    def test_it_was_not_confirmed(self, asked: Any) -> None:
        with pytest.raises(Refused, match="not confirmed on the proof that was signed"):
            asked("confirm")

    def test_the_cluster_is_another_than_was_signed_for(self, asked: Any) -> None:
        with pytest.raises(
            Refused, match=r"does not allow this step: the cluster changed since the proof: brokers .* 9"
        ):
            asked(seen=replace(observation(Phase.ZOOKEEPER), undeclared_brokers=frozenset({9})))

    def test_a_broker_that_went_down_and_takes_no_copy_stops_nothing(self, asked: Any) -> None:
        asked(now=HALF, seen=broker(2, running=False)(observation(Phase.ZOOKEEPER)))

    def test_a_look_that_proves_no_phase_is_not_seen_and_not_refused(self, asked: Any) -> None:
        with pytest.raises(Unreachable, match=r"the cluster's phase is UNKNOWN: .*broker 2"):
            asked(seen=broker(2, mode=BrokerMode.KRAFT)(observation(Phase.ZOOKEEPER)))

    def test_somebody_else_moved_what_the_plan_names(self, asked: Any) -> None:
        moved = look(ongoing={A: Ongoing((3, 1, 2), (3,), (2,))})
        with pytest.raises(
            Refused, match=r"not as the plan found it: .* 1 moved elsewhere by somebody: a-0"
        ) as refused:
            asked(now=moved)
        assert "planned anew and signed for" in refused.value.way_out

    def test_a_broker_that_is_to_take_copies_was_lost(self, asked: Any) -> None:
        without = {broker: rack for broker, rack in PLACEMENT.racks.items() if broker != 3}
        with pytest.raises(Refused, match="broker 3 is to take copies and does not run") as refused:
            asked(now=look(racks=without))
        assert "start it, then clear this task" in refused.value.way_out
        assert "cancel_reassignments__lab" in refused.value.way_out

    def test_what_moves_must_end_before_the_rest_is_planned_anew(self, asked: Any) -> None:
        changed = look(present={A: (2, 4), B: (1, 2)}, ongoing={B: MOVING[A]})
        with pytest.raises(Refused, match=r"1 changed by somebody: a-0") as refused:
            asked(now=changed)
        assert refused.value.way_out.startswith("let what moves end, or trigger cancel_reassignments__lab; then clear")

    def test_a_deleted_topic_asks_for_no_new_signature(self, asked: Any) -> None:
        asked(now=look(present={B: (1, 2)}))


def waits_of(scene: Scene, throttled: int | None = None, being_deleted: Collection[str] = ()) -> ReassignmentTrigger:
    """The wait of the run's files, in a hurry."""
    waits = ReassignmentTrigger.of("lab", WhileMoving(files_of(scene.run), Limits(1, 1), throttled, being_deleted))
    waits.hand, waits.poll, waits.awake = (lambda: scene.cluster), 0.001, 0.05  # type: ignore[method-assign]
    return waits


def awakened(scene: Scene, **given: Any) -> str:
    waits = waits_of(scene, given.get("throttled"), given.get("being_deleted", ()))
    path, kwargs = waits.serialize()
    assert path.endswith("reassignment.trigger.ReassignmentTrigger") and ReassignmentTrigger(**kwargs)
    return asyncio.run(why_awake(waits))


def test_the_wait_ends_when_there_is_something_to_do(scene: Scene) -> None:
    for now, why in (
        (look(), "room for the next batch"),
        (look(ongoing=MOVING), "the claim is renewed"),  # one move at once, and it is under way
        (THERE, "the plan stands as planned"),
        (look(ongoing={A: Ongoing((3, 1, 2), (3,), (2,))}), "the plan stands unknown"),
    ):
        scene.now = now
        assert why in awakened(scene)
    scene.now = look(racks={1: "x", 2: "y"})
    assert "the claim is renewed" in awakened(scene), "its copies wait for the lost broker, and nothing else is left"
    scene.now = look(present={A: PLAN.target[A], B: (1, 2)})
    assert "the plan stands as planned" in awakened(scene, being_deleted=["a"])
    scene.now = look(ongoing=MOVING)
    (files_of(scene.run).directory / "throttle_mb").write_text("3")
    assert "throttle is to change" in awakened(scene, throttled=MB)
    (files_of(scene.run).directory / "throttle_mb").write_text("fast")
    assert "throttle is to change" in awakened(scene, throttled=MB)


def test_what_can_go_on_beside_a_lost_broker_wakes_the_task_and_what_waits_for_it_is_told(scene: Scene) -> None:
    other = TopicPartition("b", 0)
    both = ReassignmentPlan("two", {A: (1, 2), other: (1, 2)}, {A: (3, 2), other: (4, 2)}, copies=2, bound=2)
    files_of(scene.run).store_plan(both, both.present)
    moving = {other: Ongoing((4, 2, 1), (4,), (1,))}
    two_left = {1: "x", 2: "y", 4: "x"}
    scene.now = look(racks=two_left, present=both.present)
    assert awakened(scene) == "there is room for the next batch"
    for what in ("planned", "started"):
        scene.run.journal.record(Moves(what=what, partitions=1))
    move(scene)
    assert scene.done == [("start", [other])]
    scene.now = look(racks=two_left, present=both.present, ongoing=moving)
    assert awakened(scene) == "the claim is renewed"
    warned: list[str] = []
    wait = WhileMoving(files_of(scene.run), Limits(1, 1, None), say=0.0, warn=warned.append)
    assert wait.look(scene.cluster) == wait.look(scene.cluster) == ""
    assert "broker 3 is to take copies and does not run: their copies wait, all else goes on" in warned


def test_a_gap_that_grows_while_data_moves_is_said(scene: Scene) -> None:
    grown = 0
    told: list[str] = []

    def looked(*_: Any, **__: Any) -> Any:
        nonlocal grown
        grown += MB
        logs = {broker: {A: grown, B: 0} for broker in (1, 2)} | {3: {A: 0}}
        now = replace(look(ongoing=MOVING, at=grown / MB) if grown < 8 * MB else THERE, logs=logs)
        return now, read_plan(PLAN, now.placement)

    scene.cluster.answers[look_at_plan] = looked
    for throttled, what in (
        (MB, "trigger change_pace__lab with 2.7 MB/s or more, in place of 1.0 MB/s"),
        (None, "read the brokers' logs"),
    ):
        grown = 0
        told.clear()
        wait = WhileMoving(files_of(scene.run), Limits(1, 1, None), throttled, say=0.0, warn=told.append)
        while not (why := wait.look(scene.cluster)):
            pass
        assert "as planned" in why
        grew = [each for each in told if "grew" in each]
        assert grew[0] == (f"The rest to copy grew 3 times in a row, to 5.0 MB: more is produced than copied; {what}")


def test_the_rate_that_is_offered_is_above_what_followers_in_sync_read_too(scene: Scene) -> None:
    """2 MB/s are produced, and two in sync and the copy read them: the gap grows by 2 MB/s, and 6 MB/s must pass."""
    seconds = 0
    told: list[str] = []

    def looked(*_: Any, **__: Any) -> Any:
        nonlocal seconds
        seconds += 1
        there = 10 * MB + seconds * 2 * MB
        now = replace(
            look(ongoing=MOVING, at=seconds, sizes={A: there, B: 0}),
            logs={broker: {A: there} for broker in (1, 2, 4)} | {3: {A: 0}},
            seen={A: PartitionSeen((1, 2, 4, 3), 1, (1, 2, 4))},
        )
        return now, read_plan(PLAN, now.placement)

    scene.cluster.answers[look_at_plan] = looked
    wait = WhileMoving(files_of(scene.run), Limits(1, 1, None), MB, say=0.0, warn=told.append)
    while not (grew := [each for each in told if "grew" in each]):
        assert not wait.look(scene.cluster)
    assert "trigger change_pace__lab with 8.6 MB/s or more, in place of 1.0 MB/s" in grew[0]


async def why_awake(waits: ReassignmentTrigger) -> str:
    async for event in waits.run():
        return str(event.payload["why"])
    raise AssertionError("no event")


def verified(scene: Scene) -> Any:
    return verify_plan(scene.run, asks=scene.asks)


def test_what_was_deleted_since_is_no_deviation_and_what_was_added_is_named(scene: Scene) -> None:
    added = TopicPartition("a", 7)
    scene.now = look(present={B: PLAN.target[B], added: (2, 3)})
    assert verified(scene) == {"partitions": 1, "added_since": 1}
    said = str(scene.cluster.told)
    assert "1 deleted since: a-0" in said and "1 new since, and not in the plan: a-7" in said


def test_what_moves_and_is_not_shown_is_no_end_and_no_deletion(scene: Scene) -> None:
    scene.run.journal.record(Moves(what="planned", partitions=2))
    scene.now = replace(look(present={B: PLAN.target[B]}), hidden=MOVING)
    with pytest.raises(Unreachable, match=r"1 partitions move of topics that .* may not describe: a-0"):
        verified(scene)
    (undone,) = not_done(scene.run)
    assert undone.startswith("1 partitions move of topics")


def test_a_broker_is_drained_only_when_nothing_that_came_since_lies_on_it(scene: Scene) -> None:
    scene.now = look(present={**PLAN.target, TopicPartition("new", 0): (1, 2)})
    with pytest.raises(StepFailed, match="1 partitions that came since lie on a broker that was to be drained: new-0"):
        verified(scene)
    scene.wanted = replace(scene.wanted, topics=Topics(("a",)))
    assert verified(scene) == {"partitions": 2, "added_since": 1}, "the topics that were chosen are drained"


def test_a_drained_broker_says_itself_that_it_holds_nothing(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """Metadata hides topics that this tool's user may not describe."""
    hidden, stray = TopicPartition("secret", 0), A
    logs = {1: {hidden: 5, stray: 7}, 2: {A: 7, B: 7}}
    scene.now = replace(THERE, logs=logs)
    with pytest.raises(StepFailed, match="holds 1 partitions that Metadata does not show: secret-0") as failed:
        verified(scene)
    assert "Describe on the topics" in failed.value.way_out
    assert "1 copies that are no replicas any more still lie on a drained broker: a-0" in caplog.text
    scene.wanted = replace(scene.wanted, topics=Topics(("a",)))
    assert verified(scene)["partitions"] == 2, "the topics that were chosen are drained"
    caplog.clear()
    failed_disk = {1: (LogDir("/d1", None, None, "error 56"), LogDir("/d2", 1, 1))}
    scene.now = look(present=dict(PLAN.target), directories=failed_disk)
    assert verified(scene)["partitions"] == 2
    assert "Broker 1 can't read /d1 (error 56): what lies there is not known" in caplog.text


def test_a_drained_broker_that_runs_and_does_not_say_what_it_holds_is_not_drained(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    silent = replace(THERE, logs={2: {A: 7}}, unread={1: "broker 1 did not answer in 30 s"})
    scene.now = silent
    with pytest.raises(StepFailed, match="that it is drained is not proven: broker 1 did not answer in 30 s"):
        verified(scene)
    scene.now = replace(silent, placement=replace(silent.placement, racks={2: "y", 3: "x"}))
    assert verified(scene)["partitions"] == 2, "it does not run any more"
    assert "Broker 1 does not run: that it is drained is Metadata's word" in caplog.text


def test_what_a_drained_broker_deletes_in_a_moment_is_no_fault(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.now = replace(THERE, logs={1: {A: 7, TopicPartition("deleted", 0): 5}})

    def pause(_: float) -> None:
        scene.now = replace(THERE, logs={1: {}})

    vars(scene.cluster)["pause"] = pause
    assert verified(scene)["partitions"] == 2
    assert "drained broker" not in caplog.text


FORM = {
    "goal": "even out", "brokers": None, "even": False, "by": "replicas", "factor": None, "plan": None, "topics": ".*",
    "exclude": "", "throttle_mb": None, "partitions_a_request": None, "moves_a_broker": None, "mb_a_broker": None,
    "allow_replication_factor": False, "allow_racks": False, "allow_no_rack": False, "keep_order": False,
    "order": "by name", "hours": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"goal": "drain brokers", "brokers": "1, 2"}, "drain brokers 1, 2"),
        ({"goal": "drain brokers", "brokers": "1", "by": "bytes"}, "drain broker 1, by bytes"),
        ({"goal": "add brokers", "brokers": "4"}, "add broker 4"),
        ({"goal": "replication factor", "factor": 3}, "replication factor 3"),
        ({"by": "bytes"}, "even out bytes"),
        ({"goal": "even leaders"}, "even out leaders"),
        ({"goal": "mend racks"}, "mend racks"),
        ({"goal": "explicit", "plan": '{"partitions": []}'}, "an explicit plan"),
    ],
)
def test_the_form_is_read(form: dict[str, Any], said: str) -> None:
    assert str(asks_for_goal(run_on(RecordingCluster(), **FORM | form)).goal) == said


@pytest.mark.parametrize("goal", ["add brokers", "drain brokers", "replication factor", "explicit"])
def test_a_form_that_lacks_what_its_goal_needs_is_refused(goal: str) -> None:
    with pytest.raises(Refused, match="form"):
        asks_for_goal(run_on(RecordingCluster(), **FORM | {"goal": goal}))


def test_a_run_that_saved_nothing_is_named_beside_those_that_did(tmp_path: Path) -> None:
    (tmp_path / "reassignments" / "one").mkdir(parents=True)
    (tmp_path / "reassignments" / "one" / "saved.json").touch()
    assert saved_by("one", tmp_path).is_file()
    for name in ("two", "../one", ""):
        with pytest.raises(Refused, match="saved an assignment") as refused:
            saved_by(name, tmp_path)
        assert "one" in refused.value.way_out
