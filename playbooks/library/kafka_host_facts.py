"""Read, and change nothing: what one node's host has. Each part stands alone; one that can't be read says why."""

from __future__ import annotations

import glob
import ipaddress
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import HostError, why
from ansible.module_utils.properties_text import read
from ansible.module_utils.service_manager import ABSENT, service_manager

DOCUMENTATION = """
module: kafka_host_facts
short_description: Read a Kafka node's host without changing it
description:
  - Every part of the result is C({value: ...}) or C({unread: <reason>}).
options:
  name: {description: The service., type: str, required: true}
  manager: {description: What runs the service., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  host: {description: The node's own host name or address., type: str, required: true}
  ports: {description: The ports that the node is to use., type: list, elements: int, required: true}
  log_dirs: {description: The node's log directories., type: list, elements: path, required: true}
  config_file: {description: The node's configuration., type: path, required: true}
  kafka_home: {description: Where Kafka is installed., type: path, required: true}
  must_reach: {description: "Addresses, host:port, that the node must be able to reach.", type: list, elements: str, default: []}
  kafka_version: {description: The version that should be there., type: str, required: true}
"""

CALL_SECONDS = 10.0
CONNECT_SECONDS = 3.0
JAVA_VERSION = re.compile(r'version "([^"]+)"')


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "host": {"type": "str", "required": True},
            "ports": {"type": "list", "elements": "int", "required": True},
            "log_dirs": {"type": "list", "elements": "path", "required": True},
            "config_file": {"type": "path", "required": True},
            "kafka_home": {"type": "path", "required": True},
            "must_reach": {"type": "list", "elements": "str", "default": []},
            "kafka_version": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    status = part(lambda: service_manager(asked["manager"], asked["name"], asked["socket"], CALL_SECONDS).status())
    service = status.get("value")
    state = {
        "service_state": {"value": service.state} if service else status,
        "service_defined": {"value": service.state != ABSENT} if service else status,
        "controller_threads": part(lambda: controller_threads(service.pid if service else 0)),
        "java_version": part(lambda: java_version(service.pid if service else 0)),
        "free_bytes": part(lambda: {path: free_bytes(path) for path in asked["log_dirs"]}),
        "ports_in_use": part(lambda: ports_in_use(asked["host"], asked["ports"])),
        "config": part(lambda: config(asked["config_file"])),
        "formatted_cluster_id": part(lambda: cluster_id(asked["log_dirs"][0])),
        "has_metadata_log": part(lambda: has_metadata_log(asked["log_dirs"])),
        "unreachable_addresses": part(lambda: unreachable(asked["must_reach"])),
        "classpath_ok": part(lambda: software_is_there(asked["kafka_home"], asked["kafka_version"])),
    }
    module.exit_json(changed=False, host_state=state, clock=time.time())


def part(ask: Callable[[], object]) -> dict:
    """One part's value, or why it could not be read."""
    try:
        return {"value": ask()}
    except HostError as error:
        return {"unread": error.problem}
    except OSError as error:
        return {"unread": why(error)}
    except (subprocess.SubprocessError, UnicodeDecodeError, ValueError) as error:
        return {"unread": str(error)}


def java_version(pid: int) -> str:
    """The version of the Java that the service runs on; where it does not run, of JAVA_HOME's or the path's."""
    java = _java_of(pid) or (os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java")
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=CALL_SECONDS, check=False)
    except FileNotFoundError:
        raise HostError(f"no Java: {java} is not there", "install a Java 17 runtime, or set JAVA_HOME") from None
    found = JAVA_VERSION.search(done.stderr + done.stdout)
    if not found:
        raise HostError(f"{java} -version did not name a version (exit code {done.returncode})", "install a Java 17 runtime")
    return found.group(1)


def _java_of(pid: int) -> str | None:
    try:
        program = os.readlink(f"/proc/{pid}/exe") if pid else ""
    except OSError:  # another user's process, or one that has just ended: ask the host's own Java
        return None
    return program if os.path.basename(program) == "java" else None


def controller_threads(pid: int) -> list:
    """The names, as Linux keeps them, of the service's threads through which a ZooKeeper-based broker speaks to its controller."""
    names = [name for process in _with_descendants(pid) for name in _read_each(f"/proc/{process}/task/*/comm")]
    if pid and not names:
        raise HostError(f"the threads of process {pid} can't be listed", "it has just ended, or /proc hides other users' processes (hidepid)")
    return sorted(name.strip() for name in names if name.startswith("zk-broker-"))


def _with_descendants(pid: int) -> list:
    """The service's process may be a script that waits for Java."""
    stats = [text.rpartition(")") for text in _read_each("/proc/[0-9]*/stat")]
    parents = {int(head.split(None, 1)[0]): int(tail.split()[1]) for head, _, tail in stats}
    found = [pid] if pid else []
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def _read_each(pattern: str) -> list:
    """What the files say; one that has just gone with its thread says nothing."""
    texts = []
    for path in glob.glob(pattern):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                texts.append(stream.read())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return texts


def free_bytes(path: str) -> int:
    """What an ordinary user may still write on the file system that holds, or will hold, the path."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def ports_in_use(host: str, ports: list) -> list:
    """Those of the ports on which something listens at the host's address, or at any address but another loopback one."""
    own = {ipaddress.ip_address(item[4][0].partition("%")[0]) for item in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    taken = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if table.endswith("6") and not os.path.exists(table):
            continue
        with open(table, encoding="ascii") as stream:
            for line in stream.readlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                if state != "0A":  # TCP_LISTEN
                    continue
                address, port = _address(local)
                if port in ports and (address in own or not address.is_loopback):
                    taken.add(port)
    return sorted(taken)


def _address(local: str) -> tuple:
    """The kernel writes an address as 32-bit words in the host's byte order (little-endian on every host that runs Kafka)."""
    words, _, port = local.partition(":")
    raw = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    address = ipaddress.ip_address(raw)
    return getattr(address, "ipv4_mapped", None) or address, int(port, 16)


def config(path: str) -> dict | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return read(stream.read())
    except FileNotFoundError:
        return None


def cluster_id(log_dir: str) -> str | None:
    try:
        with open(os.path.join(log_dir, "meta.properties"), encoding="utf-8") as stream:
            return read(stream.read()).get("cluster.id")
    except FileNotFoundError:
        return None


def has_metadata_log(log_dirs: list) -> bool:
    return any(os.path.isdir(os.path.join(path, "__cluster_metadata-0")) for path in log_dirs)


def unreachable(addresses: list) -> list:
    """Those that do not take a connection within CONNECT_SECONDS; asked side by side, since a dropped packet takes that long."""
    with ThreadPoolExecutor(max_workers=max(1, len(addresses))) as pool:
        accepted = dict(zip(addresses, pool.map(_accepts, addresses)))
    return [address for address in addresses if not accepted[address]]


def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS):
            return True
    except OSError:
        return False


def software_is_there(home: str, version: str) -> bool:
    """Whether the installation holds Kafka's jar of that version and the storage tool."""
    return bool(glob.glob(os.path.join(home, "libs", f"kafka_*-{version}.jar"))) and os.access(os.path.join(home, "bin", "kafka-storage.sh"), os.X_OK)


if __name__ == "__main__":
    main()
