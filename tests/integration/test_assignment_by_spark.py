"""The whole assignment against a plan by Spark, on a real cluster: from ZooKeeper, and from the metadata log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import lab_of
from replicas import RACKS, Ground, command, only

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.io.private_file import write_private
from kraft_runbook.procedures import assignment_job
from kraft_runbook.reassignment.goals import DrainBrokers, Explicit
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.plan_file import to_json
from lab.layout import environment

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=[BrokerMode.ZOOKEEPER, BrokerMode.KRAFT], ids=str)
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with lab_of(RACKS, mode=request.param, clusters=tmp_path_factory.mktemp("clusters")) as lab:
        yield Ground(lab, request.param)


def test_the_whole_is_as_planned_after_a_move_and_somebody_elses_move_is_named(ground: Ground, tmp_path: Path) -> None:
    planned, other = ground.topic((1, 2), (2, 1), (1, 2)), ground.topic((1, 2), (3, 4))
    before = ground.look().placement.present
    plan = ground.plan(DrainBrokers((1,)), planned)
    ground.finish(plan)
    code, told = verify(ground, plan, before, tmp_path)
    assert code == 0, told
    store = "ZooKeeper" if ground.mode is BrokerMode.ZOOKEEPER else "the metadata log"
    assert f"3 partitions compared with the plan, and {len(before) - 3} others" in told and store in told, told

    ground.topic((4, 3))  # came since: no fault
    ground.finish(ground.plan(Explicit(only(other, (2, 1), (3, 4)))))
    code, told = verify(ground, plan, before, tmp_path)
    assert code == 1 and f"1 is not in the plan, and is not where it was: {other}-0" in told, told
    assert re.search(r"^  \d+ new since$", told, re.MULTILINE), told


def verify(ground: Ground, plan: ReassignmentPlan, before: object, directory: Path) -> tuple[int, str]:
    """As a person calls it; in this process, where the one JVM of Spark serves every call."""
    write_private(directory / "plan.json", to_json(plan.target))
    write_private(directory / "before.json", to_json(before))  # type: ignore[arg-type]
    files = ("--plan", str(directory / "plan.json"), "--before", str(directory / "before.json"))
    return command(ground, "verify", *files, "--spark")


def test_the_job_that_airflow_submits_leaves_the_same_answer(ground: Ground, tmp_path: Path) -> None:
    topic = ground.topic((1, 2))
    before = ground.look().placement.present
    plan = ground.plan(Explicit(only(topic, (4, 3))))
    _, told = verify(ground, plan, before, tmp_path)
    assert f"1 has other replicas: {topic}-0" in told, told  # planned, and not moved yet
    words = ["--cluster", ground.lab.spec.name, "--clusters-dir", str(ground.lab.clusters)]
    files = ["--plan", tmp_path / "plan.json", "--before", tmp_path / "before.json", "--output", tmp_path / "out.json"]
    done = subprocess.run(
        [sys.executable, str(assignment_job.__file__), *words, *map(str, files)],
        env={**os.environ, **environment(ground.lab.spec)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    report = json.loads((tmp_path / "out.json").read_text())
    assert (done.returncode, report["holds"]) == (1, False) and report["told"] in done.stdout, done.stderr
