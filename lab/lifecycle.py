"""Up, down and what is there: the lab as a whole. Each can be repeated; a failed ``up`` stops whatever it
had started.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.node_properties import MIGRATION_FLAG, broker_properties
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.properties_text import parse_properties, render_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.file_lock import lock_within
from kraft_runbook.io.local import supervision
from kraft_runbook.io.local.ports import (
    addresses,
    holder,
    is_open,
    require_free,
)
from kraft_runbook.io.local.zookeeper_files import zookeeper_properties
from kraft_runbook.io.zookeeper.servers import server_mode, tls_of
from lab.broker_state import require_well
from lab.clients import lab_secrets
from lab.health import wait_until_healthy
from lab.installation import JARS, fetch_jars, install, jars_of, java
from lab.kraft import prepare_in_kraft
from lab.layout import ZOOKEEPER, Layout, ZookeeperServer, config_files, layout, nodes, zookeeper_servers
from lab.secret_files import make_secrets
from lab.secured import admit_brokers, prepare_secured, zookeeper_security

Say = Callable[[str], None]


def up(
    spec: ClusterSpec, *, only: Collection[str] = (), new_in: BrokerMode = BrokerMode.ZOOKEEPER, say: Say = print
) -> None:
    """Bring the lab up: a new one in the mode ``new_in`` (ZOOKEEPER, or KRAFT with the controllers declared; KRAFT too
    where the cluster file names no ZooKeeper), an existing one in whatever mode its configuration files say.

    Returns when every broker is registered and every partition in sync. Raises RunbookError; then nothing that this
    call started still runs (logs and data stay for a look); a broker that runs half dead is named, and is left as it
    is. ``only``: of what the configuration calls for, these services alone; whether the cluster is healthy is not asked
    then.
    """
    here = layout(spec)
    asked = {name: sockets for name, sockets in addresses(spec).items() if not only or name in only}
    require_free({name: sockets for name, sockets in asked.items() if name not in supervision.running(here)})
    version = spec.kafka.version
    java_command, jars = java(), fetch_jars(version, jars=JARS if release_of(version) < (4, 0) else jars_of(version))
    new_in = new_in if spec.zookeeper else BrokerMode.KRAFT
    with _alone(here):
        _prepare(spec, new_in, jars=jars, java_command=java_command)
        launched = not supervision.answers(here)
        if launched:
            supervision.launch(here)
        wanted = [service for service in _wanted(spec) if service in asked and service not in supervision.running(here)]
        try:
            for together in _start_order(spec, wanted):
                for service in together:
                    say(f"starting {service}")
                _start(spec, together)
            if not only:
                wait_until_healthy(spec, say=say)
        except BaseException:
            _undo(spec, wanted, launched=launched)
            raise
    if only:
        return
    require_well(spec)
    zookeeper = {server.service for server in zookeeper_servers(spec)} & set(_wanted(spec))
    say(
        f"the lab is up: brokers at {', '.join(spec.bootstrap_servers)},"
        f" {f'ZooKeeper at {spec.ensemble.connect}' if zookeeper else 'no ZooKeeper'}, files in {here.directory}"
    )


def restart(spec: ClusterSpec, services: Sequence[str], *, say: Say = print) -> None:
    """Stop and start services of a running lab, one by one, each once the cluster is healthy again.

    Raises StepFailed, Refused for a name that is no service, or for a lab that does not run.
    """
    here = layout(spec)
    with _alone(here):
        known = supervision.processes(here)
        if strange := [service for service in services if service not in known]:
            raise Refused(
                f"{', '.join(strange)}: no such service in the lab in {here.directory}",
                way_out="python -m lab status names them; python -m lab up",
            )
        for service in services:
            say(f"restarting {service}")
            _stop(here, [service], within=spec.service_manager.stop_timeout + 10)
            _start(spec, [service])
            wait_until_healthy(spec, say=say)
    require_well(spec)


def down(spec: ClusterSpec, *, purge: bool = False, say: Say = print) -> None:
    """Stop every process of the lab: brokers, then controllers, then ZooKeeper; ``purge`` kills them and removes the
    directory.

    Processes that outlived their supervisor are ended too, by the pids of starts.log. Raises StepFailed for what would
    not stop.
    """
    here = layout(spec)
    if not here.directory.exists():
        return
    with _alone(here):
        if supervision.answers(here):
            order = _stop_order(spec)
            for together in ([s for group in order for s in group],) if purge else order:
                _stop(here, together, within=spec.service_manager.stop_timeout + 10, kill=purge)
            supervision.shut_down(here)
        for service, pid in _orphans(here):
            say(f"ending {service} (pid {pid}), which outlived its supervisor")
            os.kill(pid, signal.SIGKILL if purge else signal.SIGTERM)
            supervision.await_end(pid, service, within=spec.service_manager.stop_timeout)
    if purge:
        _purge(here)
    say(f"the lab is down{f'; {here.directory} is removed' if purge else ''}")


def _undo(spec: ClusterSpec, services: list[str], *, launched: bool) -> None:
    """Leave nothing half-started: stop what this call started, its supervisor included."""
    here = layout(spec)
    try:
        for together in _stop_order(spec):
            _stop(here, [s for s in together if s in services], within=60)
    finally:
        if launched:
            supervision.shut_down(here)


def _start_order(spec: ClusterSpec, services: Sequence[str]) -> tuple[list[str], list[str]]:
    """ZooKeeper first, all its servers at once: one alone is no majority of an ensemble, and serves nobody."""
    zookeeper = {server.service for server in zookeeper_servers(spec)}
    return [s for s in services if s in zookeeper], [s for s in services if s not in zookeeper]


def _stop_order(spec: ClusterSpec) -> tuple[list[str], ...]:
    """Brokers first: a controlled shutdown needs a controller, and in ZooKeeper mode that needs ZooKeeper."""
    zookeeper = [server.service for server in zookeeper_servers(spec)]
    return [b.service for b in spec.brokers_alone], [c.service for c in spec.controllers], zookeeper


def _prepare(spec: ClusterSpec, new_in: BrokerMode, *, jars: Path, java_command: Path) -> None:
    """Lay out the directory. Configuration that exists is left as it is: after a migration it is a KRaft cluster's."""
    is_new = not any(path.exists() for path in config_files(spec).values())
    here, servers = layout(spec), zookeeper_servers(spec)
    _require_same_servers(here, servers)
    here.directory.chmod(0o700)
    here.supervisor_config.write_text(supervision.render_configuration(spec))
    for directory in (here.logs, *(s.data for s in servers), *(Path(n.config_file).parent for n in nodes(spec))):
        directory.mkdir(parents=True, exist_ok=True)
    install(spec, jars=jars, java_command=java_command)
    make_secrets(spec, here.secrets_environment)
    prepare_secured(spec)
    for server in servers:
        properties = zookeeper_properties(server, servers, zookeeper_security(spec, server.directory))
        _write_once(server.config, render_properties(properties, header="The lab's ZooKeeper"))
        if len(servers) > 1:
            _write_once(server.data / "myid", f"{server.number}\n")
    if is_new and new_in is BrokerMode.KRAFT:
        prepare_in_kraft(spec)
    for broker in spec.brokers if spec.zookeeper else ():
        text = render_properties(
            broker_properties(spec, broker, BrokerMode.ZOOKEEPER), header=f"Broker {broker.id} of cluster {spec.name}"
        )
        _write_once(Path(broker.config_file), text)


