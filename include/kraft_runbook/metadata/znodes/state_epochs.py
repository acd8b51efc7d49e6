"""The controller epochs in the partitions' state znodes, counted.

Two counters stand in that one field (KAFKA-20488). A ZooKeeper controller writes its own epoch there, the number in
/controller_epoch, which rises by one with each claim of the controller role. A KRaft controller writes its raft epoch
(``ZkTopicMigrationClient``), which rises with each election of the quorum, lost ones too. A ZooKeeper controller that
finds a greater number than its own elects no leader for that partition (``PartitionStateMachine``: "was already
written by another controller") and leaves dead replicas in the ISR (``ReplicaStateMachine``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.cluster.observation import Found
from kraft_runbook.metadata.znodes.tally import SAMPLES, Tally

NONE = -1
"""Less than any epoch."""
GREATEST = 2**30
"""No cluster counted that far. Kafka adds one to /controller_epoch as an Int: after 2147483647 the epoch is negative,
and no broker is elected controller.
"""


class StateEpochs:
    """How many partitions have each epoch, and the names of a few."""

    def __init__(self) -> None:
        self._with: dict[int, Tally] = {}

    def see(self, topic: str, partition: int, epoch: int) -> None:
        self._with.setdefault(epoch, Tally()).add(f"{topic}-{partition}")

    def see_columns(
        self,
        names: Sequence[str],
        topic: NDArray[np.int64],
        partition: NDArray[np.int64],
        epoch: NDArray[np.int32],
        *,
        of: Collection[str],
    ) -> None:
        """One entry a partition, ``topic`` its topic's place among ``names``. ``of``: the topics that count."""
        counts = np.array([name in of for name in names], np.bool_)[topic]
        for each in np.unique(epoch[counts]).tolist():
            places = np.flatnonzero(counts & (epoch == each))
            tally = self._with.setdefault(each, Tally())
            tally.count += len(places)
            for at in places[: max(0, SAMPLES - len(tally.samples))].tolist():
                tally.samples.append(f"{names[topic[at]]}-{partition[at]}")

    @property
    def partitions(self) -> int:
        return sum(tally.count for tally in self._with.values())

    @property
    def greatest(self) -> int:
        """``NONE`` where no partition was seen."""
        return max(self._with, default=NONE)

    def above(self, epoch: int) -> Found:
        """The partitions with a greater one."""
        found = [tally for each, tally in sorted(self._with.items(), reverse=True) if each > epoch]
        samples = [name for tally in found for name in tally.samples]
        return Found(sum(tally.count for tally in found), tuple(samples[:SAMPLES]))
