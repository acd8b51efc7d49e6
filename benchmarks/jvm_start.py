"""What the lab's class archive saves at each start of a process, and what it costs to make.

    python -m benchmarks.jvm_start --runs 5

A lab of its own is made and stopped. Then ZooKeeper, a broker in ZooKeeper mode and Kafka's storage tool are started by
turns without and with an archive that was just made. Seconds count until the process answers or has ended; cpu-seconds
are its own, of all its threads, so far.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, StepFailed
from lab import lifecycle
from lab.installation import fetch_jars, install, java
from lab.layout import layout, load, zookeeper_servers
from lab.ports import is_open
from lab.supervision import ZOOKEEPER_MAIN
from lab.trial import free_network

Cost = tuple[float, float]
"""Seconds of the clock, and of the processors."""
PATIENCE = 120.0
TICKS = os.sysconf("SC_CLK_TCK")


def made(archive: Path) -> Cost:
    """What making the archive takes, its own process included."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"from pathlib import Path; from lab.class_archive import *; make_archive(Path({str(archive)!r}))",
        ],
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tool(spec: ClusterSpec) -> Cost:
    """One run of kafka-storage.sh."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(Path(spec.kafka.home, "bin", "kafka-storage.sh")), "random-uuid"], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise StepFailed("kafka-storage.sh failed", way_out="read what it said")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


class Service:
    """A process of the lab, started as its supervisor would."""

    def __init__(self, spec: ClusterSpec, name: str, metrics: str, class_name: str, config: Path) -> None:
        here = layout(spec)
        self.log = here.logs / f"{name}.measured"
        self._command = [str(here.kafka_home / "bin" / "run-service.sh"), name, metrics, class_name, str(config)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, ready: Callable[[], bool]) -> Cost:
        """Start it and wait until it is ready. Raises StepFailed when it ended, or was not ready in time."""
        began = time.perf_counter()
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=subprocess.STDOUT)
        while not ready():
            if self._process.poll() is not None or time.perf_counter() - began > PATIENCE:
                raise StepFailed(f"{self._command[1]} did not start", way_out=f"read {self.log}")
            time.sleep(0.01)
        took = time.perf_counter() - began
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return took, (int(fields[11]) + int(fields[12])) / TICKS

    def end(self) -> None:
        """Stop it in peace: a broker that is killed leaves its ephemeral znode, and can't register again
        for a while.
        """
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)


def measure(spec: ClusterSpec, archive: Path, runs: int) -> dict[str, dict[str, list[Cost]]]:
    """kind of process -> "without" or "with" -> what each run took."""
    server, broker = zookeeper_servers(spec)[0], spec.brokers[0]
    zookeeper = Service(spec, server.service, "none", ZOOKEEPER_MAIN, server.config)
    node = Service(
        spec, broker.service, f"{broker.host}:{broker.metrics_port}", "kafka.Kafka", Path(broker.config_file)
    )
    taken: dict[str, dict[str, list[Cost]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(runs):
        for name, file in (("without", archive.with_name("none")), ("with", archive)):
            install(spec, jars=fetch_jars(spec.kafka.version), java_command=java(), class_archive=file)
            try:
                taken["kafka-storage.sh"][name].append(tool(spec))
                taken["ZooKeeper"][name].append(zookeeper.start(lambda: is_open((server.host, server.port))))
                taken["a broker"][name].append(
                    node.start(lambda: "started (kafka.server.KafkaServer)" in node.log.read_text(errors="replace"))
                )
            finally:
                node.end()
                zookeeper.end()
    return taken


def main(arguments: list[str] | None = None) -> int:
    """Prints the table. Exit code 0 when every start succeeded."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jvm_start", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="krb-jvm-") as directory:
        spec = load({**os.environ, "KRB_LAB_DIR": f"{directory}/lab", "KRB_LAB_NET": free_network()})
        archive = Path(directory, "kafka.jsa")
        try:
            lifecycle.up(spec)
            lifecycle.down(spec)
            wall, cpu = made(archive)
            taken = measure(spec, archive, options.runs)
        finally:
            lifecycle.down(spec, purge=True)
    print(
        f"\n{'medians of ' + str(options.runs):<20}{'without, s':>12}{'with, s':>10}{'ratio':>8}"
        f"{'without, cpu-s':>18}{'with, cpu-s':>14}{'ratio':>8}"
    )
    for kind, by in taken.items():
        (s0, s1), (c0, c1) = (
            [statistics.median(run[n] for run in by[name]) for name in ("without", "with")] for n in (0, 1)
        )
        print(f"{kind:<20}{s0:>12.2f}{s1:>10.2f}{s0 / s1:>8.2f}{c0:>18.2f}{c1:>14.2f}{c0 / c1:>8.2f}")
    print(f"making the archive: {wall:.1f} s, {cpu:.1f} cpu-s")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
