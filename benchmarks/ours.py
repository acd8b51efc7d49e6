"""Our side of the parity benchmarks: what the gate calls, timed by itself. Each gives a ``Done`` with the facts that
the peers must give too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.facts import Done, Summary, joined, summary_of_columns
from benchmarks.scale.cluster import NAME, Plan, load_spec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.read_columns import read_topic_columns
from kraft_runbook.io.zookeeper.read_rows import topic_names
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.topic_prints import topic_prints
from kraft_runbook.parity.decoding import decoding_of
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.since import compare_since
from kraft_runbook.parity.spark.full_comparison import run_parity
from kraft_runbook.parity.spark.session import session

READERS = 2
"""Processes that read ZooKeeper, as Spark's ``local[2]`` has them."""
RANGES = 16
PROVEN = "proven"
"""Where, below the cluster's directory, the last proven state is kept."""

SPARK_ALONE = """
from kraft_runbook.parity.spark.class_archive import compare_nothing
from kraft_runbook.parity.spark.session import session
with session(None) as spark:
    compare_nothing(spark)
"""


def zookeeper(plan: Plan) -> Done:
    """Every topic's znodes to fingerprints, by one process with one session."""
    return _zookeeper(plan, 1)


def zookeeper_in_two(plan: Plan) -> Done:
    """The same by two processes with a session each, as Spark's ``local[2]`` reads them."""
    return _zookeeper(plan, READERS)


def _zookeeper(plan: Plan, readers: int) -> Done:
    spec, secrets = load_spec(plan), environment_secrets({})
    with ProcessPoolExecutor(readers) as pool:
        list(pool.map(_ready, range(readers)))  # imports are not counted, as they are not with the peers
        began = time.perf_counter()
        with ZookeeperReader(spec.zookeeper, secrets=secrets, timeout=60) as reader:
            names = topic_names(reader)
        size = -(-len(names) // RANGES)
        parts = list(pool.map(_read_range, [(plan, names[at : at + size]) for at in range(0, len(names), size)]))
        took = time.perf_counter() - began
    return Done(took, joined(part for part, _ in parts), f"{sum(odd for _, odd in parts)} odd topics")


def _ready(number: int) -> int:
    time.sleep(0.2)
    return number


def _read_range(asked: tuple[Plan, Sequence[str]]) -> tuple[Summary, int]:
    plan, names = asked
    with ZookeeperReader(load_spec(plan).zookeeper, secrets=environment_secrets({}), timeout=60) as reader:
        columns, odd = read_topic_columns(reader, names)
    for _ in topic_prints(columns, b"salt"):
        pass
    return summary_of_columns(columns, plan.shape.topics), len(odd)


def log(plan: Plan) -> Done:
    """The metadata log over the network to the state at its end, and every topic's fingerprint."""
    spec, secrets = load_spec(plan), environment_secrets({})
    began = time.perf_counter()
    replay = LogReplay(2**62, decoding_of(spec, secrets=secrets).fingerprints, spec.kafka.ibp)
    with LogFollower(spec, replay, secrets=secrets, timeout=60) as follower:
        follower.read_on()
    replay.prints()
    took = time.perf_counter() - began
    frozen = replay.image.frozen
    assert frozen is not None
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Done(
        took,
        summary_of_columns(frozen.frozen.columns(), plan.shape.topics),
        f"{replay.records} records; this process {own} MiB",
    )


def gate(plan: Plan) -> Done:
    """``kraft-runbook parity`` as an operator runs it: a new process, Spark's start included. It must say MATCH."""
    return _command(plan)


def spark_alone(plan: Plan) -> Done:
    """Spark's own part of a cold gate: a new process, a session, workers, the same plan over two topics, the end. No
    gate on Spark is shorter.
    """
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", SPARK_ALONE], env=dict(os.environ), capture_output=True, check=True)
    return Done(time.perf_counter() - began, None, "nothing is read")


def gate_warm(plan: Plan) -> Done:
    """The whole gate in a Spark session that has made one comparison already, which is not counted."""
    spec, secrets = load_spec(plan), environment_secrets({})
    with session(None) as spark:
        for _ in range(2):
            began = time.perf_counter()
            report = run_parity(spec, secrets=secrets, spark=spark)
            took = time.perf_counter() - began
    if report.verdict.value != "MATCH":
        raise StepFailed(f"parity did not say MATCH:\n{report.render_text()}", way_out="read its report")
    return Done(took, None, report.summary)


def gate_and_proven(plan: Plan) -> Done:
    """The same, leaving the proven state for ``recheck``; not timed against anything."""
    return _command(plan, "--save-proven", str(plan.directory / PROVEN))


def recheck(plan: Plan) -> Done:
    """A look at what changed since the proof, in a new process as ``kraft-runbook parity --since`` runs it. It must say
    MATCH.
    """
    return _command(plan, "--since", str(plan.directory / PROVEN))


def recheck_warm(plan: Plan) -> Done:
    """The same without a process's start and imports, after one that is not counted."""
    spec, secrets = load_spec(plan), environment_secrets({})
    for _ in range(2):
        began = time.perf_counter()
        report = compare_since(spec, Path(plan.directory / PROVEN), secrets=secrets)
        took = time.perf_counter() - began
    if report.verdict.value != "MATCH":
        raise StepFailed(
            f"the look at what changed did not say MATCH:\n{report.render_text()}", way_out="read its report"
        )
    return Done(took, None, report.summary)


def _command(plan: Plan, *more: str) -> Done:
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "kraft_runbook.cli.app",
        "parity",
        "--cluster",
        NAME,
        "--clusters-dir",
        str(plan.clusters),
        *more,
    ]
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        raise StepFailed(
            f"parity did not say MATCH (exit code {done.returncode}):\n{(done.stdout + done.stderr)[-2000:]}",
            way_out="read its report",
        )
    return Done(took, None, done.stdout.splitlines()[0])
