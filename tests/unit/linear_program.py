"""What the best plan is, by a linear program over single partitions: another way than the planner's, which sends groups
of partitions through a network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ortools.linear_solver import pywraplp

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.reassignment.racks import Ground, rack_bounds


@dataclass(frozen=True, slots=True)
class Best:
    """``unevenness``: the sum over brokers of 0 + 1 + … up to what each holds; the most even has the least of it.
    ``changes``: copies, or partitions that another broker leads.
    """

    unevenness: int
    changes: int


def unevenness(counts: Mapping[int, int], brokers: Collection[int]) -> int:
    return sum(counts.get(broker, 0) * (counts.get(broker, 0) - 1) // 2 for broker in brokers)


def best_sets(present: Assignment, ground: Ground, *, fixed: Mapping[int, int] | None = None) -> Best:
    """Of all assignments of these partitions that keep the rack rule. Evenness first; with ``fixed``, what brokers
    hold besides, copies first.
    """
    program = _Program(ground.brokers, fixed or {})
    for partition, replicas in present.items():
        on = {broker: program.share() for broker in ground.brokers}
        program.require(on.values(), len(replicas), len(replicas))
        for rack, (least, most) in rack_bounds(len(replicas), ground.sizes).items():
            program.require([on[b] for b in ground.brokers if ground.racks[b] == rack], least, most)
        program.hold(on, {broker: 0 if broker in replicas else 1 for broker in on})
        assert partition not in program.seen
        program.seen.add(partition)
    return program.solved(changes_first=fixed is not None)


def best_leaders(present: Assignment) -> Best:
    """Of all choices of leaders among the replicas: evenness first, then as few others as can be."""
    brokers = sorted({broker for replicas in present.values() for broker in replicas})
    program = _Program(brokers, {})
    for replicas in present.values():
        on = {broker: program.share() for broker in replicas}
        program.require(on.values(), 1, 1)
        program.hold(on, {broker: 0 if broker == replicas[0] else 1 for broker in on})
    return program.solved(changes_first=False)


def least_above_share(
    present: Assignment, planned: Assignment, ground: Ground, brokers: Collection[int], *, fixed: Assignment
) -> float:
    """The least by which the worst topic of these brokers is above its share, rounded up, in any plan with the loads of
    ``planned`` and no more copies. ``fixed``: partitions that stay as they are.
    """
    solver = pywraplp.Solver.CreateSolver("GLOP")
    load = Counter(each for replicas in planned.values() for each in replicas)
    of_topic: Counter[str] = Counter()
    on: dict[int, list[Any]] = {each: [] for each in ground.brokers}
    here: dict[tuple[str, int], list[Any]] = {}
    kept: list[Any] = []
    for partition, replicas in present.items():
        of_topic[partition.topic] += len(replicas)
        if partition in fixed:
            mine: dict[int, Any] = dict.fromkeys(replicas, 1)
        else:
            mine = {each: solver.NumVar(0, 1, "") for each in ground.brokers}
            solver.Add(solver.Sum(list(mine.values())) == len(replicas))
            for rack, (least, most) in rack_bounds(len(replicas), ground.sizes).items():
                there = solver.Sum([mine[each] for each in mine if ground.racks[each] == rack])
                solver.Add(there >= least)
                solver.Add(there <= most)
        for each, share in mine.items():
            on[each].append(share)
            here.setdefault((partition.topic, each), []).append(share)
        kept += [mine[each] for each in replicas if each in mine]
    for each, shares in on.items():
        solver.Add(solver.Sum(shares) == load[each])
    solver.Add(solver.Sum(kept) >= sum(len(set(planned[p]) & set(replicas)) for p, replicas in present.items()) - 1e-6)
    return _least_worst(solver, {each: shares for each, shares in here.items() if each[1] in brokers}, of_topic, load)


def least_led_above_share(present: Assignment, planned: Assignment, brokers: Collection[int]) -> float:
    """The same of the partitions that these brokers lead, over the replica sets of ``planned``: each broker leads as
    many as there, and no more leaders change.
    """
    solver = pywraplp.Solver.CreateSolver("GLOP")
    load, of_topic = Counter(replicas[0] for replicas in planned.values()), Counter(p.topic for p in planned)
    on: dict[int, list[Any]] = {}
    here: dict[tuple[str, int], list[Any]] = {}
    kept: list[Any] = []
    for partition, replicas in planned.items():
        mine = {each: solver.NumVar(0, 1, "") for each in replicas}
        solver.Add(solver.Sum(list(mine.values())) == 1)
        for each, leads in mine.items():
            on.setdefault(each, []).append(leads)
            here.setdefault((partition.topic, each), []).append(leads)
        kept += [mine[each] for each in present[partition][:1] if each in mine]
    for each, leading in on.items():
        solver.Add(solver.Sum(leading) == load[each])
    solver.Add(solver.Sum(kept) >= sum(present[p][0] == replicas[0] for p, replicas in planned.items()) - 1e-6)
    return _least_worst(solver, {each: leads for each, leads in here.items() if each[1] in brokers}, of_topic, load)


def _least_worst(
    solver: Any, here: Mapping[tuple[str, int], Collection[Any]], of_topic: Counter[str], load: Counter[int]
) -> float:
    worst = solver.NumVar(0, of_topic.total(), "")
    for (topic, broker), shares in here.items():
        solver.Add(solver.Sum(list(shares)) <= -(-of_topic[topic] * load[broker] // load.total()) + worst)
    solver.Minimize(worst)
    assert solver.Solve() == pywraplp.Solver.OPTIMAL
    return float(worst.solution_value())


def least_bytes(
    present: Assignment, sizes: Mapping[TopicPartition, int], ground: Ground, bands: Mapping[int, tuple[int, int]]
) -> float:
    """The least bytes that are copied until each broker's lie in its band, the rack rule kept. Replicas may go in
    parts, so no plan copies less.
    """
    solver, unit = pywraplp.Solver.CreateSolver("GLOP"), max(1, sum(sizes.values()) // len(sizes))
    load: dict[int, list[Any]] = {each: [] for each in ground.brokers}
    copied: list[Any] = []
    for partition, replicas in present.items():
        size = sizes[partition] / unit
        on = {each: solver.NumVar(0, 1, "") for each in ground.brokers}
        solver.Add(solver.Sum(list(on.values())) == len(replicas))
        for rack, (least, most) in rack_bounds(len(replicas), ground.sizes).items():
            there = solver.Sum([on[each] for each in on if ground.racks[each] == rack])
            solver.Add(there >= least)
            solver.Add(there <= most)
        for each, share in on.items():
            load[each].append(size * share)
        copied += [size * on[each] for each in on if each not in replicas]
    for broker, (low, high) in bands.items():
        held = solver.Sum(load[broker])
        solver.Add(held >= low / unit)
        solver.Add(held <= high / unit)
    solver.Minimize(solver.Sum(copied))
    assert solver.Solve() == pywraplp.Solver.OPTIMAL
    return float(solver.Objective().Value() * unit)


class _Program:
    def __init__(self, brokers: Collection[int], fixed: Mapping[int, int]) -> None:
        self.seen: set[TopicPartition] = set()
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        self._fixed, self._on = {broker: fixed.get(broker, 0) for broker in brokers}, {b: [] for b in brokers}
        self._changes: list[Any] = []
        self._partitions = 0

    def share(self) -> Any:
        return self._solver.NumVar(0, 1, "")

    def require(self, shares: Collection[Any], least: int, most: int) -> None:
        self._solver.Add(self._solver.Sum(list(shares)) >= least)
        self._solver.Add(self._solver.Sum(list(shares)) <= most)

    def hold(self, on: Mapping[int, Any], costs: Mapping[int, int]) -> None:
        self._partitions += 1
        for broker, share in on.items():
            self._on[broker].append(share)
            self._changes.append(costs[broker] * share)

    def solved(self, *, changes_first: bool) -> Best:
        uneven = []
        for broker, shares in self._on.items():
            units = [self.share() for _ in range(self._partitions)]
            self._solver.Add(self._solver.Sum(shares) == self._solver.Sum(units))
            uneven += [(self._fixed[broker] + height) * unit for height, unit in enumerate(units)]
        there = sum(held * (held - 1) // 2 for held in self._fixed.values())
        goals = [self._solver.Sum(uneven), self._solver.Sum(self._changes)]
        found = [0.0, 0.0]
        for at in (1, 0) if changes_first else (0, 1):
            self._solver.Minimize(goals[at])
            assert self._solver.Solve() == pywraplp.Solver.OPTIMAL
            found[at] = goals[at].solution_value()
            self._solver.Add(goals[at] <= found[at] + 1e-6)
        assert all(abs(each - round(each)) < 1e-3 for each in found), found
        return Best(there + round(found[0]), round(found[1]))
