"""Where a run that has moved its replicas copies some between disks: what it waits for then, and what it leaves."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from in_run import run_in
from observations import SPEC
from placements import MB
from test_directory_steps import ENTRIES, A, B, Scene

from kraft_runbook.cluster.log_dirs import FutureCopy
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.procedures.move_between_disks import look_at_disks
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.procedures.throttle_replication import remove_throttles
from kraft_runbook.reassignment.look import ReassignmentSeen
from kraft_runbook.reassignment.throttles import Former
from kraft_runbook.steps.reassignment.copying import WhileCopying
from kraft_runbook.steps.reassignment.directories import undone
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.pace import AGAIN_SECONDS, AS_THEY_ARE, change_pace
from kraft_runbook.steps.reassignment.troubles import wait_out
from kraft_runbook.steps.reassignment.watch import watch_reassignments
from kraft_runbook.steps.run import Failed, Run


class Paced(Scene):
    """``paced``: what change_pace answers to this form, while the run goes on."""

    name = "one"

    def run(self, *given: Any, name: str = "", **how: Any) -> Run:
        return super().run(*given, name=name or self.name, **how)

    def paced(self, form: dict[str, Any]) -> dict[str, Any]:
        params = {"run": self.run().name, "batches": AS_THEY_ARE, "throttle_mb": None, **form}
        ti = SimpleNamespace(dag_id="change_pace__lab", run_id="two", task_id="t")
        vars(self.cluster)["pause"] = self._meanwhile
        try:
            return change_pace(run_in({"ti": ti, "params": params}, self.cluster))
        finally:
            del vars(self.cluster)["pause"]

    def in_time(self, seconds: float) -> None:
        """So long after what is on record by now."""
        later = time.time() + seconds
        vars(self.cluster)["now"] = lambda: later + vars(self.cluster)["paused"]

    def _meanwhile(self, seconds: float) -> None:
        vars(self.cluster)["paused"] += seconds
        if seconds == AGAIN_SECONDS:
            self.move()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Paced:
    """All has moved between brokers, and two replicas of broker 2 lie elsewhere than asked."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    made = Paced()
    made.plan()
    made.begin()
    made.move()
    made.moved()
    return made


def raises(error: Exception) -> Any:
    raise error


def test_while_it_copies_between_disks_no_throttle_between_brokers_is_left_for_the_watch_to_find(scene: Paced) -> None:
    """A follower that falls behind meanwhile would catch up at the run's rate, for hours."""

    def watch() -> Any:
        seen = ReassignmentSeen(scene.cluster.observe(), scene.look(), Former(scene.rates, {}, {}), ())
        scene.cluster.answers[see_reassignment] = seen
        return watch_reassignments(scene.run(dag="reassignment_watch"))

    with pytest.raises(Failed, match="a throttle without a move"):
        watch()
    for _ in range(2):
        assert isinstance(scene.move(), WhileCopying)
        assert not scene.rates and scene.rate == "5000000" and watch() == {"moving": 0}
    assert scene.told().count("put back") == 1


def test_a_server_that_is_silent_while_throttles_are_put_back_is_waited_for(scene: Paced) -> None:
    silent = Unreachable("no broker answers", way_out="start one")
    scene.cluster.answers[remove_throttles] = lambda *_: raises(silent)
    assert scene.move().rests == 30.0 and scene.rates and not scene.copied
    scene.cluster.answers[remove_throttles] = lambda *_: scene.rates.clear() or ()
    scene.move()
    assert not scene.rates and len(scene.copied) == 1


def test_a_replica_that_is_copied_away_when_all_is_compared_is_no_success(scene: Paced) -> None:
    scene.move()
    scene.copies_end()
    scene.move()
    scene.future[2][B] = FutureCopy("/d1", 0, 9)
    with pytest.raises(StepFailed, match="t-1 of broker 2 in /d2, and somebody copies it to /d1"):
        scene.verify()
    with pytest.raises(Refused, match="somebody copies 1 replicas away"):
        scene.plan()


def test_a_rate_that_is_too_low_once_all_has_moved_is_waited_for_and_changed_by_the_runs_name(scene: Paced) -> None:
    scene.produced = 9 * MB
    wait = scene.move()
    assert isinstance(wait, WhileCopying) and wait.rests == 30.0 and not scene.copied and scene.rate is None
    assert scene.told()[-1] == "tries again" and "never let it end" in str(scene.cluster.told)
    assert "give a throttle well above" in scene.cluster.told[-2]
    with pytest.raises(Refused, match=r"has not taken the throttle: .*never let it end"):
        scene.paced({"throttle_mb": 6})
    assert not scene.copied and scene.rate is None
    assert scene.paced({"throttle_mb": 40})["bytes_a_second"] == 40 * MB
    assert scene.rate == str(40 * MB) and len(scene.copied) == 1 and "refused no more" in scene.told()


