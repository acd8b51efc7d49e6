"""Moving replicas on a real cluster of four brokers in two racks, in ZooKeeper mode and in KRaft mode, with data."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from replicas import MB, Ground, command, ground_of, only, produced

from kraft_runbook.cluster.assignment import Answer, Move, TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.operation_settings import Concurrency
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.dynamic_configs import ALL_BROKERS, Entity, EntityKind, alter_configs
from kraft_runbook.io.kafka.leader_elections import elect_preferred_leaders
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.demote_broker import demote_broker, give_orders_back
from kraft_runbook.procedures.look_at_replicas import look_at_plan
from kraft_runbook.procedures.move_replicas import (
    cancel_moves,
    read_state,
    save_state,
    start_next_batch,
)
from kraft_runbook.procedures.throttle_replication import read_throttles, remove_throttles, sweep, unlist
from kraft_runbook.reassignment.batches import Limits, busiest
from kraft_runbook.reassignment.concurrency import Pace
from kraft_runbook.reassignment.goals import (
    AddBrokers,
    DemoteBrokers,
    DrainBrokers,
    EvenLeaders,
    EvenOut,
    Explicit,
    GiveBackOrder,
    Measure,
    MendRacks,
    OnDisk,
    Restore,
    SetReplicationFactor,
    Topics,
    on_disk_of_drained,
)
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.plan_file import from_json
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.progress import progress
from kraft_runbook.reassignment.refusals import Reason
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.stuck import Cause
from kraft_runbook.reassignment.throttles import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kraft_runbook.reassignment.verifying import Deviation, verify
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.reassignment.concurrency import follow, that_count
from kraft_runbook.steps.reassignment.files import RunFiles
from lab.health import admin
from lab.layout import layout

IN_BOTH = [BrokerMode.ZOOKEEPER, pytest.param(BrokerMode.KRAFT, marks=pytest.mark.long)]
"""Every day the procedures are played in ZooKeeper mode, and the DAGs in KRaft mode."""


@pytest.fixture(scope="module", params=IN_BOTH, ids=str)
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground_of(request.param, tmp_path_factory.mktemp("clusters")) as ground:
        yield ground


def test_kafkas_answer_is_each_partitions_own_and_good_ones_run_beside_bad_ones(ground: Ground) -> None:
    topic = ground.topic(*[(1, 2)] * 5)
    client = Reassignments(ground.lab.spec, secrets=ground.lab.secrets)
    ways = [(3, 2), (99, 2), (2, 2), (-1, 2), (1, 4)]
    moves = [Move(TopicPartition(topic, n), (1, 2), target) for n, target in enumerate(ways)]
    answers = client.alter([*moves, Move(TopicPartition("none", 0), (1,), (2,))])
    found = [answers[move.partition].answer for move in moves]
    bad = Answer.INVALID_REPLICA_ASSIGNMENT
    assert found == [Answer.ACCEPTED, bad, bad, bad, Answer.ACCEPTED]
    assert "99" in answers[moves[1].partition].text
    assert answers[TopicPartition("none", 0)].answer is Answer.UNKNOWN_TOPIC_OR_PARTITION
    empty = client.alter([Move(moves[1].partition, (1, 2), ())], allow_replication_factor_change=True)
    assert "mpty replica list" in empty[moves[1].partition].text
    ground.until(lambda look: not look.placement.ongoing)
    nothing = client.cancel([moves[0].partition])[moves[0].partition]
    assert nothing.answer is Answer.NO_REASSIGNMENT_IN_PROGRESS
    assert ground.look().placement.present[moves[0].partition] == (3, 2)


def test_data_goes_to_a_new_broker_and_back_and_order_leaders_and_records_stay(ground: Ground, tmp_path: Path) -> None:
    topic = ground.topic((1, 2), (2, 1), (1, 2), (2, 1), (1, 2), (2, 3), megabytes=3)
    before = ground.look()
    saved = save_state(
        tmp_path / "saved.json", before, read_throttles(ground.lab.spec, [topic], secrets=ground.lab.secrets)
    )
    assert read_state(tmp_path / "saved.json") == saved
    grown = ground.plan(AddBrokers((4,)), topic)
    assert grown.copies == grown.bound == 5  # three to broker 4, and two to broker 3 of the other rack
    ground.finish(grown)
    drained = ground.plan(DrainBrokers((1,)), topic)
    ground.finish(drained)
    assert all(1 not in replicas for p, replicas in ground.look().placement.present.items() if p.topic == topic)

    def on_disk(look: ReplicasLook) -> OnDisk:
        return on_disk_of_drained(DrainBrokers((1,)), Topics((topic,)), look.placement.present, look.logs)

    assert on_disk(before).unread == () and not on_disk(ground.until(lambda look: not on_disk(look).strays)).hidden
    back = ground.plan(Restore(read_state(tmp_path / "saved.json").assignment), topic)
    ground.finish(back)
    now = ground.look().placement.present
    assert {p: r for p, r in now.items() if p.topic == topic} == {
        p: r for p, r in before.placement.present.items() if p.topic == topic
    }


def test_a_demoted_broker_leads_nothing_until_its_order_is_given_back(ground: Ground, tmp_path: Path) -> None:
    """Kafka's own election gives it nothing back meanwhile, also after its restart; no data moves."""
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2, 3), (1, 3, 2), (2, 1, 3), (4, 3, 2), megabytes=1)
    before = ground.look().placement.present
    plan = ground.plan(DemoteBrokers((1,)), topic)
    assert plan.copies == 0 and len(plan.target) == 3
    ground.finish(plan)
    back = ground.plan(GiveBackOrder(plan.present, plan.target), topic)
    ground.finish(back)

    def as_before(look: ReplicasLook) -> bool:
        return before.items() <= look.placement.present.items()  # the group's topic came since

    assert as_before(ground.look())

    def led(look: ReplicasLook) -> int:
        return sum(found.leader == 1 for p, found in look.seen.items() if p.topic == topic)

    kept = tmp_path / "broker-1.json"
    assert demote_broker(spec, 1, kept, secrets=secrets).orders >= 3
    look = ground.look()
    assert not led(look) and demote_broker(spec, 1, kept, secrets=secrets).orders == 0
    status, said = command(ground, "plan", "--goal", "restore", "--from", str(kept), "--topics", topic)
    assert status == 0 and "give back the order from before the demotion" in said
    assert not elect_preferred_leaders(spec, [p for p in look.seen if p.topic == topic], secrets=secrets)
    assert not led(ground.look())
    ground.kill(1)
    ground.revive(1)
    assert not led(ground.look())
    found = give_orders_back(spec, kept, secrets=secrets)
    assert found is not None and not found.left and not kept.exists()
    ground.until(lambda now: led(now) == 2)
    assert as_before(ground.look()) and ground.readable(topic) == ground.written[topic]


