"""``python -m benchmarks.quorum``: see benchmarks/README.md and docs/was-the-article-right.md."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks.quorum.chart import draw
from benchmarks.quorum.kraft import PLANNED, kraft_side
from benchmarks.quorum.measured import Run, as_json, from_json
from benchmarks.quorum.report import growth, table
from benchmarks.quorum.zookeeper import zookeeper_side
from benchmarks.scale.cluster import Plan
from benchmarks.scale.measure import down
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.io.file_lock import lock_within
from lab.checkout import commit

LEAVING = (1, 2, 4, 5, 10)
"""The stand-ins that are shut down, one a run: no arithmetic progression, so that no partition has only such replicas,
and stays.
"""
SIDES = ("zookeeper", "kraft")


def say(text: str) -> None:
    print(text, flush=True)


def heap(partitions: int, for_a_million: float) -> str:
    """An -Xmx: Kafka's own 1g where that does, and from 100,000 partitions on a margin beside what lives in it."""
    return "1g" if partitions <= 100_000 else f"{math.ceil(1 + partitions * for_a_million / 1_000_000)}g"


def plans(root: Path, partitions: int, brokers: int) -> tuple[Plan, Plan]:
    """The KRaft side and the ZooKeeper side, beside each other on loopback. A controller at 200,000 partitions has 0.9
    GB resident, a broker that controls 1.6 GB, and ZooKeeper 0.9 GB. At 2,000,000 there live 2.2 GB in ZooKeeper, and
    beside its heap a broker that controls keeps a buffer of the size of its largest request, 0.2 GB, for each broker.
    """
    zookeeper = f"{max(1, math.ceil(2 * partitions / 1_000_000))}g"
    kraft_heap, broker_heap = heap(partitions, 2), heap(partitions, 5)
    kraft = Plan(root / "kraft-side", partitions, brokers, 3, "127.88.10", kraft_heap, zookeeper, quiet=True)
    other = Plan(root / "zookeeper-side", partitions, brokers, 1, "127.88.11", broker_heap, zookeeper, quiet=True)
    for each in (kraft, other):
        down(each, purge=True, say=say)  # of a run that was killed
        each.directory.mkdir(parents=True)
        each.save()
    return kraft, other


def measured(root: Path, partitions: int, brokers: int, runs: int, sides: Sequence[str]) -> Iterator[Run]:
    """The sides of one size, a run of the one after a run of the other."""
    kraft_plan, zookeeper_plan = plans(root, partitions, brokers)
    with ExitStack() as both:
        zookeeper = both.enter_context(zookeeper_side(zookeeper_plan, say)) if "zookeeper" in sides else None
        kraft = both.enter_context(kraft_side(kraft_plan, say)) if "kraft" in sides else None
        for number in range(runs):
            if zookeeper:
                yield zookeeper.shut_down(LEAVING[number])
            if kraft:
                yield kraft.shut_down(LEAVING[number])
        for _ in range(runs):
            if zookeeper:
                yield zookeeper.fail_over()
            if kraft:
                for kind in PLANNED:
                    yield kraft.fail_over(kind)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quorum", description=__doc__)
    parser.add_argument("--partitions", default="20000", help="sizes with commas between; multiples of 10")
    parser.add_argument(
        "--runs",
        type=int,
        default=3,
        choices=range(len(LEAVING) + 1),
        help="of each kind; 0: measure nothing, and show what --add finds",
    )
    parser.add_argument("--brokers", type=int, default=30, help="stand-in brokers on each side")
    parser.add_argument(
        "--sides",
        default="zookeeper,kraft",
        help="by turns, or one of them alone where the memory is not enough for both",
    )
    parser.add_argument("--add", action="store_true", help="to what result.json of the directory holds")
    parser.add_argument("--directory", type=Path, default=Path("build/quorum"))
    parser.add_argument("--chart", type=Path, help="where the picture goes (default: chart.svg of the directory)")
    asked = parser.parse_args()
    sides = asked.sides.split(",")
    if set(sides).difference(SIDES):
        parser.error(f"--sides {asked.sides}: there are {' and '.join(SIDES)}")
    root = asked.directory.absolute()
    root.mkdir(parents=True, exist_ok=True)
    result, code = root / "result.json", commit()
    found: list[Run] = []
    try:
        with (root / "lock").open("w") as alone:
            if not lock_within(alone, 0):
                raise Refused(f"this command runs in {root} already", way_out="wait, or give another --directory")
            found += from_json(json.loads(result.read_text())) if asked.add and result.exists() else []
            for size in map(int, asked.partitions.split(",") if asked.runs else ()):
                for each in measured(root, size, asked.brokers, asked.runs, sides):
                    say(str(each))
                    found.append(replace(each, commit=code))
                    result.write_text(json.dumps(as_json(found), indent=1) + "\n")
    except (RunbookError, TimeoutError) as error:
        say(table(found) if found else "nothing was measured")
        print(f"error: {error}", file=sys.stderr)
        return 3
    if not found:
        print(f"error: {result} holds no run", file=sys.stderr)
        return 3
    chart = asked.chart or root / "chart.svg"
    chart.write_text(draw(found) + "\n")
    codes = ", ".join(sorted({each.commit for each in found}))
    say(f"\n{table(found)}\n\n{growth(found)}\n\n{os.cpu_count()} cores; code of {codes}")
    say(f"the picture: {chart}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
