"""What the modules ask of a host: one change at a time, when a process began, and whole files written at once."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator

NANOSECONDS = 1_000_000_000


class HostError(Exception):
    """Something on the host stands in the way. ``way_out`` says what a person must do."""

    def __init__(self, problem: str, way_out: str) -> None:
        self.problem = problem
        self.way_out = way_out
        super().__init__(problem)


@contextlib.contextmanager
def host_lock(config_file: str, wait_seconds: float) -> Iterator[None]:
    """Hold the node's lock, ``.<config file>.lock`` beside its configuration. The kernel releases it however the holder ends.

    Raises HostError when another run still holds it after ``wait_seconds``.
    """
    path = os.path.join(os.path.dirname(config_file), f".{os.path.basename(config_file)}.lock")
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(handle, path, time.monotonic() + wait_seconds, wait_seconds)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def _take(handle: int, path: str, deadline: float, wait_seconds: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = os.pread(handle, 32, 0).decode(errors="replace") or "unknown"
                raise HostError(
                    f"another run (process {holder}) has held {path} for more than {wait_seconds:.0f} s",
                    "wait for that run to end, then run this step again; it goes on from what it finds",
                ) from None
            time.sleep(0.05)


def started_at_ns(pid: int) -> int | None:
    """When a process began, in nanoseconds of the wall clock; None where there is no such process.

    ``/proc/<pid>/stat`` counts clock ticks (10 ms) since boot, time asleep included, so CLOCK_BOOTTIME is its base.
    The value is rounded down: a file changed within the same tick counts as changed after the process began.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The second field, the command's name, is in brackets and may hold spaces: count from its end.
            fields = stat.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    since_boot = int(fields[19]) * NANOSECONDS // os.sysconf("SC_CLK_TCK")
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot


def changed_since(began_ns: int, files: list[str]) -> list[str]:
    """The files that were written after that moment. One that does not exist was not."""
    return [path for path in files if _changed_at_ns(path) > began_ns]


def _changed_at_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def not_in_the_future(files: list[str]) -> None:
    """Move a change time that lies ahead of the clock to a second ago, else each process would seem older than the file for ever.

    For a file whose process is about to start: a second, because the start is known to a clock tick only, rounded down.
    """
    now = time.time_ns()
    for path in files:
        if _changed_at_ns(path) > now:
            os.utime(path, ns=(now - NANOSECONDS, now - NANOSECONDS))


def owner_of(path: str) -> tuple[int, int]:
    """User and group of the path, or of the nearest directory above it that exists: whom a new file there should belong to."""
    while not os.path.lexists(path):
        path = os.path.dirname(path) or "/"
    found = os.stat(path)
    return found.st_uid, found.st_gid


def make_directory(path: str) -> None:
    """Make a directory and those above it, each owned as the nearest one that existed."""
    if os.path.isdir(path):
        return
    owner = owner_of(path)
    make_directory(os.path.dirname(path))
    os.mkdir(path, 0o750)
    give_to(path, owner)


def give_to(path: str, owner: tuple[int, int]) -> None:
    """Change the owner where that is allowed (only root may) and needed."""
    if os.geteuid() == 0:
        os.chown(path, *owner)


def write_whole(path: str, content: bytes, mode: int, owner: tuple[int, int]) -> None:
    """Replace a file in one move: a reader sees the old text or the new one, never a part. Its change time is set after the move.

    A process that starts between writing and moving reads the old text; with the time of the move it counts as older than the file.
    """
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        give_to(temporary, owner)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    os.utime(path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def why(error: OSError) -> str:
    """An operating-system error in one line, without a traceback."""
    return f"{error.strerror or errno.errorcode.get(error.errno or 0, 'error')}: {error.filename}"
