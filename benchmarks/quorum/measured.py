"""What one run measured, and what many of them say."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.scale.processes import Processes

KINDS = (
    "controlled shutdown",
    "failover: /controller deleted, or SIGTERM",
    "failover by SIGKILL, every standby warm",
    "failover by SIGKILL, one standby cold",
)
SHUTDOWN, FAILOVER, KILL, COLD = KINDS
ZOOKEEPER, KRAFT = "ZooKeeper", "KRaft"


@dataclass(frozen=True, slots=True)
class Run:
    """``seconds``: until the controller answered. ``cpu``: seconds of who controls, of those processes that lived from
    the begin to the end. ``load``: the machine's over the minute before. ``note``: what else was seen.
    """

    side: str
    kind: str
    partitions: int
    seconds: float
    cpu: float
    load: float
    note: str = ""


def timed(
    side: str,
    kind: str,
    partitions: int,
    processes: Processes,
    names: Iterable[str],
    act: Callable[[], tuple[float, str]],
) -> Run:
    """Let ``act`` happen, which returns the seconds that it took and a note."""
    load = os.getloadavg()[0]
    before = {name: (processes.pid(name), processes.usage(name).cpu) for name in names if processes.pid(name)}
    seconds, note = act()
    lived = [name for name, (pid, _) in before.items() if processes.pid(name) == pid]
    cpu = sum(processes.usage(name).cpu - before[name][1] for name in lived)
    return Run(side, kind, partitions, round(seconds, 2), round(cpu, 2), round(load, 1), note)


def until(what: str, holds: Callable[[], bool], *, within: float, every: float = 0.05) -> float:
    """The seconds until it held. Raises TimeoutError."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > within:
            raise TimeoutError(f"{what} took more than {within:g} s")
        time.sleep(every)
    return time.monotonic() - began


def exponent(points: Sequence[tuple[int, float]]) -> tuple[float, float, float] | None:
    """How the seconds grow with the partitions: the power in seconds ~ partitions^power, by the medians of the smallest
    and the largest size, and its range by their extremes. None where there is one size only.
    """
    by_size: dict[int, list[float]] = {}
    for size, seconds in points:
        by_size.setdefault(size, []).append(max(seconds, 0.001))
    if len(by_size) < 2:
        return None
    small, large = by_size[min(by_size)], by_size[max(by_size)]
    scale = math.log(max(by_size) / min(by_size))

    def power(above: float, below: float) -> float:
        return math.log(above / below) / scale

    return (
        power(statistics.median(large), statistics.median(small)),
        power(min(large), max(small)),
        power(max(large), min(small)),
    )


def table(runs: Sequence[Run]) -> str:
    """As markdown: a row a side, kind and size, with every run's figure; then the growth, where there are sizes."""
    groups: dict[tuple[str, str, int], list[Run]] = {}
    for each in runs:
        groups.setdefault((each.kind, each.side, each.partitions), []).append(each)
    lines = ["| | | partitions | seconds | cpu-s | load |", "|---|---|---|---|---|---|"]
    for (kind, side, partitions), found in sorted(groups.items(), key=lambda each: (KINDS.index(each[0][0]), each[0])):
        shown = [", ".join(f"{value:g}" for value in column) for column in zip(*map(_figures, found), strict=True)]
        lines.append(f"| {kind} | {side} | {partitions:,} | {' | '.join(shown)} |")
    for what, read in (("seconds", lambda each: each.seconds), ("cpu-seconds", lambda each: each.cpu)):
        for kind, side in dict.fromkeys((each.kind, each.side) for each in runs):
            grown = exponent([(e.partitions, read(e)) for e in runs if (e.kind, e.side) == (kind, side)])
            if grown:
                lines.append(
                    f"\n{kind}, {side}: {what} grow with partitions to the power of {grown[0]:.2f} ({grown[1]:.2f} to"
                    f" {grown[2]:.2f})"
                )
    return "\n".join(lines)


def _figures(run: Run) -> tuple[float, float, float]:
    return run.seconds, run.cpu, run.load


def as_json(runs: Iterable[Run]) -> list[Mapping[str, object]]:
    return [asdict(each) for each in runs]
