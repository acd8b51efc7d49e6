"""Airflow's processes, and the playbooks and JVMs they run, found in /proc: each by what it was started as."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from lab.airflow_standalone import COMPONENTS, Airflow

READ_ONLY = "gather_host_facts"
JOB = "parity/spark/job.py"
"""How the path of a Spark job's Python ends."""
T = TypeVar("T")


@dataclass(frozen=True)
class Process:
    """One process: its command line as words, and whose child it is."""

    pid: int
    parent: int
    words: tuple[str, ...]

    def playbook(self, below: Path) -> str | None:
        """Which playbook this runs, where it is an ansible-playbook whose private directory lies below that path; its
        forks are none.
        """
        if not any("ansible-playbook" in word for word in self.words[:3]) or not any(
            str(below) in word for word in self.words
        ):
            return None
        return next((Path(word).stem for word in self.words if word.endswith(".yml") and "/playbooks/" in word), None)

    def is_jvm(self) -> bool:
        return Path(self.words[0]).name == "java"

    def runs_job(self) -> bool:
        """Whether this is the Python that a Spark job of this project's is written in; not the shell or the JVM that
        was told to start it.
        """
        return "python" in Path(self.words[0]).name and any(word.endswith(JOB) for word in self.words[1:3])

    def what_runs(self) -> str:
        """The main class of a JVM, or the script, and what follows it."""
        if not self.is_jvm():
            return " ".join(self.words[1:])[:120]
        return " ".join(
            self.words[next((n for n, word in enumerate(self.words) if word.startswith("org.apache.")), 0) :]
        )[:120]


def processes() -> Iterator[Process]:
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = tuple((directory / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0"))
            parent = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if words != ("",):
            yield Process(int(directory.name), parent, words)


def playbooks(below: Path) -> list[tuple[Process, str]]:
    """Every playbook that runs from a private directory below a path; ansible's own forks counted with their parent."""
    found = [(p, name) for p in processes() if (name := p.playbook(below))]
    pids = {p.pid for p, _ in found}
    return [(p, name) for p, name in found if p.parent not in pids]


def spark_processes(temporary: Path) -> list[Process]:
    """Every JVM (Spark's, that is) and every job's Python that was started by whoever has this directory as TMPDIR. The
    cluster's own have another.
    """
    return [
        p
        for p in processes()
        if (p.is_jvm() or p.runs_job()) and f"TMPDIR={temporary}\0".encode() in environment(p.pid)
    ]


def environment(pid: int) -> bytes:
    """What a process was started with; nothing where it is gone, or another user's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def until_gone(find: Callable[[], list[T]], *, within: float = 10) -> list[T]:
    """What is still found after this time: a process that was told to end needs a moment."""
    ends = time.monotonic() + within
    while (found := find()) and time.monotonic() < ends:
        time.sleep(0.3)
    return found


def soon(find: Callable[[], T | None], what: str, *, within: float = 60, every: float = 0.05) -> T:
    """What is found, as soon as it is. Raises AssertionError past ``within`` seconds."""
    ends = time.monotonic() + within
    while (found := find()) is None:
        assert time.monotonic() < ends, f"{what}: not within {within:.0f} s"
        time.sleep(every)
    return found


def task_process(ti_id: str) -> Process | None:
    """The process that runs a task instance's own code; not the executor's worker that watches it."""
    return next(
        (
            p
            for p in processes()
            if any(ti_id in word and "airflow worker" in word and "LocalExecutor" not in word for word in p.words[:1])
        ),
        None,
    )


def with_descendants(pids: set[int]) -> set[int]:
    """These and all that descend from them: a worker that gave itself a title shows no environment to know it by."""
    everything, found = list(processes()), set(pids)
    while fresh := {p.pid for p in everything if p.parent in found} - found:
        found |= fresh
    return found


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
        os.kill(pid, signal.SIGKILL)


@dataclass
class Components:
    """Airflow's components: killed one by one, and started again beside the rest."""

    airflow: Airflow
    given: dict[str, str]
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def kill(self, component: str) -> None:
        """SIGKILL a component (scheduler or triggerer) with all its children: as when its machine dies."""
        roots = {
            p.pid
            for p in processes()
            if component in p.words[:4]
            and any(word.endswith("/airflow") for word in p.words[:3])
            and self._is_ours(p.pid)
        }
        assert roots, f"no {component} runs"
        for pid in sorted(with_descendants(roots)):
            kill(pid)

    def start(self, component: str) -> None:
        """Start a component anew, and wait until Airflow counts it as healthy."""
        self._begin(component)
        soon(lambda: self.airflow.healthy() or None, f"Airflow with its {component}", within=120, every=0.5)

    def start_again_what_ended(self) -> tuple[str, ...]:
        """Start each component that has ended, as its service manager would, and wait until Airflow counts all as
        healthy. Returns their names.
        """
        ended = tuple(sorted(set(COMPONENTS) - self._running()))
        for component in ended:
            self._begin(component)
        soon(
            lambda: self.airflow.healthy() or None,
            f"Airflow, after {', '.join(ended) or 'nothing'} was started again",
            within=180,
            every=0.5,
        )
        return ended

    def _running(self) -> set[str]:
        commands = [each.command for each in self.airflow.processes()]
        return {name for name, command in COMPONENTS.items() if any(command.search(each) for each in commands)}

    def _begin(self, component: str) -> None:
        with (self.airflow.home / "standalone.log").open("ab") as log:
            self._started.append(
                subprocess.Popen(
                    [str(Path(sys.executable).parent / "airflow"), component],
                    env=self.airflow.environment(self.given),
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )

    def restart_all(self) -> None:
        """SIGKILL every process of this Airflow at once, and start it anew."""
        for pid in with_descendants({p.pid for p in processes() if self._is_ours(p.pid)}):
            kill(pid)
        self.reap()
        self.airflow.stop()
        self.airflow.start(self.given)

    def stop(self) -> None:
        self.airflow.stop()
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.reap()

    def reap(self) -> None:
        for process in self._started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)

    def _is_ours(self, pid: int) -> bool:
        return f"AIRFLOW_HOME={self.airflow.home}\0".encode() in environment(pid)


class Mutator(NamedTuple):
    """A playbook that changes hosts, at work. ``by``: the task's process that began it (itself, where that had died
    before the first look).

    One that fences the quorum reads its logs meanwhile: one mutator with two playbooks.
    """

    name: str
    pid: int
    by: int


class MutatorWatch:
    """Looks three times a second which playbooks change hosts, all through a case."""

    def __init__(self, below: Path) -> None:
        self._below = below
        self._stop = threading.Event()
        self._by: dict[int, int] = {}
        self.seen: list[frozenset[Mutator]] = []
        self._thread = threading.Thread(target=self._look, name="mutator-watch", daemon=True)

    def __enter__(self) -> MutatorWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.3):
            now = frozenset(
                Mutator(name, p.pid, self._by.setdefault(p.pid, p.parent if p.parent != 1 else p.pid))
                for p, name in playbooks(self._below)
                if name != READ_ONLY
            )
            if now and now not in self.seen[-1:]:
                self.seen.append(now)
