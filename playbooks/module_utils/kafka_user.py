"""Who runs Kafka on a host, and whether that user can read a file."""

from __future__ import annotations

import contextlib
import errno
import glob
import grp
import os
import pwd
import stat

from ansible.module_utils.kafka_host import HostError, acl_of, owner_of


def read_each(pattern: str) -> list:
    """What the files say; one that has just gone with its thread says nothing."""
    texts = []
    for path in glob.glob(pattern):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                texts.append(stream.read())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return texts


def with_descendants(pid: int) -> list:
    """The service's process may be a script that waits for Java."""
    stats = [text.rpartition(")") for text in read_each("/proc/[0-9]*/stat")]
    parents = {int(head.split(None, 1)[0]): int(tail.split()[1]) for head, _, tail in stats}
    found = [pid] if pid else []
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def kafka_user(service: object, pid: int, log_dir: str) -> tuple:
    """User, group, and whether that is certain.

    The running Java says it, else the service's definition (systemd's ``User=``, supervisor's ``user=``). Where neither
    does, the owner of the directory in which Kafka writes its data is the best guess.
    """
    for process in reversed(with_descendants(pid)):
        try:
            if os.path.basename(os.readlink(f"/proc/{process}/exe")) == "java":
                found = os.stat(f"/proc/{process}")
                return found.st_uid, found.st_gid, True
        except OSError:  # another user's, or just ended
            continue
    configured = service.user()
    if configured is not None:
        return (*ids_of(*configured), True)
    return (*owner_of(log_dir), False)


def ids_of(user: str, group: str) -> tuple:
    """The numbers of a unit's user and group; an empty user is root. Raises HostError where the host knows none."""
    try:
        account = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user or "root")
        if not group:
            return account.pw_uid, account.pw_gid
        return account.pw_uid, int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
    except KeyError:
        raise HostError(
            f"the service runs as {user}{':' + group if group else ''}, whom this host does not know",
            "create that user, or correct the unit",
        ) from None


def name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def unreadable(path: str, uid: int, gid: int) -> str:
    """Why a user can't read a file; empty where it can. Root tries it as that user, and so does that user itself;
    another judges by modes. Raises FileNotFoundError, and HostError where modes do not tell.
    """
    os.stat(path)
    if uid == 0:
        return ""
    groups = {gid}
    with contextlib.suppress(KeyError):  # no account: its own group is all it has
        groups |= set(os.getgrouplist(pwd.getpwuid(uid).pw_name, gid))
    whole = os.path.realpath(path)
    refused = _tried(whole, uid, gid, groups) if os.geteuid() in (0, uid) else None
    if refused == 0:
        return ""
    above = [whole[:at] or "/" for at, character in enumerate(whole) if character == "/"]
    for each, needed, what in [
        *((directory, stat.S_IXOTH, "enter") for directory in above),
        (whole, stat.S_IROTH, "read"),
    ]:
        found = os.stat(each)
        if refused is None and acl_of(each) is not None:
            raise HostError(
                f"whether {name_of(uid)}, who runs Kafka, can {what} {each} is decided by its ACL, which is not tried"
                " here: Ansible is not root",
                "",
            )
        shift = 6 if found.st_uid == uid else 3 if found.st_gid in groups else 0
        if not found.st_mode >> shift & needed:
            mode = stat.S_IMODE(found.st_mode)
            return (
                f"{name_of(uid)}, who runs Kafka, can't {what} {each} (owner {name_of(found.st_uid)}, mode {mode:04o})"
            )
    return f"{name_of(uid)}, who runs Kafka, can't read {whole} ({os.strerror(refused)})" if refused else ""


def _tried(path: str, uid: int, gid: int, groups: set) -> int:
    """The error with which a process of that user opens the file to read it; 0: it does."""
    child = os.fork()
    if child:
        return os.WEXITSTATUS(os.waitpid(child, 0)[1])
    number = errno.EIO
    try:
        if os.geteuid() == 0:
            os.setgroups(list(groups))
            os.setgid(gid)
            os.setuid(uid)
        os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        number = 0
    except OSError as error:
        number = error.errno or number
    finally:
        os._exit(number)
