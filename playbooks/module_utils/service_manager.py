"""One node's service under supervisor (XML-RPC on its socket) or systemd (systemctl): what it does, stop
it, start it.
"""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import time
import xmlrpc.client
from dataclasses import dataclass
from typing import ClassVar

from ansible.module_utils.environment_files import variables_of_files, words_of
from ansible.module_utils.kafka_host import HostError
from ansible.module_utils.properties_text import shown_log

RUNNING, STARTING, STOPPING, STOPPED, ABSENT = "running", "starting", "stopping", "stopped", "absent"
MINUTE, HOUR, DAY = 60, 3600, 86400
SECONDS_OF = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
SPAN = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min|h|d|w)\b")
"""A part of a time as systemd shows it: 1min 30s."""
COMMAND = re.compile(r" argv\[\]=(.*?) ; ignore_errors=")
"""A command as systemd shows it: { path=/bin/kill ; argv[]=/bin/kill $MAINPID ; ignore_errors=no ; … }."""
_DENIED = re.compile(r"access denied|authentication required|not permitted", re.IGNORECASE)
"""What systemctl says where its user may not do that (polkit)."""
_UNKNOWN_METHOD = 1
"""supervisor's own number of this fault (``supervisor.xmlrpc.Faults``)."""
_STOPS_AS_ROOT = re.compile(
    r"^\s*(?:ExecStop(?:Post)?\s*=[-@:|\\\s]*[+!]|PermissionsStartOnly\s*=\s*(?:1|y|yes|t|true|on)\b)",
    re.MULTILINE | re.IGNORECASE,
)
"""In a unit's files: a command with a prefix that leaves User= out, or the setting that does so for every stop."""
LOG_LINES = 15
ERRORS = 3
"""How many errors are shown that stand before the log's last lines: a process that ends writes many lines after them.
"""
READ_BYTES, READ_LINES = 64_000, 400
"""How much of the end of a log is read."""


@dataclass(frozen=True)
class Status:
    """``state`` is one of the words above. ``pid`` is 0 where there is no process. ``detail`` is the manager's own
    wording.
    """

    state: str
    pid: int
    detail: str


class Supervisor:
    """supervisor's own interface, as supervisorctl uses it; ``serverurl`` is unix:///path or http://host:port."""

    STATES: ClassVar = {"RUNNING": RUNNING, "STARTING": STARTING, "BACKOFF": STARTING, "STOPPING": STOPPING}

    def __init__(self, name: str, serverurl: str, timeout: float) -> None:
        self.name = name
        self.where = f"supervisor at {serverurl}"
        self._proxy = _rpc(serverurl, timeout)

    def status(self) -> Status:
        try:
            found = self._call("getProcessInfo")
        except xmlrpc.client.Fault as fault:
            if fault.faultString.startswith("BAD_NAME"):
                return Status(ABSENT, 0, "not defined")
            raise HostError(f"{self.where} answered {fault.faultString} about {self.name}", self._way_out()) from None
        detail = found["statename"] + (f", {found['spawnerr']}" if found["spawnerr"] else "")
        return Status(self.STATES.get(found["statename"], STOPPED), found["pid"], detail)

    def stop_seconds(self) -> float:
        """After how long supervisor kills a process that has not stopped. Raises HostError where it does not say."""
        told = self._defined().get("stopwaitsecs")
        if told is None:
            raise HostError(f"{self.where} does not tell stopwaitsecs of {self.name}", "supervisor 4.2.5 tells it")
        return float(told)

    def stop_commands(self) -> None:
        """supervisor runs none: it sends its own process a signal."""

    def stops_as_root(self) -> None:
        """supervisor runs no command."""

    def stop(self) -> None:
        """Ask for a clean stop; the exit is still to come. supervisor itself kills the process after its own
        stopwaitsecs. Not asked to wait for it: supervisord 4.3 takes a third of a core for as long as it holds such a
        call, from the very process that stops.
        """
        self._change("stopProcess", expected="NOT_RUNNING", argument=False)

    def kill(self) -> None:
        """End the process at once. Asked to stop first, so that supervisor takes the end for wanted and starts nothing
        again.
        """
        self._change("stopProcess", expected="NOT_RUNNING", argument=False)
        self._change("signalProcess", expected="NOT_RUNNING", argument="KILL")

    def start(self) -> None:
        """Start, and return when the process has stayed up for the program's startsecs, or not."""
        self._change("startProcess", expected="ALREADY_STARTED")

    def user(self) -> tuple[str, str] | None:
        """The program's user, whose own group it has. None where its section names none, before supervisor 4.2.5, and
        where that is root: its command may become another user before it runs Java (gosu, su).
        """
        uid = self._defined().get("uid")
        return (str(uid), "") if isinstance(uid, int) and uid else None

    def environment(self) -> None:
        """supervisor does not say what it sets."""
        return

    def log(self) -> list[str]:
        try:
            text = self._call("readProcessStdoutLog", -READ_BYTES, 0)
        except xmlrpc.client.Fault as fault:
            return [f"(no log: {fault.faultString})"]
        return _tail(text)

    def _defined(self) -> dict[str, object]:
        """What supervisor tells of the program's section as it was read last (``reread``); empty where it tells
        nothing.
        """
        try:
            every = self._asked("getAllConfigInfo")
        except xmlrpc.client.Fault as fault:
            if fault.faultCode == _UNKNOWN_METHOD:
                return {}
            raise HostError(f"{self.where} answered {fault.faultString}", self._way_out()) from None
        group, _, name = self.name.partition(":")
        return next((each for each in every if (each["group"], each["name"]) == (group, name or group)), {})

    def _change(self, method: str, expected: str, argument: object = True) -> None:
        try:
            self._call(method, argument)
        except xmlrpc.client.Fault as fault:
            # Another hand was quicker, or the process did not stay up: the caller looks at the state that results.
            if not fault.faultString.startswith((expected, "SPAWN_ERROR", "ABNORMAL_TERMINATION")):
                raise HostError(
                    f"{self.where} refused {method} of {self.name}: {fault.faultString}", self._way_out()
                ) from None

    def _call(self, method: str, *arguments: object) -> object:
        return self._asked(method, self.name, *arguments)

    def _asked(self, method: str, *arguments: object) -> object:
        try:
            return getattr(self._proxy.supervisor, method)(*arguments)
        except (OSError, http.client.HTTPException, xmlrpc.client.ProtocolError) as error:
            raise HostError(f"{self.where} did not answer {method} of {self.name}: {error}", self._way_out()) from None

    def _way_out(self) -> str:
        return (
            "check that supervisord runs on this host and that service_manager.socket in the cluster file is its"
            " serverurl"
        )


