"""Whether the verdict holds while metadata changes: comparisons one after another under churn, every tenth with a difference planted.

    python -m benchmarks.churned --directory D --runs 100 --rate 50

A run is wrong when it says anything but MATCH without a plant, or anything but a MISMATCH that names the plant's partition with one. Prints how many were,
the seconds of a verdict (one warm Spark session), and the rate of changes that was reached. Ends with 1 if any was wrong.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from benchmarks.scale.churn import churning
from benchmarks.scale.cluster import DEFAULT_DIRECTORY, Plan, load_spec, saved_plan
from benchmarks.scale.tree import topic_name
from kraft_runbook.clients.secrets import environment_secrets
from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.comparison import ParityReport, Verdict
from kraft_runbook.spark.parity import run_parity
from kraft_runbook.spark.session import session

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


def run(plan: Plan, zookeeper: KazooClient, spark: SparkSession, number: int) -> tuple[float, str | None]:
    """Seconds until the verdict, and what is wrong with it."""
    began = time.perf_counter()
    spec, secrets = load_spec(plan), environment_secrets({})
    if number % PLANT_EVERY != PLANT_EVERY - 1:
        report = run_parity(spec, secrets=secrets, spark=spark)
        return time.perf_counter() - began, None if report.verdict is Verdict.MATCH else report.render_text()
    topic = topic_name((number * 7919) % plan.shape.topics)
    with planted(zookeeper, f"/brokers/topics/{topic}/partitions/{UNTOUCHED}/state"):
        report = run_parity(spec, secrets=secrets, spark=spark)
    return time.perf_counter() - began, None if _finds(report, topic) else f"the plant in {topic}-{UNTOUCHED} was not found alone:\n{report.render_text()}"


def _finds(report: ParityReport, topic: str) -> bool:
    return report.verdict is Verdict.MISMATCH and [sample.key.split(" ")[0] for sample in report.samples] == [f"{topic}-{UNTOUCHED}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY, help="of the cluster that benchmarks.scale made")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rate", type=float, default=50, help="metadata changes a second")
    asked = parser.parse_args()
    try:
        plan = saved_plan(asked.directory.absolute())
        zookeeper = KazooClient(hosts=load_spec(plan).zookeeper.connect)
        zookeeper.start()
        with session(None) as spark, churning(plan, rate=asked.rate) as churned:
            found = []
            for number in range(asked.runs):
                found.append(run(plan, zookeeper, spark, number))
                print(f"{number + 1}/{asked.runs}: {found[-1][0]:.1f} s, {'right' if found[-1][1] is None else 'WRONG'}", flush=True)
        zookeeper.stop()
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    seconds = [took for took, _ in found]
    wrong = [text for _, text in found if text is not None]
    plants = asked.runs // PLANT_EVERY
    print(
        f"{plan.partitions} partitions, {asked.runs} runs, {plants} of them with a plant; {sum(churned.changes.values())} changes at {churned.rate:.0f} a second\n"
        f"wrong verdicts: {len(wrong)}; seconds: median {statistics.median(seconds):.1f}, most {max(seconds):.1f}"
    )
    for text in wrong[:3]:
        print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
