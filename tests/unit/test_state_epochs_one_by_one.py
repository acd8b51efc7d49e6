"""The controller epochs of topics that are read one by one: which states count."""

from __future__ import annotations

from typing import Any

from kraft_runbook.io.zookeeper.read_epochs import see_one_by_one
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.znodes.state_epochs import StateEpochs


def test_a_state_of_a_partition_that_is_not_assigned_does_not_count() -> None:
    """No controller reads it: a greater epoch there stops no election."""
    held = {
        "/brokers/topics/orders": b'{"partitions":{"0":[1]}}',
        "/brokers/topics/orders/partitions/0/state": b'{"controller_epoch":4}',
        "/brokers/topics/orders/partitions/7/state": b'{"controller_epoch":40}',
        "/brokers/topics/broken": b"{",
        "/brokers/topics/broken/partitions/0/state": b'{"controller_epoch":41}',
        "/brokers/topics/odd": b'{"partitions":3}',
    }

    class Reader:
        def get_many(self, paths: list[str]) -> list[Znode | None]:
            return [Znode(path, held[path], 1, 1, 1, 1, 0) if path in held else None for path in paths]

    seen = StateEpochs()
    reader: Any = Reader()
    see_one_by_one(reader, ["orders", "broken", "odd", "gone"], seen)
    assert (seen.greatest, seen.partitions) == (4, 1)
