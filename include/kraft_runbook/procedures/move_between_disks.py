"""Look at brokers' log directories, start copies between them, and throttle those. Each can be done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.java_values import java_int, java_long
from kraft_runbook.cluster.log_dirs import BrokerLogs
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.dynamic_configs import ALL_BROKERS, Entity, EntityKind, Found
from kraft_runbook.io.kafka.log_dirs import GONE, alter_replica_log_dirs, describe_log_dirs
from kraft_runbook.io.kafka.topic_ids import topics_now
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.throttle_replication import KAFKAS, Configs
from kraft_runbook.reassignment.disk_rates import COPY_THREADS, CopySettings
from kraft_runbook.reassignment.disks import DiskMove, Held
from kraft_runbook.reassignment.throttles import DISK_RATE

SAMPLE = 5
LAG, LAG_MS = "replica.lag.time.max.ms", 30_000


class CopiedInPart(StepFailed):
    """Some copies are begun (``done``), others are not."""

    def __init__(self, problem: str, *, way_out: str, done: tuple[DiskMove, ...]) -> None:
        super().__init__(problem, way_out=way_out)
        self.done = done


def look_at_disks(
    spec: ClusterSpec,
    brokers: Collection[int] | None = None,
    *,
    secrets: Secrets,
    describe: Callable[..., BrokerLogs] = describe_log_dirs,
) -> dict[int, BrokerLogs]:
    """The log directories of these brokers (None: all). One that does not answer is absent. Raises Refused where this
    tool's identity may not describe them.
    """

    def ask(broker: Broker) -> BrokerLogs | None:
        try:
            return describe(spec, broker, secrets=secrets)
        except Unreachable:
            return None

    asked = [each for each in spec.brokers if brokers is None or each.id in brokers]
    with ThreadPoolExecutor(max(1, len(asked))) as pool:
        return {found.broker: found for found in pool.map(ask, asked) if found is not None}


def start_disk_moves(
    spec: ClusterSpec,
    moves: Iterable[DiskMove],
    *,
    secrets: Secrets,
    alter: Callable[..., Mapping[TopicPartition, str]] = alter_replica_log_dirs,
) -> tuple[DiskMove, ...]:
    """Let each broker begin these copies, or end those whose target is where the replica lies. Returns what was taken.
    A replica that has left the broker meanwhile is no error, nor is a broker that does not answer beside one that took
    some. Raises CopiedInPart, which names what was refused, once all others are begun; Unreachable.
    """
    by_broker: dict[int, list[DiskMove]] = {}
    for each in moves:
        by_broker.setdefault(each.broker, []).append(each)
    taken: list[DiskMove] = []
    refused: list[str] = []
    silent: list[Unreachable] = []
    for broker, mine in sorted(by_broker.items()):
        try:
            answers = alter(spec, spec.broker(broker), {m.partition: m.target for m in mine}, secrets=secrets)
        except Unreachable as error:
            silent.append(error)
            continue
        taken += [m for m in mine if m.partition not in answers]
        refused += [f"{p} on broker {broker}: {why}" for p, why in sorted(answers.items()) if why not in GONE]
    if refused:
        raise CopiedInPart(
            f"{len(refused)} copies were refused: {some(refused, SAMPLE, between='; ')}",
            way_out="mend the directory that is named, then clear this task: it begins only what is left",
            done=tuple(taken),
        )
    if silent and not taken:
        raise silent[0]
    return tuple(taken)


def held_by(spec: ClusterSpec, topics: Collection[str], *, secrets: Secrets) -> tuple[dict[str, str], Held]:
    """The ids of those of these topics that have one, and who has which of their partitions. Raises Unreachable."""
    found = topics_now(spec, topics, secrets=secrets)
    held = {TopicPartition(name, n): r for name, each in found.items() for n, r in each.replicas.items()}
    return {name: each.id for name, each in found.items() if each.id}, held


def copy_settings(
    spec: ClusterSpec, brokers: Collection[int], *, secrets: Secrets, configs: Configs = KAFKAS
) -> dict[int, CopySettings]:
    """What the configurations of these brokers say of their copies. One that does not answer is absent. Raises Refused
    where this tool's identity may not describe them.
    """
    found = {}
    for broker, mine in _of_each(spec, brokers, [COPY_THREADS, DISK_RATE], secrets, configs):
        threads, rate = mine.effective.get(COPY_THREADS, ""), mine.own.get(DISK_RATE, "")
        found[broker] = CopySettings(java_int(threads), java_long(rate))
    return found


def lag_seconds(spec: ClusterSpec, brokers: Collection[int], *, secrets: Secrets, configs: Configs = KAFKAS) -> float:
    """After how many seconds without having caught up a follower leaves the ISR, at the slowest of these brokers as
    leaders. One that does not answer, or does not say, counts as Kafka's default does. Raises Refused where this tool's
    identity may not describe their configurations.
    """
    found = {broker: mine.effective.get(LAG, "") for broker, mine in _of_each(spec, brokers, [LAG], secrets, configs)}
    return max((java_long(found.get(each, "")) or LAG_MS for each in brokers), default=LAG_MS) / 1000


def disk_rate(spec: ClusterSpec, *, secrets: Secrets, configs: Configs = KAFKAS) -> str | None:
    """The throttle that is set on the default of all brokers; None where none is."""
    return configs.read(spec, [ALL_BROKERS], [DISK_RATE], secrets=secrets)[ALL_BROKERS].own.get(DISK_RATE)


def set_disk_rate(
    spec: ClusterSpec,
    rate: str | None,
    brokers: Collection[int] = (),
    *,
    secrets: Secrets,
    configs: Configs = KAFKAS,
) -> None:
    """Set it, or delete it (None), and wait until that can be read. On the default of all brokers, so that nothing is
    left on a dead one. ``brokers``: that are to show it in force, where they answer and have no rate of their own:
    until then such a one would copy as fast as it can. Raises Unreachable; StepFailed where it can't be read in time.
    """
    configs.alter(spec, {ALL_BROKERS: {DISK_RATE: rate}}, secrets=secrets)
    ends = time.monotonic() + configs.within
    while found := list(_without_rate(spec, rate, brokers, secrets, configs)):
        if time.monotonic() > ends:
            raise StepFailed(
                f"{DISK_RATE} was to be {rate}, and after {configs.within:g} s it is not: {some(found, SAMPLE)}",
                way_out="look at the brokers' logs, then do this step again",
            )
        time.sleep(0.3)


def _of_each(
    spec: ClusterSpec, brokers: Collection[int], keys: Sequence[str], secrets: Secrets, configs: Configs
) -> Iterator[tuple[int, Found]]:
    """What each of these brokers has of these keys. One that does not answer is left out."""
    for broker in sorted(brokers):
        entity = Entity(EntityKind.BROKER, str(broker))
        try:
            yield broker, configs.read(spec, [entity], keys, secrets=secrets)[entity]
        except Unreachable:
            continue


def _without_rate(
    spec: ClusterSpec, rate: str | None, brokers: Collection[int], secrets: Secrets, configs: Configs
) -> Iterator[str]:
    if (now := disk_rate(spec, secrets=secrets, configs=configs)) != rate:
        yield f"{ALL_BROKERS} {now}"
    for broker, found in _of_each(spec, brokers, [DISK_RATE], secrets, configs):
        if DISK_RATE not in found.own and (now := found.effective.get(DISK_RATE)) != rate:
            yield f"broker {broker} {now}"
