"""For all tests: the order of the files, time for generated examples, and an end in which every cluster is ended first.

``make test`` runs two files at once, each in a process of its own (pytest-xdist). Such a process ends its clusters
when it is interrupted, before the session ends; xdist by itself gives it fifteen seconds, and then kills it.
"""

from __future__ import annotations

import logging
import os
import signal
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

# A busy machine takes as long as it takes. Every run tries the same generated examples, so that it says what the change
# did; KRB_NEW_EXAMPLES=yes tries others, as `make test-examples` does.
settings.register_profile("patient", deadline=None, derandomize=not os.environ.get("KRB_NEW_EXAMPLES"))
settings.load_profile("patient")
logging.getLogger("py4j").setLevel(
    logging.WARNING
)  # otherwise it speaks when the interpreter ends, to a stream that pytest has closed

ORDER = (
    "integration/test_migration.py",
    "playbooks",
    "integration/test_rollback.py",
    "faults",
    "integration",
    "airflow",
    "spark",
    "unit",
)
"""Files and directories below tests/. What takes long begins early, so that no process is left alone with it at the
end; what waits for much and computes little (playbooks) runs beside a cluster with its Airflow, not after them all, and
not beside nothing: two clusters with an Airflow each, both at once, want more than two cores.
"""
ONE_LAB = ("tests/integration/quorum/",)
"""Directories whose files share a lab: the same process runs them, one after the other."""
SECONDS_TO_END = 600.0
"""How long an interrupted process may take to end its clusters."""


def pytest_configure(config: pytest.Config) -> None:
    if _is_worker(config):
        signal.signal(signal.SIGINT, _let_pass)  # Ctrl-C reaches every process: the first one tells the others
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    """As Ctrl-C, once: what ends the clusters must not be interrupted again."""
    signal.signal(number, _let_pass)
    raise KeyboardInterrupt


def _let_pass(_number: int, _frame: FrameType | None) -> None:
    """Do nothing. Not SIG_IGN: what the tests start would inherit that, and could not be interrupted."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In order. What ``begins`` a file's long tests is one of them too: before marks select, hence first."""
    items.sort(key=_rank)
    for item in items:
        if item.get_closest_marker("begins") and item.config.getoption("markexpr") == "long":
            item.add_marker("long")


def _rank(item: pytest.Item) -> int:
    below = item.path.relative_to(Path(__file__).parent).as_posix()
    return next(rank for rank, name in enumerate(ORDER) if below == name or below.startswith(f"{name}/"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """``--dist loadfile``, with the files of one lab as if they were one file."""
    return ByLab(config, log) if config.getoption("dist") == "loadfile" else None


class ByLab(LoadFileScheduling):
    """Gives each process whole files, or whole directories of files that share a lab."""

    def _split_scope(self, nodeid: str) -> str:
        shared = (directory for directory in ONE_LAB if nodeid.startswith(directory))
        return next(shared, None) or str(super()._split_scope(nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """The first process of an interrupted session interrupts the others, and waits for them."""
    if (
        exitstatus == pytest.ExitCode.INTERRUPTED
        and session.config.getoption("numprocesses", None)
        and not _is_worker(session.config)
    ):
        others = psutil.Process().children()
        for each in others:
            each.terminate()
        psutil.wait_procs(others, timeout=SECONDS_TO_END)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """An interrupted process has ended its clusters by now: it goes, for otherwise it would wait for further tests."""
    if _is_worker(config) and signal.getsignal(signal.SIGTERM) is _let_pass:
        os._exit(pytest.ExitCode.INTERRUPTED)


@pytest.fixture
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's temporary files are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
