"""Where a cluster that runs on this machine alone keeps its things, all derived from its cluster file."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.errors import RunbookError

ZOOKEEPER = "zookeeper"
"""Service and directory of a ZooKeeper server that is alone. Those of an ensemble are numbered: ``zookeeper-1``."""
SOCKET = "supervisor.sock"
LONGEST_SOCKET = 99
"""Bytes of its path: Linux takes 107, and supervisor binds one with a dot and its pid behind, of up to 7 digits."""
ENSEMBLE = 3
"""Servers in the lab's ensemble. It serves as long as two of them run."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one lab. ``directory`` is ``KRB_LAB_DIR``; everything lies below it."""

    directory: Path

    @property
    def kafka_home(self) -> Path:
        return self.directory / "kafka"

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def supervisor_config(self) -> Path:
        return self.directory / "supervisord.conf"

    @property
    def supervisor_socket(self) -> Path:
        return self.directory / SOCKET

    @property
    def secrets_environment(self) -> Path:
        return self.directory / "secrets.env"

    @property
    def starts_log(self) -> Path:
        """One line a process start, written by the process's own launcher: ``<epoch seconds> <service> <pid>``."""
        return self.directory / "starts.log"


@dataclass(frozen=True, slots=True)
class ZookeeperServer:
    """One server of the lab's ZooKeeper. ``number``: its ``myid`` in an ensemble, as the cluster file lists them."""

    number: int
    service: str
    host: str
    port: int
    directory: Path

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def config(self) -> Path:
        return self.directory / "zookeeper.properties"

    @property
    def data(self) -> Path:
        return self.directory / "data"


def layout(spec: ClusterSpec) -> Layout:
    """Where this lab keeps its things. Raises RunbookError for a cluster file that the lab can't run."""
    directory = Path(spec.kafka.home).parent
    found = Layout(directory)
    if spec.service_manager.socket != f"unix://{found.supervisor_socket}" or spec.reach.kind != "local":
        raise RunbookError(
            f"the lab runs clusters reached locally, with supervisor's socket at {found.supervisor_socket}; {spec.name}"
            " says otherwise",
            way_out="use include/clusters/lab.yaml as it is, and move the lab by KRB_LAB_DIR and KRB_LAB_NET",
        )
    ensemble = spec.zookeeper
    hosts = [split_address(server)[0] for server in ensemble.servers] if ensemble else []
    if ensemble and (len(hosts) not in (1, ENSEMBLE) or len(set(hosts)) < len(hosts) or ensemble.chroot):
        raise RunbookError(
            f"the lab runs one ZooKeeper server or {ENSEMBLE}, without a chroot; declared are {ensemble.connect}",
            way_out=f"declare one server in include/clusters/lab.yaml, or {ENSEMBLE} with an address each",
        )
    if room_for_name(directory.parent) < len(os.fsencode(directory.name)):
        raise RunbookError(
            f"the lab's directory {directory} is too long a path for a Unix socket in it",
            way_out="set KRB_LAB_DIR to a shorter path, such as /tmp/lab",
        )
    return found


def room_for_name(place: Path) -> int:
    """Bytes that the name of a cluster's directory in ``place`` may have, so that its socket can be bound."""
    return LONGEST_SOCKET - len(os.fsencode(place)) - len(f"//{SOCKET}")


def zookeeper_servers(spec: ClusterSpec) -> tuple[ZookeeperServer, ...]:
    """The lab's ZooKeeper: one server, or an ensemble; none where the cluster file names none."""
    if spec.zookeeper is None:
        return ()
    directory, addresses = layout(spec).directory, [split_address(server) for server in spec.ensemble.servers]
    names = [ZOOKEEPER] if len(addresses) == 1 else [f"{ZOOKEEPER}-{number}" for number, _ in enumerate(addresses, 1)]
    named = enumerate(zip(names, addresses, strict=True), 1)
    return tuple(ZookeeperServer(number, name, host, port, directory / name) for number, (name, (host, port)) in named)


def nodes(spec: ClusterSpec) -> tuple[Broker | Controller, ...]:
    """Every process once: brokers, then controllers."""
    return spec.nodes


def config_files(spec: ClusterSpec) -> dict[str, Path]:
    """The configuration of every node, by service; controllers' files appear when the runbook provisions them."""
    return {node.service: Path(node.config_file) for node in nodes(spec)}


def starts(spec: ClusterSpec) -> dict[str, int]:
    """How often each process was started since the lab was made, by service. A service never started counts 0."""
    log = layout(spec).starts_log
    services = [*(server.service for server in zookeeper_servers(spec)), *(node.service for node in nodes(spec))]
    counted = Counter(line.split()[1] for line in log.read_text().splitlines()) if log.exists() else Counter[str]()
    return {service: counted[service] for service in services}
