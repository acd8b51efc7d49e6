"""Groups of migrating members are toggled by the DAGs: a real Airflow, a person at the gate, and a run without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import by_hand
import pytest
import yaml
from kazoo.client import KazooClient
from labs import Lab
from migrating_members import Group, await_mode
from stage import Stage, a_stage
from toggling_runs import INTERVAL, await_shares

from kraft_runbook_consumer import MigratingConsumer, Mode
from lab import ROOT

ONE, FLEET, WATCH = "toggle_consumer_group__lab", "toggle_consumer_groups__lab", "group_watch__lab"
NAME = "toggled"
CALM: dict[str, Any] = {"metric": "jvm_memory_used_bytes", "labels": {"area": "heap"}, "above": 1e15}


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clusters")


def write(clusters: Path, relief: dict[str, Any]) -> None:
    """The lab's file, which lets runs without a person toggle the group."""
    document = yaml.safe_load((ROOT / "include" / "clusters" / "lab.yaml").read_text())
    document["group_toggles"] = {
        "groups": [NAME],
        "unchanged_for": 1,
        "commit_interval": INTERVAL,
        "schedule": None,
        "relief": relief,
    }
    text = yaml.safe_dump(document, sort_keys=False).replace("${PROJECT_ROOT}", str(ROOT))
    (clusters / "lab.yaml").write_text(text)


@pytest.fixture(scope="module")
def stage(own_lab: Lab, clusters: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    write(clusters, CALM)
    with a_stage(own_lab, tmp_path_factory.mktemp("airflow"), clusters=clusters) as opened:
        yield opened


def toggle(stage: Stage, members: list[MigratingConsumer], direction: str, mode: Mode) -> str:
    """One run of the DAG; returns the page that was signed."""
    run = stage.start(ONE, group=NAME, direction=direction, commit_interval=INTERVAL, soak_minutes=0.1)
    stage.wait(ONE, run, "gate_toggle_group.approve", {"awaiting_input"})
    page = str(stage.client.gate(ONE, run, "gate_toggle_group.approve")["body"])
    stage.client.answer(ONE, run, "gate_toggle_group.approve", "Approve")
    stage.wait(ONE, run, "closing_report", {"success"})
    assert f"- soaked: {NAME}" in stage.log(ONE, run, "closing_report")
    await_mode(members, mode)
    return page


def fleet(stage: Stage, *, ends: str = "success") -> str:
    """One run without a person; returns what its step says."""
    run = stage.start(FLEET)
    stage.wait(FLEET, run, "closing_report", {"success", "failed"})
    by_hand.wait_until(f"the run is a {ends}", lambda: stage.client.run_state(FLEET, run) == ends, within=60)
    return stage.log(FLEET, run, "toggle") + stage.log(FLEET, run, "settled")


@pytest.mark.long
def test_the_dags_toggle_a_group_and_relieve_it(
    own_lab: Lab, zookeeper: KazooClient, stage: Stage, clusters: Path, tmp_path: Path
) -> None:
    group = Group(own_lab, NAME, tmp_path)
    group.make_topic()
    claim = f"/consumers/{NAME}/kraft_runbook_claim"
    with ExitStack() as stack:
        with group.records():
            members = [stack.enter_context(group.member()) for _ in range(2)]
            await_shares(group, [6, 6])
            page = toggle(stage, members, "to Kafka", Mode.KAFKA)
            assert "`/consumers/toggled/migration/mode` changes from absent to kafka" in page
            assert f"- `{members[0].member_id}`" in page
            toggle(stage, members, "back to ZooKeeper", Mode.ZOOKEEPER)
            assert not zookeeper.exists(claim)
            assert "unchanged for 0 of 1 s" in fleet(stage)
            assert f"{NAME}: toggled to Kafka" in fleet(stage)
            await_mode(members, Mode.KAFKA)
            watch = stage.start(WATCH)
            stage.wait(WATCH, watch, "watch", {"success"})
            write(clusters, {**CALM, "above": 1})
            assert "relieved: jvm_memory_used_bytes is" in fleet(stage, ends="failed")
            await_mode(members, Mode.ZOOKEEPER)
            assert not zookeeper.exists(claim)
        group.require_each_once()
