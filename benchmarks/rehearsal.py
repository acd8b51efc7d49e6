"""A whole rehearsal of a large cluster's migration: how long it takes, and how much memory.

    python -m benchmarks.rehearsal --partitions 20000 --brokers 40
    python -m benchmarks.rehearsal --partitions 20000 --brokers 40 --poison token

A real ZooKeeper is started with a tree of that size (the harness's). It is rehearsed as ``kraft-runbook rehearse`` does
it: the tree is copied, and a throwaway with three controllers, two seats and a stand-in for every broker goes forward,
back, forward again, and is finalized, with parity in full by Spark at each rung. Memory is what all processes of the
throwaway and of this tool (Spark's JVM and Ansible among them) had resident at the same moment, looked at once a
second: of a page that several share each counts its part (PSS). The source's ZooKeeper is not counted. To add up the
parts is work for the kernel (a sixth of a processor with 6 GiB): it is done where the sum without it (RSS, each page in
full) is within a tenth of the highest so far.

``--poison``: the tree has one znode that ends Kafka's copy. Of a token's version Kafka names no znode, and the suspects
are halved; producer ids that are no JSON it names itself. The time is that until the verdict is on record.

Exit code 1: the rehearsal did not pass, or an aim was missed; with ``--poison``: it did not fail, or did not name that
very znode, or an aim was missed. The aims hold on two quiet cores; a size without any is not judged.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from kazoo.client import KazooClient

from benchmarks.scale.cluster import CLUSTER_ID, Plan, heaps, write_cluster_file
from benchmarks.scale.poison import POISONS, Poison
from benchmarks.scale.processes import Processes
from benchmarks.scale.start import ZOOKEEPER, start_zookeeper
from benchmarks.scale.tree import Shape, write_snapshot
from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.io.local.installation import java, lay_out
from kraft_runbook.io.local.remains import remains
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.throwaway_place import own_directory
from kraft_runbook.rehearsal.verdict import Rung, Verdict
from kraft_runbook.steps.rehearse import Ask, rehearse
from lab.checkout import commit
from lab.installation import CLASS_ARCHIVE, fetch_jars
from lab.trial import free_network

AIMS: Mapping[tuple[int, int], Mapping[str, float]] = {
    (20_000, 40): {"tree": 1, "minutes": 6, "GiB": 3},
    (200_000, 40): {"tree": 8, "minutes": 20, "GiB": 6},
}
"""By partitions and brokers."""
VERDICT_AIMS: Mapping[tuple[int, int], float] = {(20_000, 40): 180}
"""Seconds until the verdict on a poisoned znode, in the same way."""
TOKENS_KEY = "delegation.token.secret.key"
"""Without it each delegation token, a good one too, is an error of every node that applies it (KRB-PRE-141)."""
TRIED = "a copy with "
"""What a line of a try of the halving begins with."""
MIB = 1024 * 1024
NEAR_THE_MOST = 0.9
ADDITIONS = 20_000_000


@dataclass
class Memory:
    """The most that was resident at one look, in MiB: of the throwaway, of this tool, and of both, which was at ``at``
    seconds, with so much in each process. ``source``: pids of the source, which is none of them.
    """

    place: Path
    source: frozenset[int] = frozenset()
    throwaway: int = 0
    tool: int = 0
    both: int = 0
    at: float = 0.0
    parts: Mapping[str, int] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    _rss: int = 0

    def watch(self) -> None:
        """Once a second, until ``stop``."""
        began, own = time.monotonic(), psutil.Process()
        while not self.stop.wait(1):
            throwaway = {each.pid for each in remains(self.place)} - {own.pid}
            tool = {own.pid, *(each.pid for each in own.children(recursive=True))} - throwaway - self.source
            rss = sum(_rss(each) for each in _processes(throwaway | tool))
            self._rss = max(self._rss, rss)
            if rss < NEAR_THE_MOST * self._rss:
                continue
            of_throwaway, of_tool = resident(throwaway), resident(tool)
            self.throwaway = max(self.throwaway, sum(of_throwaway.values()))
            self.tool = max(self.tool, sum(of_tool.values()))
            both = sum(of_throwaway.values()) + sum(of_tool.values())
            if both > self.both:
                self.both, self.at, self.parts = both, time.monotonic() - began, of_throwaway | of_tool


def _processes(pids: Iterable[int]) -> Iterator[psutil.Process]:
    """Those that are still there."""
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            with process.oneshot():
                yield process


def _rss(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def resident(pids: Iterable[int]) -> dict[str, int]:
    """MiB by process: its pid, and the end of its command."""
    found = {}
    for process in _processes(pids):
        with contextlib.suppress(psutil.Error):
            found[f"{process.pid} {' '.join(process.cmdline())[-40:]}"] = process.memory_full_info().pss // MIB
    return found


@dataclass
class Told:
    """What a rehearsal tells, with the seconds at which each rung began, and the tries of the halving."""

    began: float = field(default_factory=time.monotonic)
    rungs: dict[str, float] = field(default_factory=dict)
    tries: list[str] = field(default_factory=list)
    ended: float = 0.0

    def tell(self, line: str) -> None:
        seconds = time.monotonic() - self.began
        if line.startswith("-- "):
            self.rungs[line.removeprefix("-- ")] = seconds
        if line.startswith(TRIED):
            self.tries.append(line)
        print(f"{seconds:7.1f} {line[:160]}", file=sys.stderr, flush=True)

    def lasted(self) -> dict[str, float]:
        """Seconds by rung."""
        begins = [*self.rungs.values(), self.ended]
        first = next(iter(self.rungs), "")
        before = {f"{Rung.COPY_THE_TREE}, {Rung.START}": self.rungs[first]} if first else {}
        return before | {rung: begins[at + 1] - began for at, (rung, began) in enumerate(self.rungs.items())}


def source_of(plan: Plan, place: Path) -> ClusterSpec:
    """The harness's cluster, with the heap that a cluster of its size needs, and a place for its rehearsal."""
    spec, home = write_cluster_file(plan), plan.directory / "kafka-here"
    lay_out(home, jars=fetch_jars(spec.kafka.version).glob("*.jar"), java_command=java(), class_archive=CLASS_ARCHIVE)
    settings = Rehearsal(directory=str(place), kafka_home=str(home), network=free_network(), time_limit=7200)
    secrets = {TOKENS_KEY: SecretRef(env="BENCHMARK_TOKENS_KEY")}
    return spec.model_copy(update={"rehearsal": settings, "controller_heap": plan.controller_heap, "secrets": secrets})


