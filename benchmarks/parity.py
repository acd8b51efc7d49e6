"""The parity gate's parts beside what one would use without it, over the same cluster, in the same run.

    python -m benchmarks.scale up --directory D --partitions 200000
    python -m benchmarks.parity --directory D --what zookeeper,log,compare,gate --runs 3

Each side of each line runs in a process of its own, ours and the peer's by turns; shown are medians, their ratio, and
the largest resident memory of the process with its children (a JVM counts). The facts that both sides found must be the
same, or there is no line. The cluster must be quiet.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks.scale.cluster import DEFAULT_DIRECTORY, Plan, saved_plan
from kraft_runbook.errors import RunbookError, StepFailed
from lab.checkout import commit
from lab.layout import ROOT

LARGE = 1_000_000
"""From so many partitions on kazoo's loop is sampled: it would take half an hour and more."""
LOOP_SAMPLE = 20_000
SAMPLED = ("loop", "loop_in_two", "dict_diff_gate", "dict_diff_gate_in_two")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: ours against one peer. ``seconds``: the aims by partitions; ``ratio``: how many times faster ours is to
    be; None: shown, no aim.

    ``alike`` False: the two differ in what a ratio would be read for (a start, the number of processes), which
    ``peer_title`` says; none is printed then.
    """

    what: str
    title: str
    ours: str
    peer: str
    peer_title: str
    seconds: Mapping[int, float]
    ratio: float | None
    alike: bool = True


ONE, TWO, GATE = (
    "read the whole tree, one process",
    "read the whole tree, two processes",
    "the whole gate, cold, two readers",
)
LINES = (
    Line("zookeeper", ONE, "ours.zookeeper", "kazoo_peers.loop", "kazoo get loop", {}, None),
    Line("zookeeper", ONE, "ours.zookeeper", "kazoo_peers.windowed", "kazoo get_async, window 1000", {}, None),
    Line(
        "zookeeper",
        TWO,
        "ours.zookeeper_in_two",
        "kazoo_peers.loop_in_two",
        "kazoo get loop, in two",
        {2_000_000: 8},
        100,
    ),
    Line(
        "zookeeper",
        TWO,
        "ours.zookeeper_in_two",
        "kazoo_peers.windowed_in_two",
        "kazoo get_async, window 1000, in two",
        {2_000_000: 8},
        20,
    ),
    Line(
        "log",
        "read and replay the log",
        "ours.log",
        "peers.dump_log",
        "kafka-dump-log, output parsed",
        {2_000_000: 6},
        10,
    ),
    Line(
        "log",
        "read and replay the log",
        "ours.log",
        "peers.generic_decoder",
        "kafka-python's generic decoder",
        {2_000_000: 6},
        5,
    ),
    Line(
        "compare",
        "compare, warm",
        "compare.ours",
        "compare.datacompy",
        "datacompy's Spark compare, warm",
        {2_000_000: 5},
        4,
    ),
    Line(
        "compare",
        "compare, warm",
        "compare.ours",
        "compare.duckdb",
        "DuckDB full outer join, warm",
        {2_000_000: 5},
        None,
    ),
    Line(
        "recheck",
        "what changed since a proof, cold",
        "ours.recheck",
        "ours.gate_and_proven",
        "the whole gate, cold, its proof saved",
        {2_000_000: 3},
        None,
    ),
    Line(
        "recheck",
        "what changed since a proof, warm",
        "ours.recheck_warm",
        "ours.gate_warm",
        "the whole gate, warm",
        {2_000_000: 3},
        None,
    ),
    Line(
        "gate",
        GATE,
        "ours.gate",
        "peers.dict_diff_gate_in_two",
        "kazoo loop in two + dump-log + dict diff",
        {200_000: 15, 2_000_000: 35},
        25,
    ),
    Line(
        "gate",
        GATE,
        "ours.gate",
        "peers.dict_diff_gate",
        "kazoo loop in one + dump-log + dict diff",
        {},
        None,
        alike=False,
    ),
    Line(
        "gate", GATE, "ours.gate", "ours.spark_alone", "Spark's part of it alone, nothing read", {}, None, alike=False
    ),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One side, once. ``peak_rss``: MiB, of the process and its children together."""

    name: str
    seconds: float
    peak_rss: int
    summary: Any
    note: str


# -- one side, in a process of its own ---------------------------------------------------------------------------------


def work(name: str, plan: Plan, asked: argparse.Namespace) -> None:
    """Run one side and print it as one JSON line."""
    module, _, function = name.partition(".")
    if module == "compare":
        from benchmarks import compare

        if function == "prepare":
            compare.write_sides(plan)
            print("{}")
            return
        times = compare.measure(plan, runs=asked.runs, driver_memory=asked.driver_memory, master=asked.master)
        print(json.dumps({"times": times}))
        return
    from benchmarks import kazoo_peers, ours, peers

    call = getattr({"ours": ours, "peers": peers, "kazoo_peers": kazoo_peers}[module], function)
    sampled = function in SAMPLED and plan.partitions >= LARGE
    done = call(plan, sample=LOOP_SAMPLE) if sampled else call(plan)
    print(json.dumps(asdict(done)))


