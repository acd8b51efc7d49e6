"""By what a node logs in to ZooKeeper: the classes in its JVM's login file. No more of it leaves the host."""

from __future__ import annotations

import os
import shlex

from ansible.module_utils.kafka_host import HostError, why
from ansible.module_utils.login_modules import sections_of
from ansible.module_utils.named_classes import LOGIN_FILE, Process

SECTION, DEFAULT = "zookeeper.sasl.clientconfig", "Client"
"""The Java property that names the section, and what it is without one (``ZKClientConfig``)."""
SWITCH = "zookeeper.sasl.client"
"""The Java property that says with false that there is no login, whatever the file holds."""


def zookeeper_login(service: object, pid: int) -> list | None:
    """Empty where it has no login for ZooKeeper. Of a service that does not run (``pid`` 0) its unit's KAFKA_OPTS tells
    it; None: supervisor, which does not say.
    """
    if pid:
        process = Process(pid)
        return _classes(process.login_file(), process.property(SECTION), process.property(SWITCH))
    defined = service.environment()
    if defined is None:
        return None
    options = shlex.split(defined.get("KAFKA_OPTS", ""))

    def given(name: str) -> str | None:
        return next((each.partition("=")[2] for each in reversed(options) if each.startswith(f"-D{name}=")), None)

    path = (given(LOGIN_FILE) or "").lstrip("=")
    path = path[len("file:") :] if path.startswith("file:") else path
    if path and not os.path.isabs(path):
        raise HostError(f"its unit names the login file {path}", "name it with its whole path")
    return _classes(path or None, given(SECTION), given(SWITCH))


def _classes(path: str | None, section: str | None, switch: str | None) -> list:
    if path is None or (switch or "").lower() == "false":
        return []
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            sections = sections_of(stream.read())
    except OSError as error:
        raise HostError(f"its login file {path}: {why(error)}", "let this tool's user on the host read it") from None
    except ValueError as error:
        raise HostError(f"its login file {path}: {error}", "write it as Java's documents do") from None
    return list(sections.get(section or DEFAULT, ()))
