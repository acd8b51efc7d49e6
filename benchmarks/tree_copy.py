"""Copying a whole tree out of ZooKeeper, as a rehearsal does it, beside a walk with kazoo.

    python -m benchmarks.tree_copy --partitions 20000 --runs 3

A real ZooKeeper is started with a tree of that size (the harness's, without controllers and brokers). Ours writes a
snapshot file that a ZooKeeper loads, secrets replaced. The peers walk the tree as a script does (``get`` and
``get_children`` of one znode after the other, as zk-shell's mirror does; and with 1,000 requests in flight) and write
each znode as a line of JSON. Each runs in a process of its own, by turns; all must give the same znodes, data and
versions, or there is no table. Exit code 1: an aim was missed.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from benchmarks.scale.cluster import CLUSTER_ID, Plan, heaps, load_spec, saved_plan, write_cluster_file
from benchmarks.scale.processes import Processes
from benchmarks.scale.start import ZOOKEEPER, start_zookeeper
from benchmarks.scale.tree import write_snapshot
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.copy_tree import copy_tree
from lab.checkout import commit
from lab.trial import free_network

AIMS: Mapping[int, Mapping[str, float]] = {20_000: {"seconds": 1}, 200_000: {"seconds": 8, "cpu": 5, "memory": 200}}
WINDOW = 1000
LOOP_MOST = 50_000
"""From more partitions on the walk one by one is left out: it would take minutes."""


@dataclass(frozen=True, slots=True)
class Done:
    """``seconds`` and ``cpu`` of the copying, connecting included, imports not; ``memory``: the process's peak, MiB;
    ``found``: how many znodes, and a sum over their paths, data and versions.
    """

    seconds: float
    cpu: float
    memory: int
    found: tuple[int, int]


# -- the ways ----------------------------------------------------------------------------------------------------------


def ours(plan: Plan, into: Path) -> Callable[[], tuple[int, int]]:
    spec, secrets = load_spec(plan), environment_secrets({})
    copied = copy_tree(spec, into, secrets=secrets, cluster_id="YW5vdGhlci1jbHVzdGVyLWlk", encoder_secret="x")  # noqa: S106 - of nothing
    return lambda: _sum(_in_snapshot(copied.snapshot))


def loop(plan: Plan, into: Path) -> Callable[[], tuple[int, int]]:
    return _by_kazoo(plan, into, _one_by_one)


def windowed(plan: Plan, into: Path) -> Callable[[], tuple[int, int]]:
    return _by_kazoo(plan, into, _in_flight)


Read = tuple[str, bytes | None, int]
"""A znode: its path, data, and version."""


def _by_kazoo(plan: Plan, into: Path, walk: Callable[[KazooClient], Iterator[Read]]) -> Callable[[], tuple[int, int]]:
    client = KazooClient(hosts=f"{plan.network}.1:2181", timeout=60)
    client.start()
    into.mkdir()
    with (into / "znodes").open("w") as file:
        for path, data, version in walk(client):
            text = None if data is None else base64.b64encode(data).decode()
            file.write(json.dumps({"path": path, "data": text, "version": version}) + "\n")
    client.stop()
    return lambda: _sum(_in_lines(into / "znodes"))


def _one_by_one(client: KazooClient) -> Iterator[Read]:
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        data, stat = client.get(path)
        yield path, data, stat.version
        if stat.numChildren:
            waiting += (f"{path.rstrip('/')}/{name}" for name in client.get_children(path))


def _in_flight(client: KazooClient) -> Iterator[Read]:
    waiting, flying = deque(["/"]), deque[tuple[str, Any, bool]]()
    while waiting or flying:
        while waiting and len(flying) < WINDOW:
            path = waiting.popleft()
            flying.append((path, client.get_async(path), False))
        path, answer, listed = flying.popleft()
        if listed:
            waiting.extend(f"{path.rstrip('/')}/{name}" for name in answer.get())
            continue
        data, stat = answer.get()
        yield path, data, stat.version
        if stat.numChildren:
            flying.append((path, client.get_children_async(path), True))


# -- what they gave ----------------------------------------------------------------------------------------------------


def _sum(znodes: Iterator[Read]) -> tuple[int, int]:
    """The cluster's id, which is another in a copy, and what a copy has not are left out."""
    count = total = 0
    for path, data, version in znodes:
        if path not in ("/cluster/id", "/consumers") and not path.startswith("/zookeeper"):
            count += 1
            total += zlib.crc32(f"{path} {version} ".encode() + (data or b""))
    return count, total


