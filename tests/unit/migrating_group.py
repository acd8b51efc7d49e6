"""A group in a model of ZooKeeper and of Kafka's coordinator: migrating members that act by the real ``step``, old
members that act as 1.1.1 does, and new ones that hand out whatever Kafka assigns. Everything that happens is one
event; a member sees the group as it was when it last looked.

Sessions end only once the member's lease is over (tests/unit/test_lease.py): it is ``stalled`` and hands out nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kraft_runbook_consumer.assignors import assign
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.step import Action, Held, Lock, Phase, Release, Start, State, Step, Stop, View, step
from kraft_runbook_consumer.znodes import Partition, Registration

Rule = Callable[[State, View], Step]


@dataclass
class Member:
    state: State
    view: View = field(default_factory=View)
    stalled: bool = False
    in_hand: frozenset[Partition] = frozenset()
    joined: bool = True
    """False: Kafka's group has not let it in yet. In kafka mode its lease keeps it from handing out anything."""
    waited: bool = False
    """A join was refused in kafka mode, or that has lasted a session of Kafka's meanwhile (``Sight.assigned``)."""

    @property
    def hands_out(self) -> set[Partition]:
        """What it may hand out now, and what the application still has in its hands."""
        running = {p for p, held in self.state.held.items() if held.phase is Phase.RUNNING}
        silent = not self.joined and self.state.mode is Mode.KAFKA
        return set() if self.stalled else self.in_hand | (set() if silent else running)


