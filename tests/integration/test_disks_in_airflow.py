"""Replicas moved between the disks of a broker by their DAG: real brokers, a real Airflow, a person at the gate."""

from __future__ import annotations

import time

import pytest
from labs import lab_of
from replicas import Ground
from test_reassignment_in_airflow import scene_on, without_zookeeper

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.evidence.store import run_name
from kraft_runbook.procedures.move_between_disks import disk_rate, look_at_disks

DAG, PACE = "move_between_disks__lab", "change_pace__lab"


@pytest.mark.long
def test_a_disk_is_emptied_behind_a_signature_and_all_goes_back_by_the_runs_name(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    made, seen, home = (tmp_path_factory.mktemp(name) for name in ("made", "seen", "airflow"))
    with lab_of(("rack-a", "rack-b"), mode=BrokerMode.KRAFT, clusters=made, disks=2) as lab:
        ground = Ground(lab, BrokerMode.KRAFT)
        topic = ground.topic((1,), (1,), (1,), megabytes=6)

        def placed() -> dict[TopicPartition, str]:
            now = look_at_disks(lab.spec, [1], secrets=lab.secrets)
            return {p: path for p, path in now[1].placed.items() if p.topic == topic}

        before = placed()
        disk = before[TopicPartition(topic, 0)]
        with scene_on(ground, without_zookeeper(made / "lab.yaml", seen), home) as scene:
            form = {"goal": "empty this disk", "broker": 1, "directory": disk, "throttle_mb": 2, "moves_a_broker": 1}
            run_id, page = scene.to_the_gate(DAG, "gate_move", **form)
            assert "move between disks" in page and disk in page and placed() == before
            scene.ended_well(DAG, run_id)
            assert disk not in placed().values() and disk_rate(lab.spec, secrets=lab.secrets) is None
            back, _ = scene.to_the_gate(DAG, "gate_move", goal="back to the old disks", run=run_name(DAG, run_id))
            scene.ended_well(DAG, back)
            assert placed() == before and ground.readable(topic) == ground.written[topic]


@pytest.mark.long
def test_copies_are_paused_take_another_rate_and_go_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One at once, so slow that the first would take a minute; paused, it ends alone, and no other begins."""
    made, seen, home = (tmp_path_factory.mktemp(name) for name in ("made", "seen", "airflow"))
    with lab_of(("rack-a", "rack-b"), mode=BrokerMode.KRAFT, clusters=made, disks=2) as lab:
        ground = Ground(lab, BrokerMode.KRAFT)
        topic = ground.topic((1,), (1,), (1,), (1,), megabytes=6)

        def on(disk: str) -> int:
            now = look_at_disks(lab.spec, [1], secrets=lab.secrets)
            return sum(path == disk for p, path in now[1].placed.items() if p.topic == topic)

        now = look_at_disks(lab.spec, [1], secrets=lab.secrets)
        disk = now[1].placed[TopicPartition(topic, 0)]
        with scene_on(ground, without_zookeeper(made / "lab.yaml", seen), home) as scene:
            stage, start = scene.stage, on(disk)
            form = {"goal": "empty this disk", "broker": 1, "directory": disk, "throttle_mb": 0.1, "moves_a_broker": 1}
            run_id, _ = scene.to_the_gate(DAG, "gate_move", **form)
            stage.client.answer(DAG, run_id, "gate_move.approve", "Approve")
            stage.wait(DAG, run_id, "carry_out.move", {"deferred"})

            def paced(**form: object) -> str:
                one = stage.start(PACE, **form)
                scene.ended_well(PACE, one)
                return stage.log(PACE, one, "change")

            assert "No new batch is to start" in paced(batches="pause")
            said = paced(throttle_mb=4)
            assert "Its throttle: 0.1 MB/s a broker, to be 4 MB/s a broker" in said
            assert disk_rate(lab.spec, secrets=lab.secrets) == "4000000"
            ends = time.monotonic() + 120
            while look_at_disks(lab.spec, [1], secrets=lab.secrets)[1].future:
                assert time.monotonic() < ends
                time.sleep(1)
            moved = on(disk)
            time.sleep(20)  # several looks of the run that waits
            assert not look_at_disks(lab.spec, [1], secrets=lab.secrets)[1].future and on(disk) == moved
            assert 0 < moved <= start
            assert "New batches are to start" in paced(batches="go on")
            scene.ended_well(DAG, run_id)
            assert on(disk) == 0 and disk_rate(lab.spec, secrets=lab.secrets) is None
            assert ground.readable(topic) == ground.written[topic]