def test_where_nobody_else_is_in_sync_a_broker_is_not_demoted(ground: Ground, tmp_path: Path) -> None:
    topic = ground.topic((1, 2))
    ground.kill(2)
    ground.until(lambda look: look.seen[TopicPartition(topic, 0)].isr == (1,))
    with pytest.raises(Refused, match=f"no replica in sync but on broker 1.*{topic}-0"):
        ground.plan(DemoteBrokers((1,)), topic)
    with pytest.raises(Refused, match="no replica in sync but on broker 1"):
        demote_broker(ground.lab.spec, 1, tmp_path / "broker-1.json", secrets=ground.lab.secrets)
    ground.revive(2)


def made(client: AdminClient, topic: str) -> bool:
    """Whether a topic could be created at brokers 1 and 2. One that was deleted is marked so for a while."""
    try:
        client.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2]])])[topic].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def test_a_topic_that_was_made_anew_under_its_name_is_not_moved(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    kept, anew = ground.topic((1, 2)), ground.topic((1, 2))
    plan = ground.plan(Explicit({**only(kept, (3, 2)), **only(anew, (3, 2))}))
    plan = replace(plan, topic_ids=topic_ids(spec, [kept, anew], secrets=secrets))
    assert set(plan.topic_ids) == {kept, anew} and len(set(plan.topic_ids.values())) == 2
    client = admin(spec)
    client.delete_topics([anew])[anew].result(30)
    ground.until(lambda look: all(p.topic != anew for p in look.seen))
    assert topic_ids(spec, [kept, anew], secrets=secrets) == {kept: plan.topic_ids[kept]}
    ground.until(lambda look: made(client, anew) or TopicPartition(anew, 0) in look.seen)
    ground.until(lambda look: TopicPartition(anew, 0) in look.seen)
    assert [move.partition.topic for move in ground.start(plan)] == [kept]
    _, reading = look_at_plan(spec, plan, secrets=secrets, deletions=True)
    assert {p.topic for p in reading.gone} == {anew}
    ground.until(lambda look: not look.placement.ongoing)
    assert ground.look().placement.present[TopicPartition(anew, 0)] == (1, 2)


def test_the_other_goals_are_reached_with_data(ground: Ground) -> None:
    topic = ground.topic((1, 3), (1, 3), (2, 4), (1, 2), (1, 2), (1, 2), megabytes=1)
    for goal, allowed in (
        (MendRacks(), ()),
        (EvenOut(), ()),
        (SetReplicationFactor(3), (Reason.REPLICATION_FACTOR,)),
        (SetReplicationFactor(2), (Reason.REPLICATION_FACTOR,)),
        (EvenOut(Measure.BYTES, within=0.3), ()),
        (EvenLeaders(), ()),
    ):
        plan = ground.plan(goal, topic, allowed=allowed)
        if not plan.is_empty:
            placement = ground.finish(plan).placement
            assert make_plan(goal, placement, topics=Topics((topic,))).is_empty, goal


def test_a_throttle_holds_progress_is_seen_and_nothing_of_it_is_left(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2), megabytes=16)
    somebody = Entity(EntityKind.TOPIC, topic)
    alter_configs(spec, {somebody: {LEADER_LIST: "7:1"}}, secrets=secrets)
    time.sleep(1.5)
    former = read_throttles(spec, [topic], secrets=secrets)
    plan = ground.plan(Explicit(only(topic, (3, 4))))
    ground.throttles(plan, rate := 4 * MB)
    ground.start(plan)
    began = time.monotonic()
    one = ground.look(settings=False)
    time.sleep(2)
    two = ground.look(settings=False)
    reading = read_plan(plan, two.placement)
    now = progress(reading, two.placement.ongoing, two.seen, two.logs, earlier=one.logs, seconds=two.at - one.at)
    assert reading.stage is PlanStage.MOVING and now.bytes_left > 0, now
    assert all(0 < each < 1.5 * rate for each in now.rates.values()), now
    cause = ground.why(TopicPartition(topic, 0), one, two)
    assert cause.cause is Cause.GROWS, cause
    ground.carry_out(plan)
    # Two copies of 16 MB from one leader: 32 MB at 4 MB/s, were the first second not free.
    assert time.monotonic() - began > 16 * MB / rate
    assert [each.where for each in sweep(spec, [topic], former, secrets=secrets, within=0)]
    assert remove_throttles(spec, RunThrottles.of(plan.moves, rate), former, secrets=secrets) == ()
    assert read_throttles(spec, [topic], secrets=secrets).lists == {topic: {LEADER_LIST: "7:1"}}
    ground.finish(plan)


