"""Replicas moved between the disks of a broker by their DAG: real brokers, a real Airflow, a person at the gate."""

from __future__ import annotations

import pytest
from labs import lab_of
from replicas import Ground
from test_reassignment_in_airflow import scene_on, without_zookeeper

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.evidence.store import run_name
from kraft_runbook.procedures.move_between_disks import disk_rate, look_at_disks

DAG = "move_between_disks__lab"


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
