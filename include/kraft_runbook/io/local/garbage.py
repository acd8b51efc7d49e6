"""Memory that processes of this machine hold and do not need."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kraft_runbook.io.local.installation import java

COLLECTED = 60.0
"""Seconds that a JVM may take over its garbage."""


def collect(pids: Iterable[int], *, run: Callable[..., Any] = subprocess.run, java: Callable[[], Path] = java) -> None:
    """Have each of these JVMs collect its garbage whole, so that its heap becomes as small as its options allow. Where
    this machine's Java has no jcmd, as a runtime alone, none does.
    """
    jcmd = java().with_name("jcmd")
    for pid in pids if jcmd.is_file() else ():
        with contextlib.suppress(subprocess.TimeoutExpired):
            run([str(jcmd), str(pid), "GC.run"], capture_output=True, timeout=COLLECTED, check=False)


def trim() -> None:
    """Give back what this process has freed; nothing where its C library is not glibc."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
