"""Replicas between the log directories of one broker, on real brokers with two each, in both modes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from labs import lab_of
from replicas import MB, Ground, command

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind, alter_configs
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.procedures.move_between_disks import (
    copy_settings,
    disk_rate,
    look_at_disks,
    set_disk_rate,
    start_disk_moves,
)
from kraft_runbook.reassignment.disk_goals import (
    DiskGoal,
    EmptyDisk,
    EvenDisks,
    ExplicitDisks,
    directories_from_json,
    plan_disks,
)
from kraft_runbook.reassignment.disk_rates import CopySettings
from kraft_runbook.reassignment.disk_way_back import BackToOldDisks
from kraft_runbook.reassignment.disks import DiskMove, DiskPlan, DiskReading, Logs, next_moves, read_disks
from kraft_runbook.reassignment.stages import PlanStage
from kraft_runbook.reassignment.throttles import DISK_RATE
from lab.health import admin
from lab.tools import run_class

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=[BrokerMode.KRAFT, BrokerMode.ZOOKEEPER], ids=str)
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    clusters = tmp_path_factory.mktemp("clusters")
    with lab_of(("rack-a", "rack-b"), mode=request.param, clusters=clusters, disks=2) as lab:
        yield Ground(lab, request.param)


def logs(ground: Ground) -> Logs:
    return look_at_disks(ground.lab.spec, secrets=ground.lab.secrets)


def planned(ground: Ground, goal: DiskGoal) -> DiskPlan:
    return plan_disks(goal, logs(ground))


def start(ground: Ground, plan: DiskPlan, at_once: int = 20) -> tuple[DiskMove, ...]:
    moves = next_moves(read_disks(plan, logs(ground)), at_once)
    return start_disk_moves(ground.lab.spec, moves, secrets=ground.lab.secrets)


def until(ground: Ground, plan: DiskPlan, wanted: Callable[[DiskReading], bool], within: float = 60) -> DiskReading:
    ends = time.monotonic() + within
    while not wanted(reading := read_disks(plan, logs(ground))):
        assert time.monotonic() < ends, str(reading)
        time.sleep(0.3)
    return reading


def carry_out(ground: Ground, plan: DiskPlan) -> None:
    while (reading := read_disks(plan, logs(ground))).stage is not PlanStage.AS_PLANNED:
        start_disk_moves(ground.lab.spec, next_moves(reading, 2), secrets=ground.lab.secrets)
        until(ground, plan, lambda now: not now.moving)


def rate(ground: Ground, value: int | None) -> None:
    brokers = () if value is None else (1,)
    set_disk_rate(ground.lab.spec, None if value is None else str(value), brokers, secrets=ground.lab.secrets)


def placed(ground: Ground, topic: str) -> dict[TopicPartition, str]:
    return {p: path for p, path in logs(ground)[1].placed.items() if p.topic == topic}


def test_a_disk_is_emptied_under_a_throttle_over_a_killed_broker_and_all_goes_back(ground: Ground) -> None:
    topic = ground.topic((1,), (1,), (1,), (1,), megabytes=8)
    before = placed(ground, topic)
    disk = before[TopicPartition(topic, 0)]
    plan = planned(ground, EmptyDisk(1, disk))
    assert {m.partition for m in plan.moves} >= {p for p, path in before.items() if path == disk}
    rate(ground, 1 * MB)
    assert disk_rate(ground.lab.spec, secrets=ground.lab.secrets) == str(MB)
    start(ground, plan)
    moving = until(ground, plan, lambda now: bool(now.moving))
    time.sleep(3)
    slow = read_disks(plan, logs(ground))
    assert slow.moving and slow.bytes_left > 4 * MB, (str(moving), str(slow))
    with pytest.raises(Refused, match="being copied between disks already"):
        planned(ground, EvenDisks(1))
    ground.kill(1)
    assert read_disks(plan, logs(ground)).lost == (1,)
    ground.revive(1)
    again = until(ground, plan, lambda now: not now.lost)
    assert again.moving and not again.foreign, "Kafka goes on with its copies"
    rate(ground, None)
    carry_out(ground, plan)
    assert disk not in placed(ground, topic).values() and ground.readable(topic) == ground.written[topic]
    carry_out(ground, planned(ground, BackToOldDisks(plan.moves)))
    assert placed(ground, topic) == before and ground.readable(topic) == ground.written[topic]


def own_rate(ground: Ground, value: int | None) -> None:
    changes = {Entity(EntityKind.BROKER, "1"): {DISK_RATE: None if value is None else str(value)}}
    alter_configs(ground.lab.spec, changes, secrets=ground.lab.secrets)
    ends = time.monotonic() + 10
    while copy_settings(ground.lab.spec, (1,), secrets=ground.lab.secrets) != {1: CopySettings(None, value)}:
        assert time.monotonic() < ends
        time.sleep(0.3)


def test_a_rate_that_a_broker_has_of_its_own_counts_and_not_the_default(ground: Ground) -> None:
    topic = ground.topic((1,), (1,), megabytes=8)
    before = placed(ground, topic)
    plan = planned(ground, EmptyDisk(1, before[TopicPartition(topic, 0)]))
    own_rate(ground, 1 * MB)
    rate(ground, 500 * MB)
    start(ground, plan)
    until(ground, plan, lambda now: bool(now.moving))
    time.sleep(3)
    slow = read_disks(plan, logs(ground))
    assert slow.moving and slow.bytes_left > 2 * MB, str(slow)
    own_rate(ground, None)
    carry_out(ground, plan)
    rate(ground, None)
    carry_out(ground, planned(ground, BackToOldDisks(plan.moves)))
    assert placed(ground, topic) == before and ground.readable(topic) == ground.written[topic]


def test_a_copy_that_goes_on_is_ended_by_the_way_back(ground: Ground) -> None:
    topic = ground.topic((1,), (1,), megabytes=8)
    before = placed(ground, topic)
    disk = before[TopicPartition(topic, 0)]
    plan = planned(ground, EmptyDisk(1, disk))
    rate(ground, 1 * MB)
    start(ground, plan)
    until(ground, plan, lambda now: any(m.partition.topic == topic for m in now.moving))
    back = planned(ground, BackToOldDisks(plan.moves))
    start(ground, back)
    until(ground, back, lambda now: now.stage is PlanStage.AS_PLANNED)
    assert not logs(ground)[1].future and placed(ground, topic) == before
    rate(ground, None)
    assert ground.readable(topic) == ground.written[topic]


def test_disks_become_even_and_kafkas_own_file_is_carried_out(ground: Ground, tmp_path: Path) -> None:
    topic = ground.topic((1,), (1,), (1,), (1,), megabytes=4)
    disk = placed(ground, topic)[TopicPartition(topic, 0)]
    other = next(each.path for each in logs(ground)[1].directories if each.path != disk)
    entries = [{"topic": topic, "partition": n, "replicas": [1], "log_dirs": [other]} for n in range(4)]
    explicit = directories_from_json(json.dumps({"version": 1, "partitions": entries}), source="f")
    carry_out(ground, planned(ground, ExplicitDisks(explicit)))
    assert set(placed(ground, topic).values()) == {other}
    even = planned(ground, EvenDisks(1))
    assert even.moves
    file = tmp_path / "disks.json"
    status, said = command(ground, "disks", "--goal", "even-disks", "--broker", "1", "--out", str(file))
    assert status == 0 and f"- {len(even.moves)} replicas, " in said and f"| 1 | {disk} |" in said
    shown = json.loads(command(ground, "disks", "--goal", "even-disks", "--broker", "1", "--json")[1])
    assert len(shown["moves"]) == len(even.moves)
    again = tmp_path / "again.json"
    assert command(ground, "disks", "--goal", "explicit", "--from", str(file), "--out", str(again))[0] == 0
    assert again.read_text() == file.read_text()
    servers = ("--bootstrap-server", ground.lab.spec.bootstrap_servers[0])
    execute = (*servers, "--reassignment-json-file", str(file), "--execute")
    run_class(ground.lab.spec, "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", execute)
    until(ground, even, lambda now: now.stage is PlanStage.AS_PLANNED)
    assert not planned(ground, EvenDisks(1)).moves
    assert ground.readable(topic) == ground.written[topic]
    with pytest.raises(StepFailed, match="the broker has no such directory"):
        wrong = DiskMove(1, TopicPartition(topic, 0), disk, "/nowhere")
        start_disk_moves(ground.lab.spec, [wrong], secrets=ground.lab.secrets)


def test_a_topic_that_is_deleted_or_made_anew_meanwhile_is_nobodys(ground: Ground) -> None:
    topic = ground.topic((1,), megabytes=8)
    spec, secrets = ground.lab.spec, ground.lab.secrets
    (source,) = placed(ground, topic).values()
    plan = planned(ground, EmptyDisk(1, source))
    plan = replace(plan, moves=tuple(m for m in plan.moves if m.partition.topic == topic))
    plan = replace(plan, topic_ids=topic_ids(spec, [topic], secrets=secrets))
    rate(ground, 1 * MB)
    start(ground, plan)
    until(ground, plan, lambda now: bool(now.moving))
    client = admin(spec)
    client.delete_topics([topic])[topic].result(30)
    until(ground, plan, lambda now: bool(now.gone))
    assert read_disks(plan, logs(ground)).stage is PlanStage.AS_PLANNED
    rate(ground, None)
    assert start_disk_moves(spec, plan.moves, secrets=secrets) == ()
    client.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[1]])])[topic].result(30)
    ground.until(lambda look: TopicPartition(topic, 0) in look.seen)
    ids = topic_ids(spec, [topic], secrets=secrets)
    assert read_disks(plan, logs(ground), ids).gone == plan.moves
