"""What the modules ask of a host: one change at a time, when a process began, and whole files written at once."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator

NANOSECONDS = 1_000_000_000


class HostError(Exception):
    """Something on the host stands in the way. ``way_out`` says what a person must do."""

    def __init__(self, problem: str, way_out: str) -> None:
        self.problem = problem
        self.way_out = way_out
        super().__init__(problem)


def split_address(address: str) -> tuple:
    """The host and the port of host:port; an IPv6 address stands in brackets there."""
    host, _, port = address.rpartition(":")
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), int(port)


@contextlib.contextmanager
def host_lock(config_file: str, wait_seconds: float) -> Iterator[None]:
    """Hold the node's lock, ``.<config file>.lock`` beside its configuration. The kernel releases it however the holder
    ends.

    Raises HostError when another run still holds it after ``wait_seconds``.
    """
    path = os.path.join(os.path.dirname(config_file), f".{os.path.basename(config_file)}.lock")
    with place_of(path) as (directory, name):
        handle = _opened(path, name, os.O_RDWR | os.O_CREAT, directory)
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
    """When a process began, in nanoseconds of the wall clock; None where there is no such process. One whose first
    thread has ended is there while another thread is: it still holds its ports and its files, and a large JVM takes
    seconds to give its memory back.

    ``/proc/<pid>/stat`` counts clock ticks (10 ms) since boot, time asleep included, so CLOCK_BOOTTIME is its base.
    The value is rounded down: a file changed within the same tick counts as changed after the process began.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The second field, the command's name, is in brackets and may hold spaces: count from its end.
            fields = stream.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:  # its threads
        return None
    since_boot = int(fields[19]) * NANOSECONDS // os.sysconf("SC_CLK_TCK")
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + since_boot


def changed_since(began_ns: int, files: list[str]) -> list[str]:
    """The files that were written after that moment. One that does not exist was not."""
    return [path for path in files if _changed_at_ns(path) > began_ns]


def _changed_at_ns(path: str) -> int:
    """A link to a directory counts by itself: what lies in an installation changes without a change of the link."""
    try:
        itself = os.lstat(path)
        return itself.st_mtime_ns if os.path.islink(path) and os.path.isdir(path) else os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def not_in_the_future(files: list[str]) -> None:
    """Move a change time that lies ahead of the clock to a second ago, else each process would seem older than the file
    for ever.

    For a file whose process is about to start: a second, because the start is known to a clock tick only, rounded down.
    """
    now = time.time_ns()
    for path in files:
        if _changed_at_ns(path) > now:
            with place_of(path) as (directory, name):
                os.utime(name, ns=(now - NANOSECONDS, now - NANOSECONDS), dir_fd=directory, follow_symlinks=False)


# -- files, without following another user's links ---------------------------------------------------------------------
# The modules may run as root in directories that Kafka's user owns. Whoever may write there could put a link where root
# then writes, reads or changes an owner. So a path is walked from the root, each part opened as what it is, and its
# last part is never followed.

NAME_THE_FILE = (
    "name the file itself, not a link to it, in the cluster file; if nobody made that link on purpose, find out who did"
)


@contextlib.contextmanager
def place_of(path: str) -> Iterator[tuple[int, str]]:
    """The directory that holds a path, opened, and the path's name in it. Links of root are followed on the way,
    another user's never (as root).

    Raises HostError for such a link, OSError where a directory is missing.
    """
    directory, name = os.path.split(os.path.abspath(path))
    handle = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in directory.split("/")[1:] if directory != "/" else []:
            following = _directory(directory, part, handle)
            os.close(handle)
            handle = following
        yield handle, name
    finally:
        os.close(handle)


def _directory(whole: str, part: str, within: int) -> int:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        found = os.lstat(part, dir_fd=within)
        if not stat.S_ISLNK(found.st_mode):
            return os.open(part, flags | os.O_NOFOLLOW, dir_fd=within)
        if os.geteuid() == 0 and found.st_uid != 0:
            raise HostError(
                f"{part} in the path {whole} is a symbolic link that user {found.st_uid} made, and Ansible is root"
                " here",
                NAME_THE_FILE,
            )
        return os.open(part, flags, dir_fd=within)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, whole) from None


