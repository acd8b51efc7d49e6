"""Where a run that has moved its replicas copies some between disks: what it waits for then, and what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_directory_steps import B, Scene

from kraft_runbook.cluster.log_dirs import FutureCopy
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.procedures.throttle_replication import remove_throttles
from kraft_runbook.reassignment.look import ReassignmentSeen
from kraft_runbook.reassignment.throttles import Former
from kraft_runbook.steps.reassignment.copying import WhileCopying
from kraft_runbook.steps.reassignment.watch import watch_reassignments
from kraft_runbook.steps.run import Failed


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    """All has moved between brokers, and two replicas of broker 2 lie elsewhere than asked."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    made = Scene()
    made.plan()
    made.begin()
    made.move()
    made.moved()
    return made


def raises(error: Exception) -> Any:
    raise error


def test_while_it_copies_between_disks_no_throttle_between_brokers_is_left_for_the_watch_to_find(scene: Scene) -> None:
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


def test_a_server_that_is_silent_while_throttles_are_put_back_is_waited_for(scene: Scene) -> None:
    silent = Unreachable("no broker answers", way_out="start one")
    scene.cluster.answers[remove_throttles] = lambda *_: raises(silent)
    assert scene.move().rests == 30.0 and scene.rates and not scene.copied
    scene.cluster.answers[remove_throttles] = lambda *_: scene.rates.clear() or ()
    scene.move()
    assert not scene.rates and len(scene.copied) == 1


def test_a_replica_that_is_copied_away_when_all_is_compared_is_no_success(scene: Scene) -> None:
    scene.move()
    scene.copies_end()
    scene.move()
    scene.future[2][B] = FutureCopy("/d1", 0, 9)
    with pytest.raises(StepFailed, match="t-1 of broker 2 in /d2, and somebody copies it to /d1"):
        scene.verify()
    with pytest.raises(Refused, match="somebody copies 1 replicas away"):
        scene.plan()
