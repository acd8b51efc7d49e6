"""The Java that runs, or would run, a node's service on this host."""

from __future__ import annotations

import os
import shutil

from ansible.module_utils.kafka_host import HostError
from ansible.module_utils.kafka_user import with_descendants

SERVICES_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where systemd looks for a program of a unit that sets no PATH."""
INSTALL = "install a Java 17 runtime, or let JAVA_HOME in the service's unit name one"


def java_of(service: object, pid: int) -> str:
    """The path of the Java that the service runs on, with links followed.

    The running process says it; else what the service's definition sets (``JAVA_HOME``, ``PATH``: systemd's
    Environment, EnvironmentFile, drop-ins), as kafka-run-class.sh takes it; else this user's own. Raises HostError
    where there is none, or where the definition can't be read.
    """
    running = _running(pid)
    if running:
        return running
    defined = service.environment()
    if defined is None:
        return _own()
    named = _named(service, defined)
    found = named or shutil.which("java", path=SERVICES_PATH)
    return os.path.realpath(found) if found else _own()


def java_of_next_start(service: object, pid: int) -> str | None:
    """The Java that the service's definition names, where it runs on another one now: the definition was changed since
    its start, or its program looks for a Java by itself. None where they agree, or where the definition names none.
    Raises HostError as ``java_of`` does.
    """
    running = _running(pid)
    defined = service.environment() if running else None
    named = _named(service, defined) if defined else None
    return os.path.realpath(named) if named and os.path.realpath(named) != running else None


def _running(pid: int) -> str | None:
    for process in reversed(with_descendants(pid)):
        try:
            program = os.readlink(f"/proc/{process}/exe")
        except OSError:  # another user's, or just ended
            continue
        if os.path.basename(program) == "java":
            return program
    return None


def _named(service: object, defined: dict) -> str | None:
    """What the definition's JAVA_HOME leads to, else its PATH."""
    home = defined.get("JAVA_HOME")
    if not home:
        return shutil.which("java", path=defined["PATH"]) if defined.get("PATH") else None
    java = os.path.join(home, "bin", "java")
    if not os.access(java, os.X_OK):
        raise HostError(f"{service.name} has JAVA_HOME={home}, and {java} is no program there", INSTALL)
    return java


def any_java(service: object) -> str:
    """The same, for tools, which run on any: where nothing leads to the service's Java, this user's own."""
    try:
        return java_of(service, service.status().pid)
    except HostError as error:
        try:
            return _own()
        except HostError:
            raise error from None


def _own() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if not found:
        place = f"JAVA_HOME={home}" if home else "the path"
        raise HostError(f"no Java: neither the service's definition nor {place} leads to one", INSTALL)
    return os.path.realpath(found)


def java_home(java: str) -> str:
    """What JAVA_HOME must be, so that Kafka's scripts run this Java."""
    return os.path.dirname(os.path.dirname(java))
