"""A copy between disks that stands still, of which Kafka says nothing: it is named, with a way out."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from in_run import run_in
from moves_seen import moves_seen
from placements import MB
from test_disk_steps import TWO, A, B, Scene
from test_disk_steps import scene as scene

from kraft_runbook.cluster.log_dirs import FutureCopy
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.steps.reassignment.copying import WhileCopying, move_between_disks
from kraft_runbook.steps.reassignment.files import PROGRESS, files_of
from kraft_runbook.steps.reassignment.watch import watch_reassignments
from kraft_runbook.steps.run import Failed


class Waiting:
    """A run that copies two replicas at once, and what its wait warns of."""

    def __init__(self, given: Scene) -> None:
        self.scene, self.warned = given, list[str]()
        given.params["moves_a_broker"] = 2
        wait = move_between_disks(given.run())
        assert isinstance(wait, WhileCopying)
        self.wait = replace(wait, warn=self.warned.append)

    def after(self, seconds: float, **copied: int) -> list[str]:
        """What it warns of once the replicas have so many bytes."""
        vars(self.scene.cluster)["paused"] += seconds
        for name, size in copied.items():
            self.scene.future[{"a": A, "b": B}[name]] = FutureCopy(TWO, size, 9)
        self.warned.clear()
        assert self.wait.look(self.scene.cluster) == ""
        return list(self.warned)

    def watch(self) -> Any:
        seen = moves_seen(phase=Phase.FINALIZED)
        self.scene.cluster.answers |= {see_reassignment: seen, look_at_replicas: seen.look}
        ti = SimpleNamespace(dag_id="reassignment_watch__lab", run_id="w", task_id="watch")
        return watch_reassignments(run_in({"ti": ti, "params": {}}, self.scene.cluster))


@pytest.fixture
def waiting(scene: Scene) -> Waiting:
    return Waiting(scene)


def test_copies_that_gain_nothing_for_minutes_are_named_with_a_way_out(waiting: Waiting) -> None:
    assert waiting.after(0, a=MB) == waiting.after(200) == waiting.after(70) == []
    (warned,) = waiting.after(30)
    assert warned.startswith("t-0, t-1 of broker 1 stand still: no byte was copied for 300 s. Read the broker's log")
    assert "restart it" in warned and "trigger move_between_disks__lab with 'back to the old disks'" in warned
    assert waiting.after(30, a=2 * MB) == waiting.after(299) == []


def test_a_copy_that_waits_for_another_of_its_broker_does_not_stand_still(waiting: Waiting) -> None:
    """A thread of a broker copies one replica after the other."""
    assert [waiting.after(200, a=size * MB) for size in range(5)] == [[]] * 5


def test_a_throttle_of_next_to_nothing_explains_it(waiting: Waiting) -> None:
    waiting.wait = replace(waiting.wait, throttled=1_000)
    assert [waiting.after(each) for each in (0, 301, 301)] == [[], [], []]


def test_the_watch_names_them_while_the_run_says_so(waiting: Waiting) -> None:
    for seconds in (0, 301):
        waiting.after(seconds)
    run = files_of(waiting.scene.run())
    with pytest.raises(Failed, match=rf"stuck: copies between disks of run {run.name}: t-0, t-1 of broker 1 stand sti"):
        waiting.watch()
    long_ago = time.time() - 3600
    os.utime(run.directory / PROGRESS, (long_ago, long_ago))
    assert waiting.watch() == {"moving": 0}
    (run.directory / PROGRESS).write_text("{")
    assert waiting.watch() == {"moving": 0}
