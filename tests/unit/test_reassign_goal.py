"""The goal that the command line asks for; what an old tool left in ZooKeeper is read, shown and made a plan of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import typer
from moves_seen import A, B, moves_seen
from observations import SPEC

from kraft_runbook.cli.reassign_goal import GoalName, explicit_in, goal_of, kept_in, still_meant
from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.io.zookeeper.reassignment_znodes import ReassignmentZnodes
from kraft_runbook.reassignment.demotion import KeptOrders
from kraft_runbook.reassignment.goals import DrainBrokers, Explicit, GiveBackOrder, Measure, Restore
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.refusals import Reason, refusals
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook.reassignment.throttles import Former
from kraft_runbook.steps.reassignment.files import RunFiles


def asked(name: GoalName, *brokers: int, **options: Any) -> Any:
    given = {"even": False, "factor": 0, "by": Measure.REPLICAS, "within": 0.05, "source": None} | options
    return goal_of(SPEC, name, brokers, **given)


def legacy(text: str | None) -> Any:
    znodes = ReassignmentZnodes(text, frozenset())
    return asked(GoalName.LEGACY, znodes=lambda *_, **__: znodes)


def test_the_legacy_znode_becomes_an_explicit_plan_with_every_refusal_that_kafka_does_not_make() -> None:
    """Kafka takes broker 99 from there, and waits for it for ever."""
    placement = moves_seen().look.placement
    goal = legacy('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[99,2]}]}')
    assert goal == Explicit({A: (99, 2)}, what="what /admin/reassign_partitions holds")
    found = refusals(make_plan(goal, placement), placement, declared=(1, 2, 3, 4))
    assert [each.reason for each in found] == [Reason.UNKNOWN_BROKER] and "99 for a-0" in found[0].names
    goal = legacy('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[3,2]}]}')
    assert make_plan(goal, placement).target == {A: (3, 2)}


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "/admin/reassign_partitions does not exist"), ("no JSON", "/admin/reassign_partitions: this is no plan")],
)
def test_where_nothing_can_be_converted_that_is_said(text: str | None, why: str) -> None:
    with pytest.raises(Refused, match=why):
        legacy(text)


def test_an_explicit_plan_keeps_the_log_directories_that_its_file_asks_for(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(
        '{"partitions":[{"topic":"a","partition":0,"replicas":[3,2],"log_dirs":["/d2","any"]},'
        '{"topic":"a","partition":1,"replicas":[2,1]}]}'
    )
    goal = asked(GoalName.EXPLICIT, source=file)
    assert goal == Explicit({A: (3, 2), B: (2, 1)}, "plan.json", {(3, A): "/d2"}) == explicit_in(file)


def test_a_broker_is_drained_by_bytes_where_that_is_asked_for() -> None:
    assert asked(GoalName.DRAIN_BROKERS, 1, by=Measure.BYTES) == DrainBrokers((1,), measure=Measure.BYTES)


@pytest.mark.parametrize("name", [GoalName.ADD_BROKERS, GoalName.DRAIN_BROKERS, GoalName.EXPLICIT, GoalName.RESTORE])
def test_a_goal_that_lacks_what_it_needs_is_a_wrong_usage(name: GoalName) -> None:
    with pytest.raises(typer.BadParameter, match=f"--goal {name} needs"):
        asked(name)


IDS = {"a": "id-of-a"}
BEFORE, AFTER = {A: (1, 2), B: (1, 2)}, {A: (2, 1), B: (2, 1)}


def saved(directory: Path, also: Mapping[TopicPartition, Replicas] = MappingProxyType({})) -> Path:
    """What a run saved that planned to move topic a. ``also``: what there was beside it."""
    path = directory / "saved.json"
    path.write_text(SavedState("id", {**BEFORE, **also}, Former({}, {}, {}), IDS).to_json())
    plan = ReassignmentPlan("drain", BEFORE, {A: (3, 2), B: (3, 2)}, 2, 2, topic_ids=IDS)
    RunFiles(directory).store_plan(plan, {**BEFORE, **also})
    return path


def test_what_a_run_saved_is_restored(tmp_path: Path) -> None:
    other = TopicPartition("other", 0)
    assert asked(GoalName.RESTORE, source=saved(tmp_path, {other: (1, 2)})) == Restore(BEFORE), "what it was to move"
    (tmp_path / "plan.json").unlink()
    with pytest.raises(Refused, match=r"plan\.json"):
        kept_in(tmp_path / "saved.json")


C = TopicPartition("c", 0)


def test_what_a_run_moved_by_two_plans_is_restored_as_the_first_found_it_that_names_it(tmp_path: Path) -> None:
    """Topic c was made anew between them: what was saved of it is another topic's. The second moves a-1 on."""
    path, files = saved(tmp_path, {C: (1, 2)}), RunFiles(tmp_path)
    second = {B: (3, 2), C: (2, 3)}
    plan = ReassignmentPlan("drain", second, {B: (4, 2), C: (4, 3)}, 2, 2, topic_ids={**IDS, "c": "new"})
    files.store_plan(plan, {A: (3, 2), **second})
    kept = kept_in(path)
    assert kept.goal == Restore({**BEFORE, C: (2, 3)}) and kept.topic_ids == {**IDS, "c": "new"}
    third = {A: (5, 6)}
    plan = ReassignmentPlan("drain", third, {A: (7, 6)}, 1, 1, topic_ids={"a": "made anew"})
    files.store_plan(plan, {**third, B: (5, 6), C: (4, 3)})
    kept = kept_in(path)
    assert kept.goal == Restore({**third, C: (2, 3)}) and kept.topic_ids == {"a": "made anew", "c": "new"}


