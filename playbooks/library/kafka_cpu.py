"""Read, and change nothing: the processor time that services, and those that listen at addresses, have spent so far."""

from __future__ import annotations

import glob
import ipaddress
import os
import socket
from collections.abc import Iterable

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import HostError, split_address, why
from ansible.module_utils.kafka_user import with_descendants
from ansible.module_utils.listeners import listening
from ansible.module_utils.service_manager import service_manager

DOCUMENTATION = """
module: kafka_cpu
short_description: Read the processor time of running processes
description:
  - Of each, C(process) tells it from another one that has its place later, and C(seconds) is what it and the processes
    that it started have spent, in user and system mode. One that can't be read is C({unread: <reason>}).
options:
  manager: {description: What runs the services., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  services:
    description: The services, by the key that the result has them under.
    type: dict
    required: true
  listeners:
    description: "Addresses, host:port, at which a process listens that is no service here, such as ZooKeeper's."
    type: list
    elements: str
    default: []
"""

CALL_SECONDS = 10.0


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "services": {"type": "dict", "required": True},
            "listeners": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    asked = module.params
    found = {key: spent_by_service(name, asked) for key, name in asked["services"].items()}
    found.update({address: spent_by_listener(address) for address in asked["listeners"]})
    module.exit_json(changed=False, host_state=found)


def spent_by_service(name: str, asked: dict) -> dict:
    try:
        status = service_manager(asked["manager"], name, asked["socket"], CALL_SECONDS).status()
        return spent(status.pid) if status.pid else {"unread": f"{name} does not run"}
    except HostError as error:
        return {"unread": error.problem}
    except OSError as error:
        return {"unread": why(error)}


def spent_by_listener(address: str) -> dict:
    """Of the process that listens there. Whose processes they are can be seen by their user and by root alone."""
    try:
        host, port = split_address(address)
        own = {ipaddress.ip_address(each[4][0].partition("%")[0]) for each in socket.getaddrinfo(host, None)}
        sockets = {f"socket:[{each.inode}]" for each in listening() if each.port == port and each.is_reached_at(own)}
        pid = _holder(sockets) if sockets else None
        if pid is None:
            wrong = "no process of this user's holds its socket" if sockets else "nothing listens there"
            return {"unread": f"{address}: {wrong}"}
        return spent(pid)
    except OSError as error:
        return {"unread": why(error)}


def _holder(sockets: Iterable[str]) -> int | None:
    for path in glob.iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(path) in sockets:
                return int(path.split("/")[2])
        except OSError:  # it has just ended, or is another user's
            continue
    return None


def spent(pid: int) -> dict:
    ticks, began = 0, ""
    for process in with_descendants(pid):
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stream:
                fields = stream.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += int(fields[11]) + int(fields[12])
        began = began or fields[19]
    if not began:
        return {"unread": f"process {pid} has just ended"}
    return {"value": {"process": f"{pid} {began}", "seconds": ticks / os.sysconf("SC_CLK_TCK")}}


if __name__ == "__main__":
    main()