@pytest.mark.long
def test_more_moves_go_on_at_once_while_brokers_are_idle_and_fewer_while_one_is_slow(
    ground: Ground, tmp_path: Path
) -> None:
    """By their own metrics. Broker 2 stands still for some seconds, so that broker 1 answers producers late."""
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2), (1, 2), megabytes=15)
    plan = ground.plan(Explicit(only(topic, (1, 4), (1, 4))))
    former = read_throttles(spec, [topic], secrets=secrets)
    ground.throttles(plan, 200_000)
    ground.start(plan)
    bounds = Concurrency(least=1, most=8, request_time_ms=1000, every=5)
    files = RunFiles(tmp_path)
    files.keep_pace(Pace(2))

    def paces(spec: ClusterSpec = spec) -> Pace:
        """What is made of the last seconds."""
        time.sleep(bounds.every + 0.1)
        now = ground.look(settings=False).placement
        assert busiest(now) == 2, "both moves must still go on"
        cluster = Cluster(spec, secrets, print)
        counting = partial(that_count, cluster, plan, now)
        found = follow(cluster, files, bounds, counting=counting, busiest=busiest(now), may_rise=True)
        files.keep_pace(found.without_changes())
        return found

    assert paces().moves == 2
    assert paces().moves == 3 and files.pace is not None
    files.keep_pace(replace(files.pace, moves=2))
    pid = supervision.processes(layout(spec))[spec.broker(2).service].pid
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(ground.write, topic, 2, 1)
        time.sleep(4)
        os.kill(pid, signal.SIGCONT)
        written.result(60)
    fewer = paces()
    assert fewer.moves == 1 and "Produce requests take broker 1" in fewer.changes[-1], fewer
    away = spec.model_copy(
        update={"brokers": tuple(each.model_copy(update={"metrics_port": 1}) for each in spec.brokers)}
    )
    assert files.pace is not None
    files.keep_pace(replace(files.pace, lowered=None))  # as long afterwards
    assert paces(away).moves == 1
    assert files.pace is not None and "broker 1: the metrics at" in files.pace.held
    assert remove_throttles(spec, RunThrottles.of(plan.moves, 200_000), former, secrets=secrets) == ()
    ground.finish(plan)


