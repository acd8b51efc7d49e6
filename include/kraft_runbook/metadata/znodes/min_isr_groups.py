"""Topics by what decides whether a restart stops their producers: their own ``min.insync.replicas``, and how many
replicas their partitions have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.observation import MinIsrGroup
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.metadata.znodes.tally import Tally

MIN_ISR = "min.insync.replicas"


def min_isr_in(config: Mapping[str, str]) -> int | None:
    """What a config says of it; None: nothing, or nothing that Kafka takes (which is another finding)."""
    value = config.get(MIN_ISR)
    return None if value is None else java_int(trim(value))


class MinIsrGroups:
    def __init__(self) -> None:
        self._topics: dict[tuple[int | None, int], Tally] = {}

    def see(self, name: str, config: Mapping[str, str], replicas: Iterable[int]) -> None:
        """One topic. ``replicas``: how many each partition has; a topic whose partitions differ stands in several
        groups.
        """
        for count in sorted(set(replicas)):
            self._topics.setdefault((min_isr_in(config), count), Tally()).add(name)

    def see_columns(self, columns: TopicColumns) -> None:
        """Topics that were read in bulk."""
        own: dict[int, int | None] = dict.fromkeys(range(len(columns))) | {
            topic: min_isr_in({MIN_ISR: value})
            for topic, name, value in zip(
                columns.configs.topic.tolist(), columns.configs.name, columns.configs.value, strict=True
            )
            if name == MIN_ISR
        }
        pairs = np.unique(columns.partitions.topic.astype(np.int64) << 32 | columns.partitions.replicas.lengths)
        for at, replicas in zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), strict=True):
            self._topics.setdefault((own[at], replicas), Tally()).add(columns.names[at])

    @property
    def groups(self) -> tuple[MinIsrGroup, ...]:
        return tuple(
            MinIsrGroup(own, replicas, tally.found)
            for (own, replicas), tally in sorted(self._topics.items(), key=lambda each: (each[0][1], each[0][0] or 0))
        )
