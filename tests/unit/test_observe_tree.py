"""What is seen of topics in bulk is what is seen of them one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from kraft_runbook.clients.observe_tree import Tally, _see_columns, _see_one_by_one, _Topics
from kraft_runbook.clients.zookeeper import Znode, ZookeeperReader
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns


class Znodes:
    """Stands for the reader: a dict of znodes."""

    def __init__(self, data: dict[str, bytes]) -> None:
        self.data = data

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [Znode(path, self.data[path], 0, 0, 0, 0, 0) if path in self.data else None for path in paths]


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_see_the_same(seed: int) -> None:
    draw = random.Random(seed)
    znodes: dict[str, bytes] = {}
    parts: list[dict[str, Any]] = []
    names = [f"t-{at}" for at in range(6)]
    for at, name in enumerate(names):
        topic: dict[str, Any] = {"topic_id": "x", "partitions": {}, "adding_replicas": {}, "removing_replicas": {}}
        for number in range(draw.randint(0, 12)):
            replicas = draw.sample(range(1, 9), draw.randint(1, 4))
            each = {
                "replicas": replicas,
                "adding": draw.choice([[], [], [], [7]]),
                "removing": draw.choice([[], [], [], [8]]),
                "isr": draw.choice([replicas, replicas[::-1], replicas[1:], [*replicas, 9], [9] * len(replicas)]),
                "leader": draw.choice([-1, *replicas]),
            }
            topic["partitions"][str(number)] = replicas
            topic["adding_replicas"][str(number)], topic["removing_replicas"][str(number)] = each["adding"], each["removing"]
            znodes[f"/brokers/topics/{name}/partitions/{number}/state"] = json.dumps({"leader": each["leader"], "isr": each["isr"]}).encode()
            parts.append(each | {"topic": at, "partition": number})
        znodes[f"/brokers/topics/{name}"] = json.dumps(topic).encode()
    numbers = {key: np.array([each[key] for each in parts], np.int32) for key in ("topic", "partition", "leader")}
    lists = {key: Lists.of([each[key] for each in parts]) for key in ("replicas", "adding", "removing", "isr")}
    zeros = np.zeros(len(parts), np.int32)
    columns = TopicColumns(
        names, ["x"] * len(names), PartitionColumns(**numbers, **lists, leader_epoch=zeros, recovery=zeros), ConfigColumns(np.empty(0, np.int32), [], [])
    )
    in_bulk, one_by_one = _Topics(Tally()), _Topics(Tally())
    _see_columns(in_bulk, columns)
    _see_one_by_one(one_by_one, cast(ZookeeperReader, Znodes(znodes)), names)
    for seen in ("partitions", "assigned"):
        assert getattr(in_bulk, seen) == getattr(one_by_one, seen)
    for tally in ("without_id", "without_state", "under_replicated", "offline", "reassigning", "unreadable"):
        mine, theirs = getattr(in_bulk, tally), getattr(one_by_one, tally)
        assert (mine.count, mine.samples) == (theirs.count, theirs.samples), tally