def test_what_is_no_rate_ends_no_copy_that_goes_on_and_is_waited_for_before_the_first(scene: Paced) -> None:
    asked = files_of(scene.run()).directory / "throttle_mb"
    asked.write_text("fast")
    assert scene.move().rests and not scene.copied and "write MB/s a broker into it" in str(scene.cluster.told)
    asked.unlink()
    assert not scene.move().rests and len(scene.copied) == 1
    asked.write_text("fast")
    assert not scene.move().rests and scene.rate == "5000000" and "throttle refused" in scene.told()


def test_a_rate_that_stays_too_low_ends_the_task_with_what_to_do(scene: Paced) -> None:
    scene.produced = 9 * MB
    scene.move()
    scene.in_time(SPEC.reassignment.refused + 1)
    with pytest.raises(StepFailed, match="never let it end") as failed:
        scene.move()
    assert "change_pace__lab" in failed.value.way_out and scene.told()[-1] == "gave up"
    scene.produced = 0
    scene.move()
    assert len(scene.copied) == 1, "once cleared, it is judged anew"


def test_a_rate_that_is_too_low_for_a_plan_of_directories_alone_can_be_changed_before_its_first_copy(
    scene: Paced,
) -> None:
    scene.params["plan"] = json.dumps({"partitions": ENTRIES[1:]})
    scene.name = "alone"
    scene.plan()
    scene.begin()
    scene.produced = 9 * MB
    with pytest.raises(StepFailed, match="never let it end"):
        scene.move()
    vars(scene)["move"] = lambda: None
    with pytest.raises(StepFailed, match="clear the failed task of that run, which takes it up then"):
        scene.paced({"throttle_mb": 40})
    del vars(scene)["move"]
    scene.move()
    assert len(scene.copied) == 1 and scene.rate == str(40 * MB)


def test_a_run_that_waits_before_its_first_plan_of_disks_is_paused_by_its_name(scene: Paced) -> None:
    scene.silent = {2}
    assert scene.move().rests and not files_of(scene.run()).has_disk_plan
    assert scene.paced({"batches": "pause"})["paused"]
    scene.silent = set()
    assert not scene.move().rests and not scene.copied
    scene.paced({"batches": "go on"})
    scene.move()
    scene.copies_end()
    assert scene.move()["there"] == 1
    with pytest.raises(Refused, match=r"all that run .* moves is there"):
        scene.paced({"batches": "pause"})


def test_a_run_that_had_nothing_to_copy_between_disks_is_not_paused_once_it_has_ended(scene: Paced) -> None:
    scene.placed[2] = dict.fromkeys((A, B), "/d2")
    assert scene.move()["there"] == 1 and not files_of(scene.run()).has_disk_plan
    with pytest.raises(Refused, match=r"all that run .* moves is there"):
        scene.paced({"batches": "pause"})


def test_the_wait_for_a_broker_between_disks_is_not_as_old_as_one_that_ended_with_the_moves(scene: Paced) -> None:
    """Its patience is for one wait, and the one between disks is not begun anew with each look."""
    within = SPEC.reassignment
    wait_out(scene.run(), Unreachable("broker 3 does not answer", way_out="start it"))
    wait_out(scene.run(), StepFailed("broker 3 takes nothing", way_out="mend it"))
    scene.in_time(within.lost_broker + 1)
    scene.silent = {2}
    for _ in range(2):
        assert scene.move().rests
        scene.in_time(0)
        assert scene.told()[-6:] == ["waits", "tries again", "goes on", "refused no more", "put back", "waits"]
    scene.in_time(within.lost_broker + 1)
    with pytest.raises(Unreachable, match="broker 2 does not answer"):
        scene.move()
    assert scene.told()[-1] == "gave up"


def test_a_broker_that_is_silent_for_a_moment_fails_no_comparison_of_directories(scene: Paced) -> None:
    scene.move()
    scene.copies_end()
    scene.move()
    scene.silent = {2}
    without = scene.disks()
    with pytest.raises(Unreachable, match="broker 2 does not answer"):
        scene.verify()
    assert scene.cluster.told[-1] == "Not done, trying again: broker 2 does not answer"
    assert undone(scene.run())[-1] == "broker 2 does not answer"
    scene.silent = set()
    looks = iter([without, scene.disks()])
    scene.cluster.answers[look_at_disks] = lambda brokers: next(looks)
    assert scene.verify()["in_their_directories"] == 3