def _opened(path: str, name: str, flags: int, directory: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise HostError(f"{path} is a symbolic link", NAME_THE_FILE) from None
        raise type(error)(error.errno, error.strerror, path) from None


def read_bytes(path: str) -> tuple[bytes, os.stat_result] | None:
    """What a regular file holds, and what it is; None where there is none. Raises HostError for a link, OSError for
    what is no file.
    """
    try:
        with place_of(path) as (directory, name):
            handle = _opened(path, name, os.O_RDONLY | os.O_NONBLOCK, directory)
    except FileNotFoundError:
        return None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        number = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
        raise OSError(number, os.strerror(number), path)
    with os.fdopen(handle, "rb") as stream:
        return stream.read(), found


def read_text(path: str) -> str | None:
    """A properties file's text, which Kafka reads as Latin-1; None where there is no such file."""
    found = read_bytes(path)
    return None if found is None else found[0].decode("latin-1")


BOOTSTRAP_CHECKPOINT = "00000000000000000000-0000000000.checkpoint"
"""From 4.4 on ``kafka-storage format`` writes this into a controller's empty log (KAFKA-19648); earlier releases write
it with the first voters alone.
"""


def holds_metadata_log(log_dir: str) -> bool:
    """Whether a metadata log is in this directory: what a format alone leaves there is none. Raises OSError where that
    can't be told: what may not be read, or fails, is not empty.
    """
    try:
        return os.listdir(os.path.join(log_dir, "__cluster_metadata-0")) != [BOOTSTRAP_CHECKPOINT]
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_mount_point(path: str) -> bool:
    """Whether something is mounted there: a directory of the same file system too (a bind mount), which
    ``os.path.ismount`` takes for none. A link is none itself. Raises OSError where the mounts can't be read.
    """
    if os.path.ismount(path):
        return True
    with open("/proc/self/mountinfo", "rb") as stream:
        points = {without_octal(os.fsdecode(line.split(b" ")[4])) for line in stream}
    return not os.path.islink(path) and os.path.realpath(path) in points


def without_octal(field: str) -> str:
    """A path as it is, of a table of mounts, where a blank is written as ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


def is_there(path: str) -> bool:
    """Whether something has this name, a link too. Raises OSError where that can't be told: what may not be looked at,
    or is on a disk that fails, is not missing.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def names_in(directory: str) -> list:
    """What is in a directory; nothing where there is none. Raises OSError where it can't be read."""
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def owner_of(path: str) -> tuple[int, int]:
    """User and group of the path, or of the nearest directory above it that exists: whom a new file there should belong
    to.
    """
    while not is_there(path):
        path = os.path.dirname(path) or "/"
    found = os.stat(path)
    return found.st_uid, found.st_gid


def make_directory(path: str, owner: tuple[int, int] | None = None) -> None:
    """Make a directory and those above it, each owned as the nearest one that existed; the last one by ``owner`` where
    that is given.
    """
    if os.path.isdir(path):
        return
    nearest = owner_of(path)
    make_directory(os.path.dirname(path))
    with place_of(path) as (directory, name):
        os.mkdir(name, 0o750, dir_fd=directory)
        if os.geteuid() == 0:
            os.chown(name, *(owner or nearest), dir_fd=directory, follow_symlinks=False)


def change(path: str, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Change a file's mode, and as root its owner. Its content and its change time stay."""
    with place_of(path) as (directory, name):
        handle = _opened(path, name, os.O_RDONLY | os.O_NONBLOCK, directory)
    try:
        if owner and os.geteuid() == 0:
            os.fchown(handle, *owner)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


ACL = "system.posix_acl_access"
"""Where Linux keeps a file's POSIX ACL. A file that has no more than its mode has none."""


def acl_of(path: str) -> bytes | None:
    """The POSIX ACL of a path, no link followed; None: there is none, or no such path."""
    try:
        return os.getxattr(path, ACL, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP, errno.ENOENT):
            return None
        raise


def write_whole(path: str, content: bytes, mode: int, owner: tuple[int, int], changed_at_ns: int | None = None) -> None:
    """Replace a file in one move: a reader sees the old text or the new one, never a part. Its change time is set after
    the move. Its POSIX ACL stays, within the mode.

    A process that starts between writing and moving reads the old text; with the time of the move it counts as older
    than the file. ``changed_at_ns`` is given to the new text before the move: for a change that no process needs to
    read.
    """
    with place_of(path) as (directory, name):
        draft = f".{name}.{secrets.token_hex(8)}"
        handle = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory
        )
        try:
            with os.fdopen(handle, "wb") as stream:
                if os.geteuid() == 0:
                    os.fchown(handle, *owner)
                _keep_acl(f"/proc/self/fd/{directory}/{name}", handle)
                os.fchmod(handle, mode)  # with an ACL, what it grants to others is bound by the group's bits
                stream.write(content)
                stream.flush()
                if changed_at_ns is not None:
                    os.utime(handle, ns=(changed_at_ns, changed_at_ns))
                os.fsync(handle)
            os.replace(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=directory)
            raise
        if changed_at_ns is None:
            os.utime(name, dir_fd=directory, follow_symlinks=False)
        itself = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
        try:
            os.fsync(itself)
        finally:
            os.close(itself)


def _keep_acl(path: str, draft: int) -> None:
    """The draft gets the ACL of the file that it replaces, or none; with no such file it keeps its directory's."""
    held = acl_of(path)
    if held is not None:
        os.setxattr(draft, ACL, held)
    elif os.path.lexists(path) and ACL in os.listxattr(draft):
        os.removexattr(draft, ACL)


def why(error: OSError) -> str:
    """An operating-system error in one line, without a traceback."""
    return f"{error.strerror or errno.errorcode.get(error.errno or 0, 'error')}: {error.filename}"


def part(ask: Callable[[], object], *also: type[Exception]) -> dict:
    """One part's value, or why it could not be read. ``also``: further errors that are told in their own words."""
    try:
        return {"value": ask()}
    except HostError as error:
        return {"unread": error.problem}
    except OSError as error:
        return {"unread": why(error)}
    except also as error:
        return {"unread": str(error)}
