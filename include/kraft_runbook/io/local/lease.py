"""Ends a throwaway cluster by itself, once nobody has renewed its lease: a worker that was killed tears nothing down.

    python -m kraft_runbook.io.local.lease DIRECTORY SECONDS

The cluster's own supervisor runs it. Whoever drives the cluster renews the lease by touching ``DIRECTORY/lease``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.io.local.remains import end_remains

LEASE_SECONDS = 600.0
LOOK = 1.0


def lease_file(directory: Path) -> Path:
    """What is touched."""
    return directory / "lease"


def renew(directory: Path) -> None:
    """Raises OSError, as where the directory is gone."""
    lease_file(directory).touch(mode=0o600)


@dataclass
class Lease:
    """A lease of so many ``seconds`` as somebody looks at it who was there since ``began``. All times are a monotonic
    clock's: this machine's time of day may be set, and would end the cluster under its steps, or never.
    """

    directory: Path
    seconds: float
    began: float
    _renewed: int | None = None

    def is_over(self, now: float) -> bool:
        """Whether no renewal was seen for so long; a lease that is gone is over."""
        try:
            renewed = lease_file(self.directory).stat().st_mtime_ns
        except FileNotFoundError:
            return True
        if renewed != self._renewed:
            self._renewed, self.began = renewed, now
        return now - self.began > self.seconds


def main(arguments: Sequence[str]) -> int:
    """Look every second; end everything, this process last."""
    directory, seconds = Path(arguments[0]), float(arguments[1])
    lease = Lease(directory, seconds, time.monotonic())
    while not lease.is_over(time.monotonic()):
        time.sleep(min(LOOK, seconds / 4))
    left = end_remains(directory, but=frozenset({os.getpid()}))
    with contextlib.suppress(OSError):  # who reads this, the supervisor, is gone by now, or was before
        print(f"nobody renewed the lease for {seconds:g} s: everything below {directory} was ended", flush=True)
        for each in left:
            print(f"pid {each.pid} can't be ended: {each.command[:200]}", flush=True)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
