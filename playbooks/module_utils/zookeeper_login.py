"""By what a node logs in to ZooKeeper: the classes in its JVM's login file, and what its JVM's options say of a
certificate; and which sections for a broker's listeners that file has. No more of it leaves the host.
"""

from __future__ import annotations

import os

from ansible.module_utils.jvm_options import java_property, login_file, options
from ansible.module_utils.kafka_host import HostError, why
from ansible.module_utils.login_modules import sections_of
from ansible.module_utils.named_classes import Process

SERVER = "KafkaServer"
"""The section for every listener of a broker, and the end of the name of that for one."""
SECTION, DEFAULT = "zookeeper.sasl.clientconfig", "Client"
"""The Java property that names the section, and what it is without one (``ZKClientConfig``)."""
SWITCH = "zookeeper.sasl.client"
"""The Java property that says with false that there is no login, whatever the file holds."""

CERTIFICATE = ("zookeeper.client.secure", "zookeeper.clientCnxnSocket", "zookeeper.ssl.keyStore.location")
"""The Java properties by which ZooKeeper's client shows a certificate (``ZkConfigs``)."""


def zookeeper_login(service: object, pid: int) -> list | None:
    """Empty where it has no login for ZooKeeper. None: supervisor, which does not say."""
    told = _told(service, pid)
    return None if told is None else _classes(*told)


def login_file_of_next_start(service: object, pid: int) -> tuple:
    """The login file that its unit names, or else the one that its running JVM has, and whether systemd says that the
    unit names none: such a file goes with the process, or a start script names it. None: there is none, or supervisor
    does not say. Raises HostError where the unit can't be read and no process runs.
    """
    try:
        defined = _defined(service)
    except HostError:
        if not pid:
            raise
        defined = None
    if defined and defined[0]:
        return defined[0], False
    return (Process(pid, service).login_file() if pid else None), defined is not None


def server_sections(service: object, pid: int) -> list | None:
    """The names of the sections with a login for a broker's listeners in the login file of its JVM's next start: Kafka
    reads KafkaServer and <listener>.KafkaServer (``JaasContext.loadServerContext``). None: it is given no such file, or
    it does not run and supervisor does not say.
    """
    path, _ = login_file_of_next_start(service, pid)
    if path is None:
        return None
    return [name for name, classes in _sections(path).items() if classes and name.split(".")[-1] == SERVER]


def _told(service: object, pid: int) -> tuple | None:
    """Its login file, the section's name and the switch. Of a service that does not run (``pid`` 0) its unit's
    variables tell them; None: supervisor, which does not say.
    """
    if pid:
        process = Process(pid, service)
        return process.login_file(), process.property(SECTION), process.property(SWITCH)
    return _defined(service)


def _defined(service: object) -> tuple | None:
    """The same of its unit alone."""
    defined = service.environment()
    if defined is None:
        return None
    given = options(defined)
    path = login_file(given)
    if path and not os.path.isabs(path):
        raise HostError(f"its unit names the login file {path}", "name it with its whole path")
    return path or None, java_property(given, SECTION), java_property(given, SWITCH)


def certificate_options(service: object, pid: int) -> dict | None:
    """The Java properties of ``CERTIFICATE`` that its JVM is given, for a node whose own properties lack some. None: it
    does not run, and supervisor does not say.
    """
    if pid:
        process = Process(pid, service)
        found = {name: process.property(name) for name in CERTIFICATE}
    else:
        defined = service.environment()
        if defined is None:
            return None
        given = options(defined)
        found = {name: java_property(given, name) for name in CERTIFICATE}
    return {name: value for name, value in found.items() if value is not None}


def _classes(path: str | None, section: str | None, switch: str | None) -> list:
    if path is None or (switch or "").lower() == "false":
        return []
    return list(_sections(path).get(section or DEFAULT, ()))


def _sections(path: str) -> dict:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return sections_of(stream.read())
    except OSError as error:
        raise HostError(f"its login file {path}: {why(error)}", "let this tool's user on the host read it") from None
    except ValueError as error:
        raise HostError(f"its login file {path}: {error}", "write it as Java's documents do") from None
