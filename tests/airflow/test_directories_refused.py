"""One run with log directories, where a broker does not take one, or a partition is not whole at its end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_directory_steps import ONE, TWO, A, B, Scene
from test_directory_steps import scene as scene

from kraft_runbook.cluster.assignment import Ongoing
from kraft_runbook.errors import StepFailed
from kraft_runbook.procedures.move_between_disks import lag_seconds
from kraft_runbook.procedures.move_replicas import StartedInPart, start_next_batch
from kraft_runbook.reassignment.batches import next_batch
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.steps.reassignment.directories import undone
from kraft_runbook.steps.reassignment.waiting import WhileMoving
from kraft_runbook_airflow.reassignment.trigger import ReassignmentTrigger


def test_a_directory_that_a_broker_does_not_take_holds_up_no_other_move(scene: Scene) -> None:
    """The next batch is chosen at once without what asks for it: else each try chooses the same, and sends nothing."""
    both = [
        {"topic": "t", "partition": n, "replicas": [3, 2], "log_dirs": [path, "any"]}
        for n, path in ((0, TWO), (1, ONE))
    ]
    scene.params |= {"plan": json.dumps({"partitions": both}), "partitions_a_request": 1}
    scene.plan()
    scene.begin()

    def refuses(plan: Any, now: ReplicasLook, limits: Any, **_: Any) -> Any:
        batch = next_batch(plan, now.placement, limits)
        if A in [m.partition for m in batch]:
            why = {(3, TWO): "t-0 in /d2 of broker 3: the directory has failed"}
            raise StartedInPart("it does not take it", way_out="mend it", done=(), untold=why)
        scene.did += [f"start {m.partition}" for m in batch]
        scene.ongoing |= {m.partition: Ongoing((3, 2, 1), (3,), (1,)) for m in batch}
        scene.present |= {m.partition: (1, 2, 3) for m in batch}
        return batch

    scene.cluster.answers[start_next_batch] = refuses
    wait = scene.move()
    assert isinstance(wait, WhileMoving) and scene.did == ["start t-1"] and wait.closed == {(3, TWO)} and not wait.rests
    trigger = ReassignmentTrigger(**ReassignmentTrigger.of("lab", wait).serialize()[1])
    assert trigger.looks()(scene.cluster) == "", "whether it takes it again, the task asks, and not the wait"
    scene.ongoing, scene.present[B] = {}, (3, 2)
    assert scene.move().rests and scene.told()[-1] == "tries again"
    assert "not made where the plan asks for them: t-0 in /d2 of broker 3: the directory" in scene.cluster.told[-1]
    scene.cluster.answers[start_next_batch] = scene.start
    assert scene.move().rests == 0 and scene.did[-1] == "start t-0" and scene.told()[-1] == "refused no more"


def test_the_closing_report_names_what_a_broker_was_told_for_a_move_that_was_never_sent(scene: Scene) -> None:
    scene.plan()
    scene.begin()

    def refused(*_: Any, **__: Any) -> None:
        raise StartedInPart("Kafka did not start it", way_out="x", done=(), told={(3, A): TWO})

    scene.cluster.answers[start_next_batch] = refused
    for _ in range(2):
        with pytest.raises(StartedInPart):
            scene.move()
    assert scene.told().count("told and not started") == 1
    assert "1 replicas were not begun, and their brokers remember until they restart" in undone(scene.run())[-1]
    assert undone(scene.run())[-1].endswith("is made there: t-0 in /d2 of broker 3")
    scene.moved()
    assert not any("remember" in each for each in undone(scene.run())), "it has made it"


def test_the_end_asks_whether_what_was_only_copied_is_whole_also_once_followers_would_have_left(scene: Scene) -> None:
    """The copy of a leader's replica may lose leader epochs (KAFKA-20961): its followers leave the ISR 45 s later."""
    scene.params["plan"] = json.dumps(
        {"partitions": [{"topic": "t", "partition": 1, "replicas": [1, 2], "log_dirs": [TWO, TWO]}]}
    )
    scene.plan()
    scene.begin()
    scene.move()
    scene.copies_end()
    scene.move()
    scene.isr = {B: (1,)}
    with pytest.raises(StepFailed, match=r"1 partitions that the plan wants in .* not in sync: t-1") as failed:
        scene.verify()
    assert "produce a record" in failed.value.way_out
    scene.isr = {}
    before = vars(scene.cluster)["paused"]
    assert scene.verify()["in_their_directories"] == 2 and vars(scene.cluster)["paused"] - before == 50

    def leaves(_: Any) -> float:
        scene.isr = {B: (1,)}
        return 30.0

    scene.cluster.answers[lag_seconds] = leaves
    with pytest.raises(StepFailed, match="not in sync: t-1"):
        scene.verify()


def test_where_no_leaders_replica_was_copied_nobody_waits_for_its_followers(scene: Scene) -> None:
    scene.plan()
    scene.begin()
    scene.move()
    scene.moved()
    scene.move()
    scene.copies_end()
    scene.move()
    before = vars(scene.cluster)["paused"]
    assert scene.verify()["in_their_directories"] == 3 and vars(scene.cluster)["paused"] == before
