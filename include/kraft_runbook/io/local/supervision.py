"""The supervisor of a cluster on this machine: its configuration, and the few calls of its XML-RPC interface that are
made.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from supervisor.xmlrpc import SupervisorTransport

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.local.layout import Layout, layout, nodes, zookeeper_servers

ZOOKEEPER_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
"""A ZooKeeper server's main class, also of one that is alone."""
ARENAS = 1
"""In which glibc keeps what a JVM with a heap of its own takes beside it: by default eight a core, each with what was
freed there.
"""
LOGS_KEPT = 3
"""Files of a program's output that are set aside when one is full."""
NO_HEAPS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Process:
    """One program as supervisor sees it. ``state`` is supervisor's word; ``pid`` is 0 when it does not run; ``uptime``
    in seconds.
    """

    service: str
    state: str
    pid: int
    uptime: float

    @property
    def runs(self) -> bool:
        return self.state in ("RUNNING", "STARTING", "STOPPING")


def render_configuration(spec: ClusterSpec, *, heaps: Mapping[str, str] = NO_HEAPS, also: Iterable[str] = ()) -> str:
    """``supervisord.conf``: every process of the cluster, none of which starts or restarts by itself. ``heaps``: -Xmx
    by service, where it is not the scripts' own; ``also``: further sections.
    """
    here = layout(spec)
    sections = [
        f"[unix_http_server]\nfile={_literal(here.supervisor_socket)}\nchmod=0700",
        (
            f"[supervisord]\nlogfile={_literal(here.logs / 'supervisord.log')}\n"
            f"pidfile={_literal(here.directory / 'supervisord.pid')}\n"
            f"childlogdir={_literal(here.logs)}\nlogfile_maxbytes=10MB\nnodaemon=false\nminfds=4096\nidentifier=kraft-runbook-lab"
        ),
        "[rpcinterface:supervisor]\nsupervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface",
        f"[supervisorctl]\nserverurl={spec.service_manager.socket}",
    ]
    for server in zookeeper_servers(spec):
        heap = heaps.get(server.service)
        sections.append(_program(spec, server.service, "none", ZOOKEEPER_MAIN, server.config, here.kafka_home, heap))
    for node in nodes(spec):
        home = Path(node.home_link) if node.home_link else here.kafka_home
        metrics = f"{node.host}:{node.metrics_port}"
        heap = heaps.get(node.service)
        sections.append(_program(spec, node.service, metrics, "kafka.Kafka", Path(node.config_file), home, heap))
    return "\n\n".join([*sections, *also]) + "\n"


def _program(
    spec: ClusterSpec, service: str, metrics: str, class_name: str, config: Path, home: Path, heap: str | None
) -> str:
    here = layout(spec)
    command = shlex.join([str(home / "bin" / "run-service.sh"), service, metrics, class_name, str(config)])
    settings = {
        "command": _literal(command),
        "directory": _literal(here.directory),
        "autostart": "false",
        "autorestart": "false",
        "startsecs": "1",
        "startretries": "0",
        "stopsignal": "TERM",
        "stopwaitsecs": f"{spec.service_manager.stop_timeout:g}",
        "stopasgroup": "false",
        "killasgroup": "false",
        "redirect_stderr": "true",
        "stdout_logfile": _literal(here.logs / f"{service}.log"),
        "stdout_logfile_maxbytes": "50MB",
        "stdout_logfile_backups": f"{LOGS_KEPT}",
    }
    if heap is not None:
        settings["environment"] = f'KAFKA_HEAP_OPTS="-Xmx{heap}",MALLOC_ARENA_MAX="{ARENAS}"'
    return f"[program:{service}]\n" + "\n".join(f"{key}={value}" for key, value in settings.items())


def _literal(value: object) -> str:
    """A value in supervisor's configuration, where % begins an expansion."""
    return str(value).replace("%", "%%")


def launch(here: Layout, *, within: float = 60) -> None:
    """Start supervisord in the background and wait until it answers. Its children get a bare environment: no secret, no
    option of ours.
    """
    keep = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "LC_ALL", "TZ")}
    command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(here.supervisor_config)]
    started = subprocess.run(
        command, env=keep, capture_output=True, text=True, check=False, cwd=here.directory
    )  # it forks, and ends by itself
    deadline = time.monotonic() + within
    while started.returncode == 0 and time.monotonic() < deadline:
        if answers(here):
            return
        time.sleep(0.1)
    raise StepFailed(
        f"supervisord did not come up in {within:g} s: {(started.stderr or started.stdout).strip()[-400:]}",
        way_out=f"read {here.logs / 'supervisord.log'}, then bring the lab up again",
    )


def answers(here: Layout) -> bool:
    """Whether this lab's supervisord runs."""
    try:
        with _calls(here) as supervisor:
            supervisor.getPID()
    except (OSError, xmlrpc.client.ProtocolError):
        return False
    return True