@pytest.mark.long
def test_a_copy_ends_under_a_rate_that_followers_in_sync_of_the_whole_plan_use_up(ground: Ground) -> None:
    """Kafka counts what they read of listed partitions, and lets the copy alone wait."""
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic(*[(1, 2)] * 4, megabytes=5)
    plan = ground.plan(Explicit(only(topic, *[(3, 2)] * 4)))
    former = read_throttles(spec, [topic], secrets=secrets)
    first = plan.moves[0]
    with produced(ground, topic, 4, 200_000):
        ground.throttles(plan, 700_000)
        start_next_batch(spec, plan, ground.look(), Limits(1), secrets=secrets, among=[first])
        time.sleep(15)
        assert first.partition in ground.look(settings=False).placement.ongoing, "it has the whole rate against it"
        ended = RunThrottles.of(plan.moves, 1).beyond(RunThrottles.of([first], 1))
        unlist(spec, ended, former, secrets=secrets)
        ground.until(lambda look: not look.placement.ongoing, within=90)
    assert remove_throttles(spec, RunThrottles.of(plan.moves, 700_000), former, secrets=secrets) == ()
    ground.carry_out(plan)


def test_a_move_is_cancelled_and_its_order_restored(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2), (2, 3), megabytes=6)
    before = ground.look()
    former = read_throttles(spec, [topic], secrets=secrets)
    plan = ground.plan(Explicit(only(topic, (4, 3), (4, 1))))
    ground.throttles(plan, 100_000)
    ground.start(plan)
    moving = ground.look(settings=False)
    assert set(moving.placement.ongoing) == set(plan.target)
    assert set(cancel_moves(spec, moving, list(plan.target), secrets=secrets)) == set(plan.target)
    assert not cancel_moves(spec, ground.look(settings=False), list(plan.target), secrets=secrets)
    assert remove_throttles(spec, RunThrottles.of(plan.moves, 100_000), former, secrets=secrets) == ()
    saved = {p: r for p, r in before.placement.present.items() if p.topic == topic}
    look = ground.until(lambda now: not now.placement.ongoing)
    assert {p: set(r) for p, r in look.placement.present.items() if p.topic == topic} == {
        p: set(r) for p, r in saved.items()
    }
    back = ground.plan(Restore(saved), topic)
    if not back.is_empty:
        ground.finish(back)
    assert verify(saved, ground.look().seen, {}).deviations.keys() <= {Deviation.OTHER_LEADER}


def test_what_a_dead_tool_left_behind_is_swept_up_by_name(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2))
    former = read_throttles(spec, [topic], secrets=secrets)
    left: Mapping[Entity, Mapping[str, str | None]] = {
        ALL_BROKERS: {LEADER_RATE: "1000"},
        Entity(EntityKind.BROKER, "3"): {FOLLOWER_RATE: "2000"},
        Entity(EntityKind.TOPIC, topic): {FOLLOWER_LIST: "0:2"},
    }
    alter_configs(spec, left, secrets=secrets)
    try:
        wanted = ["the brokers' default", "broker 3", f"topic {topic}"]
        deadline = time.monotonic() + 120
        found = ()
        while [each.where for each in found] != wanted:
            assert time.monotonic() < deadline, found
            time.sleep(0.3)
            found = sweep(spec, [topic], former, secrets=secrets, within=0)
    finally:
        alter_configs(spec, {entity: dict.fromkeys(values) for entity, values in left.items()}, secrets=secrets)
    assert sweep(spec, [topic], former, secrets=secrets) == ()


def test_the_command_plans_previews_watches_and_verifies(ground: Ground, tmp_path: Path) -> None:
    topic = ground.topic((1, 2), (2, 1), megabytes=1)
    file, picture = tmp_path / "plan.json", tmp_path / "plan.svg"
    drain = ("--goal", "drain-brokers", "--brokers", "1", "--topics", topic, "--throttle", "10")
    status, said = command(ground, "plan", *drain, "--out", str(file), "--picture", str(picture))
    assert (status, "2 partitions change, 2.0 MB are copied" in said) == (0, True), said
    assert picture.read_text().startswith("<svg")
    assert command(ground, "preview", "--plan", str(file))[0] == 0
    status, said = command(ground, "verify", "--plan", str(file))
    assert (status, "2 has other replicas" in said) == (1, True), said
    status, said = command(ground, "status", "--plan", str(file))
    assert (status, "the plan stands as before" in said) == (0, True), said
    ground.finish(ground.plan(Explicit(from_json(file.read_text(), source=file.name))))
    status, said = command(ground, "verify", "--plan", str(file))
    assert (status, "2 partitions compared with the plan: as planned" in said) == (0, True), said
    status, said = command(ground, "plan", "--goal", "drain-brokers", "--brokers", "9")
    assert (status, "broker 9 is not in the cluster" in said) == (3, True), said
