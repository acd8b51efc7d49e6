"""Where a rehearsal's throwaway cluster lies on this machine: one at a time, and ended with all that it left."""

from __future__ import annotations

import os
import secrets as random_values
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.file_lock import lock_within
from kraft_runbook.io.local.lease import LEASE_SECONDS
from kraft_runbook.io.local.remains import end_remains, remains
from kraft_runbook.io.private_file import make_private_directory

MARK = ".kraft-runbook-rehearsal"
"""The file by which a throwaway's directory is known: nothing else is ended or removed."""
KEPT = "kept"
"""What the mark holds where a person keeps the throwaway for a look."""
REMOVING = ".removing-"
"""In the name of one whose removal has begun, which begins with a dot."""
HELD = 30.0
"""Seconds that a clean-up waits for a rehearsal that was killed, and may still end what it started."""
Tell = Callable[[str], object]


def place_of(settings: Rehearsal) -> Path:
    """``rehearsal.directory`` itself, without links and ``..``: its processes have that path in their command lines
    (run-service.sh: ``pwd -P``), and are found by it.
    """
    return Path(settings.directory).resolve()


def own_directory(settings: Rehearsal, cluster: str) -> Path:
    """Where the throwaway of this cluster lies."""
    return place_of(settings) / cluster


@contextmanager
def one_rehearsal(settings: Rehearsal, cluster: str, *, keep: bool = False) -> Iterator[Path]:
    """The throwaway's directory, empty, for the one rehearsal that may use this place. What earlier ones left there, of
    any cluster, is ended and removed first: it holds the addresses of this one. ``keep``: another cluster's rehearsal
    leaves it.

    Raises Refused where another is under way, or is kept and still runs, StepFailed for a process that won't end.
    """
    place = place_of(settings)
    make_private_directory(place)
    with (place / "lock").open("w") as lock:
        if not lock_within(lock, 0):
            raise Refused(
                f"another rehearsal is under way in {place}",
                way_out="wait for its end, or give this cluster's rehearsals another directory and network",
            )
        directory = own_directory(settings, cluster)
        _remove_others(place, directory)
        remove(directory)
        directory.mkdir(mode=0o700)
        (directory / MARK).write_text(KEPT if keep else "")
        yield directory


def _remove_others(place: Path, own: Path) -> None:
    """End and remove what rehearsals of other clusters left in this place, whose lock is held; what a person keeps is
    left, and refused while it runs.
    """
    _delete(each for each in place.iterdir() if each.name.startswith(".") and REMOVING in each.name)
    for each in sorted(place.iterdir()):
        if each == own or each.is_symlink() or not (each / MARK).is_file():
            continue
        if (each / MARK).read_text() != KEPT:
            remove(each)
        elif running := remains(each, but=frozenset({os.getpid()})):
            raise Refused(
                f"the throwaway of {each.name} in {place} was kept for a look and still runs: pid"
                f" {', '.join(str(one.pid) for one in running)}",
                way_out=f"wait until its lease ends it, {LEASE_SECONDS / 60:.0f} minutes after its rehearsal, or end"
                " these processes; or give this cluster's rehearsals another directory and network",
            )


def remove_when_free(settings: Rehearsal, cluster: str, *, tell: Tell, within: float = HELD) -> tuple[str, ...]:
    """Remove the throwaway of this cluster on this host, once no rehearsal is under way in this place; returns what was
    ended. Raises StepFailed where one still is after ``within`` seconds, and as ``remove``.
    """
    place, directory, host = place_of(settings), own_directory(settings, cluster), socket.gethostname()
    if not (directory.exists() or _half_removed(directory) or remains(directory, but=frozenset({os.getpid()}))):
        tell(f"nothing is left of a rehearsal in {place} on {host}")
        return ()
    make_private_directory(place)
    with (place / "lock").open("w") as lock:
        if not lock_within(lock, within, every=0.2):
            raise StepFailed(
                f"a rehearsal still holds {place / 'lock'} on {host} after {within:g} s: nothing was ended or"
                f" removed in {directory}",
                way_out="repeat this once that rehearsal has ended; it removes what is its own",
            )
        ended = remove(directory)
    tell(f"{directory} on {host} is removed; {len(ended)} processes were ended")
    return ended


def remove(directory: Path) -> tuple[str, ...]:
    """End what runs of the throwaway in this directory, and remove the directory. Returns the commands that were ended.
    It gets another name first: a removal that is cut short leaves no directory without a mark, and the next one
    removes what is left of it. Raises Refused for a directory that no rehearsal made, StepFailed for a process that
    won't end.
    """
    if directory.is_symlink() or (directory.exists() and not (directory / MARK).exists() and any(directory.iterdir())):
        raise Refused(
            f"{directory} was not made by a rehearsal: nothing there is ended or removed",
            way_out="name another directory under rehearsal.directory in the cluster file, or empty this one",
        )
    running = remains(directory, but=frozenset({os.getpid()}))
    left = end_remains(directory, but=frozenset({os.getpid()}))
    if left:
        raise StepFailed(
            f"{len(left)} processes of the rehearsal in {directory} can't be ended: pid"
            f" {', '.join(str(each.pid) for each in left)}",
            way_out="end them by hand, then repeat this",
        )
    if directory.exists():
        directory.rename(directory.with_name(f"{_removing(directory)}{random_values.token_hex(8)}"))
    _delete(_half_removed(directory))
    return tuple(each.command for each in running)


def _delete(directories: Iterable[Path]) -> None:
    for each in list(directories):
        for _ in range(3):  # a process may write until its very end
            shutil.rmtree(each, ignore_errors=True)
            if not each.exists():
                break
            time.sleep(0.2)
        if each.exists():
            raise StepFailed(f"{each} could not be removed", way_out=f"remove it by hand: rm -r {each}")


def _removing(directory: Path) -> str:
    return f".{directory.name}{REMOVING}"


def _half_removed(directory: Path) -> list[Path]:
    """What removals of this throwaway were cut short at, the one that is going on among them."""
    place = directory.parent
    return [each for each in place.iterdir() if each.name.startswith(_removing(directory))] if place.is_dir() else []
