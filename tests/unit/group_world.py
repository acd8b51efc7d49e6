"""One group on both sides, on which the acts of a move are tested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groups_seen_as import GROUP, kafka, look, member, zookeeper
from observations import SPEC

from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.groups.look import COMMITTED, GroupLook, Kind, LogBounds, Owner, Partition, StoredOffset
from kraft_runbook.groups.move_plan import MovePlan, plan_move
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.procedures.group_sides import GroupSides
from kraft_runbook.procedures.move_group import (
    stop_read,
)

T0, T1 = ("t", 0), ("t", 1)
OLD = member(Kind.OLD)


class World:
    """One group on both sides. ``killed_after``: so many partitions are written, then the writer is killed. ``deaf``:
    what is written is not there afterwards. ``more``: the logs of further topics.
    """

    def __init__(self) -> None:
        self.zookeeper = zookeeper(offsets={T0: 7, T1: 8})
        self.kafka: Any = None
        self.start, self.end, self.topic_id = 0, 100, "id"
        self.partitions = 2
        self.more: dict[str, Any] = {}
        self.commits: list[dict[Partition, int]] = []
        self.kept: list[bool] = []
        self.killed_after = 99
        self.there = True
        self.unread = False
        self.deaf = False
        self.removed: list[str] = []

    @property
    def given(self) -> dict[str, Any]:
        """What an act on this world is given."""
        return {"secrets": lambda _: "", "sides": lambda spec, group, secrets: Sides(spec, group, secrets, self)}

    @property
    def watched(self) -> dict[str, Any]:
        """What a watch of this world is given."""
        return {"secrets": lambda _: "", "looks": self.look}

    def look(self, spec: Any, *, secrets: Any, names: Iterable[str], plans: Any = ()) -> tuple[GroupLook, ...]:
        if self.unread:
            raise Unreachable("ZooKeeper is away", way_out="start it")
        assert list(names) == [GROUP]
        logs = {"t": {n: LogBounds(self.start, self.end, self.topic_id) for n in range(self.partitions)}, **self.more}
        seen = replace(look(self.zookeeper, self.kafka, logs=logs), every=frozenset(logs))
        return (seen,) if self.there else ()

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

    def plan(self, direction: Direction = Direction.TO_KAFKA, without: Any = None) -> MovePlan:
        (seen,) = self.look(SPEC, secrets=None, names=[GROUP])
        found = plan_move(seen, direction, without=without)
        assert isinstance(found, MovePlan), found
        return stop_read(SPEC, found, without, **self.given)


@dataclass(frozen=True)
class Sides(GroupSides):
    """The group of a world."""

    world: World

    def look(self, *plans: MovePlan) -> GroupLook:
        found = self.world.look(self.spec, secrets=self.secrets, names=[self.group], plans=plans)
        if not found:
            raise Refused(f"there is no group {self.group} below /consumers", way_out="name another")
        return found[0]

    def fence(self, partitions: Iterable[Partition]) -> int:
        return 2 if self.world.deaf else self.world.own(partitions)

    def mark_committed(self, partitions: Iterable[Partition]) -> None:
        self.world.mark(partitions)

    def lift_fence(self, partitions: Iterable[Partition]) -> int:
        return self.world.disown(partitions)

    def write_offsets(self, offsets: Mapping[Partition, int]) -> None:
        self.world.store(offsets)

    def commit(self, offsets: Mapping[Partition, int], *, kept: bool) -> None:
        if not self.world.deaf:
            self.world.kept.append(kept)
            self.world.commit(offsets)

    def remove_static(self, names: Sequence[str]) -> None:
        self.world.removed += names
