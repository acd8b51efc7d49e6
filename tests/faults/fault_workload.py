"""The workload of one case, looked at all through it: how far producers and readers had come at which moment."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_invariants import Sample
from fault_processes import soon
from fault_scene import Scene

from lab import ROOT

STATUS = re.compile(r"acknowledged (\d+),.* consumed (\d+)")
PATIENCE = 60.0
"""Seconds that producers and readers are given to go on after the last fault, before they are stopped."""


@dataclass
class Workload:
    """``account`` is there once it has ended; ``samples``: what its status line said, about once a second."""

    process: subprocess.Popen[bytes]
    report: Path
    status: Path
    account: dict[str, Any] | None = None
    samples: list[Sample] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def look(self) -> Sample | None:
        """The latest sample that has something acknowledged and something read."""
        try:
            with self.status.open() as file:  # it is replaced whole: text and time of one writing
                text, at = file.read(), os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return None
        told = STATUS.search(text)
        if told and (not self.samples or at > self.samples[-1].at):
            self.samples.append(Sample(at, int(told[1]), int(told[2])))
        return (
            self.samples[-1] if self.samples and self.samples[-1].acknowledged and self.samples[-1].consumed else None
        )

    def watch(self) -> None:
        """Look all the time, in a thread of its own."""
        threading.Thread(target=self._watch, name="workload-watch", daemon=True).start()

    def stop_watching(self) -> None:
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(0.3):
            self.look()

    def settle(self, last: float) -> None:
        """Let it go on after the last fault (``last``: seconds since the epoch), then stop producing, and let it read
        everything back.
        """
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends and self.process.poll() is None and not self._went_on(last):
            time.sleep(0.3)
        self.stop_watching()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=240)
        self.account = json.loads(self.report.read_text()) if self.report.exists() else None

    def _went_on(self, since: float) -> bool:
        then = [each for each in self.samples if each.at <= since][-1:]
        now = self.samples[-1:]
        return bool(then and now) and now[0].acknowledged > then[0].acknowledged and now[0].consumed > then[0].consumed


@contextmanager
def workload(scene: Scene, directory: Path) -> Iterator[Workload]:
    """Producers and consumers all through a case, both at work before it begins."""
    report, status = directory / "account.json", directory / "status"
    command = [sys.executable, "-m", "lab", "workload", "--report", str(report), "--status", str(status)]
    running = Workload(subprocess.Popen(command, cwd=ROOT, env=scene.ground.lab.environment), report, status)
    try:
        soon(running.look, "the workload's first records, written and read", every=0.5)
        running.watch()
        yield running
    finally:
        running.stop_watching()
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
