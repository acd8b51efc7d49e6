"""``python -m benchmarks.quorum``: see benchmarks/README.md and docs/was-the-article-right.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.quorum.kraft import PLANNED, kraft_side
from benchmarks.quorum.measured import SHUTDOWN, Run, as_json, table
from benchmarks.quorum.zookeeper import zookeeper_side
from benchmarks.scale.cluster import Plan, heaps
from kraft_runbook.errors import RunbookError

LEAVING = (1, 2, 4, 5, 10)
"""The stand-ins that are shut down, one a run: no arithmetic progression, so that no partition has only such replicas,
and stays.
"""


def say(text: str) -> None:
    print(text, flush=True)


def plans(root: Path, partitions: int, brokers: int) -> tuple[Plan, Plan]:
    """The two sides, beside each other on loopback."""
    controller, zookeeper = heaps(partitions, brokers)
    kraft = Plan(root / "kraft-side", partitions, brokers, 3, "127.88.10", controller, zookeeper, quiet=True)
    other = Plan(root / "zookeeper-side", partitions, brokers, 1, "127.88.11", controller, zookeeper, quiet=True)
    for each in (kraft, other):
        if each.directory.exists():
            subprocess.run(["rm", "-rf", "--", str(each.directory)], check=True)
        each.directory.mkdir(parents=True)
        each.save()
    return kraft, other


def measured(root: Path, partitions: int, brokers: int, runs: int) -> Iterator[Run]:
    """Both sides of one size, a run of the one after a run of the other."""
    kraft_plan, zookeeper_plan = plans(root, partitions, brokers)
    with ExitStack() as both:
        zookeeper = both.enter_context(zookeeper_side(zookeeper_plan, say))
        kraft = both.enter_context(kraft_side(kraft_plan, say))
        for number in range(runs):
            yield zookeeper.shut_down(LEAVING[number])
            yield kraft.shut_down(LEAVING[number])
        for _ in range(runs):
            yield zookeeper.fail_over()
            for kind in PLANNED:
                yield kraft.fail_over(kind)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quorum", description=__doc__)
    parser.add_argument("--partitions", default="20000", help="sizes with commas between; multiples of 10")
    parser.add_argument("--runs", type=int, default=3, choices=range(1, len(LEAVING) + 1))
    parser.add_argument("--brokers", type=int, default=30, help="stand-in brokers on each side")
    parser.add_argument("--directory", type=Path, default=Path("build/quorum"))
    asked = parser.parse_args()
    root, found = asked.directory.absolute(), list[Run]()
    try:
        for size in map(int, asked.partitions.split(",")):
            for each in measured(root, size, asked.brokers, asked.runs):
                say(
                    f"{each.kind}, {each.side}, {each.partitions:,}: {each.seconds:g} s, {each.cpu:g} cpu-s, load"
                    f" {each.load:g}{f' ({each.note})' if each.note else ''}"
                )
                found.append(each)
                (root / "result.json").write_text(json.dumps(as_json(found), indent=1) + "\n")
    except (RunbookError, TimeoutError) as error:
        say(table(found) if found else "nothing was measured")
        print(f"error: {error}", file=sys.stderr)
        return 3
    say(f"\n{table(found)}\n\n{os.cpu_count()} cores; {sum(each.kind == SHUTDOWN for each in found)} shutdowns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
