"""Replicas that a plan asks for in certain log directories, on real brokers with two each, in both modes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from labs import lab_of
from replicas import Ground, command

from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.log_dirs import alter_replica_log_dirs
from kraft_runbook.procedures.move_between_disks import held_by, look_at_disks, start_disk_moves
from kraft_runbook.procedures.move_replicas import StartedInPart
from kraft_runbook.reassignment.directories import copies_left, judge_directories, lie_elsewhere, still_asked
from kraft_runbook.reassignment.disks import Logs
from kraft_runbook.reassignment.goals import Explicit
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.plan_file import directed_from_json, to_json

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=[BrokerMode.KRAFT, BrokerMode.ZOOKEEPER], ids=str)
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    clusters = tmp_path_factory.mktemp("clusters")
    with lab_of(("rack-a", "rack-b", "rack-a"), mode=request.param, clusters=clusters, disks=2) as lab:
        yield Ground(lab, request.param)


def logs(ground: Ground) -> Logs:
    return look_at_disks(ground.lab.spec, secrets=ground.lab.secrets)


def fuller(ground: Ground, broker: int) -> str:
    """The directory with as many logs or more: Kafka by itself puts some of two or more replicas into the other."""
    return max(logs(ground)[broker].directories, key=lambda each: each.logs).path


def planned(ground: Ground, topic: str, replicas: Replicas, *paths: str, partitions: int) -> ReassignmentPlan:
    """All of the topic's partitions to these replicas, in these directories, as a file of kafka-reassign-partitions."""
    entry = {"topic": topic, "replicas": list(replicas), "log_dirs": list(paths)}
    text = json.dumps({"version": 1, "partitions": [entry | {"partition": n} for n in range(partitions)]})
    target, directories = directed_from_json(text, source="f")
    return ground.plan(Explicit(target, directories=directories))


def asked(ground: Ground, plan: ReassignmentPlan) -> Directories:
    return still_asked(plan, *held_by(ground.lab.spec, plan.topics, secrets=ground.lab.secrets))


def copied(ground: Ground, plan: ReassignmentPlan) -> int:
    """What lies elsewhere is copied; returns how many replicas that were."""
    moves = copies_left(asked(ground, plan), logs(ground)).moves
    start_disk_moves(ground.lab.spec, moves, secrets=ground.lab.secrets)
    ends = time.monotonic() + 60
    while lie_elsewhere(asked(ground, plan), logs(ground)):
        assert time.monotonic() < ends
        time.sleep(0.3)
    return len(moves)


def test_new_replicas_are_made_where_the_plan_asks_and_kept_ones_are_copied_there(
    ground: Ground, tmp_path: Path
) -> None:
    topic = ground.topic((1, 2), (1, 2), (1, 2), (1, 2), megabytes=4)
    path, kept = fuller(ground, 3), fuller(ground, 2)
    plan = planned(ground, topic, (3, 2), path, kept, partitions=4)
    copies = judge_directories(plan, logs(ground))
    assert {m.broker for m in copies.moves} <= {2} and len(plan.directories_of_new) == 4
    ground.carry_out(plan)
    there = logs(ground)[3].placed
    assert {there[TopicPartition(topic, n)] for n in range(4)} == {path}
    file = tmp_path / "plan.json"
    file.write_text(to_json(plan.target, plan.directories))
    elsewhere = f"{len(copies.moves)} replicas do not lie where the plan asks for"
    assert copies.moves and elsewhere in command(ground, "verify", "--plan", str(file))[1]
    assert copied(ground, plan) == len(copies.moves) and ground.readable(topic) == ground.written[topic]
    assert "do not lie" not in command(ground, "verify", "--plan", str(file))[1]


def test_a_broker_forgets_a_directory_when_it_restarts_and_what_lies_elsewhere_is_copied(ground: Ground) -> None:
    topic = ground.topic((1, 2), (1, 2), megabytes=4)
    path = fuller(ground, 3)
    plan = planned(ground, topic, (3, 2), path, "any", partitions=2)
    spec, secrets = ground.lab.spec, ground.lab.secrets
    said = alter_replica_log_dirs(spec, spec.broker(3), {p: path for _, p in plan.directories}, secrets=secrets)
    assert set(said.values()) == {"the broker holds no replica of it"}
    ground.kill(3)
    ground.revive(3)
    ground.carry_out(ground.plan(Explicit(plan.target)))
    left = len(lie_elsewhere(asked(ground, plan), logs(ground)))
    assert left and copied(ground, plan) == left and ground.readable(topic) == ground.written[topic]


def test_a_broker_remembers_a_directory_until_it_makes_the_replica(ground: Ground) -> None:
    """So a cancel may leave one behind."""
    topic = ground.topic((1, 2), (1, 2), megabytes=1)
    path, both = fuller(ground, 3), [TopicPartition(topic, n) for n in (0, 1)]
    told = dict.fromkeys(both, path)
    alter_replica_log_dirs(ground.lab.spec, ground.lab.spec.broker(3), told, secrets=ground.lab.secrets)
    ground.carry_out(ground.plan(Explicit(dict.fromkeys(both, (3, 2)))))
    there = logs(ground)[3].placed
    assert {p: there[p] for p in both} == told


def test_a_directory_that_is_not_the_brokers_is_refused_and_nothing_moves(ground: Ground, tmp_path: Path) -> None:
    topic = ground.topic((1, 2), megabytes=1)
    plan = planned(ground, topic, (3, 2), "/nowhere", "any", partitions=1)
    with pytest.raises(Refused, match="/nowhere is none of broker 3's"):
        judge_directories(plan, logs(ground))
    with pytest.raises(StartedInPart, match="in /nowhere of broker 3: the broker has no such directory") as part:
        ground.start(plan)
    assert part.value.done == () and not ground.look(settings=False).placement.ongoing
    file = tmp_path / "plan.json"
    file.write_text(to_json(plan.target, plan.directories))
    status, said = command(ground, "preview", "--plan", str(file))
    assert status == 3 and "/nowhere is none of broker 3's" in said