@contextlib.contextmanager
def registered(source: ClusterSpec) -> Iterator[None]:
    """With the znode of every broker, of one session: no rehearsal passes with a broker that is not live."""
    client = KazooClient(hosts=source.ensemble.connect, timeout=60)
    client.start()
    try:
        for number in source.broker_ids:
            client.create(f"/brokers/ids/{number}", b"{}", ephemeral=True)
        yield
    finally:
        client.stop()
        client.close()


def rehearsed(source: ClusterSpec, place: Path) -> tuple[Canary, Told, Memory]:
    here = own_directory(Rehearsal(directory=str(place)), source.name)
    at_work = frozenset(each.pid for each in psutil.Process().children(recursive=True))
    told, memory = Told(), Memory(here, source=at_work)
    looks = threading.Thread(target=memory.watch)
    looks.start()
    try:
        ask = Ask(class_archive=CLASS_ARCHIVE)
        canary = rehearse(source, secrets=environment_secrets({}), tell=told.tell, ask=ask)
    finally:
        memory.stop.set()
        looks.join()
    told.ended = time.monotonic() - told.began
    return canary, told, memory


def speed() -> float:
    """Seconds of 20 million Python additions: what this machine is worth now."""
    began, total = time.perf_counter(), 0
    for number in range(ADDITIONS):
        total += number
    return time.perf_counter() - began


