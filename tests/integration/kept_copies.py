"""Directories that are made once, by whoever asks first, and copied by everyone: by several processes at once, and by
those that come later.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

KEYS_KEPT = 3
"""The copies of so many keys are kept, the last used ones: who goes to and fro between two branches finds both."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies below ``home``. ``key`` stands for all that they are made of: under another key each is made anew."""

    home: Path
    key: str

    def take(self, name: str, target: Path, make: Callable[[Path], None]) -> None:
        """Copy the directory of this name to ``target``, which must not exist.

        Where it is not kept yet, ``make`` makes it at the path that it is given; meanwhile others who want it wait.
        What ``make`` leaves there when it raises, or dies, is never taken. One process makes a name at a time, whatever
        the key.
        """
        if target.exists():
            raise FileExistsError(f"{target} is there already; a copy of {name} is put where nothing is")
        with _locked(self.home / "lock", fcntl.LOCK_SH):
            with _locked(self.home / f"{name}.lock", fcntl.LOCK_EX):
                place = self.home / self.key
                place.mkdir(exist_ok=True)
                os.utime(place)
                if not (place / name).exists():
                    draft = place / f"{name}.draft"
                    if draft.exists():
                        shutil.rmtree(draft)
                    make(draft)
                    draft.rename(place / name)
            try:
                copy_directory(place / name, target)
            except BaseException:
                shutil.rmtree(target, ignore_errors=True)
                raise
        self._remove_old_keys()

    def _remove_old_keys(self) -> None:
        """Unless a copy is being taken or made now: then whoever takes one later removes them."""
        with (self.home / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            keys = sorted(
                (path for path in self.home.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime
            )
            for old in keys[:-KEYS_KEPT]:
                shutil.rmtree(old)


def copy_directory(source: Path, target: Path) -> None:
    """A copy with owners, modes and times; the room that Kafka and ZooKeeper reserve in their files is not copied."""
    subprocess.run(["cp", "-a", "--sparse=always", "--", str(source), str(target)], check=True)


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    """Hold the lock; it ends with its holder, however that ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, how)
        yield
