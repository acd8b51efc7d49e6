"""Read, and change nothing: what the host of one or more nodes has. Each part stands alone; one that can't be read says
why.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.installation import holds, script
from ansible.module_utils.java import INSTALL, java_of, java_of_next_start
from ansible.module_utils.kafka_host import (
    HostError,
    holds_metadata_log,
    is_there,
    part,
    read_bytes,
    read_text,
    split_address,
)
from ansible.module_utils.kafka_user import ids_of, kafka_user, read_each, unreadable, with_descendants
from ansible.module_utils.listeners import listening
from ansible.module_utils.named_classes import kafka_processes
from ansible.module_utils.properties_text import properties_of, read
from ansible.module_utils.replica_directories import survey, unformatted
from ansible.module_utils.service_manager import ABSENT, service_manager
from ansible.module_utils.written_files import others_change, read_record
from ansible.module_utils.zookeeper_login import (
    certificate_options,
    login_file_of_next_start,
    server_sections,
    zookeeper_login,
)

DOCUMENTATION = """
module: kafka_host_facts
short_description: Read the host of Kafka nodes without changing it
description:
  - Every part of a node's result is C({value: ...}) or C({unread: <reason>}). The nodes are read side by side.
options:
  manager: {description: What runs the services., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  secrets_file: {description: "The host's secrets file, where the cluster file names one.", type: str, default: ""}
  kafka_home: {description: Where Kafka is installed., type: path, required: true}
  kafka_version: {description: The version that should be there., type: str, required: true}
  replicas: {description: Whether to read every replica's topic id., type: bool, default: false}
  replicas_seconds: {description: How long that may take on this host in all., type: float, default: 20.0}
  nodes:
    description: The nodes on this host.
    type: list
    elements: dict
    required: true
    suboptions:
      node_id: {description: Under which the result has it., type: int, required: true}
      name: {description: The service., type: str, required: true}
      host: {description: The node's own host name or address., type: str, required: true}
      ports: {description: The ports that the node is to use., type: list, elements: int, required: true}
      log_dirs: {description: The node's log directories., type: list, elements: path, required: true}
      config_file: {description: The node's configuration., type: path, required: true}
      files: {description: Those that this tool writes., type: list, elements: path, default: []}
      must_reach:
        description: "Addresses, host:port, that the node must be able to reach."
        type: list
        elements: str
        default: []
"""

CALL_SECONDS = 10.0
CONNECT_SECONDS = 3.0
MANAGERS = {
    "ansible-pull": "Ansible (ansible-pull)",
    "cf-agent": "CFEngine",
    "cf-execd": "CFEngine",
    "chef-client": "Chef",
    "cinc-client": "Chef (Cinc)",
    "puppet": "Puppet",
    "salt-minion": "Salt",
}
"""Agents of configuration management, by their programs."""
CONTROLLER_THREADS = ("zk-broker-", "zk-brok..")
"""Through which a ZooKeeper-based broker speaks to its controller; newer Javas keep both ends of a long name."""
LISTENER_THREADS = ("/config/changes", "/kafka-acl-", "/delegation_tok", "/config..", "/kafka-..", "/delega..")
"""Through which it hears of changes in ZooKeeper."""
JAVA_VERSION = re.compile(r'version "([^"]+)"')


def main() -> None:
    node = {
        "node_id": {"type": "int", "required": True},
        "name": {"type": "str", "required": True},
        "host": {"type": "str", "required": True},
        "ports": {"type": "list", "elements": "int", "required": True},
        "log_dirs": {"type": "list", "elements": "path", "required": True},
        "config_file": {"type": "path", "required": True},
        "files": {"type": "list", "elements": "path", "default": []},
        "must_reach": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(
        argument_spec={
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "secrets_file": {"type": "str", "default": "", "no_log": False},
            "kafka_home": {"type": "path", "required": True},
            "kafka_version": {"type": "str", "required": True},
            "replicas": {"type": "bool", "default": False},
            "replicas_seconds": {"type": "float", "default": 20.0},
            "nodes": {"type": "list", "elements": "dict", "required": True, "options": node},
        },
        supports_check_mode=True,
    )
    common = {name: value for name, value in module.params.items() if name != "nodes"}
    nodes = module.params["nodes"]
    with ThreadPoolExecutor(max_workers=max(1, len(nodes))) as pool:
        states = list(pool.map(lambda each: read_node({**common, **each}), nodes))
    module.exit_json(
        changed=False, host_state={str(each["node_id"]): state for each, state in zip(nodes, states)}, clock=time.time()
    )


def read_node(asked: dict) -> dict:
    """One node's parts by name."""
    manager = service_manager(asked["manager"], asked["name"], asked["socket"], CALL_SECONDS)
    status = _part(manager.status)
    service = status.get("value")
    return {
        "service_state": {"value": service.state} if service else status,
        "service_defined": {"value": service.state != ABSENT} if service else status,
        "stop_seconds": _part(manager.stop_seconds),
        "stop_commands": _part(manager.stop_commands),
        "stops_as": _part(lambda: stops_as(manager)),
        "runs_as": _part(lambda: runs_as(manager, service.pid if service else 0, asked["log_dirs"][0])),
        "machine": _part(machine),
        "other_kafkas": _part(lambda: other_kafkas(service.pid if service else 0)),
        "controller_threads": _part(lambda: threads(service.pid if service else 0, CONTROLLER_THREADS)),
        "listener_threads": _part(lambda: threads(service.pid if service else 0, LISTENER_THREADS)),
        "zookeeper_login": _part(lambda: zookeeper_login(manager, service.pid if service else 0)),
        "zookeeper_options": _part(lambda: certificate_options(manager, service.pid if service else 0)),
        "java_version": _part(lambda: java_version(java_of(manager, service.pid if service else 0))),
        "next_java_version": _part(lambda: version_if_any(java_of_next_start(manager, service.pid if service else 0))),
        "free_bytes": _part(lambda: {path: free_bytes(path) for path in asked["log_dirs"]}),
        "ports_in_use": _part(lambda: ports_in_use(asked["host"], asked["ports"])),
        "config": _part(lambda: config(asked["config_file"])),
        "secrets_keys": _part(lambda: secrets_keys(asked["secrets_file"])),
        "secrets_written": _part(lambda: secrets_written(asked["secrets_file"])),
        "secrets_readable": _part(
            lambda: readable(asked["secrets_file"], manager, service.pid if service else 0, asked["log_dirs"][0])
        ),
        "login_readable": _part(
            lambda: login_readable(manager, service.pid if service else 0, asked["log_dirs"][0], asked["config_file"])
        ),
        "server_sections": _part(lambda: server_sections(manager, service.pid if service else 0)),
        "formatted_cluster_id": _part(lambda: cluster_id(asked["log_dirs"][0])),
        "has_metadata_log": _part(lambda: has_metadata_log(asked["log_dirs"])),
        "unreachable_addresses": _part(lambda: unreachable(asked["must_reach"])),
        "replicas": _part(lambda: survey(asked["log_dirs"], asked["replicas_seconds"]))
        if asked["replicas"]
        else {"unread": "not asked for"},
        **log_directories(asked["log_dirs"]),
        "other_hands": _part(lambda: changed_by_others(asked["files"])),
        "configuration_managers": _part(configuration_managers),
        "classpath_ok": _part(lambda: software_is_there(asked["kafka_home"], asked["kafka_version"])),
    }


def _part(ask: Callable[[], object]) -> dict:
    return part(ask, subprocess.SubprocessError, UnicodeDecodeError, ValueError)


def changed_by_others(files: list) -> dict:
    """By path, the lines of what another hand changed since this tool wrote the file."""
    found = {path: read_bytes(path) for path in files}
    told = {path: others_change(path, there[0]) for path, there in found.items() if there is not None}
    return {path: lines for path, lines in told.items() if lines is not None}


def configuration_managers() -> list:
    """The agents that run on this host and may write files by themselves."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(os.path.join("/proc", pid, "cmdline"), "rb") as stream:
                words = stream.read().split(b"\0")[:2]
        except OSError:
            continue  # it has ended
        found.update(
            MANAGERS[name] for name in (os.path.basename(os.fsdecode(word)) for word in words) if name in MANAGERS
        )
    return sorted(found)


def log_directories(paths: list) -> dict:
    """Both parts of one look, so that no directory is in neither."""
    lacks, unread = unformatted(paths)
    return {"unformatted_dirs": {"value": lacks}, "unread_dirs": {"value": unread}}


def version_if_any(java: str | None) -> str | None:
    return java_version(java) if java else None


def java_version(java: str) -> str:
    """The version of a Java, as it tells it itself."""
    done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=CALL_SECONDS, check=False)
    found = JAVA_VERSION.search(done.stderr + done.stdout)
    if not found:
        raise HostError(f"{java} -version did not name a version (exit code {done.returncode})", INSTALL)
    return found.group(1)


def threads(pid: int, beginnings: tuple) -> list:
    """The names, as Linux keeps them, of the service's threads whose names begin so."""
    names = [name for process in with_descendants(pid) for name in read_each(f"/proc/{process}/task/*/comm")]
    if pid and not names:
        raise HostError(
            f"the threads of process {pid} can't be listed",
            "it has just ended, or /proc hides other users' processes (hidepid)",
        )
    return sorted(name.strip() for name in names if name.startswith(beginnings))


def free_bytes(path: str) -> int:
    """What an ordinary user may still write on the file system that holds, or will hold, the path."""
    while not is_there(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def ports_in_use(host: str, ports: list) -> list:
    """Those of the ports on which something listens at the host's address, or at any address but another
    loopback one.
    """
    own = {
        ipaddress.ip_address(item[4][0].partition("%")[0])
        for item in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    }
    return sorted({each.port for each in listening() if each.port in ports and each.is_reached_at(own)})


def config(path: str) -> dict | None:
    text = read_text(path)
    return None if text is None else read(text)


def secrets_keys(path: str) -> list | None:
    """The names in the secrets file; never a value."""
    text = read_text(path) if path else None
    return None if text is None else sorted(properties_of(text))


def secrets_written(path: str) -> bool:
    """Whether this tool has a record of the secrets file."""
    return bool(path) and read_record(path) is not None


def stops_as(service: object) -> int | None:
    """Who runs the commands of a unit's stop; 0: root. None where its manager runs none, or does not say."""
    user, as_root = service.user(), service.stops_as_root()
    return None if user is None or as_root is None else 0 if as_root else ids_of(*user)[0]


def runs_as(service: object, pid: int, log_dir: str) -> int | None:
    """Who runs Kafka; None where that is not certain."""
    uid, _, certain = kafka_user(service, pid, log_dir)
    return uid if certain else None


def machine() -> str:
    """The same for each process that sees the same process table, and for no other: boot id and PID namespace."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return f"{stream.read().strip()} {os.stat('/proc/self/ns/pid').st_ino}"


def other_kafkas(pid: int) -> dict:
    """The Kafka processes of this host that are not this service's, each with the number of its user."""
    own = set(with_descendants(pid))
    return {each: user for each, user in kafka_processes().items() if each not in own}


def readable(path: str | None, service: object, pid: int, log_dir: str) -> str | None:
    """Why the user that runs Kafka can't read a file; empty where it can; None where no such file is."""
    if not path or not is_there(path):
        return None
    uid, gid, _ = kafka_user(service, pid, log_dir)
    return unreadable(path, uid, gid)


def login_readable(service: object, pid: int, log_dir: str, config_file: str) -> str | None:
    """The same of the login file of its JVM's next start; None where it is given none.

    One that is not there stops the JVM too, where Kafka asks for it: its client of ZooKeeper always does. So past
    ZooKeeper a file that only the running JVM names may be gone: the restart takes its option out.
    """
    path, not_in_the_unit = login_file_of_next_start(service, pid)
    found = readable(path, service, pid, log_dir)
    if not path or found is not None:
        return found
    goes = not_in_the_unit and "zookeeper.connect" not in properties_of(read_text(config_file) or "")
    return None if goes else f"{path} is not there"


def cluster_id(log_dir: str) -> str | None:
    text = read_text(os.path.join(log_dir, "meta.properties"))
    return None if text is None else read(text).get("cluster.id")


def has_metadata_log(log_dirs: list) -> bool:
    return any(holds_metadata_log(path) for path in log_dirs)


def unreachable(addresses: list) -> list:
    """Those that do not take a connection within CONNECT_SECONDS; asked side by side, since a dropped packet takes that
    long.
    """
    with ThreadPoolExecutor(max_workers=max(1, len(addresses))) as pool:
        accepted = dict(zip(addresses, pool.map(_accepts, addresses)))
    return [address for address in addresses if not accepted[address]]


def _accepts(address: str) -> bool:
    try:
        with socket.create_connection(split_address(address), timeout=CONNECT_SECONDS):
            return True
    except OSError:
        return False


def software_is_there(home: str, version: str) -> bool:
    """Whether the installation holds Kafka's jar of that version and the storage tool."""
    tool = script(home, "kafka-storage")
    return holds(home, version) and is_there(tool) and os.access(tool, os.X_OK)


if __name__ == "__main__":
    main()
