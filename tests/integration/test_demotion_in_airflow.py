"""A rolling restart that takes each broker's leaders off: a real cluster in each mode, a real Airflow, workers that are
killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event

import pytest
from replicas import Ground, ground_of
from stage import ENDED, Stage, kill_worker_of_playbook, process_of_task
from test_reassignment_in_airflow import scene_on, without_zookeeper

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.reassignment.look import ReplicasLook
from lab.airflow_client import moment
from lab.layout import starts

RESTART = "rolling_restart__lab"
LEADERS = "give_leaders_back"


def led_by(look: ReplicasLook, broker: int) -> set[TopicPartition]:
    """What it leads that another broker could lead."""
    return {p for p, each in look.seen.items() if each.leader == broker and len(each.replicas) > 1}


@contextmanager
def looked_at(ground: Ground, broker: int) -> Iterator[list[tuple[datetime, bool, set[TopicPartition]]]]:
    """Looks meanwhile, again and again: when each had been taken, whether the broker lived, and what it led."""
    ends, looks = Event(), list[tuple[datetime, bool, set[TopicPartition]]]()

    def watch() -> None:
        while not ends.wait(0.3):
            look = ground.look(settings=False)
            looks.append((datetime.now(UTC), broker in look.placement.live, led_by(look, broker)))

    with ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(watch)
        try:
            yield looks
        finally:
            ends.set()
            watcher.result(60)


def kill_worker(stage: Stage, run_id: str, task: str) -> None:
    """As soon as its process is there; then clear it, as a person does."""
    os.kill(process_of_task(stage, stage.task(RESTART, run_id, task)["id"]), signal.SIGKILL)
    if stage.wait(RESTART, run_id, task, ENDED) == "failed":
        stage.resume(RESTART, run_id, task)


@pytest.mark.long
@pytest.mark.parametrize("mode", [BrokerMode.KRAFT, BrokerMode.ZOOKEEPER], ids=str)
def test_each_brokers_leaders_are_off_around_its_restart_and_back_though_workers_are_killed(
    mode: BrokerMode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made, seen, home = (tmp_path_factory.mktemp(name) for name in ("made", "seen", "airflow"))
    with ground_of(mode, made) as ground:
        clusters = made if mode is BrokerMode.ZOOKEEPER else without_zookeeper(made / "lab.yaml", seen)
        with (clusters / "lab.yaml").open("a") as written:
            written.write("rolling_restart: {gate: false, demote: true}\n")
        with scene_on(ground, clusters, home) as scene:
            stage, spec = scene.stage, ground.lab.spec
            topic = ground.topic((1, 2, 3), (2, 1, 4), (3, 4, 1), (4, 3, 2), megabytes=1)
            before, began = ground.look().placement.present, starts(spec)
            led = led_by(ground.look(), 2)
            assert led, "broker 2 must have leaders to lose"
            run_id = stage.start(RESTART, nodes="brokers")
            killed, in_sync, back = (f"restart_brokers.broker_2.{task}" for task in ("restart", "in_sync", LEADERS))
            stage.wait(RESTART, run_id, killed, {"running"})
            kill_worker_of_playbook(stage, "restart_node")
            with looked_at(ground, 2) as looks:
                assert stage.wait(RESTART, run_id, killed, ENDED) == "failed"
                demoted = {p: r for p, r in ground.look(settings=False).placement.present.items() if 2 in r}
                assert demoted and all(r[-1] == 2 for p, r in demoted.items() if len(r) > 1)
                stage.resume(RESTART, run_id, killed)
                stage.wait(RESTART, run_id, in_sync, {"success"})
            in_sync_at = moment(stage.task(RESTART, run_id, in_sync)["end_date"])
            meanwhile = [each for each in looks if each[0] < in_sync_at]
            lived = [lives for _, lives, _ in meanwhile]
            assert lived[-1] and False in lived, "it was down, and came back"
            assert not any(leads for _, _, leads in meanwhile), meanwhile
            kill_worker(stage, run_id, back)
            assert stage.run_to_its_end(RESTART, run_id) == "success", stage.failures(RESTART, run_id)
            for broker in spec.broker_ids:
                told = stage.client.xcom(RESTART, run_id, f"restart_brokers.broker_{broker}.{LEADERS}")
                assert told["given_back"] > 0 and told["left"] == 0
                assert starts(spec)[spec.broker(broker).service] - began[spec.broker(broker).service] == 1
            assert before.items() <= ground.look().placement.present.items(), "also their order"
            ground.until(
                lambda now: all(each.leader == each.replicas[0] for p, each in now.seen.items() if p in before)
            )
            assert led_by(ground.look(), 2) == led
            assert ground.readable(topic) == ground.written[topic]
