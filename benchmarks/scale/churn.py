"""Metadata changes at a rate, sent to the active controller over its own listener, as brokers forward them (without the
Envelope, which it does not ask for).

Four kinds, one thread and one connection each: topics created and deleted, topic configs changed, reassignments begun
and cancelled, and ISRs shrunk and grown by AlterPartition in a stand-in's name. The kinds keep to topics of their own,
so that none spoils another's change.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.api_message import ApiMessage

from benchmarks.scale.cluster import Plan, load_spec
from benchmarks.scale.tree import partition_facts, topic_id, topic_name
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.leader import NOT_CONTROLLER, Leader
from kraft_runbook.io.kafka.stand_ins import told
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader

TOPIC_RESOURCE = 2
SET = 0
WITHIN_MS = 30_000
PREFIX = "churn"


class AlterPartitionRequest(ApiMessage, load_json="benchmarks.scale.schemas"):  # type: ignore[misc, call-arg]
    """AlterPartition (api 56, KIP-497), version 2: a leader tells its partition's new ISR."""


class AlterPartitionResponse(ApiMessage, load_json="benchmarks.scale.schemas"):  # type: ignore[misc, call-arg]
    """The answer: the partition's new epoch."""


@dataclass
class Churned:
    """``changes``: those acknowledged, by kind. ``refused``: how often which error code came, by kind. ``rate``:
    changes a second that were reached.
    """

    asked: float
    seconds: float = 0.0
    rate: float = 0.0
    changes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


def drive(plan: Plan, *, rate: float, seconds: float) -> Churned:
    """Change metadata for so long. Raises RunbookError when the controller can't be reached any more."""
    with churning(plan, rate=rate) as churned:
        time.sleep(seconds)
    return churned


