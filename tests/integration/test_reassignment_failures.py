"""What dies while replicas move, on a real cluster in both modes: targets, sources, the controller, the tool that
moves. Producers and consumers work meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from replicas import MB, Ground, ground_of, only

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.operation_settings import Concurrency
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.dynamic_configs import ALL_BROKERS, Entity, EntityKind, alter_configs
from kraft_runbook.procedures.move_replicas import CancelledInPart, cancel_moves, prefer_first_replicas
from kraft_runbook.procedures.throttle_replication import read_throttles, remove_throttles, sweep
from kraft_runbook.reassignment.batches import Limits, busiest
from kraft_runbook.reassignment.concurrency import Pace
from kraft_runbook.reassignment.goals import DrainBrokers, Explicit, ReplaceLost, Restore
from kraft_runbook.reassignment.plan_file import to_json
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.stuck import Cause
from kraft_runbook.reassignment.throttles import FOLLOWER_LIST, FOLLOWER_RATE, LISTS, RATES, throttled_lists
from kraft_runbook.reassignment.verifying import verify
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.reassignment.concurrency import follow, that_count
from kraft_runbook.steps.reassignment.files import RunFiles
from lab.account import Account
from lab.tools import run_class
from lab.workload import PLAIN, TRANSACTIONS, work

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=[BrokerMode.ZOOKEEPER, BrokerMode.KRAFT], ids=str)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground_of(request.param, tmp_path_factory.mktemp("clusters")) as ground:
        yield ground


@pytest.fixture
def ground(cluster: Ground) -> Iterator[Ground]:
    """The cluster, mended after each test, however that ended."""
    yield cluster
    cluster.mend()


def test_a_target_that_dies_is_named_and_the_move_ends_when_it_is_back(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2), megabytes=20)
    former = read_throttles(spec, [topic], secrets=secrets)
    plan = ground.plan(Explicit(only(topic, (1, 4))))
    ground.throttles(plan, MB)
    ground.start(plan)
    ground.kill(4)
    look = ground.look(settings=False)
    cause = ground.why(TopicPartition(topic, 0), look, look)
    assert (cause.cause, cause.brokers) == (Cause.TARGET_DEAD, (4,))
    ground.revive_alone(4)
    assert remove_throttles(spec, RunThrottles.of(plan.moves, MB), former, secrets=secrets) == ()
    ground.finish(plan)


def test_fewer_moves_go_on_at_once_when_a_broker_dies_and_leaves_partitions_under_min_isr(
    ground: Ground, tmp_path: Path
) -> None:
    """No more go on while it is away, however idle the others are, and more once it is back."""
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic, safe = ground.topic((1, 2), (1, 2), megabytes=20), ground.topic((3, 4), (3, 4))
    alter_configs(spec, {Entity(EntityKind.TOPIC, safe): {"min.insync.replicas": "2"}}, secrets=secrets)
    former = read_throttles(spec, [topic], secrets=secrets)
    plan = ground.plan(Explicit(only(topic, (3, 2), (3, 2))))
    ground.throttles(plan, 100_000)
    ground.start(plan)
    bounds, files = Concurrency(least=1, most=8, request_time_ms=1000, every=5), RunFiles(tmp_path)
    files.keep_pace(Pace(2))

    def paces() -> Pace:
        time.sleep(bounds.every + 0.1)
        now = ground.look(settings=False).placement
        cluster = Cluster(spec, secrets, print)
        counting = partial(that_count, cluster, plan, now)
        found = follow(cluster, files, bounds, counting=counting, busiest=busiest(now), may_rise=True)
        files.keep_pace(found.without_changes())
        return found

    assert paces().moves == 2
    ground.kill(4)
    told = []
    while not told:
        found = paces()
        assert found.moves <= 2
        told += found.changes
    assert told == [
        "1 copies at once at a broker, instead of 2:"
        " 2 partitions that broker 3 leads are under min.insync.replicas, 0 were"
    ]
    assert [paces().moves for _ in range(2)] == [1, 1]
    ground.revive_alone(4)
    ground.until(lambda look: all(p.isr == p.replicas for t, p in look.seen.items() if t.topic == safe))
    assert files.pace is not None and files.pace.lowered is not None
    files.keep_pace(replace(files.pace, lowered=None))  # as some minutes later
    paces()  # what it shows first is only kept
    assert max(paces().moves for _ in range(3)) > 1
    assert remove_throttles(spec, RunThrottles.of(plan.moves, 100_000), former, secrets=secrets) == ()
    ground.finish(plan)


def test_a_leading_source_that_dies_is_replaced_and_the_move_ends_without_it(ground: Ground) -> None:
    """Its old copy is deleted once it is back in KRaft mode. In ZooKeeper mode it stays on the disk: the controller
    tells a broker that comes back what it holds, not what it holds no more.
    """
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2), megabytes=20)
    partition = TopicPartition(topic, 0)
    former = read_throttles(spec, [topic], secrets=secrets)
    plan = ground.plan(Explicit(only(topic, (3, 4))))
    ground.throttles(plan, MB)
    ground.start(plan)
    ground.kill(1)
    look = ground.until(lambda now: now.seen[partition].leader == 2)
    assert partition in look.placement.ongoing and 1 not in look.seen[partition].isr
    assert ground.why(partition, look, look).cause not in (Cause.LEADERLESS, Cause.TARGET_DEAD)
    assert remove_throttles(spec, RunThrottles.of(plan.moves, MB), former, secrets=secrets) == ()
    ground.finish(plan)
    ground.revive(1)
    stays = {1} if ground.mode is BrokerMode.ZOOKEEPER else set()
    ground.until(lambda now: {b for b, sizes in now.logs.items() if partition in sizes} == {3, 4} | stays)


def test_the_only_source_that_dies_leaves_no_leader_and_the_move_ends_when_it_is_back(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((2,), megabytes=20)
    partition = TopicPartition(topic, 0)
    former = read_throttles(spec, [topic], secrets=secrets)
    plan = ground.plan(Explicit(only(topic, (4,))))
    ground.throttles(plan, MB)
    ground.start(plan)
    ground.kill(2)
    look = ground.until(lambda now: now.seen[partition].leader is None)
    cause = ground.why(partition, look, look)
    assert (cause.cause, cause.brokers) == (Cause.LEADERLESS, (2,))
    with pytest.raises(Refused, match="cancelling would lose data") as refused:
        cancel_moves(spec, look, [partition], secrets=secrets)
    assert "start broker 2" in refused.value.way_out
    ground.revive_alone(2)
    assert remove_throttles(spec, RunThrottles.of(plan.moves, MB), former, secrets=secrets) == ()
    ground.finish(plan)


def test_a_cancel_of_several_requests_leaves_alone_what_would_lose_data_and_cancels_the_rest(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic, alone = ground.topic(*[(1, 3)] * 5, megabytes=6), ground.topic((2,), megabytes=6)
    former = read_throttles(spec, [topic, alone], secrets=secrets)
    plan = ground.plan(Explicit({**only(topic, *[(1, 4)] * 5), **only(alone, (4,))}))
    ground.throttles(plan, MB // 4)
    ground.start(plan)
    ground.kill(2)
    look = ground.until(lambda now: now.seen[TopicPartition(alone, 0)].leader is None)
    assert set(look.placement.ongoing) == set(plan.target)
    said = "5 reassignments are cancelled, and not all: cancelling would lose data"
    with pytest.raises(CancelledInPart, match=said) as told:
        cancel_moves(spec, look, list(plan.target), secrets=secrets, at_once=2)
    assert set(told.value.done) == {p for p in plan.target if p.topic == topic}
    assert "start broker 2" in told.value.way_out
    ground.until(lambda now: {now.placement.present[each] for each in told.value.done} == {(1, 3)})
    assert set(ground.look(settings=False).placement.ongoing) == {TopicPartition(alone, 0)}
    ground.revive_alone(2)
    assert remove_throttles(spec, RunThrottles.of(plan.moves, MB // 4), former, secrets=secrets) == ()
    ground.finish(plan)


def test_what_lay_on_a_lost_broker_is_made_anew_and_it_may_come_back(ground: Ground) -> None:
    """It finds its replicas taken from it, and deletes what it has of them in KRaft mode. In ZooKeeper mode the
    controller tells it of none, so they stay on its disk.
    """
    topic = ground.topic((1, 4), (4, 2), (3, 2), megabytes=4)
    alone = ground.topic((4,))
    ground.kill(4)
    ground.until(lambda look: look.seen[TopicPartition(alone, 0)].leader is None)
    plan = ground.plan(ReplaceLost((4,)), topic, alone)
    assert set(plan.target) == {TopicPartition(topic, 0), TopicPartition(topic, 1)} and plan.copies == 2
    assert any(
        f"without a leader are left out, since a copy is read from the leader: {alone}-0" in n for n in plan.notes
    )
    look = ground.finish(plan)
    assert all(4 not in each.replicas for p, each in look.seen.items() if p.topic == topic)
    assert look.placement.present[TopicPartition(topic, 2)] == (3, 2)
    ground.revive_alone(4)
    if ground.mode is BrokerMode.KRAFT:
        ground.until(lambda now: not any(p.topic == topic for p in now.logs[4]))
    else:
        time.sleep(5)
        assert {p for p in ground.look().logs[4] if p.topic == topic} == set(plan.target)
    assert ground.readable(topic) == ground.written[topic]


def test_a_controller_that_dies_costs_a_wait_and_batches_go_on_with_the_next(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    controller = ground.controller()
    ways = ((1, 3, 2), (1, 3, 4), (2, 4, 1), (2, 4, 3))
    old, new, stays = next(each for each in ways if controller not in {spec.broker(b).service for b in each})
    topic = ground.topic(*[(old, stays)] * 3, megabytes=6)
    former = read_throttles(spec, [topic], secrets=secrets)
    plan = ground.plan(Explicit(only(topic, *[(new, stays)] * 3)))
    ground.throttles(plan, MB)
    one_a_request = Limits(1, 20, None)
    assert len(ground.start(plan, one_a_request)) == 1
    before = ground.look(settings=False).placement.ongoing
    ground.kill_at_once(controller)
    began = time.monotonic()
    assert len(ground.start(plan, one_a_request)) == 1
    seconds = time.monotonic() - began
    now = ground.look(settings=False).placement.ongoing
    print(f"{controller} killed: the next batch was taken {seconds:.1f} s later; moving {len(before)}, then {len(now)}")
    assert before.items() <= now.items() and len(now) == 2
    assert ground.controller() != controller
    assert remove_throttles(spec, RunThrottles.of(plan.moves, MB), former, secrets=secrets) == ()
    ground.finish(plan)


def test_a_cancel_that_would_lose_every_record_is_refused(ground: Ground) -> None:
    """[1, 2] to [3, 4]: 3 is in sync, 4 is held back, then 1 and 2 die and 3 leads. In ZooKeeper mode Kafka would
    cancel, and delete the one whole copy.

    Broker 4 alone is throttled, as a follower. A leader's throttle would hold 3 back as well: it counts for every
    follower that is not in sync.
    """
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2), megabytes=16)
    partition = TopicPartition(topic, 0)
    plan = ground.plan(Explicit(only(topic, (3, 4))))
    of_topic = Entity(EntityKind.TOPIC, topic)
    alter_configs(spec, {of_topic: {FOLLOWER_LIST: "0:4"}, ALL_BROKERS: {FOLLOWER_RATE: "1000"}}, secrets=secrets)
    time.sleep(2)  # until brokers know it
    ground.start(plan)
    ground.until(lambda look: 3 in look.seen[partition].isr)
    ground.kill(1, 2)
    look = ground.until(lambda now: now.seen[partition].leader == 3)
    assert 4 not in look.seen[partition].isr
    with pytest.raises(Refused, match=r"cancelling would lose data: .* none of the replicas") as refused:
        cancel_moves(spec, look, [partition], secrets=secrets)
    assert "let the reassignment end: broker 3 holds all of it" in refused.value.way_out
    assert partition in ground.look(settings=False).placement.ongoing
    alter_configs(spec, {of_topic: {FOLLOWER_LIST: None}, ALL_BROKERS: {FOLLOWER_RATE: None}}, secrets=secrets)
    ground.carry_out(plan)
    ground.revive(1, 2)
    ground.finish(plan)


def test_throttles_of_a_run_that_died_are_swept_also_with_a_broker_dead(ground: Ground) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2), (3, 4), megabytes=8)
    former = read_throttles(spec, [topic], secrets=secrets)
    plan = ground.plan(Explicit(only(topic, (1, 4), (3, 2))))
    ground.throttles(plan, MB)
    ground.start(plan)
    ground.kill(4)  # its entries stand in the topic's lists
    assert all("4" in str(entries) for entries in throttled_lists(plan.moves)[topic].values())
    left = sweep(spec, [topic], former, secrets=secrets, within=0)
    assert {each.where for each in left} == {"the brokers' default", f"topic {topic}"}
    assert remove_throttles(spec, RunThrottles.of(plan.moves, MB), former, secrets=secrets) == ()
    ground.revive_alone(4)
    assert sweep(spec, [topic], former, secrets=secrets) == ()
    ground.finish(plan)


def test_what_kafkas_own_tool_leaves_is_named_broker_by_broker_once_that_runs(ground: Ground, tmp_path: Path) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    topic = ground.topic((1, 2), megabytes=20)
    former = read_throttles(spec, [topic], secrets=secrets)
    plan, file = ground.plan(Explicit(only(topic, (1, 4)))), tmp_path / "plan.json"
    file.write_text(to_json(plan.target))
    asked = (
        f"--bootstrap-server {spec.bootstrap_servers[0]} --reassignment-json-file {file} --execute --throttle 1000000"
    )
    run_class(spec, "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", asked.split())
    ground.kill(4)
    left = sweep(spec, [topic], former, secrets=secrets, within=0)
    assert {each.where for each in left} == {"broker 1", "broker 2", f"topic {topic}"}
    rates = dict.fromkeys(RATES)
    of_brokers = {Entity(EntityKind.BROKER, str(broker)): rates for broker in (1, 2)}
    lists = dict.fromkeys(LISTS)
    alter_configs(spec, {**of_brokers, Entity(EntityKind.TOPIC, topic): lists}, secrets=secrets)
    assert sweep(spec, [topic], former, secrets=secrets) == ()
    ground.revive_alone(4)
    assert {each.where for each in sweep(spec, [topic], former, secrets=secrets, within=0)} == {"broker 4"}
    alter_configs(spec, {Entity(EntityKind.BROKER, "4"): rates}, secrets=secrets)
    assert sweep(spec, [topic], former, secrets=secrets) == ()
    ground.finish(plan)


def test_producers_and_consumers_lose_nothing_while_a_broker_is_drained_killed_and_given_back_all(
    ground: Ground,
) -> None:
    spec, secrets = ground.lab.spec, ground.lab.secrets
    over = threading.Event()
    accounts: list[Account] = []
    workload = threading.Thread(target=lambda: accounts.append(work(spec, over, status=None)), daemon=True)
    workload.start()
    topics = (PLAIN, TRANSACTIONS, "__consumer_offsets", "__transaction_state")
    try:
        ground.until(lambda look: set(topics) <= {p.topic for p in look.seen})
        saved = {p: r for p, r in ground.look().placement.present.items() if p.topic in topics}
        drained = ground.plan(DrainBrokers((1,)), *topics)
        ground.start(drained, Limits(2, 20, None))
        ground.kill(1)
        ground.carry_out(drained, Limits(2, 20, None), within=180)
        ground.revive(1)
        look = ground.carry_out(ground.plan(Restore(saved), *topics), within=180)
        assert not prefer_first_replicas(spec, look, list(saved), secrets=secrets)
        ground.until(lambda now: verify(saved, now.seen, now.placement.ongoing).holds)
    finally:
        over.set()
        workload.join(150)
    (account,) = accounts
    print(account)
    assert account.good and account.consumed_by_group, account
