"""The claim on a cluster as a file in the state directory.

All workers of an Airflow see it, and so does every other Airflow with the same directory. Two Airflows with separate
directories do not see each other's claim. The file is read and written under a lock (flock), which ends with the
process that holds it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kraft_runbook.errors import Refused
from kraft_runbook.io.file_lock import lock_within
from kraft_runbook.io.private_file import make_private_directory, private_file

LOCK_SECONDS = 60.0
"""Seconds that another task may hold the lock. Under the lock it asks its Airflow for a run's state and takes the claim
in ZooKeeper, which has 10 s to answer.
"""


class ClaimFile:
    """The file, while its lock is held: nobody else writes between a read and a write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)
        self.way_to_delete = f"delete {path}"

    def read(self) -> bytes | None:
        with _usable(self._path):
            return self._path.read_bytes() if self._path.exists() else None

    def write(self, data: bytes) -> bool:
        with _usable(self._path), private_file(self._path) as file:
            file.write(data)
        return True

    def delete(self) -> bool:
        with _usable(self._path):
            self._path.unlink()
        return True


def claim_path(directory: Path, cluster: str) -> Path:
    """Where the claim of this cluster lies in the state directory."""
    return directory / "claims" / f"{cluster}.json"


@contextmanager
def claim_file(directory: Path, cluster: str, *, within: float = LOCK_SECONDS) -> Iterator[ClaimFile]:
    """The claim of this cluster below ``directory``, locked until the block ends.

    Raises Refused if the lock is not free ``within`` so many seconds, or the directory can't be used: then nothing is
    known of other runs.
    """
    path = claim_path(directory, cluster)
    with _usable(path):
        make_private_directory(path.parent)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with _usable(path):
            _lock(lock, path, within)
        yield ClaimFile(path)
    finally:
        os.close(lock)


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(
            f"the claim could not be read or written at {path}: {error}",
            way_out=(
                "set KRAFT_RUNBOOK_STATE to a directory that Airflow can write and that supports locks (NFS from"
                " version 4 on), then clear this task"
            ),
        ) from None


def _lock(lock: int, path: Path, within: float) -> None:
    if not lock_within(lock, within):
        raise Refused(
            f"another task has held the lock of {path} for {within:g} s",
            way_out=(
                "look for another run's task that hangs while it claims the cluster (fuser"
                f" {path.with_suffix('.lock')}), then clear this one"
            ),
        )
