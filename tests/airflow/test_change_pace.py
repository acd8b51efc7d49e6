"""The pace of a run that moves is changed by another: asked for in its files, taken up and judged by the run itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from in_run import run_in
from test_reassignment_steps import HALF, MB, MOVING, NOTHING, PLACEMENT, PLAN, THERE, A, B, Scene, look

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.evidence.phases_on_record import phases_on_record
from kraft_runbook.evidence.store import evidence_directory
from kraft_runbook.procedures.move_between_disks import look_at_disks
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.procedures.throttle_replication import set_rate
from kraft_runbook.reassignment.batches import Limits
from kraft_runbook.reassignment.hours import hours_of
from kraft_runbook.reassignment.look import ReassignmentSeen, ReplicasLook
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook.reassignment.throttles import DISK_RATE, FOLLOWER_RATE, LEADER_RATE, Former
from kraft_runbook.steps.handle import RehearsedCluster
from kraft_runbook.steps.reassignment.asked_rate import SET, rate_text
from kraft_runbook.steps.reassignment.ending import PLANNED, STARTED
from kraft_runbook.steps.reassignment.files import RESTS, RESTS_SECONDS, RunFiles, files_of
from kraft_runbook.steps.reassignment.moving import move_on
from kraft_runbook.steps.reassignment.pace import TAKEN_UP_SECONDS, change_pace
from kraft_runbook.steps.reassignment.waiting import WhileMoving
from kraft_runbook.steps.reassignment.watch import watch_reassignments
from kraft_runbook.steps.run import Failed, NothingToDo, Run
from kraft_runbook_airflow.reassignment.trigger import ReassignmentTrigger


class Two:
    """A run that moves at 5 MB/s, and one that changes its pace. ``meanwhile``: what happens while that one waits."""

    def __init__(self) -> None:
        self.moves = Scene()
        self.moves.now = look(ongoing=MOVING)
        self.moves.wanted = replace(self.moves.wanted, throttle=5 * MB)
        self.files = files_of(self.moves.run)
        self.files.store_plan(PLAN, PLACEMENT.present)
        self.files.saved.write_text(SavedState("id", PLACEMENT.present, NOTHING).to_json())
        self.files.will_throttle(RunThrottles((5 * MB,)))
        self.moves.run.journal.record(Moves(what=SET, partitions=None, told=rate_text(5 * MB)))
        self.meanwhile: Callable[[], object] = lambda: None
        self.params: dict[str, Any] = {"throttle_mb": 8, "run": None, "batches": "as they are"}
        vars(self.moves.cluster)["pause"] = self._pause

    def _pause(self, seconds: float) -> None:
        vars(self.moves.cluster)["paused"] += seconds
        if seconds < 5:
            self.meanwhile()

    def goes_on(self) -> None:
        move_on(self.moves.run, asks=self.moves.asks)

    def run(self, cluster: Any = None) -> Run:
        ti = SimpleNamespace(dag_id="change_pace__lab", run_id="two", task_id="change")
        return run_in({"ti": ti, "params": self.params}, cluster or self.moves.cluster)

    def change(self) -> Any:
        return change_pace(self.run())


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Two:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return Two()


def told_by(run: Run) -> dict[str, str]:
    return {told.what: told.told for _, told in of_kind(run.journal.records(), Moves)}


def test_the_run_that_moves_takes_the_rate_up_and_both_have_it_on_record(two: Two) -> None:
    two.meanwhile = two.goes_on
    assert two.change() == {"run": two.files.name, "bytes_a_second": 8 * MB, "paused": False}
    assert ("throttle", 8 * MB) in two.moves.done
    mine = told_by(two.run())
    assert mine["asked for another pace"] == (
        f"Run {two.files.name} (drain broker 1): 1 partitions move, 1 are left, onto broker 3."
        " Its throttle: 5 MB/s a broker, to be 8 MB/s a broker"
    )
    assert mine["throttle taken up"] == f"run {two.files.name}: 8 MB/s a broker"
    assert told_by(two.moves.run)["throttled"] == "8 MB/s a broker"


def test_a_rate_that_would_never_let_it_end_is_refused_by_the_rule_of_the_run_that_moves(two: Two) -> None:
    two.moves.later = look(at=5.0, sizes={A: 20 * MB, B: 10 * MB}, ongoing=MOVING)  # 2 MB/s are produced
    two.meanwhile, two.params["throttle_mb"] = two.goes_on, 3
    with pytest.raises(Refused, match=r"it stays 5 MB/s a broker: the throttle would never let it end: .*2,000,000"):
        two.change()
    assert two.files.throttles.rate == 5 * MB == two.files.wanted_throttle(None)
    assert "would never let it end" in told_by(two.moves.run)["throttle refused"]


def test_a_refusal_of_an_earlier_rate_is_none_of_this_one(two: Two) -> None:
    test_a_rate_that_would_never_let_it_end_is_refused_by_the_rule_of_the_run_that_moves(two)
    two.params["throttle_mb"] = 8
    assert two.change()["bytes_a_second"] == 8 * MB


def test_a_run_that_does_not_go_on_is_named_with_the_way_out_and_takes_it_up_once_it_does(two: Two) -> None:
    with pytest.raises(StepFailed, match=f"has not taken the throttle up in {TAKEN_UP_SECONDS:g} s") as failed:
        two.change()
    assert "clear the failed task of that run" in failed.value.way_out
    assert "cancel_reassignments__lab" in failed.value.way_out
    two.goes_on()
    assert two.files.throttles.rate == 8 * MB


def test_a_rate_that_is_noted_and_not_set_is_not_taken_up(two: Two) -> None:
    def broker_lost(_: int) -> None:
        raise StepFailed("the throttle is not in force after 10 s: broker 2", way_out="look")

    for what in (PLANNED, STARTED):
        two.moves.run.journal.record(Moves(what=what, partitions=1))
    answers = vars(two.moves.cluster)["answers"]
    sets, answers[set_rate] = answers[set_rate], broker_lost
    two.meanwhile = two.goes_on
    with pytest.raises(StepFailed, match="has not taken the throttle up"):
        two.change()
    assert two.files.throttles.rate == 8 * MB, "noted, so that it is put back whatever happens"
    answers[set_rate] = sets
    assert two.change()["bytes_a_second"] == 8 * MB
    assert ("throttle", 8 * MB) in two.moves.done


def test_a_throttle_for_moves_that_copy_nothing_is_refused_and_ends_no_wait(two: Two) -> None:
    order = ReassignmentPlan("order", {A: (1, 2), B: (1, 2)}, {A: (2, 1), B: (2, 1)}, 0, 0)
    two.files.store_plan(order, PLACEMENT.present)
    two.files.throttles_are_back()
    two.moves.now = look(ongoing={A: Ongoing((2, 1), (), ())})
    two.moves.wanted, two.meanwhile = replace(two.moves.wanted, throttle=None), two.goes_on
    with pytest.raises(Refused, match="nothing is copied, so none is set"):
        two.change()
    assert not two.files.asks_for_another(None)


def test_between_two_batches_the_run_is_named_in_the_form(two: Two) -> None:
    two.moves.now, two.meanwhile = HALF, two.goes_on
    with pytest.raises(Refused, match="no run of this tool moves a replica now"):
        two.change()
    two.params["run"] = two.files.name
    assert two.change()["run"] == two.files.name


def test_only_runs_that_may_still_go_on_are_read(two: Two, caplog: pytest.LogCaptureFixture) -> None:
    """What can't be read of another run is named in the log, once it is read."""
    other = RunFiles(two.files.directory.with_name("other"))
    elsewhere = TopicPartition("elsewhere", 0)

    def is_read(**form: object) -> bool:
        caplog.clear()
        with pytest.raises((Refused, StepFailed)):
            two.params |= form
            two.change()
        return "The saved state of run other is left out" in caplog.text

    other.store_plan(ReassignmentPlan("ended", {elsewhere: (1,)}, {elsewhere: (2,)}, 1, 1), PLACEMENT.present)
    other.saved.write_text("nothing that can be read")
    assert not is_read(), "it plans nothing that moves"
    other.planned.unlink()
    assert is_read(), "what it plans is not known"
    other.store_plan(PLAN, PLACEMENT.present)
    assert is_read(), "it plans what moves"
    assert not is_read(run=two.files.name), "another is named"
    two.moves.now = HALF
    assert not is_read(run=None), "nothing moves"
    other.pause(two.moves.cluster.now() + 60)
    assert is_read(batches="go on"), "it may be the paused one"


