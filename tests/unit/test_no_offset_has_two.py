"""While two members are toggled forth and back no offset is handed out by two: by the proof of their own logs."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from migrating_group import World

from kraft_runbook.groups.proof import ConsumptionProof, prove
from kraft_runbook.io.members_logs import read_logs
from kraft_runbook_consumer.handed_out import HandedOutLog
from kraft_runbook_consumer.step import Phase, State, Step, View, step
from kraft_runbook_consumer.znodes import Partition


def toggled(seed: int, where: Path, *, locks: bool = True) -> ConsumptionProof:
    """What the logs of two members show that look, act and hand out records in any order, while they are toggled to
    Kafka and back. A record is committed at once, and whoever starts a partition begins at what is committed.
    ``locks``: False is a planted fault, owner znodes keep nobody out.
    """
    draw = random.Random(seed)
    world = World({"t": tuple(range(6))}, step if locks else without_locks, locks_hold=locks, draw=draw)
    names = [world.join(), world.join()]
    world.settle()
    paths = {name: where / f"{name}.log" for name in names}
    committed: Counter[Partition] = Counter()
    positions: dict[str, dict[Partition, int]] = {name: {} for name in names}
    seconds = count(1.0, 0.01)
    for mode in ("kafka", "zookeeper"):
        world.mode = mode
        for _ in range(600):
            draw.choice((world.look, world.act, world.finish))(draw.choice(names))
            for each in names:
                held = world.migrating[each].state.held
                running = [p for p, one in held.items() if one.phase is Phase.RUNNING]
                positions[each] = {p: positions[each].get(p, committed[p]) for p in running}
            one = draw.choice(names)
            if not positions[one]:
                continue
            partition = draw.choice(sorted(positions[one]))
            offset = positions[one][partition]
            with HandedOutLog(paths[one], one, clock=lambda: next(seconds)) as log:
                log.write(message(partition, offset))
            positions[one][partition] = offset + 1
            committed[partition] = max(committed[partition], offset + 1)
    records = list(read_logs(paths.values()))
    assert {record.member for record in records} == set(names)
    return prove(records, {partition: (0, behind) for partition, behind in committed.items()})


def without_locks(state: State, view: View) -> Step:
    return step(state, replace(view, taken=frozenset()))


def message(partition: Partition, offset: int) -> Any:
    """confluent_kafka's, of which nobody can make one."""
    return SimpleNamespace(topic=lambda: partition[0], partition=lambda: partition[1], offset=lambda: offset)


def overlapping(found: ConsumptionProof) -> int:
    return sum(each.overlapping for each in found.partitions)


@pytest.mark.parametrize("seed", range(20))
def test_no_offset_is_handed_out_by_two(seed: int, tmp_path: Path) -> None:
    found = toggled(seed, tmp_path)
    assert found.holds and overlapping(found) == 0
    assert sum(each.records for each in found.partitions) > 500


def test_offsets_that_two_hand_out_are_found(tmp_path: Path) -> None:
    """In most orders: in some neither hands out a record while both have the partition."""
    every = []
    for seed in range(8):
        where = tmp_path / str(seed)
        where.mkdir()
        every.append(toggled(seed, where, locks=False))
    found = [each for each in every if overlapping(each)]
    assert len(found) > len(every) / 2
    assert not any(each.holds for each in found) and any(each.count("twice") for each in found)
