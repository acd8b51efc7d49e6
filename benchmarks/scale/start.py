"""Starting the processes of one cluster: ZooKeeper with its tree, the controllers in migration mode, and waiting for
each.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.scale.cluster import Plan
from benchmarks.scale.processes import Processes
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.kafka.stand_ins import told
from kraft_runbook.io.secrets import environment_secrets
from lab.layout import ROOT

ZOOKEEPER, GHOSTS = "zookeeper", "ghosts"
LOG4J = Path(__file__).with_name("log4j.properties")
QUIET = ("org.apache.kafka.controller", "org.apache.kafka.image")
LOADING = 900
"""Seconds that ZooKeeper may take over its snapshot (1M partitions: 35 s, measured)."""


def sockets(plan: Plan, spec: ClusterSpec) -> dict[str, tuple[tuple[str, int], ...]]:
    """Every socket that will be listened on, by service."""
    found: dict[str, tuple[tuple[str, int], ...]] = {ZOOKEEPER: ((f"{plan.network}.1", 2181),)}
    found |= {broker.service: ((broker.host, broker.listeners[0].port),) for broker in spec.brokers}
    return found | {each.service: ((each.host, each.port), (each.host, each.metrics_port)) for each in spec.controllers}


def _log4j(plan: Plan) -> Path:
    path = plan.directory / "log4j.properties"
    path.write_text(LOG4J.read_text() + "".join(f"log4j.logger.{name}=WARN\n" for name in QUIET if plan.quiet))
    return path


def start_zookeeper(plan: Plan, spec: ClusterSpec, processes: Processes) -> float:
    """Start it; the seconds until it serves the tree."""
    host, _, port = spec.zookeeper.servers[0].partition(":")
    config = plan.directory / "zookeeper.properties"
    properties = {
        "dataDir": plan.zookeeper_data,
        "clientPort": port,
        "clientPortAddress": host,
        "admin.enableServer": "false",
    }
    properties |= {"maxClientCnxns": "0", "tickTime": "3000", "4lw.commands.whitelist": "srvr,mntr,ruok"}
    config.write_text(
        render_properties({key: str(value) for key, value in properties.items()}, header="Written by benchmarks.scale")
    )
    arguments = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)]
    processes.start_java(ZOOKEEPER, arguments, heap=plan.zookeeper_heap, log4j=_log4j(plan))
    began = time.monotonic()
    while not _serves(host, int(port)):
        processes.require(ZOOKEEPER)
        if time.monotonic() - began > LOADING:
            raise StepFailed(
                f"ZooKeeper did not load the tree within {LOADING} s", way_out=f"read {processes.log(ZOOKEEPER)}"
            )
        time.sleep(0.1)
    return time.monotonic() - began


def _serves(host: str, port: int) -> bool:
    """Whether it has loaded its tree. It accepts connections before that, and says nothing, or that it does
    not serve.
    """
    try:
        with socket.create_connection((host, port), timeout=5) as connection:
            connection.sendall(b"srvr")
            said = b"".join(iter(lambda: connection.recv(4096), b""))
    except OSError:
        return False
    return b"Node count:" in said


def start_controller(
    plan: Plan,
    spec: ClusterSpec,
    processes: Processes,
    controller_id: int,
    mode: ControllerMode = ControllerMode.MIGRATION,
) -> None:
    """Write its file, format its directory, and start it."""
    controller = spec.controller(controller_id)
    config = Path(controller.config_file)
    config.write_text(
        render_properties(controller_properties(spec, controller, mode), header="Written by benchmarks.scale")
    )
    tool = Path(spec.kafka.home) / "bin" / "kafka-storage.sh"
    done = subprocess.run(
        [str(tool), "format", f"--cluster-id={spec.cluster_id}", "-c", str(config)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        said = " ".join(line for line in (done.stderr or done.stdout).splitlines() if not line.startswith("\tat "))
        raise StepFailed(f"{controller.service} could not be formatted: {said[-600:]}", way_out=f"read {config}")
    run_controller(plan, spec, processes, controller_id)


def run_controller(plan: Plan, spec: ClusterSpec, processes: Processes, controller_id: int) -> None:
    """Start one that has its file and its formatted directory."""
    controller = spec.controller(controller_id)
    metrics = f"{controller.host}:{controller.metrics_port}"
    arguments = ["kafka.Kafka", controller.config_file]
    processes.start_java(controller.service, arguments, heap=plan.controller_heap, log4j=_log4j(plan), metrics=metrics)


def await_leader(spec: ClusterSpec, processes: Processes, *, within: float = 120) -> None:
    deadline = time.monotonic() + within
    while True:
        try:
            describe_quorum(spec, secrets=environment_secrets({}))
            return
        except Unreachable as error:
            for controller in spec.controllers:
                processes.require(controller.service)
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"no controller led within {within:g} s: {error.problem}", way_out="read the controllers' logs"
                ) from None
        time.sleep(0.2)


def start_stand_ins(plan: Plan, processes: Processes, mode: BrokerMode) -> None:
    """The stand-ins for data brokers, in one mode from the start (``ghosts``)."""
    command = [sys.executable, "-m", "benchmarks.scale.ghosts", str(plan.directory), mode.value]
    processes.start(GHOSTS, command, {"PYTHONPATH": f"{ROOT}:{ROOT / 'include'}"})


def await_registration(plan: Plan, spec: ClusterSpec, processes: Processes, *, within: float = 300) -> float:
    """When the last stand-in had registered, as epoch seconds."""
    deadline = time.monotonic() + within
    while True:
        now = told(plan.ghosts)
        if now.problem:
            raise StepFailed(f"the stand-ins failed: {now.problem}", way_out=f"read {processes.log(GHOSTS)}")
        if now.registered_at is not None:
            return now.registered_at
        processes.require(GHOSTS)
        if time.monotonic() > deadline:
            raise StepFailed(
                f"{plan.brokers} stand-ins had not registered after {within:g} s",
                way_out=f"read {processes.log(GHOSTS)}",
            )
        time.sleep(0.05)
