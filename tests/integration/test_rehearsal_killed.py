"""A rehearsal whose process is killed at any point: once its lease is over nothing of it runs, and the next one removes
its files.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import by_hand
import pytest
from labs import Lab

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.io.local.remains import remains, started_at
from kraft_runbook.procedures.throwaway_place import own_directory, remove, remove_when_free
from lab import ROOT
from lab.trial import free_network

LEASE = 15.0
"""Seconds: a busy machine must not end it under the steps."""

DRIVER = """
import os, signal, sys
from dataclasses import replace
from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.copy_tree import copy_tree
from kraft_runbook.steps.rehearse import Ask, rehearse
from lab.installation import CLASS_ARCHIVE
from lab.layout import load

place, network, whole, lease, killed_at = sys.argv[1:]

def tell(line):
    print(line, flush=True)
    if killed_at in line:
        os.kill(os.getpid(), signal.SIGKILL)

source = load().model_copy(update={"rehearsal": Rehearsal(directory=place, network=network)})
ask = Ask(whole=whole == "True", lease=float(lease), class_archive=CLASS_ARCHIVE)
told = rehearse(source, secrets=environment_secrets(), tell=tell, ask=ask)
print("not killed:", told.reasons)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where the throwaway lives: a short path, outside what pytest keeps."""
    made = Path(tempfile.mkdtemp(prefix="krb-k"))
    yield made
    remove(own_directory(Rehearsal(directory=str(made)), "lab"))
    shutil.rmtree(made)


Seen = set[tuple[int, int]]
"""Processes by pid and start, which name no later ones."""


@contextmanager
def driver(
    lab: Lab, place: Path, killed_at: str, *, whole: bool, lease: float
) -> Iterator[tuple[subprocess.Popen[str], Seen]]:
    """A rehearsal in a process of its own, with every process that it was seen to have below it."""
    command = [sys.executable, "-c", DRIVER, str(place), free_network(), str(whole), str(lease), killed_at]
    environment = lab.environment | {"PYTHONPATH": f"{ROOT}/include:{ROOT}"}
    below = Seen()
    ended = threading.Event()
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:

        def look() -> None:
            while not ended.wait(0.2):
                below.update(descendants(process.pid))

        looks = threading.Thread(target=look, daemon=True)
        looks.start()
        try:
            yield process, below
        finally:
            process.kill()
            ended.set()
            looks.join()


def descendants(pid: int) -> Seen:
    """Those that run now."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, level = set[int](), {pid}
    while level:
        level = {each for each, parent in parents.items() if parent in level} - found
        found |= level
    return {(each, started) for each in found if (started := started_at(each)) is not None}


def still_run(seen: Seen) -> list[str]:
    left = [pid for pid, started in seen if started_at(pid) == started]
    return [f"{pid} {Path(f'/proc/{pid}/cmdline').read_text()[:200]}" for pid in left]


def killed(
    lab: Lab, place: Path, killed_at: str, *, whole: bool = False, runs: bool = True, lease: float = LEASE
) -> None:
    """Rehearse until the line with these words, where the process kills itself. ``runs``: whether the throwaway runs
    then.
    """
    settings = Rehearsal(directory=str(place))
    where = own_directory(settings, "lab")
    with driver(lab, place, killed_at, whole=whole, lease=lease) as (process, below):
        lines = list(_lines(process.stdout))
        assert process.wait() == -signal.SIGKILL, "".join(lines[-20:])
        assert any(killed_at in line for line in lines)
        assert bool(remains(where)) == runs, "the throwaway outlives its driver"
        by_hand.wait_until(
            "the lease ends everything, and no process that was begun is left",
            lambda: not remains(where) and not still_run(below),
            within=lease + 30,
            shows=lambda: f"{remains(where)} {still_run(below)}",
        )
    told: list[str] = []
    remove_when_free(settings, "lab", tell=told.append)
    assert not where.exists() and "0 processes were ended" in told[0]


def _lines(stdout: IO[str] | None) -> Iterator[str]:
    assert stdout is not None
    for line in stdout:
        print(line, end="")
        yield line


def test_killed_while_it_starts_the_throwaway(zookeeper_alone: Lab, place: Path) -> None:
    killed(zookeeper_alone, place, "stand-ins are in zookeeper mode", lease=8)


@pytest.mark.long
@pytest.mark.parametrize(
    ("killed_at", "whole", "runs"),
    [
        pytest.param("the tree of lab is copied", False, False, id="once the tree is copied"),
        pytest.param("-- forward to dual write", False, True, id="before the first gate"),
        pytest.param("gate start: ", False, True, id="after the first gate"),
        pytest.param("deleting /controller and /migration", False, True, id="on the way back"),
        pytest.param("finalize_controller on node", True, True, id="while it finalizes"),
    ],
)
def test_killed_at_any_point_nothing_runs_after_the_lease(
    quiet_lab: Lab, place: Path, killed_at: str, whole: bool, runs: bool
) -> None:
    killed(quiet_lab, place, killed_at, whole=whole, runs=runs)
