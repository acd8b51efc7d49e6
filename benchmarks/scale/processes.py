"""The harness's own processes: started with Kafka's default JVM options, known by pid and start time, stopped by pid
and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.local.remains import started_at
from kraft_runbook.io.private_file import write_private
from lab.installation import JARS, TEMPLATES, java

JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-XX:+ExitOnOutOfMemoryError",
)
"""KAFKA_JVM_PERFORMANCE_OPTS of Kafka 3.9's own kafka-run-class.sh, and an end without memory: a process that lost one
thread would be measured on.
"""
JUTE_MAXBUFFER = 64 * 1024 * 1024
"""The longest packet that a JVM takes from ZooKeeper. At 2,000,000 partitions the list of topics has 5.6 MB; with the
default of 4 MiB a controller asks for it over and over, and the copy never begins (measured).
"""
_AFTER_GC = re.compile(r"\d+M->(\d+)M\(\d+M\)")
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process took so far. ``cpu``: seconds of user and system time; ``peak_rss``: MiB; ``heap_after_gc``: MiB,
    the most that lived after a collection.
    """

    cpu: float
    peak_rss: int
    heap_after_gc: int | None = None


class Processes:
    """The processes of one directory, in ``processes.json``: name -> (pid, start time in clock ticks since boot)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "processes.json"

    def start_java(
        self, name: str, arguments: Sequence[str], *, heap: str, log4j: Path, metrics: str | None = None
    ) -> int:
        """Start a JVM with Kafka's jars; its output goes to ``logs/<name>.log``, its collector's to
        ``logs/<name>.gc``.
        """
        agent = next(JARS.glob("jmx_prometheus_javaagent-*.jar"))
        command = [
            *(
                str(java()),
                *JVM,
                f"-Xmx{heap}",
                f"-Djute.maxbuffer={JUTE_MAXBUFFER}",
                f"-Xlog:gc:file={self.log(name).with_suffix('.gc')}:uptime",
                f"-Dlog4j.configuration=file:{log4j}",
            ),
            *([f"-javaagent:{agent}={metrics}:{TEMPLATES / 'jmx-exporter.yaml'}"] if metrics else []),
            *("-cp", f"{JARS}/*", *arguments),
        ]
        return self.start(name, command)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Start a process that outlives this one. Returns its pid."""
        self.log(name).parent.mkdir(parents=True, exist_ok=True)
        bare = {key: value for key, value in os.environ.items() if key in _KEPT} | dict(environment or {})
        with self.log(name).open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=bare,
                start_new_session=True,
                cwd=self._directory,
            )
        started = started_at(process.pid)
        if started is None:
            raise StepFailed(f"{name} ended as soon as it began", way_out=f"read {self.log(name)}")
        self._save(self._known() | {name: (process.pid, started)})
        return process.pid

    def log(self, name: str) -> Path:
        return self._directory / "logs" / f"{name}.log"

    def pid(self, name: str) -> int | None:
        """The process's pid while it runs."""
        known = self._known().get(name)
        return known[0] if known is not None and started_at(known[0]) == known[1] else None

    def names(self) -> tuple[str, ...]:
        """Every process that was started, in that order."""
        return tuple(self._known())

    def require(self, name: str) -> int:
        """The pid. Raises StepFailed with the end of its log when it has ended."""
        pid = self.pid(name)
        if pid is None:
            said = self.log(name).read_text(errors="replace").splitlines()[-8:] if self.log(name).exists() else []
            raise StepFailed(
                f"{name} has ended; its log ends:\n" + "\n".join(f"    {line[:300]}" for line in said),
                way_out=f"read {self.log(name)}",
            )
        return pid

    def usage(self, name: str) -> Usage:
        """What it took so far. Raises StepFailed when it has ended."""
        pid = self.require(name)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
        return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) // 1024, self._heap_after_gc(name))

    def _heap_after_gc(self, name: str) -> int | None:
        log = self.log(name).with_suffix(".gc")
        found = [int(match) for match in _AFTER_GC.findall(log.read_text())] if log.exists() else []
        return max(found, default=None)

    def stop(self, name: str, *, within: float = 60) -> None:
        """SIGTERM, and SIGKILL to one that overstays, which is reported. A process that is gone is fine."""
        pid = self.pid(name)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            if not _await_end(self, name, within):
                os.kill(pid, signal.SIGKILL)
                print(f"{name} (pid {pid}) had not ended {within:g} s after SIGTERM and was killed", flush=True)
                if not _await_end(self, name, 10):
                    raise StepFailed(f"{name} (pid {pid}) can't be ended", way_out=f"look at pid {pid}")
        self._save({key: value for key, value in self._known().items() if key != name})

    def _known(self) -> dict[str, tuple[int, int]]:
        if not self._file.exists():
            return {}
        return {name: (pid, started) for name, (pid, started) in json.loads(self._file.read_text()).items()}

    def _save(self, known: Mapping[str, tuple[int, int]]) -> None:
        write_private(self._file, json.dumps(known) + "\n")


def _await_end(processes: Processes, name: str, within: float) -> bool:
    deadline = time.monotonic() + within
    while processes.pid(name) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
