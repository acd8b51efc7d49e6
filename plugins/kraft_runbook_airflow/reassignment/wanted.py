"""What a run's form asks for, as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.reassignment.batches import KRAFT_LIMITS, ZOOKEEPER_LIMITS, Limits
from kraft_runbook.reassignment.goals import Goal, Topics
from kraft_runbook.reassignment.refusals import Reason


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run's form asks for. ``throttle``: bytes a second a broker; ``partitions`` None: as the mode allows.
    ``cluster_id``: of the cluster that the goal was saved of; None where the goal is of none. ``keep_order``:
    change no order where no replica moves.
    """

    goal: Goal
    topics: Topics
    allowed: tuple[Reason, ...]
    throttle: int | None
    partitions: int | None
    moves: int
    bytes: int | None
    cluster_id: str | None = None
    keep_order: bool = False

    def limits(self, seen: ClusterObservation) -> Limits:
        """A controller in ZooKeeper mode takes less in one request."""
        in_kraft = {broker.mode for broker in seen.brokers.values() if was_read(broker.mode)} == {BrokerMode.KRAFT}
        most = self.partitions or (KRAFT_LIMITS if in_kraft else ZOOKEEPER_LIMITS).partitions
        return Limits(most, self.moves, self.bytes)


Asks = Callable[[Any], Wanted]
"""Reads the run's form, given Airflow's context. Raises Refused for what makes no sense."""