def report(canary: Canary, told: Told, memory: Memory, plan: Plan) -> tuple[str, bool]:
    """Markdown, and whether it passed and reached every aim of this size."""
    took = canary.measured
    lines = [*_rungs(told), "", "| what | measured |", "|---|---|"]
    lines.append(f"| copying the tree | {took['tree_seconds']} s, {took['tree_cpu']} cpu-s |")
    lines.append(f"| Kafka's copy | {took['copy']} s, {took['copied_records']} records |")
    lines.append(f"| window of the way back | {took['window']} s, {took['tries']} tries |")
    lines.append(f"| a controller's peak | {took['controller_rss']} MiB, -Xmx{plan.controller_heap} |")
    lines.append(f"| peak memory, throwaway + tool | {memory.both} MiB ({memory.throwaway} and {memory.tool} apart) |")
    lines.append(f"| processor time of the throwaway | {took['cpu']} s |")
    parts = sorted(memory.parts.items(), key=lambda part: -part[1])
    lines += ["", f"the peak, at {memory.at:.0f} s, in MiB:", *(f"- {mib} {which}" for which, mib in parts if mib)]
    got = {"tree": took["tree_seconds"], "minutes": told.ended / 60, "GiB": memory.both / 1024}
    aims = AIMS.get((plan.partitions, plan.brokers), {})
    missed = [f"{what} {got[what]:.2f}, aim {most:g}" for what, most in aims.items() if (got[what] or 1e9) > most]
    outcome = f"missed: {'; '.join(missed)}" if missed else "reached" if aims else "not judged"
    lines += ["", f"aims: {dict(aims) or 'none at this size'}; {outcome}"]
    lines += [f"verdict: {canary.verdict}"]
    lines += canary.reasons
    return "\n".join(lines), not missed and canary.verdict == Verdict.PASSED


def report_of_poison(canary: Canary, told: Told, poison: Poison, plan: Plan) -> tuple[str, bool]:
    """Markdown, and whether the verdict is FAILED, names the poisoned znode, and came in time."""
    seconds, aim = float(canary.measured["seconds"]), VERDICT_AIMS.get((plan.partitions, plan.brokers))
    named, missed = poison.is_named_by(canary.reasons), aim is not None and seconds > aim
    outcome = "none at this size" if aim is None else f"{aim:g} s; {'missed' if missed else 'reached'}"
    lines = [*_rungs(told), "", f"poisoned: {poison.znode}; {'named' if named else 'not named'} by the verdict"]
    lines += [f"verdict: {canary.verdict} after {seconds:.1f} s; aim: {outcome}", *canary.reasons]
    lines += [f"tries of the halving: {len(told.tries)}", *told.tries]
    return "\n".join(lines), named and not missed and canary.verdict == Verdict.FAILED


def _rungs(told: Told) -> list[str]:
    """As a table."""
    lines = ["| rung | s |", "|---|---|", *(f"| {rung} | {seconds:.1f} |" for rung, seconds in told.lasted().items())]
    return [*lines, f"| all, with the removal | {told.ended:.1f} |"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--brokers", type=int, default=40)
    parser.add_argument("--poison", choices=sorted(POISONS))
    asked = parser.parse_args()
    poison = POISONS[asked.poison] if asked.poison else None
    additions = speed()
    directory, place = Path(tempfile.mkdtemp(prefix="krb-b")), Path(tempfile.mkdtemp(prefix="krb-b"))
    controller, zookeeper = heaps(asked.partitions, asked.brokers)
    plan = Plan(
        directory,
        asked.partitions,
        brokers=asked.brokers,
        network=free_network(),
        controller_heap=controller,
        zookeeper_heap=zookeeper,
    )
    processes = Processes(directory)
    try:
        plan.save()
        source = source_of(plan, place)
        shape = Shape(asked.partitions, asked.brokers, in_sync=True)
        write_snapshot(plan.zookeeper_data, shape, CLUSTER_ID, poison.nodes if poison else ())
        start_zookeeper(plan, source, processes)
        with registered(source):
            canary, told, memory = rehearsed(source, place)
    finally:
        processes.stop(ZOOKEEPER)
        shutil.rmtree(directory)
        shutil.rmtree(place)
    shown, reached = report_of_poison(canary, told, poison, plan) if poison else report(canary, told, memory, plan)
    print(
        f"\nbenchmarks.rehearsal at {commit()}: {asked.partitions} partitions, {asked.brokers} brokers,"
        f" {canary.measured['znodes']} znodes; highest load {canary.measured['load']} on {os.cpu_count()} cores;"
        f" {ADDITIONS // 1_000_000} million Python additions take {additions:.1f} s\n\n{shown}"
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
