"""What explain and preflight say of a real move, and that a cancel gives back order and throttles, in both modes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from kazoo.client import KazooClient
from labs import lab_of
from replicas import MB, RACKS, Ground, only

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.procedures.move_replicas import cancel_moves, give_back_order
from kraft_runbook.procedures.throttle_replication import read_throttles, remove_throttles
from kraft_runbook.reassignment.cancelling import saved_order
from kraft_runbook.reassignment.goals import Explicit
from kraft_runbook.reassignment.run_throttles import RunThrottles
from lab import ROOT

pytestmark = pytest.mark.long


@dataclass
class Explained(Ground):
    """``clusters``: the directory of the cluster file, which names ZooKeeper only where the cluster uses it."""

    clusters: Path = Path()

    def command(self, *arguments: str) -> tuple[int, str]:
        """``kraft-runbook`` as a person runs it."""
        of_lab = ("--cluster", "lab", "--clusters-dir", str(self.clusters))
        done = subprocess.run(
            [sys.executable, "-m", "kraft_runbook.cli.app", *arguments, *of_lab],
            env={**self.lab.place, **self.lab.environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module", params=[BrokerMode.ZOOKEEPER, BrokerMode.KRAFT], ids=str)
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explained]:
    made, told = tmp_path_factory.mktemp("clusters"), tmp_path_factory.mktemp("told")
    with lab_of(RACKS, mode=request.param, clusters=made) as lab:
        document = yaml.safe_load((made / "lab.yaml").read_text())
        if request.param is BrokerMode.KRAFT:
            del document["zookeeper"]
        (told / "lab.yaml").write_text(yaml.safe_dump(document))
        yield Explained(lab, request.param, clusters=told)


def test_a_move_is_explained_and_cancelled_to_the_order_and_the_throttles_that_were_there(ground: Explained) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    of = ("--operation", "reassignment")
    topic = ground.topic((1, 2, 3), megabytes=40)
    partition = TopicPartition(topic, 0)
    status, said = ground.command("explain", *of)
    assert (status, "nothing is being reassigned" in said) == (0, True), said
    status, said = ground.command("preflight", *of)
    assert (status, "8 passed" in said) == (0, True), said
    former = read_throttles(spec, [topic], secrets=secrets)
    before = ground.look().placement.present
    plan = ground.plan(Explicit(only(topic, (3, 4, 2))))
    ground.throttles(plan, MB)
    ground.start(plan)
    status, said = ground.command("explain", *of)
    assert status == 0 and "Replicas are being moved." in said and "% copied) at" in said, said
    assert "slowest: broker 4" in said and f"{partition}: the copy grows (broker 4)" in said, said
    assert "a throttle of 1.0 MB/s a broker is set for all brokers" in said and "throttles without" not in said, said
    status, said = ground.command("preflight", *of)
    assert (status, "KRB-MOV-003" in said and "KRB-MOV-007" in said) == (1, True), said
    assert ground.command("preflight", *of, "--gate", "cancel")[0] == 0
    ongoing = cancel_moves(spec, ground.look(settings=False), list(plan.target), secrets=secrets)
    order = saved_order(ongoing[partition], plan.target[partition], before[partition])
    assert order == (1, 2, 3)
    assert give_back_order(spec, {partition: order}, secrets=secrets) == ()
    assert remove_throttles(spec, RunThrottles.of(plan.moves, MB), former, secrets=secrets) == ()
    assert ground.until(lambda look: look.seen[partition].isr == order).seen[partition].replicas == order
    assert read_throttles(spec, [topic], secrets=secrets) == former
    assert ground.readable(topic) == ground.written[topic]


def test_what_an_old_tool_left_is_shown_and_becomes_a_plan(ground: Explained) -> None:
    if ground.mode is BrokerMode.KRAFT:
        status, said = ground.command("reassign", "plan", "--goal", "legacy")
        assert status == 3 and "zookeeper" in said.lower(), said
        return
    topic = ground.topic((1, 2))
    stuck = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [99, 2]}]}
    client = KazooClient(hosts=ground.lab.spec.ensemble.connect)
    client.start()
    try:
        client.create("/admin/reassign_partitions", json.dumps(stuck).encode())
        status, said = ground.command("explain", "--operation", "reassignment")
        assert status == 0 and "/admin/reassign_partitions holds" in said and "KRB-MOV-004" not in said, said
        assert f"stuck: {topic}-0: a target broker does not run (broker 99)" in said, said
        status, said = ground.command("reassign", "plan", "--goal", "legacy")
        assert (status, f"unknown broker: 99 for {topic}-0" in said) == (3, True), said
    finally:
        look = ground.look(settings=False)
        cancel_moves(ground.lab.spec, look, list(look.placement.ongoing), secrets=ground.lab.secrets)
        if client.exists("/admin/reassign_partitions"):
            client.delete("/admin/reassign_partitions")
        client.stop()
        client.close()
