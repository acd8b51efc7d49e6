"""The processes of one Airflow, found in /proc: by its home in their environment, by the group they were started in,
and by descent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """One process. ``started``, in ticks since boot, tells it from a later one of the same pid; ``command``: its words,
    or the title it gave itself.
    """

    pid: int
    parent: int
    group: int
    started: int
    command: str
    named_home: bool = False

    @property
    def lives(self) -> bool:
        now = _read(self.pid)
        return now is not None and now.started == self.started


def processes_of(home: Path, group: int | None, title: str) -> list[Process]:
    """Airflow's processes with this home, and all that descend from them: a playbook has a session of its own.

    A process that gave itself a title has overwritten its environment: it is known by ``group``, the one that Airflow
    was started in, or by ``title``, the beginning of one that no other Airflow's process has. A shell whose environment
    names that home is none of them.
    """
    everything = [
        each for entry in Path("/proc").iterdir() if entry.name.isdigit() and (each := _read(int(entry.name), home))
    ]
    ours = [
        each
        for each in everything
        if each.named_home
        or each.command.startswith(title)
        or (each.group == group and each.command.startswith("airflow "))
    ]
    found = {each.pid for each in ours if _runs_airflow(each)}
    while more := {each.pid for each in everything if each.parent in found} - found:
        found |= more
    return [each for each in everything if each.pid in found]


def end(processes: Collection[Process], *, sign: signal.Signals, within: float) -> None:
    """Send a signal to each, and wait until none lives, at most ``within`` seconds."""
    for each in processes:
        if each.lives:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each.pid, sign)
    ends = time.monotonic() + within
    while any(each.lives for each in processes) and time.monotonic() < ends:
        time.sleep(0.2)


def _runs_airflow(process: Process) -> bool:
    words = process.command.split()
    return words[:1] == ["airflow"] or any(word.endswith("/airflow") for word in words[:3])


def _read(pid: int, home: Path | None = None) -> Process | None:
    """The process; None for one that is gone, or that only waits for its parent to take note."""
    where = Path(f"/proc/{pid}")
    try:
        fields = (where / "stat").read_text().rpartition(")")[2].split()
        command = (where / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return Process(
        pid,
        int(fields[1]),
        int(fields[2]),
        int(fields[19]),
        command,
        named_home=home is not None and _names(where, home),
    )


def _names(where: Path, home: Path) -> bool:
    try:
        return f"AIRFLOW_HOME={home}".encode() in (where / "environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or gone meanwhile
        return False


def said_errors(lines: Iterator[str]) -> Iterator[str]:
    """The lines of Airflow's log that tell of an error."""
    return (
        line.strip() for line in lines if any(word in line for word in ("[error", "[critical", "Error:", "Exception:"))
    )
