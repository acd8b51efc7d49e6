"""One group on both sides, on which the acts of a move are tested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from groups_seen_as import GROUP, kafka, look, member, zookeeper
from observations import SPEC

from kraft_runbook.errors import Unreachable
from kraft_runbook.groups.look import COMMITTED, GroupLook, Kind, LogBounds, Owner, Partition, StoredOffset
from kraft_runbook.groups.move_plan import Direction, MovePlan, plan_move
from kraft_runbook.procedures import move_group, watch_groups
from kraft_runbook.procedures.move_group import (
    stop_read,
)

T0, T1 = ("t", 0), ("t", 1)
OLD = member(Kind.OLD)


class World:
    """One group on both sides. ``killed_after``: so many partitions are written, then the writer is killed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.zookeeper = zookeeper(offsets={T0: 7, T1: 8})
        self.kafka: Any = None
        self.end = 100
        self.partitions = 2
        self.commits: list[dict[Partition, int]] = []
        self.killed_after = 99
        self.there = True
        self.unread = False
        for module in (move_group, watch_groups):
            monkeypatch.setattr(module, "look_at_groups", self.look)
        monkeypatch.setattr(move_group, "ZookeeperReader", lambda *_, **__: nullcontext())
        monkeypatch.setattr(move_group, "fence", lambda _, group, some: self.own(some))
        monkeypatch.setattr(move_group, "mark_committed", lambda _, group, some: self.mark(some))
        monkeypatch.setattr(move_group, "lift_fence", lambda _, group, some: self.disown(some))
        monkeypatch.setattr(move_group, "write_offsets", lambda _, group, offsets: self.store(offsets))
        monkeypatch.setattr(move_group, "commit_offsets", lambda _, group, offsets, secrets: self.commit(offsets))
        monkeypatch.setattr(move_group, "delete_group", lambda _, group, secrets: self.delete())

    def look(self, spec: Any, *, secrets: Any, names: Iterable[str], topics: Any = ()) -> tuple[GroupLook, ...]:
        if self.unread:
            raise Unreachable("ZooKeeper is away", way_out="start it")
        assert list(names) == [GROUP]
        logs = {"t": {n: LogBounds(0, self.end) for n in range(self.partitions)}}
        return (look(self.zookeeper, self.kafka, logs=logs),) if self.there else ()

    def _some(self, given: Iterable[Partition]) -> list[Partition]:
        return sorted(given)[: self.killed_after]

    def _live(self, given: Iterable[Partition]) -> int:
        if self.killed_after < 2:
            raise KeyboardInterrupt
        return len(list(given))

    def own(self, some: Iterable[Partition]) -> int:
        before = self.zookeeper.owners
        self.zookeeper = replace(
            self.zookeeper, owners={**dict.fromkeys(self._some(some), Owner("fence", True)), **before}
        )
        self._live(some)
        return len(self.zookeeper.owners) - len(before)

    def mark(self, some: Iterable[Partition]) -> int:
        marked = dict.fromkeys(self._some(some), Owner(f"fence{COMMITTED}", True))
        self.zookeeper = replace(self.zookeeper, owners={**self.zookeeper.owners, **marked})
        return self._live(some)

    def disown(self, some: Iterable[Partition]) -> int:
        gone = self._some(some)
        before = self.zookeeper.owners
        self.zookeeper = replace(self.zookeeper, owners={p: o for p, o in before.items() if p not in gone})
        self._live(some)
        return len(before) - len(self.zookeeper.owners)

    def store(self, offsets: Mapping[Partition, int]) -> int:
        now = {p: StoredOffset(offsets[p], 1) for p in self._some(offsets)}
        self.zookeeper = replace(self.zookeeper, offsets={**self.zookeeper.offsets, **now})
        return self._live(offsets)

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        held = {} if self.kafka is None else dict(self.kafka.offsets)
        self.commits.append(dict(offsets))
        kind = "" if self.kafka is None else self.kafka.protocol_type
        self.kafka = kafka(kind=kind, offsets={**held, **{p: offsets[p] for p in self._some(offsets)}})
        self._live(offsets)

    def delete(self) -> None:
        assert not self.kafka.members
        self.kafka = None

    def plan(self, direction: Direction = Direction.TO_KAFKA, without: Any = None) -> MovePlan:
        (seen,) = self.look(SPEC, secrets=None, names=[GROUP])
        found = plan_move(seen, direction, without=without)
        assert isinstance(found, MovePlan), found
        return stop_read(SPEC, found, without, **GIVEN)


GIVEN: dict[str, Any] = {"secrets": lambda _: ""}
