"""Ask Kafka which partitions would have too few replicas in sync while brokers are down together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from kraft_runbook.cluster.observation import Found
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen, assignment_seen
from kraft_runbook.io.kafka.drill_probes import PREFIX
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind, read_configs
from kraft_runbook.io.kafka.dynamic_configs import Found as Configured
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.runbook.broker_batches import left_without, short_of
from kraft_runbook.runbook.producers import MIN_ISR

SAMPLES = 20


def short_together(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    batches: Iterable[Collection[int]] | None = None,
    look: Callable[..., AssignmentSeen] = assignment_seen,
    configs: Callable[..., Mapping[Entity, Configured]] = read_configs,
) -> Mapping[int, Found]:
    """By the lowest id of each batch, the partitions that would have fewer than min.insync.replicas in sync without it;
    batches without any are left out. ``batches``: ids of brokers that are down together; None: those of the cluster
    file.

    Where a topic has no min.insync.replicas of its own, the greatest of the brokers outside the batch counts: any of
    them may lead it. Raises Unreachable; Refused where this tool may not describe configurations.
    """
    asked = batches if batches is not None else [[b.id for b in batch] for batch in spec.batches]
    together = [frozenset(batch) for batch in asked if len(batch) > 1]
    if not together:
        return {}
    partitions = look(spec, secrets=secrets).partitions
    found = {}
    for batch in together:
        left = left_without(partitions, batch)
        least = _least(spec, {each.topic for each in left}, batch, secrets, configs) if left else {}
        short = list(short_of(left, least))
        if short:
            found[min(batch)] = Found(len(short), tuple(short[:SAMPLES]))
    return found


def short_without(
    spec: ClusterSpec,
    broker: int,
    *,
    secrets: Secrets,
    look: Callable[..., AssignmentSeen] = assignment_seen,
    configs: Callable[..., Mapping[Entity, Configured]] = read_configs,
) -> Found | None:
    """The partitions that would have fewer than min.insync.replicas in sync without this broker, but for those of a
    drill's own topics; None where there are none. One with a single replica is among them. Raises as
    ``short_together``.
    """
    left = {
        partition: len(set(seen.isr) - {broker})
        for partition, seen in look(spec, secrets=secrets).partitions.items()
        if broker in seen.replicas and not partition.topic.startswith(PREFIX)
    }
    least = _least(spec, {each.topic for each in left}, [broker], secrets, configs) if left else {}
    short = list(short_of(left, least))
    return Found(len(short), tuple(short[:SAMPLES])) if short else None


def _least(
    spec: ClusterSpec,
    topics: Collection[str],
    batch: Collection[int],
    secrets: Secrets,
    configs: Callable[..., Mapping[Entity, Configured]],
) -> dict[str, int]:
    """min.insync.replicas by topic."""
    of_topics = configs(spec, [Entity(EntityKind.TOPIC, each) for each in sorted(topics)], [MIN_ISR], secrets=secrets)
    own = {entity.name: found.own.get(MIN_ISR) for entity, found in of_topics.items()}
    of_brokers = 0
    if None in own.values():
        others = [Entity(EntityKind.BROKER, str(each)) for each in spec.broker_ids if each not in batch]
        answers = configs(spec, others, [MIN_ISR], secrets=secrets)
        of_brokers = max(int(each.effective[MIN_ISR]) for each in answers.values())
    return {name: int(value) if value is not None else of_brokers for name, value in own.items()}
