"""``python -m benchmarks.reassignment``: how much a plan moves, against the least that any plan moves and against what
kafka-reassign-partitions ``--generate`` proposes, and how long planning takes.

Each cluster is made at random (a seed of its own) and evened out first, so that it is none of the peer's making. The
command fails where a plan moves more than the claims say, breaks a rack, gives a broker too much of one topic, or takes
too long. "worst topic": what a broker (of those added, else any that stays) has of any topic above the topic's share,
rounded up: replicas · leaders; then the same of the peer's proposal.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import le
from pathlib import Path

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.reassignment.goals import AddBrokers, DrainBrokers, EvenOut, Goal, Measure
from kraft_runbook.reassignment.placement import Placement, racks_of
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.racks import breaks_rack_rule, rack_sizes

ROOT = Path(__file__).resolve().parent.parent
JARS = ROOT / "build" / "jars"
SIZES = ((200, 6), (2_000, 12), (20_000, 30), (200_000, 60))
"""Partitions and brokers. Three racks, three replicas, topics of ten partitions."""
RACKS = FACTOR = 3
TOPIC = 10
MIXED = "add 3, two and three replicas"
MOST_REPLICAS, MOST_BYTES = 1.02, 1.10
MOST_SECONDS, MOST_SECONDS_MIXED = 3.0, 10.0
"""Of a processor that does nothing else; where topics have different factors, their spread takes a flow of its own."""
MOST_ABOVE_SHARE = 1
"""Replicas of a topic on a new broker, and partitions that it leads of one, above the topic's share. Any other broker
may be as far above it as one was before.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """``bound``: the least that any plan copies, reckoned here and not by the planner where replicas are evened out.
    ``seconds``: of a processor. ``peer``: replicas that the peer's proposal copies; None where it has none to make.

    ``worst``: of any topic on any broker that counts, what is above its share, rounded up: of replicas, of leaders, and
    the same of the peer's. ``most_above``: what is right of the first two. None where bytes are made even.
    """

    partitions: int
    brokers: int
    case: str
    plan: ReassignmentPlan
    bound: int
    seconds: float
    broken: int
    peer: int | None
    worst: tuple[int, ...] | None = None
    most_above: tuple[int, int] = (MOST_ABOVE_SHARE, MOST_ABOVE_SHARE)

    @property
    def ratio(self) -> float:
        return self.plan.copies / self.bound if self.bound else 1.0

    @property
    def holds(self) -> bool:
        most = MOST_BYTES if self.plan.unit == "bytes" else MOST_REPLICAS
        seconds = MOST_SECONDS_MIXED if self.case == MIXED else MOST_SECONDS
        return self.ratio <= most and self.seconds <= seconds and not self.broken and self.spread

    @property
    def spread(self) -> bool:
        return self.worst is None or all(map(le, self.worst, self.most_above))

    def __str__(self) -> str:
        peer = "" if self.peer is None else f"{self.peer / self.bound:.1f}"
        worst = "" if self.worst is None else " · ".join(f"{max(0, each)}" for each in self.worst)
        return (
            f"| {self.partitions:,} / {self.brokers} | {self.case} | {self.bound:,} | {self.plan.copies:,}"
            f" | {self.ratio:.3f} | {peer} | {worst} | {self.seconds:.2f} |"
        )


def rack(broker: int) -> str:
    return f"rack-{broker % RACKS}"


