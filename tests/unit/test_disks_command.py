"""The goal of a move between disks that the command line asks for, and its plan as Kafka's own tool reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from placements import tp

from kraft_runbook.cli.disks_command import DiskGoalName, disk_goal_of
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.disk_goals import (
    EmptyDisk,
    EvenDisks,
    ExplicitDisks,
    directories_from_json,
    directories_to_json,
)
from kraft_runbook.reassignment.disk_way_back import BackToOldDisks
from kraft_runbook.reassignment.disks import DiskMove, DiskPlan

A, B = tp("t", 0), tp("t", 1)
MOVES = (DiskMove(1, A, "/d1", "/d2", 7), DiskMove(3, A, "/d1", "/d3", 7), DiskMove(2, B, "/d2", "/d1", 7))


def test_the_options_say_what_is_wanted(tmp_path: Path) -> None:
    plan, explicit = tmp_path / "disks.json", tmp_path / "explicit.json"
    plan.write_text(DiskPlan("empty /d1 of broker 1", MOVES).to_json())
    explicit.write_text(directories_to_json(MOVES, {A: (3, 2, 1), B: (2, 1)}))
    wanted = {(1, A): "/d2", (3, A): "/d3", (2, B): "/d1"}
    assert disk_goal_of(DiskGoalName.EVEN_DISKS, 0, "", None) == EvenDisks(0)
    assert disk_goal_of(DiskGoalName.EMPTY_DISK, 1, "/d1", None) == EmptyDisk(1, "/d1")
    assert disk_goal_of(DiskGoalName.BACK, None, "", plan) == BackToOldDisks(MOVES)
    earlier = (DiskMove(2, MOVES[0].partition, "/d7", "/d8"),)
    plan.with_name(f"{plan.stem}-000.json").write_text(DiskPlan("g", earlier).to_json())
    assert disk_goal_of(DiskGoalName.BACK, None, "", plan) == BackToOldDisks((*earlier, *MOVES)), "also by an earlier"
    for other in ("disks-2024.json", "disks-001-of-monday.json"):
        plan.with_name(other).write_text(DiskPlan("g", (DiskMove(3, A, "/d7", "/d8"),)).to_json())
    assert disk_goal_of(DiskGoalName.BACK, None, "", plan) == BackToOldDisks((*earlier, *MOVES)), "none of the run's"
    copy = plan.with_name("plan.json")
    copy.write_text(plan.read_text())
    copy.with_name("plan-001.json").write_text(DiskPlan("g", earlier).to_json())
    assert disk_goal_of(DiskGoalName.BACK, None, "", copy) == BackToOldDisks(MOVES), "a person's own file"
    assert disk_goal_of(DiskGoalName.EXPLICIT, None, "", explicit) == ExplicitDisks(wanted)


@pytest.mark.parametrize(
    ("name", "broker", "lacks"),
    [
        (DiskGoalName.EVEN_DISKS, None, "--broker"),
        (DiskGoalName.EMPTY_DISK, None, "--broker"),
        (DiskGoalName.EMPTY_DISK, 1, "--directory"),
        (DiskGoalName.EXPLICIT, None, "--from"),
        (DiskGoalName.BACK, None, "--from"),
    ],
)
def test_a_goal_that_lacks_what_it_needs_is_a_wrong_usage(name: DiskGoalName, broker: int | None, lacks: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"--goal {name} needs {lacks}"):
        disk_goal_of(name, broker, "", None)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="can't be read"):
        disk_goal_of(DiskGoalName.BACK, None, "", tmp_path / "none")


def test_kafkas_tool_gets_each_partition_once_with_the_replicas_that_it_has() -> None:
    """It would make other replicas of any others."""
    text = directories_to_json(MOVES, {A: (3, 2, 1), B: (2, 1)})
    assert json.loads(text)["partitions"] == [
        {"topic": "t", "partition": 0, "replicas": [3, 2, 1], "log_dirs": ["/d3", "any", "/d2"]},
        {"topic": "t", "partition": 1, "replicas": [2, 1], "log_dirs": ["/d1", "any"]},
    ]
    assert directories_from_json(text, source="f") == {(m.broker, m.partition): m.target for m in MOVES}