def test_what_names_no_run_that_moves_is_refused(two: Two) -> None:
    two.params["run"] = "another"
    with pytest.raises(Refused, match="no run named 'another' has begun to move replicas"):
        two.change()
    two.moves.now, two.params["run"] = THERE, two.files.name
    with pytest.raises(Refused, match=r"all that run .* moves is there"):
        two.change()
    two.moves.now = replace(look(present={B: PLAN.target[B]}), hidden=MOVING)
    with pytest.raises(StepFailed, match="has not taken the throttle up"):
        two.change()  # what is not shown still moves
    two.params["throttle_mb"] = None
    with pytest.raises(Refused, match="the form changes nothing"):
        two.change()


def test_the_rate_in_force_is_nothing_to_do(two: Two) -> None:
    two.params["throttle_mb"] = 5
    with pytest.raises(NothingToDo, match="goes on as the form asks already"):
        two.change()


def test_a_paused_run_starts_no_batch_until_it_goes_on_and_what_moves_goes_on(two: Two) -> None:
    two.moves.now = HALF
    two.params |= {"throttle_mb": None, "batches": "pause", "run": two.files.name}
    assert two.change() == {"run": two.files.name, "bytes_a_second": None, "paused": True}
    told = told_by(two.run())["asked for another pace"]
    assert told.endswith("No new batch is to start. At 2026-03-05 10:00 UTC the run stops, where it is still paused")
    two.goes_on()
    assert not [each for each in two.moves.done if each[0] == "start"]
    assert "No new batch starts: the run is paused, until 2026-03-05 10:00 UTC" in two.moves.cluster.told
    wait = WhileMoving(two.files, Limits(1, 1, None))
    assert wait.look(two.moves.cluster) == ""
    with pytest.raises(NothingToDo):
        two.change()
    two.params |= {"batches": "go on", "run": None}
    assert two.change()["paused"] is False, "it is found, though nothing of it moves"
    assert wait.look(two.moves.cluster) == "there is room for the next batch"
    two.goes_on()
    assert two.moves.done[-1] == ("start", [B])


