"""Which kinds of processes take the processors' time while a command runs: a demo, a file of tests.

    python -m benchmarks.processors -- make demo APPROVE=auto
    python -m benchmarks.processors -- .venv/bin/pytest tests/integration/test_migration.py

cpu-seconds say what a run costs, also on a machine with other work; its seconds do not. Every process that descends
from the command is looked at ten times a second, daemons too: an orphan is given to this process (Linux, a child
subreaper). What a process took after its last look is in the total only, as "between two looks".

The times of a demo's tasks, and what lies between them, are in its own report (``build/demo-report.json``).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lab.checkout import commit

PR_SET_CHILD_SUBREAPER = 36
EVERY = 0.1
"""Seconds between two looks."""
TICKS = os.sysconf("SC_CLK_TCK")
KINDS = (
    ("QuorumPeerMain", "ZooKeeper"),
    ("kafka.tools.StorageTool", "Kafka's storage tool"),
    ("controller.properties", "Kafka controllers"),
    ("kafka.Kafka", "Kafka brokers"),
    ("org.apache.spark", "Spark's JVM"),
    ("pyspark", "Spark's Python"),
    ("parity/spark/job.py", "Spark's Python"),
    ("ansible-playbook", "ansible-playbook"),
    ("AnsiballZ", "Ansible's modules"),
    ("airflow scheduler", "Airflow's scheduler"),
    ("airflow api", "Airflow's API server"),
    ("airflow dag", "Airflow's DAG processor"),
    ("airflow triggerer", "Airflow's triggerer"),
    ("airflow", "Airflow's tasks and the rest of it"),
    ("supervisord", "supervisord"),
    ("lab workload", "the workload"),
    ("pytest", "pytest"),
    ("lab.demo", "the demo"),
)
"""A part of a command, and the kind of the processes that have it; the first that fits counts."""
OTHER = "other"


def kind_of(command: str, parent: str) -> str:
    """The kind of a process: by its command, else, for a shell or a Python that reads its program from a pipe (as
    Ansible's modules are run), by its parent's kind.
    """
    for part, kind in KINDS:
        if part in command:
            return kind
    return "Ansible's modules" if parent in ("ansible-playbook", "Ansible's modules") else OTHER


@dataclass
class Watch:
    """What was seen of the descendants: by pid and start, the kind and the cpu-seconds so far."""

    seen: dict[tuple[int, str], tuple[str, float]] = field(default_factory=dict)

    def look(self, root: int) -> None:
        """Take note of every descendant of ``root``."""
        parents, fields = {}, {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (stat := _read(entry / "stat")):
                each = stat.rpartition(")")[2].split()
                fields[int(entry.name)] = each
                parents[int(entry.name)] = int(each[1])
        kinds = {root: OTHER}
        for pid in sorted(parents, key=lambda one: int(fields[one][19])):  # a parent is older than its children
            if parents[pid] in kinds and pid != root:
                command = _read(Path(f"/proc/{pid}/cmdline")).replace("\0", " ")
                key, used = (pid, fields[pid][19]), (int(fields[pid][11]) + int(fields[pid][12])) / TICKS
                kinds[pid] = kind_of(command, kinds[parents[pid]]) if command else self.seen.get(key, (OTHER, 0.0))[0]
                self.seen[key] = kinds[pid], used

    def totals(self) -> dict[str, float]:
        """kind -> cpu-seconds of all its processes, the largest first."""
        found: dict[str, float] = defaultdict(float)
        for kind, used in self.seen.values():
            found[kind] += used
        return dict(sorted(found.items(), key=lambda each: -each[1]))


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:  # ended meanwhile
        return ""


def watch(command: list[str]) -> tuple[int, float, Watch, float]:
    """Run the command. Its exit code, its seconds, what was seen, and the cpu-seconds of everything."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1):
        raise OSError(ctypes.get_errno(), "no child subreaper")
    began, seen = time.monotonic(), Watch()
    process = subprocess.Popen(command)
    while process.poll() is None:
        seen.look(os.getpid())
        _reap(but=process.pid)
        time.sleep(EVERY)
    seen.look(os.getpid())
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    goes_on = sum(_used_with_children(pid, start) for pid, start in seen.seen)
    return process.returncode, time.monotonic() - began, seen, ended.ru_utime + ended.ru_stime + goes_on


def _reap(*, but: int) -> None:
    """Take note of the end of orphans: only then do they count as ended."""
    for child in psutil.Process().children():
        if child.pid != but:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child.pid, os.WNOHANG)


def _used_with_children(pid: int, start: str) -> float:
    """The cpu-seconds of a process that still runs, and of its children that have ended; 0 where it has ended."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / TICKS if fields[19:20] == [start] else 0.0


def render(command: list[str], seconds: float, seen: Watch, everything: float) -> str:
    """The table, the largest first."""
    totals = seen.totals()
    lines = [f"| {kind} | {used:.1f} |" for kind, used in totals.items() if used >= 0.05]
    return "\n".join(
        [
            f"`{' '.join(command)}`, {commit()}: {seconds:.0f} s, {everything:.0f} cpu-s",
            "",
            "| processes | cpu-s |",
            "|---|---|",
            *lines,
            f"| between two looks | {max(0.0, everything - sum(totals.values())):.1f} |",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Prints the table; the exit code is the command's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.processors", description=__doc__)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    command = [*parser.parse_args(arguments).command]
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        parser.error("give a command behind --")
    code, seconds, seen, everything = watch(command)
    print(render(command, seconds, seen, everything))
    return code


if __name__ == "__main__":
    sys.exit(main())
