"""A run that moves replicas leaves alone a topic that was made anew under its name, from its plan to its last proof."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from in_run import Signed, run_in
from test_reassignment_steps import FORM, NOTHING, PLACEMENT, A, B, Scene, look, move, plan

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.goals import DrainBrokers, Restore, Topics
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook.steps.reassignment.ending import files_to_compare, prefer_leaders, verify_plan
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.moving import save
from kraft_runbook.steps.reassignment.wanted import asks_to_restore

OTHER = TopicPartition("b", 0)
BOTH = {A: (1, 2), OTHER: (1, 2)}


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    """Two topics are planned; then ``a`` is deleted and made anew."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    made = Scene()
    made.now = look(present=BOTH)
    made.ids = {"a": "first", "b": "second"}
    plan(made)
    save(made.run)
    made.ids = {"a": "another", "b": "second"}
    return made


def test_its_partitions_are_not_moved_and_the_others_are(scene: Scene) -> None:
    wait = move(scene)
    assert scene.done == [("start", [OTHER])]
    assert wait.being_deleted == {"a"}, "or the wait would find room for them without end"
    target = files_of(scene.run).plan().target
    scene.now = look(present={A: (1, 2), OTHER: target[OTHER]})
    assert move(scene) == {"there": 1, "deleted_since": 1}


def test_it_is_no_fault_at_the_end(scene: Scene) -> None:
    files = files_of(scene.run)
    scene.now = look(present={A: (1, 2), OTHER: files.plan().target[OTHER]})
    scene.wanted = replace(scene.wanted, topics=Topics(("b",)))
    prefer_leaders(scene.run)
    assert verify_plan(scene.run, asks=scene.asks) == {"partitions": 1, "added_since": 0}
    planned, before = files_to_compare(scene.run)
    for path in (planned, before):
        assert {each["topic"] for each in json.loads(path.read_text())["partitions"]} == {"b"}
    scene.ids["a"] = "first"
    assert files_to_compare(scene.run) == (files.planned, files.before)


def test_what_a_run_saved_of_it_is_not_given_back(scene: Scene) -> None:
    saved = SavedState("id", {A: (2, 3), OTHER: (2, 3)}, NOTHING, {"a": "first", "b": "second"})
    scene.wanted = replace(scene.wanted, goal=Restore(saved.assignment), topic_ids=saved.topic_ids)
    assert plan(scene)["partitions"] == 1
    assert files_of(scene.run).plan().target == {OTHER: (2, 3)}
    assert "1 topics were made anew since they were saved, and are left: a" in scene.cluster.told


def test_what_the_run_did_not_plan_to_move_is_not_given_back(scene: Scene) -> None:
    """It saves all, and knows the ids of what it plans alone: another topic may be another one by now."""
    files, third = files_of(scene.run), TopicPartition("c", 0)
    saved = {A: (1, 2), OTHER: (1, 2), third: (1, 2), TopicPartition("d", 0): (1, 2)}
    files.saved.write_text(SavedState("id", saved, NOTHING, {"a": "first", "b": "second"}).to_json())
    form = FORM | {"run": files.name}
    back = run_in({"ti": scene.context["ti"], "params": form}, scene.cluster, Signed)
    wanted = asks_to_restore(back)
    assert wanted.goal == Restore(BOTH) and wanted.topic_ids == {"a": "first", "b": "second"}
    scene.now, scene.ids = look(present={A: (2, 3), OTHER: (2, 3), third: (1, 2)}), {"a": "another", "c": "third"}
    plan(scene)
    assert set(files.plan().target) == {third}, "planned anew, of what is left"
    wanted = asks_to_restore(back)
    assert wanted.goal == Restore(BOTH | {third: (1, 2)})
    assert wanted.topic_ids == {"a": "first", "b": "second", "c": "third"}
    (files.directory / "plan.json").unlink()
    with pytest.raises(Refused, match=r"plan\.json"):
        asks_to_restore(back)


def test_the_ids_of_the_planned_topics_are_saved_with_the_assignment(scene: Scene) -> None:
    assert json.loads(files_of(scene.run).saved.read_text())["topic_ids"] == {"a": "first", "b": "second"}
    without = make_plan(DrainBrokers((1,)), PLACEMENT)
    assert without.topic_ids == {} and B in without.target