def test_a_run_that_was_paused_while_it_had_no_room_says_that_it_rests_once_it_has(two: Two) -> None:
    wait = WhileMoving(two.files, Limits(1, 1, None), 5 * MB)
    two.files.pause(two.moves.cluster.now() + 60)
    assert wait.look(two.moves.cluster) == ""
    two.moves.now = HALF
    assert wait.look(two.moves.cluster) == "there is room for the next batch, and none may start now"
    two.goes_on()
    assert two.files.resting and wait.look(two.moves.cluster) == ""


def test_a_pause_that_was_forgotten_ends_the_task_and_can_be_asked_for_anew(two: Two) -> None:
    two.moves.now = HALF
    two.params |= {"throttle_mb": None, "batches": "pause", "run": two.files.name}
    two.change()
    vars(two.moves.cluster)["paused"] += two.moves.cluster.spec.reassignment.pause + 1
    with pytest.raises(Refused, match="was to go on by 2026-03-05 10:00 UTC") as refused:
        two.goes_on()
    assert "change_pace__lab" in refused.value.way_out and "cancel_reassignments__lab" in refused.value.way_out
    assert two.change()["paused"], "another while"
    two.goes_on()
    assert not [each for each in two.moves.done if each[0] == "start"]


def test_a_pause_of_an_earlier_version_has_no_end(two: Two) -> None:
    two.moves.now = HALF
    (two.files.directory / "paused").write_text("")
    two.goes_on()
    assert "No new batch starts: the run is paused, until no set time" in two.moves.cluster.told


