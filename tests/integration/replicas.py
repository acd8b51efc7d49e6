"""Topics with data on a real cluster, and what a person does with their replicas, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Offset
from confluent_kafka.admin import NewTopic
from labs import Lab

from kraft_runbook.cluster.assignment import Assignment, Move, Replicas, TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.move_replicas import prefer_first_replicas, start_next_batch
from kraft_runbook.procedures.throttle_replication import set_throttles
from kraft_runbook.reassignment.batches import ZOOKEEPER_LIMITS, Limits
from kraft_runbook.reassignment.goals import Goal, Topics
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.refusals import Reason, require_no_refusal
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.verifying import verify
from lab import supervision
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

    def look(self, **how: bool) -> Look:
        return look_at_replicas(self.lab.spec, secrets=self.lab.secrets, **how)

    def until(self, wanted: Callable[[Look], bool], *, within: float = 60) -> Look:
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

    def carry_out(self, plan: ReassignmentPlan, limits: Limits = ZOOKEEPER_LIMITS, *, within: float = 60) -> Look:
        deadline = time.monotonic() + within
        while True:
            look = self.look(settings=False)
            if read_plan(plan, look.placement).stage is PlanStage.AS_PLANNED:
                return look
            start_next_batch(self.lab.spec, plan, look, limits, secrets=self.lab.secrets)
            assert time.monotonic() < deadline, read_plan(plan, look.placement)
            time.sleep(0.3)

    def finish(self, plan: ReassignmentPlan) -> Look:
        """Carried out, with its preferred leaders elected, and verified."""
        look = self.carry_out(plan)
        assert not prefer_first_replicas(self.lab.spec, look, list(plan.target), secrets=self.lab.secrets)
        look = self.until(lambda now: verify(plan.target, now.seen, now.placement.ongoing).holds)
        for topic in {p.topic for p in plan.target}:
            assert self.readable(topic) == self.written[topic]
        return look

    def kill(self, *brokers: int) -> None:
        for broker in brokers:
            supervision.begin_stop(layout(self.lab.spec), self.lab.spec.broker(broker).service, signal="KILL")
        self.until(lambda look: not look.placement.live & set(brokers))

    def revive(self, *brokers: int) -> None:
        for broker in brokers:
            supervision.start(layout(self.lab.spec), self.lab.spec.broker(broker).service)
        wait_until_healthy(self.lab.spec, say=print)

    def throttles(self, plan: ReassignmentPlan, rate: int) -> None:
        set_throttles(self.lab.spec, plan.moves, rate, secrets=self.lab.secrets)


def only(topic: str, *lists: Replicas) -> Assignment:
    return {TopicPartition(topic, number): replicas for number, replicas in enumerate(lists)}
