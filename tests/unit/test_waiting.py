"""A wait compares with a look that lies some seconds back, however often it looks; two conditions must hold at the same
looks.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from observations import SPEC, WHY, a_controller, later, observation
from recording import RecordingCluster

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.procedures.look_at_nodes import TOPICS_NOT_ASKED
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.conditions import DONE, Condition, Progress, Topics
from kraft_runbook.software.conditions import CONTROLLER_CAUGHT_UP
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.recorded_wait import RecordedWait
from kraft_runbook.steps.waiting import Wait


def test_what_was_committed_some_seconds_ago_must_have_arrived() -> None:
    looks = [later(observation(Phase.HYBRID), seconds) for seconds in range(8)]
    compared: list[int | None] = []

    def judge(seen: ClusterObservation, spec: object, node_id: int, earlier: ClusterObservation | None) -> Progress:
        compared.append(None if earlier is None else int((seen.observed_at - earlier.observed_at).total_seconds()))
        return DONE

    spec = SPEC.model_copy(update={"deadlines": SPEC.deadlines.model_copy(update={"healthy_in_a_row": len(looks)})})
    wait = Wait(RecordingCluster(*looks, spec=spec), Condition("copied", "the copy", judge), 60.0)
    while not wait.look():
        pass
    assert compared == [None, 1, 2, 3, 3, 3, 3, 3]
    assert len(wait._before) <= 5, "old looks are forgotten"


REGISTERED, IN_SYNC = "broker_registered", "broker_in_sync"


def waited(looks: list[tuple[bool, bool]]) -> Wait:
    """A wait for a broker to register (10 s) and to be in sync (20 s more), one look a second; of each look whether the
    one and the other hold.
    """
    left = list(looks)

    registered = Condition(
        REGISTERED, "broker {id} to register", lambda *_: Progress(left[0][0], f"waiting for {REGISTERED}")
    )
    in_sync = Condition(IN_SYNC, "broker {id} to be in sync", lambda *_: Progress(left[0][1], f"waiting for {IN_SYNC}"))

    seen = (later(observation(Phase.DUAL_WRITE), second) for second in range(len(looks)))
    cluster = RecordingCluster(*seen)
    wait = Wait(cluster, in_sync, 20.0, node_id=1, first=(registered, 10.0))
    while left and not wait.look():
        left.pop(0)
        cluster.pause(1)
    assert len(left) == 1, f"it ended {len(left) - 1} looks too early, or never"
    return wait


def test_a_broker_is_registered_and_in_sync_at_the_same_looks() -> None:
    """In every ISR before it is registered says nothing: the ISR may be that of its life before."""
    assert SPEC.deadlines.healthy_in_a_row == 3
    wait = waited(
        [(False, True)] * 3 + [(True, False)] * 2 + [(True, True)] * 2 + [(False, True)] + [(True, True)] * 3,
    )
    assert wait.first_held == 3.0


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([(False, True)] * 12, rf"waiting for {REGISTERED}, 11 s: the deadline of 10 s has passed"),
        ([(True, False)] * 32, rf"waiting for {IN_SYNC}, 31 s: the deadline of 30 s has passed"),
        (
            [(True, False)] * 15 + [(False, False)] * 17,
            rf"waiting for {REGISTERED}, 31 s: the deadline of 30 s has passed",
        ),
    ],
    ids=["never registered", "never in sync", "hidden again by an election that does not end"],
)
def test_each_of_two_conditions_has_its_deadline(looks: list[tuple[bool, bool]], told: str) -> None:
    with pytest.raises(StepFailed, match=told):
        waited(looks)


class Waits:
    """The try of a task that keeps when it began in this file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def record(self, what: Kind) -> None:
        raise AssertionError(f"nothing has ended: {what}")

    def require_shared(self) -> None:
        pass


class Now(RecordingCluster):
    def now(self) -> float:
        return time.time()


def test_the_clock_of_whoever_serves_the_state_directory_begins_no_wait(tmp_path: Path) -> None:
    """It is five minutes behind. The try of another process goes on by what the file says, not by its time stamp."""
    waits = Waits(tmp_path / "waits" / "1")
    starting = a_controller(102, metrics=WHY)(observation(Phase.FINALIZED))

    def a_look() -> bool:
        wait = RecordedWait(
            "upgrade_software",
            CONTROLLER_CAUGHT_UP.name,
            102,
            120.0,
            None,
            hand=lambda: Now(starting),
            waiter=waits,
            log=logging.getLogger(),
        )
        wait.begin()
        return wait.look()

    assert a_look() is False
    before = time.time() - 300
    os.utime(waits.file, (before, before))
    assert a_look() is False
    waits.file.write_text("")  # what an earlier version left
    os.utime(waits.file, (before, before))
    with pytest.raises(AssertionError, match="the deadline of 120 s has passed"):
        a_look()


