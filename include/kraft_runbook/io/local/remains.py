"""The processes of a throwaway cluster, found by its directory in their command lines, and ended by pid and start time:
whoever started them is gone.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    tool itself, is none of it. Nor is a process of another user, or one of a container, whose paths are of its own file
    system: a real cluster's may be spelt the same.
    """
    found = []
    here = _pid_namespace(PROC / "self")
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) in but:
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            is_ours = entry.stat().st_uid == os.geteuid() and _pid_namespace(entry) in (here, None)
        except OSError:  # gone meanwhile
            continue
        if is_ours and _is_of(directory, words):
            command = b" ".join(words).decode(errors="replace")
            started = started_at(int(entry.name))
            if started is not None:
                found.append(Found(int(entry.name), started, command))
    return tuple(found)


def _pid_namespace(process: Path) -> int | None:
    """Which pids it sees: a container's process has others. None where this user may not know."""
    try:
        return (process / "ns" / "pid").stat().st_ino
    except OSError:
        return None


def _is_of(directory: Path, words: Sequence[bytes]) -> bool:
    """Of the cluster in /x/prod and not of /x/prod-eu or /y/x/prod: paths are compared whole. One begins a word, or
    comes behind ``=`` or ``:`` in it, as in Java's -D, -javaagent and -cp.
    """
    whole = rb"(?:\A|[=:])" + re.escape(os.fsencode(directory))
    if any(re.search(whole + rb"/kafka/", each) for each in words):
        return True
    is_ours = any(one == b"-m" and other.decode(errors="replace") in OURS for one, other in pairwise(words))
    return is_ours and any(re.search(whole + rb"(?:/|\Z)", each) for each in words)


def started_at(pid: int) -> int | None:
    """When it started, in ticks since boot; None for one that is gone or only waits for its parent. One whose first
    thread has ended is there while another thread is, with its ports and its files.
    """
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, threads = fields[0], int(fields[17])
    return None if state == "Z" and threads <= 1 else int(fields[19])


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
