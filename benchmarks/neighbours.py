"""What the ensemble's other clients notice of a comparison: the latency of their reads while the tree is read, with and
without a limit.

    python -m benchmarks.neighbours --directory D --rates 0,200000,50000

One client gets a znode a hundred times a second, as a broker's session might, first on a server that does nothing else,
then while two readers go over the whole tree as the gate does, then again with ``zookeeper.read_rate`` at each of
``--rates`` (0: no limit). Shown: the latency in milliseconds, and how long the readers took.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from kazoo.client import KazooClient

from benchmarks.ours import RANGES, READERS
from benchmarks.scale.cluster import DEFAULT_DIRECTORY, Plan, load_spec, saved_plan
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.read_rows import topic_names
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from lab.checkout import commit

EVERY = 0.01
"""Seconds between two reads of the neighbour."""
IDLE = 10.0
"""Seconds that the neighbour is alone."""


def read_all(plan: Plan, rate: float | None, number: int) -> None:
    """One reader's share of the tree."""
    spec, secrets = load_spec(plan), environment_secrets({})
    with ZookeeperReader(
        spec.zookeeper, secrets=secrets, timeout=60, rate=None if rate is None else rate / READERS
    ) as reader:
        names = topic_names(reader)
        size = -(-len(names) // RANGES)
        for at in range(number * size, len(names), READERS * size):
            read_topic_columns(reader, names[at : at + size])


def latencies(client: KazooClient, busy: Sequence[multiprocessing.process.BaseProcess]) -> list[float]:
    """Milliseconds of each read, while a reader is alive, or for ``IDLE`` seconds where there is none."""
    found, until = [], time.monotonic() + IDLE
    while any(each.is_alive() for each in busy) or (not busy and time.monotonic() < until):
        began = time.perf_counter()
        client.get("/controller")
        took = time.perf_counter() - began
        found.append(1000 * took)
        time.sleep(max(0.0, EVERY - took))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--directory", type=Path, default=DEFAULT_DIRECTORY, help="of the cluster that benchmarks.scale made"
    )
    parser.add_argument(
        "--rates", default="0,200000,50000", help="znodes a second for both readers together; 0: no limit"
    )
    asked = parser.parse_args()
    start = multiprocessing.get_context("spawn").Process
    try:
        plan = saved_plan(asked.directory.absolute())
        client = KazooClient(hosts=load_spec(plan).zookeeper.connect)
        client.start()
        lines = [("nobody else", latencies(client, ()), IDLE)]
        for rate in map(float, asked.rates.split(",")):
            busy = [start(target=read_all, args=(plan, rate or None, number)) for number in range(READERS)]
            for each in busy:
                each.start()
            began = time.monotonic()
            found = latencies(client, busy)
            lines.append(
                (
                    f"two readers, {f'{rate:,.0f} znodes a second' if rate else 'no limit'}",
                    found,
                    time.monotonic() - began,
                )
            )
        client.stop()
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(
        f"benchmarks.neighbours at {commit()}: {plan.partitions} partitions\n\n| beside | reads | median ms | 99 % ms |"
        " worst ms | s |\n|---|---|---|---|---|---|"
    )
    for what, found, took in lines:
        median, high, worst = np.percentile(found, [50, 99, 100])
        print(f"| {what} | {len(found)} | {median:.2f} | {high:.2f} | {worst:.2f} | {took:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