def _in_lines(file: Path) -> Iterator[Read]:
    with file.open() as lines:
        for line in lines:
            znode = json.loads(line)
            yield znode["path"], base64.b64decode(znode["data"] or ""), znode["version"]


def _in_snapshot(file: Path) -> Iterator[Read]:
    data, at = file.read_bytes(), 24
    while True:
        (length,) = struct.unpack_from("!i", data, at)
        path = data[at + 4 : at + 4 + length].decode()
        if path == "/":
            return
        at += 4 + length
        (length,) = struct.unpack_from("!i", data, at)
        held = data[at + 4 : at + 4 + max(0, length)]
        at += 4 + max(0, length)
        yield path or "/", held, struct.unpack_from("!i", data, at + 40)[0]
        at += 68


# -- measuring ---------------------------------------------------------------------------------------------------------

WAYS = {"ours": ours, "kazoo walk": loop, "kazoo walk, 1000 in flight": windowed}


def work(name: str, plan: Plan) -> Done:
    with tempfile.TemporaryDirectory(dir=plan.directory) as place:
        began, cpu = time.perf_counter(), time.process_time()
        check = WAYS[name](plan, Path(place) / "copy")
        took, used = time.perf_counter() - began, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        return Done(took, used, memory, check())


def in_process(name: str, directory: Path) -> Done:
    command = [sys.executable, "-m", "benchmarks.tree_copy", "--one", name, "--directory", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    return Done(**{**told, "found": tuple(told["found"])})


def measure(plan: Plan, runs: int, *, alone: bool) -> dict[str, list[Done]]:
    names = ["ours"] if alone else [name for name in WAYS if name != "kazoo walk" or plan.partitions <= LOOP_MOST]
    found: dict[str, list[Done]] = {name: [] for name in names}
    for number in range(runs):
        for name in names:
            done = in_process(name, plan.directory)
            found[name].append(done)
            print(
                f"{number + 1}/{runs} {name}: {done.seconds:.2f} s, {done.cpu:.2f} cpu-s, {done.memory} MiB",
                file=sys.stderr,
                flush=True,
            )
            if done.found != found["ours"][0].found:
                raise SystemExit(f"{name} gave other znodes than ours: {done.found}, {found['ours'][0].found}")
    return found


def table(found: Mapping[str, list[Done]], partitions: int) -> tuple[str, bool]:
    """Markdown, and whether every aim of this size was reached."""
    middle = {
        name: {
            "seconds": statistics.median(each.seconds for each in some),
            "cpu": statistics.median(each.cpu for each in some),
            "memory": max(each.memory for each in some),
        }
        for name, some in found.items()
    }
    lines = ["| way | s | cpu-s | peak MiB | s, times ours | cpu-s, times ours |", "|---|---|---|---|---|---|"]
    mine = middle["ours"]
    for name, each in middle.items():
        lines.append(
            f"| {name} | {each['seconds']:.2f} | {each['cpu']:.2f} | {each['memory']:.0f} |"
            f" {each['seconds'] / mine['seconds']:.1f} | {each['cpu'] / mine['cpu']:.1f} |"
        )
    aims = AIMS.get(partitions, {})
    missed = [f"{what} {mine[what]:.2f}, aim {most:g}" for what, most in aims.items() if mine[what] > most]
    lines.append(
        f"\naims: {dict(aims) or 'none at this size'}; {'missed: ' + '; '.join(missed) if missed else 'reached'}"
    )
    return "\n".join(lines), not missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="without the peers, which take minutes at 200,000")
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(asdict(work(asked.one, saved_plan(asked.directory)))))
        return 0
    directory = Path(tempfile.mkdtemp(prefix="krb-copy-"))
    plan = Plan(
        directory, asked.partitions, network=free_network(), zookeeper_heap=heaps(asked.partitions, brokers=30)[1]
    )
    processes = Processes(directory)
    try:
        plan.save()
        spec = write_cluster_file(plan)
        write_snapshot(plan.zookeeper_data, plan.shape, CLUSTER_ID)
        start_zookeeper(plan, spec, processes)
        found = measure(plan, asked.runs, alone=asked.alone)
    finally:
        processes.stop(ZOOKEEPER)
        shutil.rmtree(directory)
    shown, reached = table(found, asked.partitions)
    print(
        f"\nbenchmarks.tree_copy at {commit()}: {asked.partitions} partitions, {found['ours'][0].found[0]} znodes,"
        f" {asked.runs} runs of each, by turns; load average at the end {os.getloadavg()[0]:.1f} on"
        f" {os.cpu_count()} cores\n\n{shown}"
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