def test_a_run_has_a_plan_however_far_the_next_one_was_stored(tmp_path: Path) -> None:
    """Its worker is killed, or its disk is full, between the large files and the plan."""
    path, files = saved(tmp_path), RunFiles(tmp_path)
    first = files.plan()
    other = ReassignmentPlan("drain", {A: (3, 2)}, {A: (4, 2)}, 1, 1, topic_ids=IDS)
    files.planned.unlink()
    files.planned.mkdir()  # nothing can be written over it
    with pytest.raises(OSError, match=r"planned\.json"):
        files.store_plan(other, {A: (3, 2)})
    assert files.plan() == first and kept_in(path).goal == Restore(BEFORE)
    files.planned.rmdir()
    files.store_plan(other, {A: (3, 2)})
    assert files.plan() == other and kept_in(path).goal == Restore(BEFORE)


def test_a_plan_that_another_was_written_over_is_restored_too(tmp_path: Path) -> None:
    """Known by what it saved, and the later plan found elsewhere; what somebody else moved is no such."""
    other = TopicPartition("other", 0)
    path = saved(tmp_path, {C: (1, 2), other: (1, 2)})
    (tmp_path / "plan.json").unlink()
    plan = ReassignmentPlan("drain", {C: (1, 2)}, {C: (3, 2)}, 1, 1, topic_ids={"c": "id-of-c"})
    RunFiles(tmp_path).store_plan(plan, {A: (3, 2), B: (1, 2), C: (1, 2), other: (3, 2)})
    kept = kept_in(path)
    assert kept.goal == Restore({A: (1, 2), C: (1, 2)}) and kept.topic_ids == {**IDS, "c": "id-of-c"}
    (tmp_path / "before.json").unlink()
    with pytest.raises(Refused, match=r"before\.json"):
        kept_in(path)


@pytest.mark.parametrize("name", ["saved.json", "orders.json", "broker-1.json"])
def test_of_a_run_that_demoted_brokers_the_order_alone_is_given_back(name: str, tmp_path: Path) -> None:
    """As restore_assignment does: what somebody moved since stays where it is."""
    kept = tmp_path / ("orders.json" if name == "saved.json" else name)
    kept.write_text(KeptOrders("id", BEFORE, AFTER, IDS).to_json())
    if name == "saved.json":
        saved(tmp_path)
    goal = asked(GoalName.RESTORE, source=tmp_path / name)
    assert goal == GiveBackOrder(BEFORE, AFTER)
    placement = replace(moves_seen().look.placement, present={A: (2, 1), B: (3, 1)})
    assert make_plan(goal, placement).target == {A: (1, 2)}


def test_nothing_is_given_back_of_a_topic_that_was_made_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = kept_in(saved(tmp_path))
    assert still_meant(SPEC, kept, "id", ids_of=lambda *_, **__: IDS) == Restore(BEFORE)
    assert still_meant(SPEC, kept, "id", ids_of=lambda *_, **__: {"a": "another"}) == Restore({})
    assert capsys.readouterr().err == "1 topics were made anew since they were saved, and are left: a\n"


def test_what_was_saved_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="was saved of cluster id, and this is another"):
        still_meant(SPEC, kept_in(saved(tmp_path)), "another")


def test_a_file_that_holds_nothing_that_a_run_kept_is_refused(tmp_path: Path) -> None:
    for name in ("saved.json", "broker-1.json", "orders.json"):
        with pytest.raises(Refused, match=name):
            kept_in(tmp_path / name)
        (tmp_path / name).write_text("{}")
        with pytest.raises(Refused, match=name):
            kept_in(tmp_path / name)
        (tmp_path / name).unlink()