@contextmanager
def churning(plan: Plan, *, rate: float) -> Iterator[Churned]:
    """Change metadata until the block ends; the figures are whole after it. Raises RunbookError then, if a thread
    failed.
    """
    spec, churned, stop = load_spec(plan), Churned(rate), threading.Event()
    kinds: dict[str, Callable[[Leader, int], int]] = {
        "topics": _topics(),
        "configs": _configs(plan),
        "reassignments": _reassignments(plan),
        "isr": _isr(plan, spec),
    }
    failures: list[RunbookError] = []
    threads = [
        threading.Thread(
            target=_work, args=(spec, kind, act, len(kinds) / rate, churned, failures, stop), name=f"churn-{kind}"
        )
        for kind, act in kinds.items()
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    try:
        yield churned
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        churned.seconds = round(time.monotonic() - began, 2)
        churned.rate = round(sum(churned.changes.values()) / churned.seconds, 1)
    if failures:
        raise failures[0]


def _work(
    spec: ClusterSpec,
    kind: str,
    act: Callable[[Leader, int], int],
    every: float,
    churned: Churned,
    failures: list[RunbookError],
    stop: threading.Event,
) -> None:
    leader, began, number = Leader(spec, environment_secrets({})), time.monotonic(), 0
    try:
        while not stop.wait(max(0.0, began + number * every - time.monotonic())):
            code = act(leader, number)
            if code:
                churned.refused[f"{kind}: error {code}"] += 1
                if code == NOT_CONTROLLER:
                    leader.close()
            else:
                churned.changes[kind] += 1
            number += 1
    except RunbookError as error:
        failures.append(error)
    finally:
        leader.close()


# -- one change of each kind: its error code ---------------------------------------------------------------------------


def _topics() -> Callable[[Leader, int], int]:
    """Create a topic of 5 partitions twice, then delete the older of the two. Names are new in each run."""
    run = int(time.time())

    def change(leader: Leader, number: int) -> int:
        if number % 3 == 2:
            topic = DeleteTopicsRequest.DeleteTopicState
            deletion = DeleteTopicsRequest(
                version=6,
                topics=[topic(name=f"{PREFIX}-{run}-{number - 2}", topic_id=UUID(int=0))],
                timeout_ms=WITHIN_MS,
            )
            return int(leader.send(deletion).responses[0].error_code)
        wanted = CreateTopicsRequest.CreatableTopic(
            name=f"{PREFIX}-{run}-{number}", num_partitions=5, replication_factor=3, assignments=[], configs=[]
        )
        creation = CreateTopicsRequest(version=5, topics=[wanted], timeout_ms=WITHIN_MS, validate_only=False)
        return int(leader.send(creation).topics[0].error_code)

    return change


def _configs(plan: Plan) -> Callable[[Leader, int], int]:
    """Set ``retention.ms`` of one topic after another, to a value that it never had."""
    topics = _share(plan, 0)

    def change(leader: Leader, number: int) -> int:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        config = resource.AlterableConfig(name="retention.ms", config_operation=SET, value=str(int(time.time() * 1000)))
        asked = resource(
            resource_type=TOPIC_RESOURCE, resource_name=topic_name(topics[number % len(topics)]), configs=[config]
        )
        answer = leader.send(IncrementalAlterConfigsRequest(version=1, resources=[asked], validate_only=False))
        return int(answer.responses[0].error_code)

    return change


def _reassignments(plan: Plan) -> Callable[[Leader, int], int]:
    """Begin to move one partition's last replica elsewhere, then cancel that: no stand-in ever catches up."""
    topics = _share(plan, 1)

    def change(leader: Leader, number: int) -> int:
        topic = topics[number // 2 % len(topics)]
        replicas = partition_facts(plan.shape, topic, 0).replicas
        elsewhere = next(each for each in range(1, plan.brokers + 1) if each not in replicas)
        asked = AlterPartitionReassignmentsRequest.ReassignableTopic
        partition = asked.ReassignablePartition(
            partition_index=0, replicas=[*replicas[:2], elsewhere] if number % 2 == 0 else None
        )
        request = AlterPartitionReassignmentsRequest(
            version=0, timeout_ms=WITHIN_MS, topics=[asked(name=topic_name(topic), partitions=[partition])]
        )
        answer = leader.send(request)
        return int(answer.error_code or answer.responses[0].partitions[0].error_code)

    return change


@dataclass
class _Partition:
    topic: int
    leader: int
    leader_epoch: int
    epoch: int
    isr: list[int]


def _isr(plan: Plan, spec: ClusterSpec) -> Callable[[Leader, int], int]:
    """Take the last replica of one partition after another out of its ISR, or put it back, in the name of the
    partition's leader.
    """
    topics = _share(plan, 2)[:200]
    with ZookeeperReader(spec.zookeeper, secrets=environment_secrets({})) as reader:
        states = reader.get_many([f"/brokers/topics/{topic_name(topic)}/partitions/0/state" for topic in topics])
    partitions = []
    for topic, znode in zip(topics, states, strict=True):
        assert znode is not None
        state = json.loads(znode.data)
        partitions.append(_Partition(topic, state["leader"], state["leader_epoch"], znode.version, state["isr"]))
    epochs = told(plan.ghosts).epochs or {}

    def change(leader: Leader, number: int) -> int:
        each = partitions[number % len(partitions)]
        replicas = partition_facts(plan.shape, each.topic, 0).replicas
        isr = [i for i in replicas if i != replicas[2]] if replicas[2] in each.isr else list(replicas)
        asked = AlterPartitionRequest.TopicData
        partition = asked.PartitionData(
            partition_index=0,
            leader_epoch=each.leader_epoch,
            new_isr=isr,
            leader_recovery_state=0,
            partition_epoch=each.epoch,
            new_isr_with_epochs=[],
        )
        topic = asked(topic_id=_uuid(each.topic), partitions=[partition])
        answer = leader.send(
            AlterPartitionRequest(version=2, broker_id=each.leader, broker_epoch=epochs[each.leader], topics=[topic])
        )
        if answer.error_code:
            return int(answer.error_code)
        found = answer.topics[0].partitions[0]
        if not found.error_code:
            each.isr, each.epoch, each.leader_epoch, each.leader = (
                isr,
                found.partition_epoch,
                found.leader_epoch,
                found.leader_id,
            )
        return int(found.error_code)

    return change


def _share(plan: Plan, which: int, of: int = 3) -> range:
    """One kind's topics: every third, from a place of its own."""
    return range(which, plan.shape.topics, of)


def _uuid(topic: int) -> UUID:
    """The topic's id as requests carry it."""
    return UUID(bytes=base64.urlsafe_b64decode(topic_id(topic) + "=="))
