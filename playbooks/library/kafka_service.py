"""Bring a node's service to run with its current files, by looking at the process and never by remembering what was
done.

Each action looks, and changes only what it sees to be wrong, under the node's lock on the host. So an interrupted run
is continued by running it again, and two runs at once restart a node once.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_host import (
    HostError,
    changed_since,
    host_lock,
    not_in_the_future,
    read_bytes,
    split_address,
    started_at_ns,
    why,
)
from ansible.module_utils.service_manager import ABSENT, RUNNING, STARTING, STOPPED, service_manager, settled

STARTED_AGAIN = 40
"""Seconds that a service which ends is followed, where its manager starts it again by itself (``Restart=``): a broker
in ZooKeeper mode that was killed is refused its registration until its old session has ended, after 18 s by default.
"""

DOCUMENTATION = """
module: kafka_service
short_description: Stop a node whose process is older than its files, bring it up, or end it
options:
  name: {description: The service., type: str, required: true}
  action:
    description:
      - C(stop_outdated) stops the service cleanly where its process began before one of the files was last changed, or
        longer than C(age) ago.
      - C(start) starts it where it does not run. With an address it fails where another process listens there.
      - C(run) starts it so, then waits until its port is open; fails where the process exits, or runs with other files
        than wanted.
      - C(stop) stops it cleanly where it runs. C(kill) ends it at once where it runs, without a clean stop.
    type: str
    required: true
    choices: [stop_outdated, start, run, stop, kill]
  manager: {description: What runs the service., type: str, required: true, choices: [supervisor, systemd]}
  socket: {description: The serverurl of supervisor., type: str}
  config_file: {description: The node's configuration., type: path, required: true}
  files: {description: Every file that the process reads when it starts., type: list, elements: path, required: true}
  age: {description: "Seconds for which a process may have run at most, of C(stop_outdated).", type: float}
  config_text:
    description: The configuration that the process is to run with; without one, whatever lies there.
    type: str
  address: {description: host:port to wait for; nobody else may listen there when the service is started., type: str}
  stop_timeout: {description: Seconds that a clean stop may last., type: float, required: true}
  start_timeout: {description: Seconds that the port may take to open., type: float, required: true}
  will_change:
    description: In check mode, whether an earlier task would have changed the files.
    type: bool
    default: false
  stopped:
    description: Whether an earlier task stopped the service (in check mode, would have) for it to run anew.
    type: bool
    default: false
"""

RETURN = """
told_to_end_ago:
  description: Seconds since the process was told to end.
  returned: C(stop) and C(kill), where a process ran
  type: float
restarted:
  description: Whether the process that runs now took the place of one that was stopped for it.
  returned: C(run)
  type: bool
"""

STOP_MARGIN = 30.0
"""Seconds, beyond the clean stop's own time, that a call to the service manager may last."""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "action": {"type": "str", "required": True, "choices": ["stop_outdated", "start", "run", "stop", "kill"]},
            "manager": {"type": "str", "required": True, "choices": ["supervisor", "systemd"]},
            "socket": {"type": "str"},
            "config_file": {"type": "path", "required": True},
            "files": {"type": "list", "elements": "path", "required": True},
            "age": {"type": "float"},
            "config_text": {"type": "str"},
            "address": {"type": "str"},
            "stop_timeout": {"type": "float", "required": True},
            "start_timeout": {"type": "float", "required": True},
            "will_change": {"type": "bool", "default": False},
            "stopped": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        service = service_manager(asked["manager"], asked["name"], asked["socket"], asked["stop_timeout"] + STOP_MARGIN)
        action = {"stop_outdated": stop_outdated, "start": start, "run": run, "stop": stop, "kill": kill}[
            asked["action"]
        ]
        module.exit_json(**action(service, asked, module.check_mode))
    except HostError as error:
        module.fail_json(msg=error.problem, way_out=error.way_out)
    except OSError as error:
        module.fail_json(
            msg=f"{asked['name']}: {why(error)}",
            way_out="see docs/hosts.md for what the Ansible user must be allowed to do on a host",
        )


def _wait_for_the_lock(asked: dict) -> float:
    return asked["stop_timeout"] + 2 * STOP_MARGIN


# -- stop --------------------------------------------------------------------------------------------------------------


def stop_outdated(service: object, asked: dict, check: bool) -> dict:
    # taken now: another run may have the lock for minutes, and start the process anew
    oldest = None if asked["age"] is None else time.time_ns() - int(asked["age"] * 1e9)
    if check:
        status = service.status()
        reason = status.pid and (
            _outdated(service, status, asked, oldest) or (asked["will_change"] and "it would be outdated by then")
        )
        return {
            "changed": bool(reason),
            "said": f"would stop {asked['name']} ({reason})" if reason else f"would not stop {asked['name']}",
        }
    with host_lock(asked["config_file"], _wait_for_the_lock(asked)):
        began = time.monotonic()
        status = settled(service, asked["stop_timeout"] + STOP_MARGIN)
        if status.state == STOPPED:
            return {"changed": False, "said": f"{asked['name']} does not run"}
        reason = _outdated(service, status, asked, oldest)
        if not reason:
            return {
                "changed": False,
                "said": f"{asked['name']} already runs with its current files (process {status.pid})",
                "pid": status.pid,
            }
        service.stop()
        _gone(service, status.pid, asked["stop_timeout"] + STOP_MARGIN)
        took = time.monotonic() - began
        return {"changed": True, "said": f"stopped {asked['name']} after {took:.1f} s ({reason})", "pid": status.pid}


def _outdated(service: object, status: object, asked: dict, oldest: int | None = None) -> str | None:
    """Why the running process must go: a file that it read at its start has changed since, or it began before
    ``oldest``, in nanoseconds of this host's clock. Raises HostError where that can't be seen.
    """
    began = started_at_ns(status.pid) if status.pid else None
    if began is None:
        raise HostError(
            f"{service.where} says {service.name} is {status.detail}, but its main process ({status.pid}) can't be"
            " seen",
            "run this step again; if that stays so, let the unit have a MainPID, and let Ansible's user see the process"
            " (hidepid)",
        )
    newer = changed_since(began, asked["files"])
    if newer:
        return f"{', '.join(newer)} changed after process {status.pid} began"
    if oldest is not None and began < oldest:
        return f"process {status.pid} is older than this run"
    return None


def _gone(service: object, pid: int, within: float) -> None:
    status = settled(service, within)
    if status.state != STOPPED or started_at_ns(pid) is not None:
        raise HostError(
            f"{service.name} was stopped, but {service.where} says {status.detail} and process {pid}"
            f" {'is still there' if started_at_ns(pid) else 'ended'}",
            "look at the service on this host; when it is stopped or runs again, run this step again",
        )


def stop(service: object, asked: dict, check: bool) -> dict:
    return _end(service, asked, check, service.stop, "stopped")


def kill(service: object, asked: dict, check: bool) -> dict:
    """For a process that must be gone now, and whose data survives that (a controller's log is synced before it
    acknowledges).
    """
    return _end(service, asked, check, service.kill, "ended")


def _end(service: object, asked: dict, check: bool, end: object, said: str) -> dict:
    if check:
        runs = bool(service.status().pid)
        return {
            "changed": runs,
            "said": f"would have {said} {asked['name']}" if runs else f"{asked['name']} does not run",
        }
    with host_lock(asked["config_file"], _wait_for_the_lock(asked)):
        status = service.status()
        if status.state in (ABSENT, STOPPED):
            return {"changed": False, "said": f"{asked['name']} does not run"}
        told = time.monotonic()
        end()
        _gone(service, status.pid, asked["stop_timeout"] + STOP_MARGIN)
        return {
            "changed": True,
            "said": f"{said} {asked['name']}",
            "pid": status.pid,
            "told_to_end_ago": time.monotonic() - told,
        }


# -- start -------------------------------------------------------------------------------------------------------------


def start(service: object, asked: dict, check: bool) -> dict:
    if check:
        would = asked["stopped"] or service.status().state in (STOPPED, ABSENT)
        return {"changed": would, "said": f"would start {asked['name']}" if would else f"{asked['name']} runs"}
    with host_lock(asked["config_file"], _wait_for_the_lock(asked)):
        status = settled(service, asked["stop_timeout"] + STOP_MARGIN)
        if status.state != STOPPED:
            return {"changed": False, "said": f"{asked['name']} runs (process {status.pid})", "pid": status.pid}
        not_in_the_future(asked["files"])
        _port_is_free(service, asked["address"])
        service.start()
        status = settled(service, asked["start_timeout"])
        if status.state == STOPPED:
            raise _exited(service, status)
        return {"changed": True, "said": f"started {asked['name']} (process {status.pid})", "pid": status.pid}


def _port_is_free(service: object, address: str | None) -> None:
    """Another's listener would be taken for the service's own, which ends a few seconds later since it can't bind."""
    if address and _accepts(address):
        raise HostError(
            f"{address} is in use by another process, so {service.name} was not started",
            f"end what listens there (ss -ltnp on this host), then run this step again; {service.name} is down until"
            " then",
        )


def _exited(service: object, status: object) -> HostError:
    log = "\n".join(f"    {line}" for line in service.log())
    again = status.state in (RUNNING, STARTING)
    until = f"{service.where} goes on starting {service.name}" if again else f"{service.name} is down"
    return HostError(
        f"{service.name} does not stay up ({status.detail}); the end of its log:\n{log}",
        "correct what the log names (in the cluster file, not in the rendered one), then run this step again;"
        f" {until} until then",
    )


# -- run ---------------------------------------------------------------------------------------------------------------


def run(service: object, asked: dict, check: bool) -> dict:
    """Start and await in one call, since each call costs: half a second of the host's time for Ansible's own modules.
    The lock is held for the start only.
    """
    started = start(service, asked, check)
    opened = f"would wait for {asked['address']}" if check else await_port(service, asked)
    return {**started, "restarted": asked["stopped"], "said": f"{started['said']}; {opened}"}


def await_port(service: object, asked: dict) -> str:
    address = asked["address"]
    began = time.monotonic()
    pid, ended = settled(service, asked["start_timeout"]).pid, None
    while True:
        status = service.status()
        if status.state not in (RUNNING, STARTING) or status.pid != pid:
            ended = ended or time.monotonic()
            if status.state not in (RUNNING, STARTING) or time.monotonic() - ended > STARTED_AGAIN:
                raise _exited(service, status)
            pid = status.pid
        if pid and _accepts(address):
            break
        waited = time.monotonic() - began
        if waited > asked["start_timeout"]:
            log = "\n".join(f"    {line}" for line in service.log())
            raise HostError(
                f"{address} is not open {waited:.0f} s after {asked['name']} started (process {status.pid} runs); the"
                f" end of its log:\n{log}",
                "when it is recovering its logs let it go on, then run this step again: it will not be restarted; raise"
                " deadlines.registration if it needs longer",
            )
        time.sleep(0.2)
    _runs_as_wanted(service, status, asked)
    return f"{address} is open ({time.monotonic() - began:.1f} s)"


def _accepts(address: str) -> bool:
    try:
        with socket.create_connection(split_address(address), timeout=2):
            return True
    except OSError:
        return False


def _runs_as_wanted(service: object, status: object, asked: dict) -> None:
    """Another run may have written other files meanwhile: the promise holds only for what the process really read."""
    there = read_bytes(asked["config_file"])
    found = hashlib.sha256(there[0] if there else b"").digest()
    wanted = asked["config_text"] is None or found == hashlib.sha256(asked["config_text"].encode()).digest()
    if wanted and not _outdated(service, status, asked):
        return
    raise HostError(
        f"{asked['config_file']} was changed while {asked['name']} started: another run gave this node another"
        " configuration",
        f"let only one run change this cluster, then run this step again (process {os.getpid()} changed nothing more)",
    )


if __name__ == "__main__":
    main()
