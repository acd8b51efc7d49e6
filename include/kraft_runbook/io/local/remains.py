"""The processes of a throwaway cluster, found by its directory in their command lines, and ended by pid and start time:
whoever started them is gone.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

OURS = ("supervisor.supervisord", "kraft_runbook.io.kafka.stand_ins", "kraft_runbook.io.local.lease")
"""The Python programs of one, besides what runs from its ``kafka`` directory."""
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Found:
    """A process. ``started``: ticks since the machine's start: with the pid it names this process and no later one."""

    pid: int
    started: int
    command: str


def remains(directory: Path, *, but: frozenset[int] = frozenset()) -> tuple[Found, ...]:
    """What runs of the cluster in this directory, without the pids of ``but``. A person who reads a log there, or this
    tool itself, is none of it.
    """
    found = []
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) in but:
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # gone meanwhile
            continue
        if _is_of(directory, command):
            started = started_at(int(entry.name))
            if started is not None:
                found.append(Found(int(entry.name), started, command))
    return tuple(found)


def _is_of(directory: Path, command: str) -> bool:
    if f"{directory}/kafka/" in command:
        return True
    return f"{directory}" in command and any(f"-m {each} " in command for each in OURS)


def started_at(pid: int) -> int | None:
    """When it started; None for one that is gone or only waits for its parent."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def end_remains(directory: Path, *, but: frozenset[int] = frozenset(), within: float = 30) -> tuple[Found, ...]:
    """SIGKILL to all of them, the supervisor first, so that it brings none back; returns those that still run after
    ``within`` seconds. Nothing there is worth a clean end.
    """
    deadline = time.monotonic() + within
    while left := remains(directory, but=but):
        for each in sorted(left, key=lambda found: OURS[0] not in found.command):
            if started_at(each.pid) == each.started:
                try:
                    os.kill(each.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        if time.monotonic() > deadline:
            return left
        time.sleep(0.1)
    return ()