class Sparing(RecordingCluster):
    """Whose looks leave out the topics where they may."""

    def observe(self, **deep: object) -> ClusterObservation:
        seen = super().observe(**deep)
        return replace(seen, topics=TOPICS_NOT_ASKED) if deep else seen


def test_topics_are_asked_for_at_the_looks_that_they_count_at() -> None:
    """Not while what is awaited first has not held, nor until only they are missing; not again while more is. A look
    that shows that they count by now is made anew with them at once, and that one is judged.
    """
    start, copied_at, well_at, gone_at, back_at = 0, 2, 5, 6, 7

    def copied(seen: ClusterObservation, *_: object) -> Progress:
        second = (seen.observed_at - looks[start].observed_at).total_seconds()
        if second < copied_at or gone_at <= second < back_at:
            return Progress(False, "waiting for the copy")
        judged.append(cluster.looks[-1] == {})
        well = cluster.looks[-1] == {} and second >= well_at
        return DONE if well else Progress(False, "waiting for partitions", topics=True)

    registered = Condition(
        REGISTERED, "broker {id} to register", lambda seen, *_: told_since(seen, 1), topics=Topics.NEVER
    )
    last = Condition(IN_SYNC, "broker {id} to be in sync", copied, topics=Topics.LAST)
    looks = [later(observation(Phase.HYBRID), second) for second in (0, 1, 2, 2, 3, 4, 5, 6, 7, 7, 8, 9)]
    judged: list[bool] = []
    cluster = Sparing(*looks)
    wait = Wait(cluster, last, 20.0, node_id=1, first=(registered, 10.0))
    while not wait.look():
        pass
    bare: dict[str, object] = {"topics": False}
    whole: dict[str, object] = {}
    assert cluster.looks == [bare, bare, bare, whole, whole, whole, whole, whole, bare, whole, whole, whole]
    assert [line for line in cluster.told if "topics" in line] == []


def test_a_copy_that_ends_near_the_deadline_is_judged_by_a_whole_look() -> None:
    """One without topics can't fulfil it, and is no reason to give up."""

    def copied(seen: ClusterObservation, *_: object) -> Progress:
        return DONE if cluster.looks[-1] == {} else Progress(False, "topics", topics=True)

    cluster = Sparing(observation(Phase.HYBRID))
    wait = Wait(cluster, Condition("copied", "the copy to end", copied, topics=Topics.LAST), -1.0)
    while not wait.look():
        pass


def test_a_look_that_takes_long_counts_as_seen() -> None:
    """Of 37 s between two ends of looks of 30 s all is seen; of 600 s of which nobody looked, ten."""
    lasting = Condition("holds", "it to hold", lambda *_: DONE, holds=lambda *_: 90.0)
    for took, paused, looks in ((30.0, 37.0, 4), (0.0, 600.0, 10)):
        cluster = RecordingCluster(replace(observation(Phase.HYBRID), took_seconds=took))
        wait = Wait(cluster, lasting, 5.0)
        while not wait.look():
            cluster.pause(paused)
        assert len(cluster.looks) == max(looks, SPEC.deadlines.healthy_in_a_row), took


def told_since(seen: ClusterObservation, second: int) -> Progress:
    return Progress((seen.observed_at - observation(Phase.HYBRID).observed_at).total_seconds() >= second, "waiting")


def test_what_to_do_about_a_wait_in_vain_is_judged_by_a_whole_look() -> None:
    seen = observation(Phase.HYBRID)
    bare, whole = seen, later(seen, 1)
    in_vain = Condition("led", "a leader", lambda *_: Progress(False, "none"), topics=Topics.NEVER)
    advised: list[ClusterObservation] = []

    def advice(found: ClusterObservation, *_: object, **__: object) -> tuple[str, ...]:
        advised.append(found)
        return ()

    cluster = Sparing(bare, whole)
    with pytest.raises(StepFailed):
        Wait(cluster, in_vain, -1.0, advice=advice).look()
    assert (cluster.looks, advised) == ([{"topics": False}, {}], [whole])


@pytest.mark.parametrize(("kept", "asked"), [(False, {"scope": Scope.NODES}), (True, {})])
def test_a_look_that_others_read_has_the_topics_all_the_same(kept: bool, asked: dict[str, Scope]) -> None:
    keep = {"keep": lambda _: None} if kept else {}
    cluster = Cluster(SPEC, lambda ref: "a secret", lambda line: None, **keep)
    assert (cluster._scope(topics=False), cluster._scope(topics=True)) == (asked, {})