class _UnixTransport(xmlrpc.client.Transport):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__()
        self._path = path
        self._timeout = timeout

    def make_connection(self, host: object) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("localhost", timeout=self._timeout)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(self._timeout)
        connection.sock.connect(self._path)
        return connection


def _rpc(serverurl: str, timeout: float) -> xmlrpc.client.ServerProxy:
    if serverurl.startswith("unix://"):
        return xmlrpc.client.ServerProxy(
            "http://localhost", transport=_UnixTransport(serverurl[len("unix://") :], timeout)
        )
    return xmlrpc.client.ServerProxy(serverurl.rstrip("/") + "/RPC2")


class Systemd:
    """systemctl and journalctl. The unit's TimeoutStopSec decides when systemd kills a process that does not stop."""

    STATES: ClassVar = {"active": RUNNING, "reloading": RUNNING, "activating": STARTING, "deactivating": STOPPING}

    def __init__(self, name: str, timeout: float) -> None:
        self.name = name
        self.where = "systemd"
        self._timeout = timeout

    def status(self) -> Status:
        shown = self._run("show", "--property=LoadState,ActiveState,SubState,MainPID,Result", self.name)
        found = dict(line.partition("=")[::2] for line in shown.splitlines())
        if found.get("LoadState") in ("not-found", "masked", "bad-setting", "error"):
            return Status(ABSENT, 0, found["LoadState"])
        detail = f"{found.get('ActiveState')} ({found.get('SubState')}), result {found.get('Result')}"
        return Status(self.STATES.get(found.get("ActiveState", ""), STOPPED), int(found.get("MainPID") or 0), detail)

    def stop_seconds(self) -> float | None:
        """After how long systemd kills a process that has not stopped; None: never."""
        shown = self._run("show", "--property=TimeoutStopUSec", self.name).strip().partition("=")[2]
        if shown == "infinity":
            return None
        parts = SPAN.findall(shown)
        if not parts or SPAN.sub("", shown).strip():
            raise HostError(f"systemd tells the stop's time of {self.name} as {shown!r}", self._way_out())
        return sum(float(number) * SECONDS_OF[unit] for number, unit in parts)

    def stop_commands(self) -> list[str]:
        """What the unit has run to stop it, and after it has stopped (ExecStop=, ExecStopPost=)."""
        shown = self._run("show", "--property=ExecStop,ExecStopPost", self.name)
        return [shown_log(each) for each in COMMAND.findall(shown)]

    def stops_as_root(self) -> bool:
        """Whether its files let a command of the stop run as root, whatever the unit's User= is."""
        return bool(_STOPS_AS_ROOT.search(self._run("cat", self.name)))

    def stop(self) -> None:
        self._run("stop", self.name)

    def kill(self) -> None:
        """End the process at once. The stop job comes first, so that the unit's Restart= does not bring it back."""
        self._run("stop", "--no-block", self.name)
        self._run("kill", "--signal=SIGKILL", self.name, failing=True)

    def start(self) -> None:
        self._run("start", self.name, failing=True)

    def user(self) -> tuple[str, str] | None:
        """The unit's user and group; an empty one is root's. None where systemd does not say."""
        shown = self._run("show", "--property=User,Group", self.name)
        found = dict(line.partition("=")[::2] for line in shown.splitlines())
        return (found["User"], found.get("Group", "")) if "User" in found else None

    def environment(self) -> dict[str, str]:
        """The variables that the unit and its drop-ins set: Environment=, and before them EnvironmentFile=. Raises
        HostError where such a file can't be read.
        """
        shown = self._run("show", "--property=Environment,EnvironmentFiles", self.name)
        found: dict[str, str] = {}
        files: list[str] = []
        for line in shown.splitlines():
            name, _, value = line.partition("=")
            if name == "Environment":
                found.update(word.lstrip("$").partition("=")[::2] for word in words_of(value))
            elif name == "EnvironmentFiles":
                files.append(value.rpartition(" (ignore_errors=")[0] or value)
        return {**found, **variables_of_files(files)}

    def log(self) -> list[str]:
        command = ["journalctl", "--unit", self.name, "--lines", str(READ_LINES), "--no-pager", "--output", "cat"]
        try:
            return _tail(subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout)
        except (OSError, subprocess.TimeoutExpired) as error:
            return [f"(no log: {error})"]

    def _run(self, verb: str, *arguments: str, failing: bool = False) -> str:
        try:
            done = subprocess.run(
                ["systemctl", verb, *arguments], capture_output=True, text=True, timeout=self._timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise HostError(
                f"systemctl {verb} {self.name} took longer than {self._timeout:.0f} s", self._way_out()
            ) from None
        except OSError as error:
            raise HostError(f"systemctl could not be run: {error}", self._way_out()) from None
        if done.returncode and (not failing or _DENIED.search(done.stderr)):
            raise HostError(
                f"systemctl {verb} {self.name} failed: {done.stderr.strip() or done.stdout.strip()}", self._way_out()
            )
        return done.stdout

    def _way_out(self) -> str:
        return (
            f"look at 'systemctl status {self.name}' on this host; changing services needs reach.become or a user"
            " who may"
        )


def service_manager(kind: str, name: str, serverurl: str | None, timeout: float) -> Supervisor | Systemd:
    """``timeout`` bounds one call, in seconds. Where systemd stops a service, that call lasts until the process has
    exited.
    """
    if kind == "systemd":
        return Systemd(name, timeout)
    return Supervisor(name, serverurl or "", timeout)


def settled(service: Supervisor | Systemd, within: float) -> Status:
    """The state once it is neither stopping nor about to be started again without a process. Raises HostError after
    ``within`` seconds.
    """
    deadline = time.monotonic() + within
    while True:
        status = service.status()
        if status.state == ABSENT:
            raise HostError(
                f"{service.where} knows no service {service.name}",
                "define it on this host, or correct the node's 'service' in the cluster file",
            )
        if status.state != STOPPING and not (status.state == STARTING and not status.pid):
            return status
        if time.monotonic() > deadline:
            raise HostError(
                f"{service.name} is still {status.detail} after {within:.0f} s",
                "find out on this host what keeps it (its log), let it stop by itself, then run this step again;"
                " killing it may lose data that it holds",
            )
        time.sleep(0.1)


def _tail(text: str) -> list[str]:
    """The last lines, without a stack trace's frames: they would push out the line that says what is wrong. Before them
    the last errors that stand further up, each kind once.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("at ")]
    end = lines[-LOG_LINES:]
    kinds = {}
    for line in lines[:-LOG_LINES]:
        if _ERROR.search(line):
            kind = _COUNTED.sub("", line)
            kinds.pop(kind, None)
            kinds[kind] = line
    errors = list(kinds.values())[-ERRORS:]
    return [shown_log(line)[:300] for line in (*errors, *(["..."] if errors else []), *end)]


_ERROR = re.compile(r"\b(ERROR|FATAL)\b")
_COUNTED = re.compile(r"\d+")
