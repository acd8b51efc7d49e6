"""The log's records about partitions, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.log.record_columns import Column, Spans, Uuids
from kraft_runbook.metadata.log.record_index import Places, RecordIndex
from kraft_runbook.metadata.topic_columns import Lists

NUMBERS = ("partition_id", "leader", "leader_recovery_state", "leader_epoch", "partition_epoch")
LISTS = ("replicas", "isr", "removing_replicas", "adding_replicas")


@dataclass(slots=True)
class PartitionRecords:
    """Partition records, or changes of partitions: ``order`` is their place in the log, ``offset`` what to call it."""

    order: Places
    offset: Places
    topic: Uuids
    numbers: Mapping[str, NDArray[np.int64]]
    lists: Mapping[str, tuple[NDArray[np.bool_], Lists]]

    @classmethod
    def of(cls, order: Places, records: RecordIndex, values: Mapping[str, Column]) -> PartitionRecords:
        numbers = {name: values[name] for name in NUMBERS if name in values}
        spans = {name: values[name] for name in LISTS}
        topic = values["topic_id"]
        assert isinstance(topic, Uuids)
        return cls(
            order,
            records.offset,
            topic,
            {name: column for name, column in numbers.items() if isinstance(column, np.ndarray)},
            {name: (~span.is_null, span.ids()) for name, span in spans.items() if isinstance(span, Spans)},
        )

    @classmethod
    def joined(cls, parts: Sequence[PartitionRecords], numbers: Sequence[str]) -> PartitionRecords:
        none = np.empty(0, np.int64)
        return cls(
            np.concatenate([none, *(each.order for each in parts)]),
            np.concatenate([none, *(each.offset for each in parts)]),
            Uuids.joined([each.topic for each in parts]),
            {name: np.concatenate([none, *(each.numbers[name] for each in parts)]) for name in numbers},
            {
                name: (
                    np.concatenate([none.astype(bool), *(p.lists[name][0] for p in parts)]),
                    Lists.joined([p.lists[name][1] for p in parts]),
                )
                for name in LISTS
            },
        )

    def take(self, wanted: Places | NDArray[np.bool_]) -> PartitionRecords:
        places = np.flatnonzero(wanted) if wanted.dtype == np.bool_ else wanted.astype(np.int64)
        if len(places) == len(self.order) and (places == np.arange(len(places))).all():
            return self
        return PartitionRecords(
            self.order[places],
            self.offset[places],
            self.topic.take(places),
            {name: column[places] for name, column in self.numbers.items()},
            {name: (given[places], lists.take(places)) for name, (given, lists) in self.lists.items()},
        )