@dataclass
class World:
    topics: dict[str, tuple[int, ...]]
    rule: Rule = step
    locks_hold: bool = True
    """False: a planted fault, owner znodes keep nobody out."""
    strategy: str = "range"
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    migrating: dict[str, Member] = field(default_factory=dict)
    old: dict[str, set[Partition]] = field(default_factory=dict)
    new: dict[str, set[Partition]] = field(default_factory=dict)
    ids: dict[str, Registration] = field(default_factory=dict)
    mode: str | None = None
    owners: dict[Partition, str] = field(default_factory=dict)
    kafka: dict[str, frozenset[Partition]] = field(default_factory=dict)
    """Kafka's group: its assignment, by embedded or new member."""
    count: int = 0

    # what the group is like

    def every(self) -> set[Partition]:
        return {(topic, number) for topic, numbers in self.topics.items() for number in numbers}

    def holders(self) -> dict[Partition, list[str]]:
        found: dict[Partition, list[str]] = {}
        each = {m: member.hands_out for m, member in self.migrating.items()} | self.old | self.new
        for who, partitions in each.items():
            for partition in partitions:
                found.setdefault(partition, []).append(who)
        return found

    def look(self, name: str) -> None:
        """The member sees the group as it is now."""
        member = self.migrating[name]
        quiet = frozenset(self.every() - member.in_hand)
        member.view = View(
            members=dict(self.ids),
            migrating=frozenset(self.ids.keys() & self.migrating.keys()),
            mode=self.mode,
            partitions=dict(self.topics),
            taken=frozenset(p for p, who in self.owners.items() if who != name),
            assigned=self.assigned(name),
            new={k: self.kafka.get(k, frozenset()) for k in self.new},
            quiet=quiet,
        )

    def assigned(self, name: str) -> frozenset[Partition] | None:
        member = self.migrating[name]
        in_vain = member.waited and member.state.mode is Mode.KAFKA
        return self.kafka.get(name, frozenset() if in_vain else None)

    # what a migrating member does

    def act(self, name: str, most: int = 1) -> int:
        """The first actions of its next step; how many were done."""
        member = self.migrating[name]
        if member.stalled or name not in self.ids:
            return 0
        found = self.rule(member.state, member.view)
        member.state = replace(member.state, mode=found.mode)
        for action in found.actions[:most]:
            self._do(name, member, action)
        return len(found.actions[:most])

    def _do(self, name: str, member: Member, action: Action) -> None:
        held = dict(member.state.held)
        match action:
            case Lock(partition, thread):
                if partition in self.owners and self.locks_hold:
                    member.view = replace(member.view, taken=member.view.taken | {partition})
                    return
                self.owners[partition] = name
                held[partition] = Held(thread, Phase.LOCKED)
            case Start(partition, thread):
                held[partition] = Held(thread, Phase.RUNNING)
            case Stop(partition):
                if self.draw.random() < 0.7:
                    member.in_hand |= {partition}
                held[partition] = Held(held[partition].thread, Phase.STOPPING)
                self._see_hands(member)
            case Release(partition):
                del held[partition]
                if self.owners.get(partition) == name:
                    del self.owners[partition]
        member.state = replace(member.state, held=held)

    def _see_hands(self, member: Member) -> None:
        member.view = replace(member.view, quiet=frozenset(self.every() - member.in_hand))

    def finish(self, name: str) -> None:
        """The application is done with what it has in its hands."""
        self.migrating[name].in_hand = frozenset()
        self._see_hands(self.migrating[name])

    def settle(self) -> None:
        """All look and act until nobody has anything to do."""
        for _ in range(60):
            for name in self.migrating:
                self.finish(name)
                self.look(name)
            done = [self.act(name, 1000) for name in self.migrating]
            for name in self.old:
                self.rebalance_old(name)
            if not any(done) and self.holders().keys() == self.every():
                return
        raise AssertionError("the group does not settle")

    # Kafka's coordinator

    def rebalance_kafka(self) -> None:
        """Each partition that moves is given up before anybody gets it: on_revoke returns only then."""
        for name in [n for n in self.kafka if n in self.migrating and self.migrating[n].stalled]:
            del self.kafka[name]  # it is waited for until its session ends
        names = sorted(self.kafka)
        dealt: dict[str, set[Partition]] = {n: set() for n in names}
        for at, partition in enumerate(sorted(self.every()) if names else ()):
            dealt[names[at % len(names)]].add(partition)
        for name in names:
            kept = self.kafka[name] & dealt[name]
            gone = self.kafka[name] - kept
            self.kafka[name] = kept
            if name in self.migrating:
                self.revoke(name, kept, gone)
        for name in names:
            self.kafka[name] = frozenset(dealt[name])
            if name in self.migrating:
                self.see_rebalance(name)
            if name in self.new:
                self.new[name] = set(dealt[name])

    def revoke(self, name: str, kept: frozenset[Partition], gone: frozenset[Partition]) -> None:
        member = self.migrating[name]
        member.view = replace(member.view, assigned=kept, revoking=True)
        if member.state.mode is not Mode.KAFKA:
            return
        for _ in range(100):
            self.finish(name)
            if not self.act(name, 1000):
                break
        # what another member has left over from ZooKeeper's assignment: it follows Kafka too, and lets go
        for partition in gone:
            other = self.owners.get(partition)
            for _ in range(20):
                if other is None or other == name or self.owners.get(partition) != other or other not in self.migrating:
                    break
                self.finish(other)
                self.look(other)
                self.act(other, 1000)

    def see_rebalance(self, name: str) -> None:
        """on_assign: in kafka mode, who is in Kafka's group is not known until the next look."""
        member = self.migrating[name]
        new = member.view.new if member.state.mode is Mode.ZOOKEEPER else None
        member.view = replace(member.view, assigned=self.kafka[name], new=new, revoking=False)

    # who comes, goes, stalls

    def join(self, *, threads: int = 1, in_kafka: bool = True) -> str:
        name = f"g_m{self.count}"
        self.count += 1
        self.migrating[name] = Member(State(name, strategy=self.strategy), joined=False)
        self.ids[name] = Registration(dict.fromkeys(self.topics, threads))
        if in_kafka:
            self.join_kafka(name)
        return name

    def join_kafka(self, name: str) -> None:
        """Kafka's group lets it in."""
        self.migrating[name].joined = True
        self.kafka[name] = frozenset()
        self.rebalance_kafka()

    def leave(self, name: str) -> None:
        self._forget(name)
        self.rebalance_kafka()

    def _forget(self, name: str) -> None:
        del self.migrating[name]
        self.ids.pop(name, None)
        self.kafka.pop(name, None)
        self.owners = {p: who for p, who in self.owners.items() if who != name}

    def stall(self, name: str) -> None:
        """It is stopped, or cut off: it does nothing, and its leases run out."""
        self.migrating[name].stalled = True

    def end_session(self, name: str) -> None:
        """ZooKeeper and Kafka both give it up; it is stalled."""
        self.ids.pop(name, None)
        self.owners = {p: who for p, who in self.owners.items() if who != name}
        self.kafka.pop(name, None)
        self.rebalance_kafka()

    def wake(self, name: str) -> None:
        """It goes on: with its sessions as it was, without them from the start."""
        member = self.migrating[name]
        if name not in self.ids:
            member.state = replace(member.state, held={}, mode=None)
            member.in_hand = frozenset()
            self.ids[name] = Registration(dict.fromkeys(self.topics, 1))
        elif name not in self.kafka and member.state.mode is Mode.KAFKA:
            held = {p: replace(each, phase=Phase.STOPPING) for p, each in member.state.held.items()}  # on_lost
            member.state = replace(member.state, held=held)
        member.stalled = False
        if name not in self.kafka:
            member.view = replace(member.view, assigned=frozenset(), new=None)
            self.join_kafka(name)

    def join_new(self) -> None:
        name = f"kc{self.count}"
        self.count += 1
        self.new[name] = set()
        self.kafka[name] = frozenset()
        self.rebalance_kafka()

    def leave_new(self, name: str) -> None:
        del self.new[name], self.kafka[name]
        self.rebalance_kafka()

    def join_old(self) -> None:
        name = f"g_o{self.count}"
        self.count += 1
        self.ids[name] = Registration(dict.fromkeys(self.topics, 1))
        self.old[name] = set()

    def leave_old(self, name: str) -> None:
        self._release_old(name)
        del self.old[name], self.ids[name]

    def rebalance_old(self, name: str) -> None:
        """1.1.1: give up all, then lock all that ZooKeeper assigns, or nothing."""
        self._release_old(name)
        dealt = assign(self.strategy, self.ids, self.topics)
        mine = {p for p, thread in dealt.items() if thread.member == name}
        if not any(p in self.owners for p in mine):
            self.owners |= dict.fromkeys(mine, name)
            self.old[name] = mine

    def _release_old(self, name: str) -> None:
        for partition in self.old[name]:
            if self.owners.get(partition) == name:
                del self.owners[partition]
        self.old[name] = set()
