"""Topics with data on a real cluster, and what a person does with their replicas, step by step."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Offset
from confluent_kafka.admin import NewTopic
from labs import Lab, lab_of

from kraft_runbook.cli.app import main
from kraft_runbook.cluster.assignment import Assignment, Move, Replicas, TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.io.kafka.controller_broker import controller_address
from kraft_runbook.io.kafka.dynamic_configs import ALL_BROKERS, Entity, EntityKind, alter_configs
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.move_replicas import prefer_first_replicas, start_next_batch
from kraft_runbook.procedures.throttle_replication import list_moves, set_rate
from kraft_runbook.reassignment.batches import ZOOKEEPER_LIMITS, Limits
from kraft_runbook.reassignment.goals import Goal, Topics
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.refusals import Reason, require_no_refusal
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.stuck import Stuck, why_not_done
from kraft_runbook.reassignment.throttles import LISTS, RATES
from kraft_runbook.reassignment.verifying import verify
from lab.health import admin, wait_until_healthy
from lab.layout import layout

MB = 1_000_000
RACKS = ("rack-a", "rack-b", "rack-a", "rack-b")
RECORD = b"x" * 10_000


@dataclass
class Ground:
    """One cluster, and what the tests wrote to it."""

    lab: Lab
    mode: BrokerMode
    written: dict[str, int] = field(default_factory=dict)

    def topic(self, *lists: Replicas, megabytes: int = 0) -> str:
        """A topic with these replicas, and so much data in each partition."""
        name = f"t-{uuid4().hex[:6]}"
        made = NewTopic(
            name,
            num_partitions=len(lists),
            replica_assignment=[list(each) for each in lists],
            config={"min.insync.replicas": "1"},
        )
        client = admin(self.lab.spec)  # its requests end with it
        client.create_topics([made])[name].result(30)
        self.until(lambda look: all(p.isr == p.replicas and p.leader for t, p in look.seen.items() if t.topic == name))
        self.write(name, len(lists), megabytes * MB // len(RECORD))
        return name

    def write(self, topic: str, partitions: int, records: int) -> None:
        """Written to every replica that is in sync."""
        servers = {"bootstrap.servers": ",".join(self.lab.spec.bootstrap_servers), "acks": "all", "linger.ms": 20}
        producer, failed = Producer(servers), []
        for number in range(records):
            for partition in range(partitions):
                producer.produce(topic, RECORD, str(number), partition, on_delivery=lambda e, _: e and failed.append(e))
            producer.poll(0)
        assert producer.flush(60) == 0 and not failed
        self.written[topic] = self.written.get(topic, 0) + records * partitions

    def readable(self, topic: str) -> int:
        """How many records a consumer gets."""
        servers = {"bootstrap.servers": ",".join(self.lab.spec.bootstrap_servers), "group.id": uuid4().hex}
        consumer = Consumer(servers)
        try:
            return sum(
                high - low
                for p in consumer.list_topics(topic, timeout=20).topics[topic].partitions
                for low, high in [consumer.get_watermark_offsets(Offset(topic, p), timeout=20)]
            )
        finally:
            consumer.close()

    def look(self, **how: bool) -> ReplicasLook:
        return look_at_replicas(self.lab.spec, secrets=self.lab.secrets, **how)

    def until(self, wanted: Callable[[ReplicasLook], bool], *, within: float = 300) -> ReplicasLook:
        deadline = time.monotonic() + within
        while not wanted(look := self.look(settings=False)):
            assert time.monotonic() < deadline, look.placement.ongoing
            time.sleep(0.3)
        return look

    def plan(self, goal: Goal, *topics: str, allowed: tuple[Reason, ...] = ()) -> ReassignmentPlan:
        placement = self.look().placement
        plan = make_plan(goal, placement, topics=Topics(topics or (".*",)))
        require_no_refusal(plan, placement, declared=self.lab.spec.broker_ids, allowed=allowed)
        return plan

    def start(self, plan: ReassignmentPlan, limits: Limits = ZOOKEEPER_LIMITS) -> tuple[Move, ...]:
        return start_next_batch(self.lab.spec, plan, self.look(settings=False), limits, secrets=self.lab.secrets)

    def carry_out(
        self, plan: ReassignmentPlan, limits: Limits = ZOOKEEPER_LIMITS, *, within: float = 300
    ) -> ReplicasLook:
        deadline = time.monotonic() + within
        while True:
            look = self.look(settings=False)
            if read_plan(plan, look.placement).stage is PlanStage.AS_PLANNED:
                return look
            start_next_batch(self.lab.spec, plan, look, limits, secrets=self.lab.secrets)
            assert time.monotonic() < deadline, read_plan(plan, look.placement)
            time.sleep(0.3)

    def finish(self, plan: ReassignmentPlan) -> ReplicasLook:
        """Carried out, with its preferred leaders elected, and verified."""
        look = self.carry_out(plan)
        assert not prefer_first_replicas(self.lab.spec, look, list(plan.target), secrets=self.lab.secrets)
        look = self.until(lambda now: verify(plan.target, now.seen, now.placement.ongoing).holds)
        for topic in {p.topic for p in plan.target}:
            assert self.readable(topic) == self.written[topic]
        return look

    def why(self, partition: TopicPartition, earlier: ReplicasLook, now: ReplicasLook) -> Stuck:
        """Why a throttled move has not ended."""
        moving, seen, live = now.placement.ongoing[partition], now.seen[partition], now.placement.live
        return why_not_done(partition, moving, seen, live, earlier=earlier.logs, now=now.logs, throttled=True)

    def kill(self, *brokers: int) -> None:
        for broker in brokers:
            self.kill_at_once(self.lab.spec.broker(broker).service)
        self.until(lambda look: not look.placement.live & set(brokers))

    def kill_at_once(self, service: str) -> None:
        """Without waiting until the cluster knows."""
        supervision.begin_stop(layout(self.lab.spec), service, signal="KILL")

    def controller(self) -> str:
        """The service that is the controller: a broker, or the node that leads the quorum."""
        spec, secrets = self.lab.spec, self.lab.secrets
        if self.mode is BrokerMode.KRAFT:
            return spec.controller(describe_quorum(spec, secrets=secrets).leader_id).service
        _, who = controller_address(spec, secrets=secrets)
        return spec.broker(int(who.removeprefix("broker "))).service

    def revive(self, *brokers: int) -> None:
        self.revive_alone(*brokers)
        wait_until_healthy(self.lab.spec, say=print)

    def revive_alone(self, *brokers: int) -> None:
        """Until they answer; what moves to them need not be in sync."""
        for broker in brokers:
            supervision.start(layout(self.lab.spec), self.lab.spec.broker(broker).service)
        self.until(lambda look: look.logs.keys() >= set(brokers))

    def mend(self) -> None:
        """Whatever a test left, the next one finds every node up, nothing that moves and no throttle."""
        spec, secrets, here = self.lab.spec, self.lab.secrets, layout(self.lab.spec)
        topics = {p.topic for p in self.look(settings=False).seen}
        lists = {Entity(EntityKind.TOPIC, topic): dict.fromkeys(LISTS) for topic in topics}
        alter_configs(spec, {ALL_BROKERS: dict.fromkeys(RATES), **lists}, secrets=secrets)
        services = supervision.processes(here)
        for node in (*spec.controllers, *spec.brokers):
            wanted = self.mode is BrokerMode.KRAFT or node in spec.brokers
            if wanted and not services[node.service].runs:
                supervision.start(here, node.service)
        self.until(lambda look: not look.placement.ongoing and look.logs.keys() >= set(spec.broker_ids), within=120)
        own = {Entity(EntityKind.BROKER, str(broker)): dict.fromkeys(RATES) for broker in spec.broker_ids}
        alter_configs(spec, own, secrets=secrets)
        wait_until_healthy(spec, say=print)

    def throttles(self, plan: ReassignmentPlan, rate: int) -> None:
        set_rate(self.lab.spec, rate, secrets=self.lab.secrets)
        list_moves(self.lab.spec, plan.moves, secrets=self.lab.secrets)


def only(topic: str, *lists: Replicas) -> Assignment:
    return {TopicPartition(topic, number): replicas for number, replicas in enumerate(lists)}


@contextmanager
def produced(ground: Ground, topic: str, partitions: int, rate: int) -> Iterator[None]:
    """Meanwhile so many bytes a second come to each partition."""
    ends = Event()

    def produce() -> None:
        while not ends.wait(0.5):
            ground.write(topic, partitions, rate // 2 // len(RECORD))

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(produce)
        try:
            yield
        finally:
            ends.set()
            running.result(60)


@contextmanager
def ground_of(mode: BrokerMode, clusters: Path) -> Iterator[Ground]:
    """A new, empty cluster of four brokers in two racks."""
    with lab_of(RACKS, mode=mode, clusters=clusters) as lab:
        yield Ground(lab, mode)


def command(ground: Ground, *arguments: str) -> tuple[int, str]:
    """``kraft-runbook reassign`` as a person runs it, but in this process: its start takes longer than the answer."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(said), redirect_stderr(said):
        for name, value in (ground.lab.environment | ground.lab.place).items():
            patched.setenv(name, value)
        patched.setattr(sys, "argv", ["kraft-runbook", "reassign", *arguments, "--cluster", "lab"])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, said.getvalue()
