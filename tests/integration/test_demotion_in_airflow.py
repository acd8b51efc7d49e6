"""A rolling restart that takes each broker's leaders off: a real cluster, a real Airflow, a worker that is killed."""

from __future__ import annotations

import pytest
from replicas import ground_of
from stage import ENDED, kill_worker_of_playbook
from test_reassignment_in_airflow import scene_on, without_zookeeper

from kraft_runbook.cluster.observation import BrokerMode
from lab.layout import starts

RESTART = "rolling_restart__lab"
LEADERS = "give_leaders_back"


@pytest.mark.long
def test_each_brokers_leaders_are_off_around_its_restart_and_back_though_a_worker_is_killed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    made, seen, home = (tmp_path_factory.mktemp(name) for name in ("made", "seen", "airflow"))
    with ground_of(BrokerMode.KRAFT, made) as ground:
        clusters = without_zookeeper(made / "lab.yaml", seen)
        with (clusters / "lab.yaml").open("a") as written:
            written.write("rolling_restart: {gate: false, demote: true}\n")
        with scene_on(ground, clusters, home) as scene:
            stage, spec = scene.stage, ground.lab.spec
            topic = ground.topic((1, 2, 3), (2, 1, 4), (3, 4, 1), (4, 3, 2), megabytes=1)
            before, began = ground.look().placement.present, starts(spec)
            run_id = stage.start(RESTART, nodes="brokers")
            killed = "restart_brokers.broker_2.restart"
            stage.wait(RESTART, run_id, killed, {"running"})
            kill_worker_of_playbook(stage, "restart_node")
            assert stage.wait(RESTART, run_id, killed, ENDED) == "failed"
            demoted = {p: r for p, r in ground.look(settings=False).placement.present.items() if 2 in r}
            assert demoted and all(r[-1] == 2 for p, r in demoted.items() if len(r) > 1)
            stage.resume(RESTART, run_id, killed)
            assert stage.run_to_its_end(RESTART, run_id) == "success", stage.failures(RESTART, run_id)
            for broker in spec.broker_ids:
                told = stage.client.xcom(RESTART, run_id, f"restart_brokers.broker_{broker}.{LEADERS}")
                assert told["given_back"] > 0 and told["left"] == 0
                assert starts(spec)[spec.broker(broker).service] - began[spec.broker(broker).service] == 1
            assert before.items() <= ground.look().placement.present.items()
            ground.until(
                lambda now: all(each.leader == each.replicas[0] for p, each in now.seen.items() if p in before)
            )
            assert ground.readable(topic) == ground.written[topic]
