"""What the processes of a cluster on this machine take: memory, processor time, and the machine's load."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Usage:
    """The most that was seen at any look. ``rss``: MiB by service, the peak of each process (VmHWM); ``cpu``: seconds
    by pid; ``load``: of a minute.
    """

    rss: dict[str, int] = field(default_factory=dict)
    cpu: dict[int, float] = field(default_factory=dict)
    load: float = 0.0

    def look(self, running: Iterable[tuple[str, int]]) -> None:
        """Of these (service, pid) that run now. One that has just ended is passed over."""
        self.load = max(self.load, os.getloadavg()[0])
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

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())

    def peak(self, services: Iterable[str]) -> int | None:
        """The most resident memory of any of these, in MiB; None where none was seen."""
        return max((self.rss[each] for each in services if each in self.rss), default=None)