def test_new_batches_start_within_their_hours_alone(two: Two) -> None:
    """The test's clock says 10:00 UTC."""
    two.moves.now = HALF
    for hours, starts in (("22:00-06:00", False), ("09:00-10:00", False), ("09:30-10:01", True), ("22:00-11:00", True)):
        two.moves.done.clear()
        two.moves.wanted = replace(two.moves.wanted, hours=hours_of(hours))
        wait = move_on(two.moves.run, asks=two.moves.asks)
        assert bool([each for each in two.moves.done if each[0] == "start"]) is starts, hours
        assert isinstance(wait, WhileMoving) and bool(wait.look(two.moves.cluster)) is starts
        _, given = ReassignmentTrigger.of("lab", wait).serialize()
        assert str(ReassignmentTrigger(**given).looks().__self__.hours) == hours
    assert "No new batch starts: it is not within 22:00-06:00 UTC" in two.moves.cluster.told
    for wrong in ("22:00", "25:00-26:00", "late-early"):
        with pytest.raises(Refused, match="are no hours of a day"):
            hours_of(wrong)
    assert hours_of(None) is None


def watch(two: Two, now: ReplicasLook, rates: Mapping[str, str]) -> Any:
    seen = ReassignmentSeen(two.moves.cluster.observe(), now, Former(rates, {}, {}), ())
    two.moves.cluster.answers[see_reassignment] = seen
    ti = SimpleNamespace(dag_id="reassignment_watch__lab", run_id="w", task_id="watch")
    return watch_reassignments(run_in({"ti": ti, "params": {}}, two.moves.cluster))


def test_the_watch_names_what_moves_and_is_not_shown_and_no_throttle_beside_it(two: Two) -> None:
    two.moves.now = replace(HALF, hidden={TopicPartition("secret", 0): MOVING[A]})
    said = r"1 findings[^;]*\n1 partitions move of topics that .* may not describe: secret-0"
    with pytest.raises(Failed, match=said):
        watch(two, two.moves.now, {LEADER_RATE: "7"})


def test_the_watch_does_not_fail_for_the_throttle_of_a_run_that_is_paused(two: Two) -> None:
    two.moves.now = HALF
    mine = {LEADER_RATE: str(5 * MB), FOLLOWER_RATE: str(5 * MB)}

    def watched(rates: Mapping[str, str]) -> Any:
        return watch(two, HALF, rates)

    with pytest.raises(Failed, match=rf"(?s)brokers' default: {LEADER_RATE}=5000000.*run {two.files.name} set them"):
        watched(mine)
    two.files.pause(two.moves.cluster.now() + 60)
    two.goes_on()
    assert watched(mine) == {"moving": 0}
    last = phases_on_record(evidence_directory(os.environ), "lab").seen[-1]
    assert (last.phase, last.cluster_id) == (detect_phase(two.moves.cluster.observe()).phase, HALF.cluster_id)
    assert f"Run {two.files.name} keeps its throttle for its next batch: the run is paused" in str(
        two.moves.cluster.told
    )
    with pytest.raises(Failed, match=r"(?s)1 findings.*brokers' default: leader.replication.throttled.rate=7"):
        watched({LEADER_RATE: "7"})
    two.moves.cluster.answers[look_at_disks] = {}
    with pytest.raises(
        Failed, match=rf"1 findings[^.]*between disks without a copy: the brokers' default: {DISK_RATE}=9"
    ):
        watched({DISK_RATE: "9"})
    rests, long_ago = two.files.directory / RESTS, time.time() - RESTS_SECONDS - 1
    os.utime(rests, (long_ago, long_ago))
    with pytest.raises(Failed, match=f"run {two.files.name} set them"):
        watched(mine)
    two.files.pause(None)
    two.goes_on()
    assert not rests.exists()


def test_a_dry_run_says_what_it_would_ask_and_writes_nothing(two: Two) -> None:
    told: list[str] = []
    would = RehearsedCluster(two.moves.cluster.spec, lambda _: "", told.append)
    vars(would)["ask"] = two.moves.cluster.ask
    assert change_pace(two.run(would)) == {"run": two.files.name}
    assert f"Dry run: would let run {two.files.name} throttle its moves to 8 MB/s a broker" in told
    assert two.files.wanted_throttle(None) is None