def processes(here: Layout) -> dict[str, Process]:
    """Every program by name. Empty when supervisord does not run."""
    if not answers(here):
        return {}
    with _calls(here) as supervisor:
        listed = cast(list[dict[str, Any]], supervisor.getAllProcessInfo())
    return {
        p["name"]: Process(p["name"], p["statename"], p["pid"], float(p["now"] - p["start"]) if p["pid"] else 0.0)
        for p in listed
    }


def running(here: Layout) -> set[str]:
    """The programs that run, or are about to."""
    return {name for name, process in processes(here).items() if process.runs}


def start(here: Layout, service: str) -> None:
    """Start one program and wait until supervisor counts it as running. Raises StepFailed when it exits at once."""
    try:
        with _calls(here) as supervisor:
            supervisor.startProcess(service, True)
    except xmlrpc.client.Fault as fault:
        raise StepFailed(
            f"{service} did not start ({fault.faultString}); its log ends:\n{log_tail(here, service)}",
            way_out=_read_log(here, service),
        ) from None


def begin_start(here: Layout, service: str) -> None:
    """Ask for the start of one program without waiting."""
    with _calls(here) as supervisor:
        supervisor.startProcess(service, False)


def begin_stop(here: Layout, service: str, *, signal: str = "TERM") -> None:
    """Ask one program to stop, without waiting; ``signal`` KILL when its end need not be clean."""
    try:
        with _calls(here) as supervisor:
            if signal == "TERM":
                supervisor.stopProcess(service, False)
            else:
                supervisor.signalProcess(service, signal)
    except xmlrpc.client.Fault as fault:
        if fault.faultCode != 70:  # NOT_RUNNING: it ended by itself meanwhile
            raise StepFailed(
                f"supervisor could not stop {service}: {fault.faultString}", way_out=_read_log(here, service)
            ) from None


def shut_down(here: Layout, *, within: float = 30) -> None:
    """End supervisord itself, once its programs have stopped. Raises StepFailed if it stays."""
    with _calls(here) as supervisor:
        pid = cast(int, supervisor.getPID())
        supervisor.shutdown()
    await_end(pid, "supervisord", within=within)


def await_end(pid: int, name: str, *, within: float) -> None:
    """Wait until a process that was told to end has ended. Raises StepFailed if it stays."""
    deadline = time.monotonic() + within
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            raise StepFailed(
                f"{name} (pid {pid}) still runs {within:g} s after it was told to end", way_out=f"end it: kill -9 {pid}"
            )
        time.sleep(0.1)


def log_lines(here: Layout, service: str) -> list[str]:
    """A program's output, with what supervisor set aside when the file was full. The newest file is read first: one
    that is set aside meanwhile is read twice, and never missed.
    """
    newest = here.logs / f"{service}.log"
    set_aside = (newest.with_name(f"{newest.name}.{number}") for number in range(1, LOGS_KEPT + 1))
    found = [log.read_text(errors="replace").splitlines() for log in (newest, *set_aside) if log.exists()]
    return [line for lines in reversed(found) for line in lines]


def log_tail(here: Layout, service: str, lines: int = 8) -> str:
    """The last lines of a program's output, without the frames of stack traces."""
    said = [line for line in log_lines(here, service) if not line.startswith("\tat ")]
    return "\n".join(f"    {line}" for line in said[-lines:]) or "    (no output)"


def _read_log(here: Layout, service: str) -> str:
    return f"read {here.logs / f'{service}.log'}, correct the cause, then bring the lab up again"


@contextmanager
def _calls(here: Layout) -> Iterator[Any]:
    transport = SupervisorTransport(None, None, f"unix://{here.supervisor_socket}")
    try:
        yield xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport).supervisor
    finally:
        transport.close()


def python_program(
    here: Layout, name: str, arguments: Iterable[str], *, starts_itself: bool = False, comes_back: bool = False
) -> str:
    """The section of a program of this package: ``python -m`` with these arguments, no secret in its environment.
    ``starts_itself``: with supervisord; ``comes_back``: after an end that nobody asked for.
    """
    package = Path(__file__).resolve().parents[3]
    settings = {
        "command": _literal(shlex.join([sys.executable, "-m", *arguments])),
        "directory": _literal(here.directory),
        "environment": f'PYTHONPATH="{_literal(package)}",PYTHONUNBUFFERED="1"',
        "autostart": str(starts_itself).lower(),
        "autorestart": str(comes_back).lower(),
        "startsecs": "1",
        "startretries": "3" if comes_back else "0",
        "stopsignal": "TERM",
        "stopwaitsecs": "30",
        "redirect_stderr": "true",
        "stdout_logfile": _literal(here.logs / f"{name}.log"),
        "stdout_logfile_maxbytes": "10MB",
        "stdout_logfile_backups": f"{LOGS_KEPT}",
    }
    return f"[program:{name}]\n" + "\n".join(f"{key}={value}" for key, value in settings.items())
