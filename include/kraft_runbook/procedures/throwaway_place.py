"""Where a rehearsal's throwaway cluster lies on this machine: one at a time, and ended with all that it left."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets as random_values
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.store import state_directory
from kraft_runbook.io.file_lock import lock_within
from kraft_runbook.io.local.layout import room_for_name
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
DIGEST = 8
"""Characters of the digest that a shortened name ends with."""
OTHERS = stat.S_IWGRP | stat.S_IWOTH
Tell = Callable[[str], object]


def place_of(settings: Rehearsal, environment: Mapping[str, str] = os.environ) -> Path:
    """``rehearsal.directory`` itself, or ``rehearsals`` in the state directory, without links and ``..``: its processes
    have that path in their command lines (run-service.sh: ``pwd -P``), and are found by it.
    """
    directory = settings.directory
    return (Path(directory) if directory else state_directory(environment) / "rehearsals").resolve()


def own_directory(settings: Rehearsal, cluster: str) -> Path:
    """Where the throwaway of this cluster lies: by its name, which is cut, with a digest behind it, where a socket's
    path would be too long. Raises Refused where no name is short enough.
    """
    place = place_of(settings)
    room = room_for_name(place)
    if room < DIGEST + 2:
        raise Refused(
            f"{place} is too long a path for a rehearsal: Linux takes a Unix socket's path of 107 bytes",
            way_out="name a shorter directory under rehearsal.directory in the cluster file",
        )
    if len(cluster) <= room:
        return place / cluster
    digest = hashlib.sha256(cluster.encode()).hexdigest()[:DIGEST]
    return place / f"{cluster[: room - DIGEST - 1]}-{digest}"


@contextmanager
def _lock_of(place: Path) -> Iterator[int]:
    """The open file whose lock is the place's, which is made where it is not there. Raises Refused for a place that
    another user owns or may write to: whoever may could put another throwaway there than the one that was made, and
    have it started.
    """
    make_private_directory(place)
    found = place.lstat()
    if found.st_uid != os.geteuid() or found.st_mode & OTHERS:
        raise Refused(
            f"{place} belongs to uid {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}: a rehearsal needs a"
            f" directory that uid {os.geteuid()} owns and no other may write to",
            way_out="see who made it; then remove it, or name another under rehearsal.directory in the cluster file",
        )
    lock = place / "lock"
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise Refused(f"{lock} is a link: no rehearsal made it", way_out=f"remove it: rm {lock}") from None
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def one_rehearsal(
    settings: Rehearsal, cluster: str, *, tell: Tell, keep: bool = False, within: float = 0.0
) -> Iterator[Path]:
    """The throwaway's directory, empty, for the one rehearsal that may use this place. What earlier ones left there, of
    any cluster, is ended and removed first: it holds the addresses of this one. ``keep``: another cluster's rehearsal
    leaves it. ``within``: seconds to wait for another that is under way.

    Raises Refused where another is still under way, or is kept and still runs, or the place is not this user's alone,
    StepFailed for a process that won't end.
    """
    place, directory = place_of(settings), own_directory(settings, cluster)
    with _lock_of(place) as lock:
        taken = lock_within(lock, 0)
        if not taken and within:
            tell(f"another rehearsal is under way in {place}: waiting up to {within:g} s for its end")
            taken = lock_within(lock, within, every=1.0)
        if not taken:
            still = f" after {within:g} s" if within else ""
            raise Refused(
                f"another rehearsal is under way in {place}{still}",
                way_out="wait for its end, or give this cluster's rehearsals another directory and network",
            )
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
    ended. Raises StepFailed where one still is after ``within`` seconds, Refused for a place that is not this user's
    alone, and as ``remove``.
    """
    place, directory, host = place_of(settings), own_directory(settings, cluster), socket.gethostname()
    if not (directory.exists() or _half_removed(directory) or remains(directory, but=frozenset({os.getpid()}))):
        tell(f"nothing is left of a rehearsal in {place} on {host}")
        return ()
    with _lock_of(place) as lock:
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
