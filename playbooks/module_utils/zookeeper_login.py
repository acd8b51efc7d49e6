"""By what a running node logs in to ZooKeeper: the classes in its JVM's login file. No more of it leaves the host."""

from __future__ import annotations

from ansible.module_utils.kafka_host import HostError, why
from ansible.module_utils.login_modules import sections_of
from ansible.module_utils.named_classes import Process

SECTION, DEFAULT = "zookeeper.sasl.clientconfig", "Client"
"""The Java property that names the section, and what it is without one (``ZKClientConfig``)."""


def zookeeper_login(pid: int) -> list:
    """Empty where the process has no login for ZooKeeper. ``pid``: its service's process, 0 where none runs."""
    if not pid:
        raise HostError("its service does not run: only a running process tells its login file", "start it")
    process = Process(pid)
    path = process.login_file()
    if path is None:
        return []
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            sections = sections_of(stream.read())
    except OSError as error:
        raise HostError(f"its login file {path}: {why(error)}", "let this tool's user on the host read it") from None
    except ValueError as error:
        raise HostError(
            f"its login file {path} is not understood: {error}", "write it as Java's documents do"
        ) from None
    return list(sections.get(process.property(SECTION) or DEFAULT, ()))
