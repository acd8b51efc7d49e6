"""An explicit plan with log directories in one run of its DAG: real brokers with two each, a real Airflow, in both
modes; its worker is killed while it copies between disks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from labs import lab_of
from replicas import Ground
from test_reassignment_in_airflow import MOVE, REASSIGN, Scene, scene_on, without_zookeeper

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.procedures.move_between_disks import disk_rate, look_at_disks


@pytest.fixture(params=[BrokerMode.KRAFT, BrokerMode.ZOOKEEPER], ids=str)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made, seen, home = (tmp_path_factory.mktemp(name) for name in ("made", "seen", "airflow"))
    with lab_of(("rack-a", "rack-b", "rack-a"), mode=request.param, clusters=made, disks=2) as lab:
        in_kraft = request.param is BrokerMode.KRAFT
        clusters = without_zookeeper(made / "lab.yaml", seen) if in_kraft else made
        with scene_on(Ground(lab, request.param), clusters, home) as opened:
            yield opened


@pytest.mark.long
def test_new_replicas_and_kept_ones_lie_where_the_plan_asks_after_one_run(scene: Scene) -> None:
    ground, secrets = scene.ground, scene.ground.lab.secrets
    topic = ground.topic((1, 2), (1, 2), (1, 2), megabytes=6)
    now = look_at_disks(ground.lab.spec, secrets=secrets)
    new = max(now[3].directories, key=lambda each: each.logs).path
    kept = {n: now[2].placed[TopicPartition(topic, n)] for n in range(3)}
    other = {n: next(each.path for each in now[2].directories if each.path != kept[n]) for n in kept}
    plan = [
        {"topic": topic, "partition": 0, "replicas": [3, 2], "log_dirs": [new, other[0]]},
        {"topic": topic, "partition": 1, "replicas": [3, 2], "log_dirs": [new, "any"]},
        {"topic": topic, "partition": 2, "replicas": [1, 2], "log_dirs": ["any", other[2]]},
    ]
    form = {"goal": "explicit", "plan": json.dumps({"version": 1, "partitions": plan}), "throttle_mb": 2}
    run_id, page = scene.to_the_gate(REASSIGN, "gate_move", **form, moves_a_broker=1)
    assert f"broker 3 is told where to make new replicas: 2 in {new}" in page
    assert "2 replicas stay on their brokers and are copied between disks" in page
    scene.stage.client.answer(REASSIGN, run_id, "gate_move.approve", "Approve")
    files = scene.stage.airflow.home / "kraft-runbook" / "reassignments"
    if scene.kill_worker(run_id, MOVE, lambda: list(files.glob("*/disks.json"))) == "failed":
        scene.stage.resume(REASSIGN, run_id, MOVE)
    scene.ended_well(REASSIGN, run_id)
    now = look_at_disks(ground.lab.spec, secrets=secrets)
    placed = {broker: {n: now[broker].placed.get(TopicPartition(topic, n)) for n in range(3)} for broker in (2, 3)}
    assert placed == {2: {0: other[0], 1: kept[1], 2: other[2]}, 3: {0: new, 1: new, 2: None}}
    assert disk_rate(ground.lab.spec, secrets=secrets) is None and not scene.throttled(topic)
    assert ground.readable(topic) == ground.written[topic]
    log = scene.stage.log(REASSIGN, run_id, "carry_out.verify")
    assert "4 of 4 replicas lie in the directories that the plan asks for" in log