def at_random(
    partitions: int, brokers: int, *, seed: int, sized: bool = False, factors: tuple[int, ...] = (FACTOR,)
) -> Placement:
    """One replica of each partition in each rack, on any of its brokers; ``sized``: a few hold most bytes. ``factors``:
    as many topics have each.
    """
    dice = random.Random(seed)  # noqa: S311
    in_rack = [[broker for broker in range(brokers) if broker % RACKS == each] for each in range(RACKS)]
    present: dict[TopicPartition, Replicas] = {}
    for number in range(partitions):
        factor = factors[number * len(factors) // partitions]
        chosen = [dice.choice(of_rack) for of_rack in dice.sample(in_rack, factor)]
        present[TopicPartition(f"topic-{number // TOPIC}", number % TOPIC)] = tuple(chosen)
    sizes = {p: int(dice.paretovariate(1.5) * 10_000_000) for p in present} if sized else {}
    return Placement({broker: rack(broker) for broker in range(brokers)}, present, sizes=sizes)


def proposed_by_peer(present: Assignment, racks: Mapping[int, str | None]) -> dict[TopicPartition, Replicas]:
    """What AdminUtils of Kafka's jar proposes for all topics over these brokers: for those of each factor."""
    found: dict[TopicPartition, Replicas] = {}
    for factor, partitions in sorted(Counter(map(len, present.values())).items()):
        first = len(found) // TOPIC
        for (topic, number), replicas in _proposed(partitions, factor, racks).items():
            found[TopicPartition(f"topic-{first + topic}", number)] = replicas
    if found.keys() != present.keys():
        raise SystemExit(f"the peer proposed {len(found)} of {len(present)} partitions")
    return found


def _proposed(partitions: int, factor: int, racks: Mapping[int, str | None]) -> dict[tuple[int, int], Replicas]:
    """By the topic's number and the partition's; the preferred leader first."""
    brokers = [f"{broker}:{where}" for broker, where in racks.items()]
    command = ["java", "-cp", f"{JARS}/*", str(ROOT / "benchmarks" / "AdminUtilsPeer.java")]
    done = subprocess.run(
        [*command, str(partitions // TOPIC), str(TOPIC), str(factor), *brokers],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    lines_of = (list(map(int, line.split())) for line in done.stdout.splitlines())
    return {(topic, number): tuple(replicas) for topic, number, *replicas in lines_of}


def copies(present: Assignment, proposed: Assignment) -> int:
    return sum(len(set(proposed[partition]) - set(replicas)) for partition, replicas in present.items())


def both_above_share(present: Assignment, brokers: Collection[int]) -> tuple[int, int]:
    """Of replicas, and of leaders."""
    led = {partition: replicas[:1] for partition, replicas in present.items()}
    return above_share(present, brokers), above_share(led, brokers)


def above_share(held: Mapping[TopicPartition, Collection[int]], brokers: Collection[int]) -> int:
    """The most that any of these brokers has of a topic above its part of that broker's load, rounded up."""
    of_topic: Counter[str] = Counter()
    of_both: Counter[tuple[str, int]] = Counter()
    of_broker: Counter[int] = Counter()
    for partition, replicas in held.items():
        of_topic[partition.topic] += len(replicas)
        for broker in replicas:
            of_both[partition.topic, broker] += 1
            of_broker[broker] += 1
    total = of_broker.total()
    return max(of_both[t, b] - -(-of_topic[t] * of_broker[b] // total) for t in of_topic for b in brokers)


def least_copies(placement: Placement, goal: Goal) -> int:
    """What must leave the brokers above their share of their rack, or come to those below: the racks have as many
    brokers each and hold as much, or each partition has one replica in each, so no replica changes its rack.
    """
    gone = goal.brokers if isinstance(goal, DrainBrokers) else ()
    held = Counter(broker for replicas in placement.present.values() for broker in replicas)
    least = 0
    for where in sorted(set(placement.racks.values()), key=str):
        brokers = [b for b, r in placement.racks.items() if r == where and b not in gone]
        of_rack = sum(held[b] for b, r in placement.racks.items() if r == where)
        low, high = of_rack // len(brokers), -(-of_rack // len(brokers))
        leaving = sum(held[b] for b, r in placement.racks.items() if r == where and b in gone)
        leaving += sum(max(0, held[b] - high) for b in brokers)
        least += max(leaving, sum(max(0, low - held[b]) for b in brokers))
    return least


def measured(case: str, goal: Goal, placement: Placement, left: Mapping[int, str | None] | None, brokers: int) -> Line:
    """``left``: the brokers that the peer may use; None: it is not asked."""
    began = time.process_time()
    plan = make_plan(goal, placement)
    seconds = time.process_time() - began
    final = {**placement.present, **plan.target}
    allowed = {b: r for b, r in placement.racks.items() if left is None or b in left}
    racks = racks_of(sorted(allowed), allowed)
    broken = sum(breaks_rack_rule(replicas, racks, rack_sizes(racks)) for replicas in final.values())
    proposed = None if left is None else proposed_by_peer(placement.present, left)
    peer = None if proposed is None else copies(placement.present, proposed)
    worst, right = None, (MOST_ABOVE_SHARE, MOST_ABOVE_SHARE)
    if plan.unit != "bytes":
        counted = goal.brokers if isinstance(goal, AddBrokers) else allowed
        worst = both_above_share(final, counted) + (both_above_share(proposed, counted) if proposed else ())
        if not isinstance(goal, AddBrokers):
            before = both_above_share(placement.present, counted)
            right = max(right[0], before[0]), max(right[1], before[1])
    bound = plan.bound if plan.unit == "bytes" else least_copies(placement, goal)
    return Line(len(placement.present), brokers, case, plan, bound, seconds, broken, peer, worst, right)


def lines(partitions: int, brokers: int) -> Iterator[Line]:
    start = at_random(partitions, brokers, seed=partitions)
    even = make_plan(EvenOut(), start)
    placement = replace(start, present={**start.present, **even.target})
    for many in (1, 3):
        new: dict[int, str | None] = {brokers + each: rack(each) for each in range(many)}
        grown = replace(placement, racks={**placement.racks, **new})
        yield measured(f"add {many}", AddBrokers(tuple(new)), grown, grown.racks, brokers)
    for many in (1, 3):
        gone = tuple(range(many))
        left = {broker: where for broker, where in placement.racks.items() if broker not in gone}
        yield measured(f"drain {many}", DrainBrokers(gone, even=True), placement, left, brokers)
    yield measured("even out, as made", EvenOut(), start, None, brokers)
    yield mixed(partitions, brokers)
    sized = at_random(partitions, brokers, seed=partitions + 1, sized=True)
    yield measured("even out bytes within 5 %", EvenOut(Measure.BYTES), sized, None, brokers)


def mixed(partitions: int, brokers: int) -> Line:
    """Topics of two replicas beside topics of three, and a broker more in each rack."""
    start = at_random(partitions, brokers, seed=partitions + 2, factors=(2, 3))
    placement = replace(start, present={**start.present, **make_plan(EvenOut(), start).target})
    new: dict[int, str | None] = {brokers + each: rack(each) for each in range(RACKS)}
    grown = replace(placement, racks={**placement.racks, **new})
    return measured(MIXED, AddBrokers(tuple(new)), grown, grown.racks, brokers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1][0], help="the largest number of partitions")
    options = parser.parse_args()
    print("| partitions / brokers | case | bound | moved | × bound | --generate × bound | worst topic | cpu-s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    failed = []
    for partitions, brokers in SIZES:
        if partitions <= options.most:
            for line in lines(partitions, brokers):
                print(line, flush=True)
                failed += [] if line.holds else [line]
    for line in failed:
        print(f"NOT as claimed: {line.partitions} {line.case}; {line.broken} racks broken", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
