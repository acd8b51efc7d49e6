"""Memory that processes of this machine hold and do not need."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kraft_runbook.io.local.installation import java

COLLECTED = 60.0
"""Seconds that a JVM may take over its garbage."""
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
"""Parameters of mallopt(3)."""
ARENAS = 2
LARGE_BLOCK = 1024 * 1024
"""Bytes. A block of this size is memory of its own, which goes back once it is freed. By default a process learns from
the first such block that it frees to keep all of its size, up to 32 MiB.
"""


def collect(pids: Iterable[int], *, run: Callable[..., Any] = subprocess.run, java: Callable[[], Path] = java) -> None:
    """Have each of these JVMs collect its garbage whole, so that its heap becomes as small as its options allow. Where
    this machine's Java has no jcmd, as a runtime alone, none does.
    """
    jcmd = java().with_name("jcmd")
    for pid in pids if jcmd.is_file() else ():
        with contextlib.suppress(subprocess.TimeoutExpired):
            run([str(jcmd), str(pid), "GC.run"], capture_output=True, timeout=COLLECTED, check=False)


def keep_little() -> None:
    """From now on this process keeps little of what it frees: by default each thread has a heap of its own (up to eight
    a core), which what is left in it holds open. Nothing where its C library is not glibc.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_ARENA_MAX, ARENAS)
        library.mallopt(_MMAP_THRESHOLD, LARGE_BLOCK)


def trim() -> None:
    """Give back what this process has freed: Arrow, and glibc where it is the C library."""
    if arrow := sys.modules.get("pyarrow"):
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
