"""Whether the broker that a roll began with is as healthy as those that it has not reached: its own numbers against the
median of theirs. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import BrokerMetrics, BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.spans import in_words
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.conditions import Condition, Progress, first_missing
from kraft_runbook.runbook.coordinators import in_sync_and_loaded
from kraft_runbook.runbook.health import exited_broker

CANARY_HOLDS = "canary_holds"
"""The condition's name, in a wait and in the evidence; it begins the name of one that is of one mode."""
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


SHORT = Number(
    "under-replicated partitions",
    "under_replicated_partitions",
    "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
    lambda now, *_: now.under_replicated_partitions,
    lambda others: WHERE_ONE_IS_DOWN * others,
)
"""Of those that it leads, whichever follower is out. While another broker is out of ISRs and the canary of none, nobody
knows whether that one still catches up, or the canary serves it badly: it is waited for. One that catches up leads
little, so the median says little then.
"""
NUMBERS = (
    Number(
        "offline replicas",
        "offline_replicas",
        "kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
        lambda now, *_: now.offline_replicas,
        lambda others: others,
    ),
    SHORT,
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


def _not_compared(seen: ClusterObservation, spec: ClusterSpec, node: int) -> Iterator[str]:
    """Why the canary can't be compared with the others."""
    mine = seen.brokers[node].metrics
    if not was_read(mine):
        yield f"the metrics of broker {node}: {mine.reason}"
        return
    others = [seen.brokers[i].metrics for i in spec.broker_ids if i != node]
    if not any(was_read(each) for each in others):
        yield "no other broker's metrics were read"
        return
    for each in NUMBERS:
        there = sum(was_read(its) and each.is_in(its) for its in others)
        if 2 * there < len(others):
            yield f"{there} of {len(others)} other brokers show {each.needs}"
    for needs in missing_numbers(mine):
        yield f"broker {node}'s metrics lack {needs}"


def _compared(
    seen: ClusterObservation, spec: ClusterSpec, node: int, earlier: ClusterObservation | None
) -> Iterator[tuple[Number, float, float]]:
    """Each number that this look can compare: the canary's, and the others' median."""
    before = earlier if earlier is not None else seen
    seconds = max(0.001, (seen.observed_at - before.observed_at).total_seconds())

    def number(of: Number, broker: int) -> float | None:
        now, then = seen.brokers[broker].metrics, before.brokers[broker].metrics
        return of.read(now, then, seconds) if was_read(now) and was_read(then) else None

    for each in NUMBERS:
        found = number(each, node)
        theirs = [value for i in spec.broker_ids if i != node and (value := number(each, i)) is not None]
        if found is not None and theirs:
            yield each, found, median(theirs)


def _beyond(compared: Iterable[tuple[Number, float, float]], node: int) -> Iterator[tuple[Number, str]]:
    """The numbers in which the canary is worse than the others, each in words."""
    for each, found, middle in compared:
        if found > each.allowed(middle):
            shown = f"{found:.3g}{each.unit} at broker {node}, {middle:.3g}{each.unit} at the others (median)"
            yield each, f"{each.name}: {shown}"


def canary_holds(
    seen: ClusterObservation, spec: ClusterSpec, node: int, earlier: ClusterObservation | None
) -> Progress:
    """A single bad look is no verdict; ``steps.waiting`` gives up on what is bad for 10 s without a break. What keeps
    others from answering, or from being in sync, is waited for as behind any restart. A number that this look can't
    compare, as where nobody sends a request, is no fault of the canary's, and is ``untold``.
    """
    exited = exited_broker(seen, earlier, node)
    if exited:
        return Progress(False, exited.waiting_for, hopeless=True)
    lagging = {i: out for i, out in seen.topics.out_of_sync_by_broker.items() if out} if was_read(seen.topics) else {}
    compared = tuple(_compared(seen, spec, node, earlier))
    own, beyond = lagging.pop(node, 0), list(_beyond(compared, node))
    may_be_anothers = [said for each, said in beyond if each is SHORT and lagging and not own]
    worse = [
        *([f"broker {node} is out of {own} ISRs"] if own else []),
        *_not_compared(seen, spec, node),
        *(said for each, said in beyond if said not in may_be_anothers),
    ]
    if worse:
        told = "; ".join([*worse, *may_be_anothers])
        return Progress(False, f"the canary is not as healthy as the others: {told}", hopeless=True)
    progress = first_missing(
        (f"waiting for {nodes('broker', sorted(lagging))} to be in sync: {said}" for said in may_be_anothers),
    )
    if progress.done:
        progress = in_sync_and_loaded(seen, earlier, spec, node, others=False)
    unseen = frozenset(each.name for each in NUMBERS) - {each.name for each, *_ in compared}
    return replace(progress, untold=progress.untold | unseen)


def canary(went_on: Callable[[ClusterObservation, int], bool], name: str = CANARY_HOLDS) -> Condition:
    """The condition for one kind of roll, to be awaited behind the broker's registration as the roll wants it, which
    must go on holding: one that is put back by hand is as healthy as the others. ``went_on``: whether the roll has
    reached another broker: who clears the task then waits for nothing.
    """

    def holds(seen: ClusterObservation, spec: ClusterSpec, node: int) -> float:
        return 0.0 if spec.canary is None or went_on(seen, node) else spec.canary.soak

    return Condition(name, "broker {id} to stay as healthy as the others", canary_holds, holds=holds)


def canary_in(mode: BrokerMode, wanted: Container[BrokerMode]) -> Condition:
    """The condition for a roll to this mode, which has gone on once another broker runs in a ``wanted`` one."""

    def went_on(seen: ClusterObservation, node: int) -> bool:
        others = (each.mode for each in seen.brokers.values() if each.id != node)
        return any(was_read(each) and each in wanted for each in others)

    return canary(went_on, f"{CANARY_HOLDS}_in_{mode.value}")


def watches_a_canary(condition: str) -> bool:
    """Whether a condition of this name is one of those."""
    return condition.startswith(CANARY_HOLDS)


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
