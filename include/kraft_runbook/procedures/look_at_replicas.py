"""Read what a reassignment needs to know: brokers, partitions, what moves, sizes, free bytes, min.insync.replicas."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from kraft_runbook.cluster.assignment import Ongoing, Replicas, TopicPartition
from kraft_runbook.cluster.log_dirs import BrokerLogs
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen, assignment_seen
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind, read_configs
from kraft_runbook.io.kafka.log_dirs import describe_log_dirs
from kraft_runbook.io.kafka.metadata_quorum import broker_mode
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reassignment_znodes import ReassignmentZnodes, read_reassignment_znodes
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.stages import PlanReading, PlanStage, read_plan
from kraft_runbook.runbook.telling import Tell, nobody

MIN_ISR = "min.insync.replicas"
LOOKS, APART_SECONDS = 6, 1.0


def look_at_replicas(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    sizes_of: Collection[TopicPartition] | None = None,
    settings: bool = True,
    deletions: bool = False,
    tell: Tell = nobody,
    client: Callable[..., Reassignments] = Reassignments,
    sees: Callable[..., AssignmentSeen] = assignment_seen,
    describe: Callable[..., BrokerLogs] = describe_log_dirs,
) -> ReplicasLook:
    """``sizes_of``: of these partitions alone, for quick looks at what moves; ``settings`` False: without
    min.insync.replicas and what ZooKeeper holds. ``deletions``: in any case with the topics whose deletion waits in
    ZooKeeper (for a dead broker, say): Metadata still lists them, and no reassignment of them is taken. ``tell``: hears
    what is being read.

    What moves is listed before and after Metadata is read: a move that ends in between counts as moving. What Metadata
    does not show of it is ``hidden``: the controller lists also what this tool's user may not describe. A broker may
    show a move that has just ended as it was (seen in KRaft mode, where the quorum lists and brokers answer Metadata);
    for a plan (``settings``) Metadata is read until two answers agree. Raises Unreachable where no broker answers, or a
    running one does not describe its logs when a plan is to be made.
    """
    reassignments = client(spec, secrets=secrets)
    tell("what is being reassigned")
    before = reassignments.ongoing()
    tell("partitions")
    seen = agreed(spec, secrets=secrets, seen_by=sees, tell=tell) if settings else sees(spec, secrets=secrets)
    after = reassignments.ongoing()
    ongoing = {**before, **after}
    # What was listed before alone may be of a topic that was deleted since.
    hidden = {p: moving for p, moving in after.items() if p not in seen.partitions}
    at = time.monotonic()
    logs, unread = _logs(spec, seen.racks, secrets, sizes_of, tell, describe)
    topics = sorted({p.topic for p in seen.partitions})
    znodes = ReassignmentZnodes(None, frozenset())
    min_isr: dict[str, int] = {}
    if settings:
        if unread:
            raise Unreachable(
                f"not every live broker described its log directories: {'; '.join(unread.values())}",
                way_out="without sizes and free bytes nothing is planned; mend the broker, then do this again",
            )
        min_isr = _min_isr(spec, topics, secrets, tell)
    if settings or deletions:
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
        directories={broker: each.directories for broker, each in logs.items()},
        min_isr=min_isr,
        being_deleted=znodes.being_deleted,
        leaderless=frozenset(p for p, found in seen.partitions.items() if found.leader is None),
        leaders={p: found.leader for p, found in seen.partitions.items() if found.leader is not None},
        in_sync={p: found.isr for p, found in seen.partitions.items()},
    )
    by_broker = {broker: each.sizes for broker, each in logs.items()}
    placed = {broker: each.placed for broker, each in logs.items()}
    return ReplicasLook(
        seen.cluster_id, placement, seen.partitions, by_broker, at, unread, znodes.legacy, placed, hidden
    )


def look_at_plan(
    spec: ClusterSpec,
    plan: ReassignmentPlan,
    *,
    secrets: Secrets,
    sizes_of: Collection[TopicPartition] | None = None,
    known: Collection[TopicPartition] | None = None,
    deletions: bool = False,
    looks: Callable[..., ReplicasLook] | None = None,
    ids_of: Callable[..., Mapping[str, str]] | None = None,
    apart: float = APART_SECONDS,
) -> tuple[ReplicasLook, PlanReading]:
    """A quick look, and where the plan stands. UNKNOWN, a lost broker, or nobody to copy from is believed once it has
    lasted: right after a move has ended, a broker may still show it; a broker that restarts is back soon, and so is a
    leader that is being elected. ``known``: as of ``read_plan``; ``deletions``: as of ``look_at_replicas``, and with
    the ids of the plan's topics. Raises Unreachable too where partitions of the plan move and are hidden, once that has
    lasted: they would count as deleted.
    """
    for _ in range(LOOKS):
        look = (looks or look_at_replicas)(
            spec, secrets=secrets, sizes_of=sizes_of, settings=False, deletions=deletions
        )
        if deletions and plan.topic_ids:
            look = look.with_ids((ids_of or topic_ids)(spec, plan.topic_ids.keys(), secrets=secrets))
        reading = read_plan(plan, look.placement, known=known)
        unclear = reading.stage is PlanStage.UNKNOWN or reading.lost or reading.leaderless
        if not unclear and not look.hidden_of(plan.target):
            break
        time.sleep(apart)
    look.require_shown(plan.target)
    return look, reading


def agreed(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    seen_by: Callable[..., AssignmentSeen] = assignment_seen,
    apart: float = APART_SECONDS,
    tell: Tell = nobody,
) -> AssignmentSeen:
    """Metadata, once what two answers both name has the same replicas in both."""
    seen = seen_by(spec, secrets=secrets)
    for look in range(LOOKS):
        tell(f"{len(seen.partitions):,} partitions, look {look + 2}, until two agree")
        time.sleep(apart)
        again = seen_by(spec, secrets=secrets)
        common = seen.partitions.keys() & again.partitions.keys()
        if all(seen.partitions[p].replicas == again.partitions[p].replicas for p in common):
            return again
        seen = again
    raise Unreachable(
        f"the assignment changed at each of {LOOKS + 1} looks",
        way_out="find out who moves replicas, then do this again",
    )


def _present(replicas: Replicas, ongoing: Ongoing | None) -> Replicas:
    return replicas if ongoing is None else (*ongoing.original, *ongoing.adding)


def _logs(
    spec: ClusterSpec,
    live: Mapping[int, str | None],
    secrets: Secrets,
    partitions: Collection[TopicPartition] | None,
    tell: Tell,
    describe: Callable[..., BrokerLogs],
) -> tuple[dict[int, BrokerLogs], dict[int, str]]:
    def ask(broker: Broker) -> BrokerLogs | str:
        try:
            return describe(spec, broker, secrets=secrets, partitions=partitions)
        except Unreachable as error:
            return error.problem

    brokers = [broker for broker in spec.brokers if broker.id in live]
    answers: dict[int, BrokerLogs | str] = {}
    with ThreadPoolExecutor(max(1, len(brokers))) as pool:
        for broker, answer in zip(brokers, pool.map(ask, brokers), strict=True):
            answers[broker.id] = answer
            tell("log directories of brokers", len(answers), len(brokers))
    unread = {i: f"broker {i} is not in the cluster file" for i in live if i not in spec.broker_ids}
    unread |= {i: answer for i, answer in answers.items() if isinstance(answer, str)}
    return {i: answer for i, answer in answers.items() if isinstance(answer, BrokerLogs)}, unread


def _min_isr(spec: ClusterSpec, topics: Collection[str], secrets: Secrets, tell: Tell) -> dict[str, int]:
    found = read_configs(
        spec, [Entity(EntityKind.TOPIC, topic) for topic in topics], [MIN_ISR], secrets=secrets, tell=tell
    )
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
