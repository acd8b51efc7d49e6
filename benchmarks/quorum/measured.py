"""What one run measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from benchmarks.scale.processes import Processes

KINDS = (
    "controlled shutdown",
    "failover: /controller deleted, or SIGTERM",
    "failover by SIGKILL, every standby warm",
    "failover by SIGKILL, standbys just restarted",
)
SHUTDOWN, FAILOVER, KILL, COLD = KINDS
ZOOKEEPER, KRAFT = "ZooKeeper", "KRaft"


@dataclass(frozen=True, slots=True)
class Took:
    """``seconds``: until the controller answered. ``detected``: until another leader was elected, which is part of
    them; None where nothing must be detected. ``behind``: records that the one who was elected had not applied when the
    former leader was killed; None where that was not asked, or it did not say.
    """

    seconds: float
    detected: float | None = None
    behind: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """``seconds``, ``detected``, ``behind``, ``note``: as ``Took`` has them. ``cpu``: seconds of who controls, of those
    processes that lived from the begin to the end. ``load``: the machine's over the minute before. ``commit``: of the
    measured code.
    """

    side: str
    kind: str
    partitions: int
    seconds: float
    cpu: float
    load: float
    note: str = ""
    detected: float | None = None
    behind: int | None = None
    commit: str = ""

    @property
    def afterwards(self) -> float | None:
        """Seconds from the election to the answer."""
        return None if self.detected is None else round(max(0.0, self.seconds - self.detected), 2)

    def __str__(self) -> str:
        elected = "" if self.detected is None else f", of which {self.detected:g} s until another was elected"
        behind = "" if self.behind is None else f", who was {self.behind:,} records behind at the kill"
        return (
            f"{self.kind}, {self.side}, {self.partitions:,}: {self.seconds:g} s{elected}{behind}; {self.cpu:g} cpu-s,"
            f" load {self.load:g}{f' ({self.note})' if self.note else ''}"
        )


def timed(
    side: str, kind: str, partitions: int, processes: Processes, names: Iterable[str], act: Callable[[], Took]
) -> Run:
    """Let ``act`` happen."""
    load = os.getloadavg()[0]
    before = {name: (processes.pid(name), processes.usage(name).cpu) for name in names if processes.pid(name)}
    took = act()
    lived = [name for name, (pid, _) in before.items() if processes.pid(name) == pid]
    cpu = sum(processes.usage(name).cpu - before[name][1] for name in lived)
    detected = None if took.detected is None else round(took.detected, 2)
    return Run(
        side,
        kind,
        partitions,
        round(took.seconds, 2),
        round(cpu, 2),
        round(load, 1),
        took.note,
        detected,
        took.behind,
    )


def until(what: str, holds: Callable[[], bool], *, within: float, every: float = 0.05) -> float:
    """The seconds until it held. Raises TimeoutError."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > within:
            raise TimeoutError(f"{what} took more than {within:g} s")
        time.sleep(every)
    return time.monotonic() - began


def as_json(runs: Iterable[Run]) -> list[Mapping[str, Any]]:
    return [asdict(each) for each in runs]


def from_json(body: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Raises TypeError where one is no run."""
    known = {each.name for each in fields(Run)}
    return [Run(**{key: value for key, value in each.items() if key in known}) for each in body]
