"""A group of real old clients moves to Kafka's coordination and back by the DAG: a real Airflow, a person at the gate,
and an owner who stops and starts the members.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab
from moving_groups import (
    COMMIT_SECONDS,
    GROUP,
    PARTITIONS,
    TOPIC,
    New,
    Old,
    Records,
    begin_at_the_start,
    make_topic,
    owners,
    require_each_once,
)
from stage import Stage, a_stage

MOVE = "move_consumer_group__lab"


@dataclass
class Run:
    """One run of the DAG."""

    stage: Stage
    run_id: str

    def parked(self, task: str) -> None:
        self.stage.wait(MOVE, self.run_id, task, {"awaiting_input"})

    def answer(self, task: str, choice: str) -> None:
        self.parked(task)
        self.stage.client.answer(MOVE, self.run_id, task, choice)

    def ended(self, task: str) -> str:
        self.stage.wait(MOVE, self.run_id, task, {"success"})
        return self.stage.log(MOVE, self.run_id, task)


@pytest.fixture(scope="module")
def stage(own_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_topic(own_lab)
    with a_stage(own_lab, tmp_path_factory.mktemp("airflow")) as opened:
        yield opened


def begin(stage: Stage, direction: str) -> Run:
    """A run up to the moment in which the owner is asked to stop the members."""
    run = Run(stage, stage.start(MOVE, groups=GROUP, direction=direction, commit_interval=COMMIT_SECONDS))
    run.answer("gate_move_groups.approve", "Approve")
    run.parked("wave_1.stop.ask_owner")
    return run


@pytest.mark.long
def test_the_dag_moves_a_group_to_kafka_and_back(
    own_lab: Lab, zookeeper: KazooClient, stage: Stage, tmp_path: Path
) -> None:
    records, old, new = Records(own_lab), Old(own_lab, tmp_path), New(own_lab)
    begin_at_the_start(zookeeper)
    fences = [f"/consumers/{GROUP}/owners/{TOPIC}/{number}" for number in range(PARTITIONS)]
    with ExitStack() as records_come, ExitStack() as members:
        members.enter_context(old.running())
        by_hand.wait_until("both own partitions", lambda: len(owners(zookeeper)) == 2, within=60)
        records_come.enter_context(records.coming())
        run = begin(stage, "to Kafka")
        page = stage.client.gate(MOVE, run.run_id, "gate_move_groups.approve")["body"]
        assert f"{TOPIC}-0 ·" in page and "1 groups can be moved, 0 can not" in page
        with records.hold() as sent:
            by_hand.wait_until("old members have read all", lambda: len(set(old.read)) == sent)
            members.close()
        run.answer("wave_1.stop.ask_owner", "Done")
        assert "read back" in run.ended("wave_1.move.commit")
        run.parked("wave_1.start.ask_owner")
        assert all(zookeeper.get(path)[1].ephemeralOwner == 0 for path in fences)
        by_old = len(old.read)
        with new.running():
            run.answer("wave_1.start.ask_owner", "Done")
            said = run.ended("closing_report")
            assert "- moved to Kafka: movers" in said and "- fenced: movers (4)" in said
            back = begin(stage, "back to ZooKeeper")
        back.answer("wave_1.stop.ask_owner", "Done")
        back.parked("wave_1.start.ask_owner")
        assert not any(map(zookeeper.exists, fences))
        members.enter_context(old.running())
        back.answer("wave_1.start.ask_owner", "Done")
        assert "- moved back to ZooKeeper: movers" in back.ended("closing_report")
        with records.hold() as sent:
            by_hand.wait_until("old members have read all", lambda: len({*old.read, *new.read}) == sent)
            records.ended.set()
    require_each_once(records, old.read, new.read)
    assert min(by_old, len(new.read), len(old.read) - by_old) > 0