def _require_same_servers(here: Layout, servers: Sequence[ZookeeperServer]) -> None:
    """Raise Refused for a lab that was made with other ZooKeeper servers: those declared now would begin empty."""
    others = {path.name for path in here.directory.glob(f"{ZOOKEEPER}*/")} - {server.service for server in servers}
    if others:
        raise Refused(
            f"the lab in {here.directory} was made with other ZooKeeper servers ({', '.join(sorted(others))}) "
            f"than the cluster file declares ({', '.join(server.service for server in servers)})",
            way_out="declare as many as before, or begin anew: python -m lab up --fresh",
        )


def _write_once(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text(text)


def _wanted(spec: ClusterSpec) -> Iterator[str]:
    """The services to start, in order: those whose configuration exists; ZooKeeper where some configuration
    names it.
    """
    configured = {
        service: parse_properties(path.read_text()) for service, path in config_files(spec).items() if path.exists()
    }
    if any("zookeeper.connect" in properties for properties in configured.values()):
        yield from (server.service for server in zookeeper_servers(spec))
    # A controller's file may be there before its storage is formatted: provisioning was interrupted, and is the
    # runbook's to resume.
    alone = spec.controllers_alone
    yield from (c.service for c in alone if c.service in configured and Path(c.log_dir, "meta.properties").exists())
    yield from (b.service for b in spec.brokers)


def _start(spec: ClusterSpec, services: Collection[str]) -> None:
    """Start services at once; wait until each ZooKeeper server among them serves. Raises StepFailed if one does not."""
    here = layout(spec)
    for service in services:
        supervision.begin_start(here, service)
    deadline = time.monotonic() + spec.deadlines.registration
    servers = [server for server in zookeeper_servers(spec) if server.service in services]
    tls = tls_of(spec.ensemble, secrets=lab_secrets(spec)) if servers else None
    while waiting := [server for server in servers if server_mode(server.address, tls=tls) is None]:
        ended = [server for server in waiting if server.service not in supervision.running(here)]
        if ended or time.monotonic() > deadline:
            service = (ended or waiting)[0].service
            why = "ended by itself" if ended else f"does not serve after {spec.deadlines.registration:g} s"
            raise StepFailed(
                f"{service} did not come up: it {why}; its log ends:\n{supervision.log_tail(here, service)}",
                way_out=f"read {here.logs / f'{service}.log'}",
            )
        time.sleep(0.1)
    if servers:
        admit_brokers(spec)


def _stop(here: Layout, services: Iterable[str], *, within: float, kill: bool = False) -> None:
    """Stop services together and wait for their end; those that overstay are killed, and that is reported."""
    waiting = [s for s in services if s in supervision.running(here)]
    for service in waiting:
        supervision.begin_stop(here, service, signal="KILL" if kill else "TERM")
    deadline = time.monotonic() + within
    while left := [s for s in waiting if s in supervision.running(here)]:
        if time.monotonic() > deadline:
            for service in left:
                supervision.begin_stop(here, service, signal="KILL")
            raise StepFailed(
                f"{', '.join(left)} had not stopped after {within:g} s and were killed",
                way_out=f"read their logs in {here.logs}",
            )
        time.sleep(0.1)


def _orphans(here: Layout) -> list[tuple[str, int]]:
    """Processes of this lab that still run though no supervisor holds them: (service, pid) from starts.log, checked in
    /proc; the last started first.
    """
    if not here.starts_log.exists():
        return []
    started = [line.split() for line in here.starts_log.read_text().splitlines()]
    return [(service, int(pid)) for _, service, pid in reversed(started) if _is_ours(here, int(pid))]


def _is_ours(here: Layout, pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False
    return re.search(rf"{re.escape(str(here.kafka_home))}(-[\d.]+)?/", command) is not None


def _purge(here: Layout) -> None:
    if not here.supervisor_config.exists() and {path.name for path in here.directory.iterdir()} - {"lock"}:
        raise Refused(
            f"{here.directory} does not look like a lab (no supervisord.conf in it); it was not removed",
            way_out="check KRB_LAB_DIR",
        )
    shutil.rmtree(here.directory)


@contextmanager
def _alone(here: Layout) -> Iterator[None]:
    """One ``up`` or ``down`` at a time for one lab; the lock ends with its holder."""
    here.directory.mkdir(parents=True, exist_ok=True)
    with (here.directory / "lock").open("w") as lock:
        if not lock_within(lock, 0):
            raise Refused(
                f"another command is bringing the lab in {here.directory} up or down",
                way_out="wait for it, then repeat this",
            )
        yield


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One row of ``status``. ``uptime`` in seconds; ``mode``: what the configuration on disk says; ``needed``: ``up``
    would start it.
    """

    service: str
    state: str
    pid: int
    uptime: float
    mode: str
    address: str
    needed: bool


def status(spec: ClusterSpec) -> list[ServiceStatus]:
    """What supervisor, the configuration files and the sockets say of each service, in the cluster file's order."""
    here = layout(spec)
    seen, configs, needed = supervision.processes(here), config_files(spec), set(_wanted(spec))
    rows = []
    for service, sockets in addresses(spec).items():
        process = seen.get(service, supervision.Process(service, "NO SUPERVISOR", 0, 0.0))
        host, port = sockets[0]
        answering = f"{host}:{port} {'open' if is_open((host, port)) else 'closed'}"
        if not process.runs and answering.endswith("open"):
            answering += f", held by {holder(host, port)}"
        mode = _mode(configs[service]) if service in configs else ""
        rows.append(
            ServiceStatus(service, process.state, process.pid, process.uptime, mode, answering, service in needed)
        )
    return rows


def _mode(config: Path) -> str:
    if not config.exists():
        return "not provisioned"
    properties = parse_properties(config.read_text())
    flag = properties.get(MIGRATION_FLAG) == "true"
    match properties.get("process.roles"):
        case None:
            return "hybrid" if flag else "zookeeper"
        case "controller":
            return "migration" if flag else "kraft"
        case _:
            return "kraft"