def in_process(name: str, asked: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """What ``work`` printed, and the peak memory in MiB. Raises StepFailed when it failed."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.parity",
        "--one",
        name,
        "--directory",
        str(asked.directory),
        "--runs",
        str(asked.runs),
    ]
    command += ["--driver-memory", asked.driver_memory, "--master", asked.master]
    path = os.pathsep.join([str(ROOT), str(ROOT / "include"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        peak, stop = [0], threading.Event()
        watch = threading.Thread(target=_follow, args=(process.pid, peak, stop))
        watch.start()
        said, errors = process.communicate()
        stop.set()
        watch.join()
    if process.returncode:
        raise StepFailed(f"{name} failed:\n{errors[-3000:]}", way_out="run it by itself: " + " ".join(command[1:]))
    return json.loads(said.splitlines()[-1]), peak[0]


def _follow(pid: int, peak: list[int], stop: threading.Event) -> None:
    while not stop.wait(0.1):
        try:
            root = psutil.Process(pid)
            total = sum(each.memory_info().rss for each in (root, *root.children(recursive=True)))
        except psutil.Error:
            continue
        peak[0] = max(peak[0], total // 2**20)


# -- the table ---------------------------------------------------------------------------------------------------------


def measure(names: Sequence[str], asked: argparse.Namespace) -> list[Run]:
    """Every side, ``--runs`` times, by turns. Raises StepFailed when two sides did not find the same facts."""
    runs: list[Run] = []
    if any(name.startswith("compare.") for name in names):
        in_process("compare.prepare", asked)
        found, peak = in_process("compare.all", asked)
        planted = int(found["times"].pop("planted"))
        runs += [
            Run(f"compare.{name}", seconds, peak, None, f"{planted} planted, all found; memory of all three")
            for name, seconds in found["times"].items()
        ]
    for number in range(asked.runs):
        for name in (each for each in names if not each.startswith("compare.")):
            found, peak = in_process(name, asked)
            runs.append(Run(name, found["seconds"], peak, found["summary"], found["note"]))
            print(
                f"{number + 1}/{asked.runs} {name}: {found['seconds']:.2f} s, {peak} MiB; {found['note']}", flush=True
            )
            _require_same(runs)
    return runs


def _require_same(runs: Sequence[Run]) -> None:
    told = [each for each in runs if each.summary is not None]
    for each in told[1:]:
        if each.summary != told[0].summary:
            counts = {
                run.name: [run.summary[key] for key in ("topics", "partitions", "configs")] for run in (told[0], each)
            }
            raise StepFailed(
                f"{told[0].name} and {each.name} did not find the same facts (topics, partitions, configs: {counts}):"
                " this is no comparison",
                way_out="the cluster must be quiet (no churn); else one of the readers is wrong",
            )


def table(lines: Sequence[Line], runs: Sequence[Run], partitions: int) -> str:
    """Markdown. A ratio is peer / ours, of two that are alike; an aim in seconds stands only at the sizes that have
    one.
    """
    shown = [
        "| what | peer | ours s | peer s | ratio | aim | reached | peak MiB, ours / peer | note |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        mine, theirs = ([each for each in runs if each.name == name] for name in (line.ours, line.peer))
        if not (mine and theirs):
            continue
        seconds, peer = (statistics.median(each.seconds for each in side) for side in (mine, theirs))
        aims = ([f"<= {line.seconds[partitions]:g} s"] if partitions in line.seconds else []) + (
            [f">= {line.ratio:g}x"] if line.ratio else []
        )
        reached = seconds <= line.seconds.get(partitions, seconds) and peer / seconds >= (line.ratio or 0)
        memory = f"{max(each.peak_rss for each in mine)} / {max(each.peak_rss for each in theirs)}"
        shown.append(
            f"| {line.title} | {line.peer_title} | {seconds:.2f} | {peer:.2f} |"
            f" {f'{peer / seconds:.1f}' if line.alike else '-'} | {', '.join(aims) or '-'} |"
            f" {('yes' if reached else 'no') if aims else '-'} | {memory} | {theirs[-1].note} |"
        )
    return "\n".join(shown)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--directory", type=Path, default=DEFAULT_DIRECTORY, help="of the cluster that benchmarks.scale made"
    )
    parser.add_argument("--what", default="zookeeper,log,compare,gate,recheck")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--driver-memory", default="4g", help="of the comparison's Spark session")
    parser.add_argument("--master", default="local[2]", help="of the comparison's Spark session")
    parser.add_argument("--json", type=Path, help="also write every run here")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.directory = asked.directory.absolute()
    try:
        plan = saved_plan(asked.directory)
        if asked.one:
            work(asked.one, plan, asked)
            return 0
        lines = [line for line in LINES if line.what in asked.what.split(",")]
        runs = measure(
            list(
                dict.fromkeys(
                    name
                    for line in lines
                    for name in ((line.peer, line.ours) if line.what == "recheck" else (line.ours, line.peer))
                )
            ),
            asked,
        )
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    if asked.json:
        asked.json.write_text(json.dumps([asdict(each) for each in runs], indent=1) + "\n")
    print(
        f"\nbenchmarks.parity at {commit()}: {plan.partitions} partitions, {asked.runs} runs of each, by turns; load"
        f" average at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()}"
        f" cores\n\n{table(lines, runs, plan.partitions)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
