"""Why a partition does not get on, in the order in which the reasons exclude each other (measured on 3.9.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.naming import nodes


class Cause(StrEnum):
    """LEADERLESS, then TARGET_DEAD, then NO_LOG, then, by the copy's size: STANDS_STILL, GROWS, NOT_IN_SYNC; UNSEEN
    where a broker did not say how large it is; ENDS where the whole target is in sync. A copy is that of any replica of
    the target that is not in sync, also of one that was there before.
    """

    LEADERLESS = "no leader"
    TARGET_DEAD = "a target broker does not run"
    NO_LOG = "a replica that stays has no log on its broker"
    STANDS_STILL = "the copy stands still"
    GROWS = "the copy grows"
    NOT_IN_SYNC = "the copy is whole and not in sync"
    UNSEEN = "the copy's size is not known"
    ENDS = "all its replicas are in sync"


@dataclass(frozen=True, slots=True)
class Stuck:
    """One partition, one cause, and what to do. ``brokers``: whom it is about."""

    partition: TopicPartition
    cause: Cause
    brokers: tuple[int, ...]
    way_out: str

    @property
    def waits(self) -> bool:
        """Nothing is wrong: it needs time."""
        return self.cause in (Cause.GROWS, Cause.ENDS)

    def __str__(self) -> str:
        about = f" ({nodes('broker', self.brokers)})" if self.brokers else ""
        return f"{self.partition}: {self.cause}{about}: {self.way_out}"


Sizes = Mapping[int, Mapping[TopicPartition, int]]
"""Bytes of each partition on each broker that answered."""


def why_not_done(
    partition: TopicPartition,
    ongoing: Ongoing,
    seen: PartitionSeen,
    live: Collection[int],
    *,
    earlier: Sizes,
    now: Sizes,
    throttled: bool,
) -> Stuck:
    """The cause for one partition that moves. ``earlier`` and ``now``: two looks at the logs, some seconds apart;
    ``throttled``: whether a replication throttle is in force.
    """
    if seen.leader is None:
        dead = tuple(broker for broker in (*seen.isr, *ongoing.original) if broker not in live)
        named = tuple(dict.fromkeys(broker for broker in seen.isr if broker not in live)) or dead
        return Stuck(partition, Cause.LEADERLESS, named, f"start broker {_ids(named)}: it was in sync last")
    # The controller waits for the whole target, not for what is added alone (3.9.2:
    # PartitionReassignmentReplicas.maybeCompleteReassignment, KafkaController.isReassignmentComplete).
    dead = tuple(broker for broker in ongoing.target if broker not in live and broker not in seen.isr)
    dead = tuple(broker for broker in ongoing.adding if broker not in live) or dead
    if dead:
        return Stuck(partition, Cause.TARGET_DEAD, dead, "start it: the copy goes on where it was; or cancel the move")
    found = [
        _without_log(partition, broker)
        if broker not in ongoing.adding and partition not in now.get(broker, {partition: 0})
        else _by_size(partition, broker, seen.leader, earlier, now, throttled)
        for broker in ongoing.target
        if broker not in seen.isr
    ]
    ends = Stuck(partition, Cause.ENDS, (), "wait: the controller ends the move")
    return min(found, key=lambda each: _GRAVITY.index(each.cause), default=ends)


_GRAVITY = (Cause.NO_LOG, Cause.STANDS_STILL, Cause.NOT_IN_SYNC, Cause.UNSEEN, Cause.GROWS)


def _without_log(partition: TopicPartition, broker: int) -> Stuck:
    way_out = f"mend the log directory of broker {broker} that failed, and restart the broker; or cancel the move"
    return Stuck(partition, Cause.NO_LOG, (broker,), way_out)


def _by_size(partition: TopicPartition, broker: int, leader: int, earlier: Sizes, now: Sizes, throttled: bool) -> Stuck:
    # A copy that is not listed yet has no bytes; a broker that did not answer is another matter.
    if broker not in now or broker not in earlier or leader not in now:
        return Stuck(partition, Cause.UNSEEN, (broker,), "look again: a broker did not describe its log directories")
    was, size, whole = (
        earlier[broker].get(partition, 0),
        now[broker].get(partition, 0),
        now[leader].get(partition, 0),
    )
    if size >= whole and size == was:
        return Stuck(
            partition,
            Cause.NOT_IN_SYNC,
            (broker,),
            f"read the log of broker {broker} for its fetcher of this partition",
        )
    if size > was:
        return Stuck(partition, Cause.GROWS, (broker,), f"wait: {max(0, whole - size):,} bytes are left")
    return Stuck(
        partition,
        Cause.STANDS_STILL,
        (broker,),
        "raise the throttle" if throttled else f"read the logs of broker {broker} and of its leader {leader}",
    )


def _ids(brokers: Collection[int]) -> str:
    return " or ".join(map(str, brokers)) or "(unknown)"
