"""Read what a reassignment needs to know: brokers, partitions, what moves, sizes, free bytes, min.insync.replicas."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from kraft_runbook.cluster.assignment import Ongoing, Replicas, TopicPartition
from kraft_runbook.cluster.log_dirs import BrokerLogs
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.assignment_seen import assignment_seen
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind, read_configs
from kraft_runbook.io.kafka.log_dirs import describe_log_dirs
from kraft_runbook.io.kafka.metadata_quorum import broker_mode
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reassignment_znodes import ReassignmentZnodes, read_reassignment_znodes
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.placement import Placement

MIN_ISR = "min.insync.replicas"


def look_at_replicas(
    spec: ClusterSpec, *, secrets: Secrets, sizes_of: Collection[TopicPartition] | None = None, settings: bool = True
) -> Look:
    """``sizes_of``: of these partitions alone, for quick looks at what moves; ``settings`` False: without
    min.insync.replicas and what ZooKeeper holds.

    What moves is listed before and after Metadata is read: a move that ends in between counts as moving. Raises
    Unreachable where no broker answers, or a running one does not describe its logs when a plan is to be made
    (``settings``).
    """
    reassignments = Reassignments(spec, secrets=secrets)
    before = reassignments.ongoing()
    seen = assignment_seen(spec, secrets=secrets)
    ongoing = {**before, **reassignments.ongoing()}
    at = time.monotonic()
    logs, unread = _logs(spec, seen.racks, secrets, sizes_of)
    topics = sorted({p.topic for p in seen.partitions})
    znodes = ReassignmentZnodes(None, frozenset())
    min_isr: dict[str, int] = {}
    if settings:
        if unread:
            raise Unreachable(
                f"not every live broker described its log directories: {'; '.join(unread.values())}",
                way_out="without sizes and free bytes nothing is planned; mend the broker, then do this again",
            )
        min_isr = _min_isr(spec, topics, secrets)
        znodes = _znodes(spec, secrets)
    sizes: dict[TopicPartition, int] = {}
    for each in logs.values():
        for partition, size in each.sizes.items():
            sizes[partition] = max(size, sizes.get(partition, 0))
    placement = Placement(
        seen.racks,
        {p: _present(found.replicas, ongoing.get(p)) for p, found in seen.partitions.items()},
        ongoing={p: moving for p, moving in ongoing.items() if p in seen.partitions},
        sizes=sizes,
        usable={broker: each.usable for broker, each in logs.items()},
        min_isr=min_isr,
        being_deleted=znodes.being_deleted,
    )
    by_broker = {broker: each.sizes for broker, each in logs.items()}
    return Look(seen.cluster_id, placement, seen.partitions, by_broker, at, unread, znodes.legacy)


def _present(replicas: Replicas, ongoing: Ongoing | None) -> Replicas:
    return replicas if ongoing is None else (*ongoing.original, *ongoing.adding)


def _logs(
    spec: ClusterSpec, live: Mapping[int, str | None], secrets: Secrets, partitions: Collection[TopicPartition] | None
) -> tuple[dict[int, BrokerLogs], dict[int, str]]:
    def ask(broker: Broker) -> BrokerLogs | str:
        try:
            return describe_log_dirs(spec, broker, secrets=secrets, partitions=partitions)
        except Unreachable as error:
            return error.problem

    brokers = [broker for broker in spec.brokers if broker.id in live]
    with ThreadPoolExecutor(max(1, len(brokers))) as pool:
        answers = dict(zip((b.id for b in brokers), pool.map(ask, brokers), strict=True))
    unread = {i: f"broker {i} is not in the cluster file" for i in live if i not in spec.broker_ids}
    unread |= {i: answer for i, answer in answers.items() if isinstance(answer, str)}
    return {i: answer for i, answer in answers.items() if isinstance(answer, BrokerLogs)}, unread


def _min_isr(spec: ClusterSpec, topics: Collection[str], secrets: Secrets) -> dict[str, int]:
    found = read_configs(spec, [Entity(EntityKind.TOPIC, topic) for topic in topics], [MIN_ISR], secrets=secrets)
    return {e.name: int(each.effective[MIN_ISR]) for e, each in found.items() if MIN_ISR in each.effective}


def _znodes(spec: ClusterSpec, secrets: Secrets) -> ReassignmentZnodes:
    """What waits in ZooKeeper; nothing where the brokers run in KRaft mode, since then nobody reads it."""
    if spec.zookeeper is None or _without_zookeeper(spec, secrets):
        return ReassignmentZnodes(None, frozenset())
    return read_reassignment_znodes(spec, secrets=secrets)


def _without_zookeeper(spec: ClusterSpec, secrets: Secrets) -> bool:
    for broker in spec.brokers:
        try:
            return broker_mode(spec, broker, secrets=secrets) is BrokerMode.KRAFT
        except Unreachable:
            continue
    return False
