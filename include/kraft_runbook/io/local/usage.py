"""What the processes of a cluster on this machine take: memory, processor time, and the machine's load, at each moment
and over a span of time.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kraft_runbook.io.local.cores import Processors, processors

_TICKS = os.sysconf("SC_CLK_TCK")
NEAR = 60.0
"""Seconds: a load average is of a minute, so a look that is farther from a span tells nothing of it."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look. ``at``: seconds since the epoch; ``load``: the average of a minute (``Processors.load``); ``cpu``:
    processor seconds of all processes until then, those that have ended included; ``waited``: for a CPU quota
    (``Processors.waited``).
    """

    at: float
    load: float
    cpu: float
    waited: float | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What a span took. ``seconds``: by the clock; ``load``: the highest average of a minute at the looks in it, and at
    the first one after; ``cpu``: processor seconds of the processes. None: nobody looked then. ``throttled``: what was
    waited for because a CPU quota was used up, as a part of what the quota gives; None: there is none.
    """

    seconds: float
    load: float | None
    cpu: float | None
    throttled: float | None = None


@dataclass
class Usage:
    """``rss``: MiB by service, the peak of each process (VmHWM); ``cpu``: seconds by pid; ``looks``: in their order;
    ``spans``: the beginning and the end by name, seconds since the epoch.
    """

    rss: dict[str, int] = field(default_factory=dict)
    cpu: dict[int, float] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    now: Callable[[], float] = time.time
    load_average: Callable[[], tuple[float, float, float]] = os.getloadavg
    processors: Processors = field(default_factory=processors)

    def look(self, running: Iterable[tuple[str, int]] = ()) -> None:
        """Of these (service, pid) that run now. One that has just ended is passed over."""
        for service, pid in running:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            self.cpu[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
            peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), None)
            if peak is not None:
                self.rss[service] = max(self.rss.get(service, 0), int(peak) // 1024)
        load, waited = self.processors.load(self.load_average()[0]), self.processors.waited()
        self.looks.append(Look(self.now(), load, self.cpu_seconds, waited))

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """The block is the span of this name, also where an error ends it."""
        began = self.now()
        try:
            yield
        finally:
            self.spans[name] = (began, self.now())

    def of(self, name: str) -> Taken | None:
        """What the span of this name took; None: there is none."""
        return self.between(*self.spans[name]) if name in self.spans else None

    def between(self, began: float, ended: float) -> Taken:
        """What these seconds took. Processor time, and the wait for it, is taken as even from one look to the next."""
        looks = tuple(self.looks)
        times = [each.at for each in looks]
        first, last = bisect_left(times, began), bisect_left(times, ended)
        of_it = [*looks[first : last + 1]] or [*looks[-1:]]
        near = [each.load for each in of_it if began - NEAR <= each.at <= ended + NEAR]
        if not near:
            return Taken(round(ended - began, 1), None, None)
        cpu = _at(looks, ended, lambda each: each.cpu) - _at(looks, began, lambda each: each.cpu)
        return Taken(round(ended - began, 1), round(max(near), 1), round(cpu, 1), self._throttled(began, ended))

    def _throttled(self, began: float, ended: float) -> float | None:
        told = tuple(each for each in self.looks if each.waited is not None)
        if not told or ended <= began:
            return None
        waited = _at(told, ended, lambda each: each.waited or 0.0) - _at(told, began, lambda each: each.waited or 0.0)
        return round(waited / (ended - began) / self.processors.cores, 2)

    @property
    def load(self) -> float:
        """The highest of all looks; 0: there was none."""
        return max((each.load for each in self.looks), default=0.0)

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())

    def peak(self, services: Iterable[str]) -> int | None:
        """The most resident memory of any of these, in MiB; None where none was seen."""
        return max((self.rss[each] for each in services if each in self.rss), default=None)


def _at(looks: tuple[Look, ...], at: float, of: Callable[[Look], float]) -> float:
    """A number that rises, at that time: in proportion to the time between the looks around it."""
    after = next((each for each in looks if each.at >= at), looks[-1])
    before = next((each for each in reversed(looks) if each.at <= at), looks[0])
    if after.at <= before.at:
        return of(after)
    return of(before) + (of(after) - of(before)) * (at - before.at) / (after.at - before.at)
