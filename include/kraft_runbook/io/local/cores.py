"""How much of this machine's processors this process and its children may use: under a container's CPU quota less than
it has.

Linux, control groups of version 2 (``cpu.max``) and 1 (``cpu.cfs_quota_us``), as "CPU Controller" in the kernel's
cgroup-v2.rst and sched-bwc.rst have them. A quota of a group above counts too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GROUPS, MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Quota:
    """Of one control group. ``cores``: as many processors it may use, a part of one included. ``stat``: its
    ``cpu.stat``.
    """

    cores: float
    stat: Path

    def waited(self) -> float | None:
        """Processor seconds that its processes wanted and waited for, since the group is there, as the quota was used
        up: the sum over the machine's processors. None where that can't be read.
        """
        with contextlib.suppress(OSError, ValueError):
            told = dict(line.split(maxsplit=1) for line in self.stat.read_text().splitlines())
            for name, parts in (("throttled_usec", 1e6), ("throttled_time", 1e9)):
                if name in told:
                    return int(told[name]) / parts
        return None


@dataclass(frozen=True, slots=True)
class Processors:
    """``machine``: how many this machine has; ``allowed``: on how many this process may run (its affinity, a cpuset);
    ``quotas``: of its control groups.
    """

    machine: int
    allowed: int
    quotas: tuple[Quota, ...] = ()

    @property
    def cores(self) -> float:
        """The least of all. A quota of 1.5 is 1.5."""
        return min(self.machine, self.allowed, *(each.cores for each in self.quotas))

    def waited(self) -> float | None:
        """Processor seconds that were waited for in all groups with a quota; None: no quota, or one can't be read."""
        found = [each.waited() for each in self.quotas]
        told = [each for each in found if each is not None]
        return sum(told) if told and len(told) == len(found) else None

    def load(self, average: float) -> float:
        """A load average of the machine as one to hold against ``cores``. That of a machine counts all its processors,
        so a quota has its part of it; what its own processes wait for, ``waited`` says. Where that can't be read
        (a cpuset alone has no such count) the load stays what it is: too high rather than too low.
        """
        if self.cores < self.machine and self.waited() is not None:
            return average * self.cores / self.machine
        return average


def processors(groups: Path = GROUPS, mounted: Path = MOUNTED) -> Processors:
    """Of this process, now. What can't be read sets no quota."""
    allowed = len(os.sched_getaffinity(0))
    return Processors(os.cpu_count() or allowed, allowed, tuple(_quotas(groups, mounted)))


def _quotas(groups: Path, mounted: Path) -> Iterator[Quota]:
    """Of each group from this process's own up to the topmost that is seen here."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = groups.read_text().splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = mounted / "cpu" if controllers else mounted
        below = top / path.lstrip("/")
        for directory in (below, *below.parents):
            if (cores := _cores_in(directory)) is not None:
                yield Quota(cores, directory / "cpu.stat")
            if directory == top:
                break


def _cores_in(directory: Path) -> float | None:
    """The quota of one group; None where it has none."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError):
            quota, period = " ".join((directory / name).read_text() for name in names).split()
            if quota not in ("max", "-1"):
                return int(quota) / int(period)
    return None
