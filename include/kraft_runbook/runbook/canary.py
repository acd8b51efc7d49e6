"""Whether the broker that a roll began with is as healthy as those that it has not reached: its own numbers against the
median of theirs. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from kraft_runbook.cluster.observation import BrokerMetrics, ClusterObservation, was_read
from kraft_runbook.cluster.spans import in_words
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.conditions import Condition, Progress, first_missing
from kraft_runbook.runbook.health import exited_broker, out_of_sync

CANARY_HOLDS = "canary_holds"
"""The condition's name, in a wait and in the evidence."""
FAILED_PER_SECOND = 1.0
TIMES = 3.0
"""How many times the others' median a rate or a time may be."""
WHERE_ONE_IS_DOWN = 1.5
"""How many times the others' median of under-replicated partitions: a broker that is down leaves about as many short at
each.
"""
SLOWER_MS = 200.0
"""Milliseconds beyond the others' median that a request may take in any case: a broker that has just started compiles
its code, and reads its log from the disk.
"""

Read = Callable[[BrokerMetrics, BrokerMetrics, float], float | None]
"""A number from a broker's metrics now and at an earlier look, and the seconds between; None: it is not there."""


@dataclass(frozen=True, slots=True)
class Number:
    """``field``: of BrokerMetrics; None there: it is missing. ``needs``: what the exporter must pass. ``allowed``: the
    most that the canary may show, from the others' median. ``unit``: behind the number.
    """

    name: str
    field: str
    needs: str
    read: Read
    allowed: Callable[[float], float]
    unit: str = ""

    def is_in(self, seen: BrokerMetrics) -> bool:
        """Whether a broker shows it."""
        return getattr(seen, self.field) is not None


def _failed(now: BrokerMetrics, before: BrokerMetrics, seconds: float) -> float | None:
    if now.failed_requests is None or before.failed_requests is None or now.failed_requests < before.failed_requests:
        return None
    return (now.failed_requests - before.failed_requests) / seconds


def _produce_ms(now: BrokerMetrics, before: BrokerMetrics, _: float) -> float | None:
    """The mean of the requests between both looks; None where there was none."""
    return None if now.produce is None or before.produce is None else now.produce.mean_since(before.produce)


NUMBERS = (
    Number(
        "offline replicas",
        "offline_replicas",
        "kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
        lambda now, *_: now.offline_replicas,
        lambda others: others,
    ),
    Number(
        "under-replicated partitions",
        "under_replicated_partitions",
        "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
        lambda now, *_: now.under_replicated_partitions,
        lambda others: WHERE_ONE_IS_DOWN * others,
    ),
    Number(
        "failed requests a second",
        "failed_requests",
        "Count of kafka.server:type=BrokerTopicMetrics,name=FailedProduceRequestsPerSec and FailedFetchRequestsPerSec",
        _failed,
        lambda others: max(FAILED_PER_SECOND, TIMES * others),
    ),
    Number(
        "the mean time of a Produce request",
        "produce",
        "Count and Mean of kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce",
        _produce_ms,
        lambda others: max(TIMES * others, others + SLOWER_MS),
        " ms",
    ),
)


def missing_numbers(seen: BrokerMetrics) -> tuple[str, ...]:
    """The MBeans without which this broker can't be compared."""
    return tuple(each.needs for each in NUMBERS if not each.is_in(seen))


def _worse(seen: ClusterObservation, spec: ClusterSpec, node: int, earlier: ClusterObservation | None) -> Iterator[str]:
    """Why the canary is not as healthy as the others, or can't be compared with them."""
    mine = seen.brokers[node].metrics
    if not was_read(mine):
        yield f"the metrics of broker {node}: {mine.reason}"
        return
    others = {i: seen.brokers[i].metrics for i in spec.broker_ids if i != node}
    if not any(was_read(each) for each in others.values()):
        yield "no other broker's metrics were read"
        return
    for each in NUMBERS:
        there = sum(was_read(its) and each.is_in(its) for its in others.values())
        if 2 * there < len(others):
            yield f"{there} of {len(others)} other brokers show {each.needs}"
    for needs in missing_numbers(mine):
        yield f"broker {node}'s metrics lack {needs}"
    before = earlier if earlier is not None else seen
    seconds = max(0.001, (seen.observed_at - before.observed_at).total_seconds())

    def number(of: Number, broker: int) -> float | None:
        now, then = seen.brokers[broker].metrics, before.brokers[broker].metrics
        return of.read(now, then, seconds) if was_read(now) and was_read(then) else None

    for each in NUMBERS:
        found = number(each, node)
        theirs = [value for i in others if (value := number(each, i)) is not None]
        if found is not None and theirs and found > each.allowed(median(theirs)):
            shown, middle = f"{found:.3g}{each.unit}", f"{median(theirs):.3g}{each.unit}"
            yield f"{each.name}: {shown} at broker {node}, {middle} at the others (median)"


def canary_holds(
    seen: ClusterObservation, spec: ClusterSpec, node: int, earlier: ClusterObservation | None
) -> Progress:
    """A single bad look is no verdict; ``steps.waiting`` gives up on what is bad for 10 s without a break. What keeps
    others from answering, or from being in sync, is waited for as behind any restart.
    """
    exited = exited_broker(seen, earlier, node)
    if exited:
        return Progress(False, exited.waiting_for, hopeless=True)
    worse = "; ".join([*_out_of_isrs(seen, node), *_worse(seen, spec, node, earlier)])
    if worse:
        return Progress(False, f"the canary is not as healthy as the others: {worse}", hopeless=True)
    return first_missing(out_of_sync(seen, earlier, spec, node))


def _out_of_isrs(seen: ClusterObservation, node: int) -> Iterator[str]:
    lagging = seen.topics.out_of_sync_by_broker.get(node, 0) if was_read(seen.topics) else 0
    if lagging:
        yield f"broker {node} is out of {lagging} ISRs"


def canary(went_on: Callable[[ClusterObservation, int], bool]) -> Condition:
    """The condition for one kind of roll. ``went_on``: whether the roll has reached another broker: who clears the task
    then waits for nothing.
    """

    def holds(seen: ClusterObservation, spec: ClusterSpec, node: int) -> float:
        return 0.0 if spec.canary is None or went_on(seen, node) else spec.canary.soak

    return Condition(CANARY_HOLDS, "broker {id} to stay as healthy as the others", canary_holds, holds=holds)


def another_in_its_mode(seen: ClusterObservation, node: int) -> bool:
    """Whether another broker runs in the mode of this one."""
    mode = seen.brokers[node].mode
    return was_read(mode) and any(each.mode == mode for each in seen.brokers.values() if each.id != node)


def never_known(_seen: ClusterObservation, _node: int) -> bool:
    """Of a roll that leaves no trace at a broker, or one that others bear too: a broker that was down is started on the
    new software before the roll.
    """
    return False


def first_and_watched(spec: ClusterSpec, ahead: Collection[int]) -> str:
    """What a person reads of the canary where these brokers are to be restarted; empty where it is not among them."""
    if spec.canary is None or spec.canary.broker not in ahead:
        return ""
    soak = in_words(timedelta(seconds=spec.canary.soak))
    return f" Broker {spec.canary.broker} goes first, and is watched for {soak} before the next one."
