"""Whether the verdict holds while metadata changes: comparisons one after another under churn, every tenth with a
difference planted.

    python -m benchmarks.churned --directory D --runs 100 --rate 50

A run is wrong when it says MISMATCH without a plant, or with one anything but a MISMATCH that names the plant's
partition alone; one that ends INCONCLUSIVE gave no verdict, and is counted apart with its reason. Printed of each: the
seconds (one warm Spark session) and how many records dual write was behind the log; at the end also the rate of changes
that was reached. Ends with 1 unless every run was right.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from benchmarks.scale.churn import churning
from benchmarks.scale.cluster import DEFAULT_DIRECTORY, Plan, load_spec, saved_plan
from benchmarks.scale.tree import topic_name
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.parity.comparison import ParityReport, Verdict
from kraft_runbook.parity.spark.full_comparison import run_parity
from kraft_runbook.parity.spark.session import session
from lab.checkout import commit

PLANT_EVERY = 10
UNTOUCHED = 9
"""A partition of each topic that churn leaves alone: its reassignments and ISRs are of partition 0."""


@contextmanager
def planted(zookeeper: KazooClient, path: str) -> Iterator[None]:
    """The state znode with its leader epoch raised, and put back."""
    before, _ = zookeeper.get(path)
    state = json.loads(before)
    zookeeper.set(path, json.dumps(state | {"leader_epoch": state["leader_epoch"] + 1}).encode())
    try:
        yield
    finally:
        zookeeper.set(path, before)


@dataclass(frozen=True, slots=True)
class Run:
    """One comparison: how long it took, and how it ended."""

    seconds: float
    report: ParityReport
    right: bool

    def __str__(self) -> str:
        behind = self.report.end_offset - self.report.migration_offset
        told = f"{self.seconds:.1f} s, {self.report.rounds} rounds, dual write {behind:,} records behind: "
        if self.right:
            return f"{told}{self.report.verdict}, right"
        if self.report.verdict is Verdict.INCONCLUSIVE:
            return (
                f"{told}no verdict:"
                f" {self.report.obstacles[0].problem if self.report.obstacles else self.report.summary}"
            )
        return f"{told}WRONG\n{self.report.render_text()}"


def run(plan: Plan, zookeeper: KazooClient, spark: SparkSession, number: int) -> Run:
    """One comparison, every tenth with a plant."""
    began = time.perf_counter()
    spec, secrets = load_spec(plan), environment_secrets({})
    if number % PLANT_EVERY != PLANT_EVERY - 1:
        report = run_parity(spec, secrets=secrets, spark=spark)
        return Run(time.perf_counter() - began, report, report.verdict is Verdict.MATCH)
    topic = topic_name((number * 7919) % plan.shape.topics)
    with planted(zookeeper, f"/brokers/topics/{topic}/partitions/{UNTOUCHED}/state"):
        report = run_parity(spec, secrets=secrets, spark=spark)
    named = [sample.key.split(" ")[0] for sample in report.samples]
    return Run(
        time.perf_counter() - began, report, report.verdict is Verdict.MISMATCH and named == [f"{topic}-{UNTOUCHED}"]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--directory", type=Path, default=DEFAULT_DIRECTORY, help="of the cluster that benchmarks.scale made"
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rate", type=float, default=50, help="metadata changes a second")
    asked = parser.parse_args()
    try:
        plan = saved_plan(asked.directory.absolute())
        zookeeper = KazooClient(hosts=load_spec(plan).zookeeper.connect)
        zookeeper.start()
        with session(None) as spark, churning(plan, rate=asked.rate) as churned:
            found: list[Run] = []
            for number in range(asked.runs):
                found.append(run(plan, zookeeper, spark, number))
                print(f"{number + 1}/{asked.runs}: {found[-1]}", flush=True)
        zookeeper.stop()
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    seconds = [each.seconds for each in found]
    right = sum(each.right for each in found)
    silent = sum(each.report.verdict is Verdict.INCONCLUSIVE for each in found)
    print(
        f"benchmarks.churned at {commit()}: {plan.partitions} partitions, {asked.runs} runs,"
        f" {asked.runs // PLANT_EVERY} of them with a plant; {sum(churned.changes.values())} changes at"
        f" {churned.rate:.0f} a second\nright: {right}; wrong: {len(found) - right - silent}; without a verdict:"
        f" {silent}; seconds: median {statistics.median(seconds):.1f}, most {max(seconds):.1f}"
    )
    return 0 if right == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
