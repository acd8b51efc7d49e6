"""A node on this machine for the playbooks to change: its files, and a stand-in for Kafka that opens a port."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from free_ports import free_ports
from played import restart_broker

from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.properties_text import render_properties, render_secrets
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.hosts.playbooks import PlaybookResult
from kraft_runbook.io.local.ports import is_open
from kraft_runbook.io.secrets import environment_secrets

SECRET = "planted{{ 7 * 7 }}\\secret"
CLUSTER_ID = "-AbCdEfGhIjKlMnOpQrStU"

STAND_IN = """
import ctypes, os, pathlib, signal, socket, sys, time
node, address, config = sys.argv[1:]
behaviour = pathlib.Path(__file__).with_name("behaviour").read_text().split()
settings = dict(word.split("=") for word in behaviour)
with open(pathlib.Path(__file__).with_name("starts.log"), "a") as log:
    log.write(f"{node} {'zookeeper.metadata.migration.enable=true' in pathlib.Path(config).read_text()}\\n")
print("starting", node, flush=True)
if settings.get("exit"):
    print("ERROR: the stand-in was told to exit; ssl.key.password = hunter2", flush=True)
    sys.exit(int(settings["exit"]))
if settings.get("thread") and (waiter := os.fork()):
    os.waitpid(waiter, 0)
    sys.exit(0)
if settings.get("thread"):
    ctypes.CDLL(None).prctl(15, settings["thread"].encode())  # PR_SET_NAME
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: its end comes with the waiting process's
def stop(*_):
    time.sleep(float(settings.get("stop", 0)))
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
time.sleep(float(settings.get("open", 0)))
host, _, port = address.rpartition(":")
server = socket.create_server((host, int(port)))
while True:
    server.accept()[0].close()
"""

STORAGE_TOOL = """#!/usr/bin/env python3
import pathlib, sys
given = dict(word.lstrip("-").split("=", 1) for word in sys.argv[2:])
config = dict(line.split("=", 1) for line in pathlib.Path(given["config"]).read_text().splitlines() if "=" in line)
directory = pathlib.Path(config["log.dirs"])
directory.joinpath("meta.properties").write_text(f"version=1\\ncluster.id={given['cluster-id']}\\nnode.id={config['node.id']}\\n")
"""


@dataclass(frozen=True)
class Node:
    """One broker (1) and one controller (101) on this machine, as a cluster file describes them."""

    directory: Path
    spec: ClusterSpec
    text: str
    ports: Mapping[str, int] = field(default_factory=dict)

    def configure_controller(self, **changes: str | None) -> Path:
        """Lay down the controller's file as a provisioned one has it, with keys (``__`` for a dot) changed, or left out
        (None). Nothing is started.
        """
        controller = self.spec.controller(101)
        properties = controller_properties(self.spec, controller, ControllerMode.MIGRATION)
        for name, value in changes.items():
            properties[name.replace("__", ".")] = value or ""
            if value is None:
                del properties[name.replace("__", ".")]
        file = Path(controller.config_file)
        file.parent.mkdir(exist_ok=True)
        file.write_text(render_properties(properties, header="Controller 101 of cluster standin"))
        return file

    def run_broker(self, mode: BrokerMode = BrokerMode.ZOOKEEPER) -> None:
        """Bring the broker to run in this mode as the playbook leaves it, without the seconds that ansible takes: its
        files, then its process.
        """
        broker, secrets, given = self.spec.broker(1), Path(self.spec.secrets_file or ""), environment_secrets()
        secrets.touch(mode=0o600)
        secrets.write_text(render_secrets({key: given(ref) for key, ref in self.spec.secrets.items()}))
        file = Path(broker.config_file)
        file.parent.mkdir()
        file.write_text(
            render_properties(broker_properties(self.spec, broker, mode), header="Broker 1 of cluster standin")
        )
        self.control("start", "broker-1")
        deadline = time.monotonic() + 20
        while not is_open(("127.0.0.1", self.ports["broker"])):
            assert time.monotonic() < deadline, "the stand-in did not open its port"
            time.sleep(0.05)

    def behave(self, words: str) -> None:
        """How the stand-in behaves from its next start: ``open=<s>`` before the port, ``stop=<s>`` for a stop,
        ``exit=<code>`` at once, ``thread=<name>``: the work is a child's, whose only thread bears this name.
        """
        (self.directory / "behaviour").write_text(words)

    def starts(self, name: str = "broker-1") -> list[str]:
        """One entry a start: whether the configuration that it read had the migration flag."""
        log = self.directory / "starts.log"
        return (
            [line.split()[1] for line in log.read_text().splitlines() if line.startswith(name)] if log.exists() else []
        )

    def control(self, *words: str) -> str:
        command = [
            str(Path(sys.executable).parent / "supervisorctl"),
            "-s",
            str(self.spec.service_manager.socket),
            *words,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout

    def pid(self, name: str = "broker-1") -> int:
        return int(self.control("pid", name))

    def files(self) -> dict[str, tuple[int, int, bytes]]:
        """Every file with its mode, change time and content, but for what the stand-in and supervisor write
        themselves.
        """
        own = {"starts.log", "supervisord.log", "supervisord.pid", "broker-1.log", "controller-101.log"}
        return {
            str(path.relative_to(self.directory)): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
            for path in sorted(self.directory.rglob("*"))
            if path.is_file() and path.name not in own
        }


def cluster_text(directory: Path, ports: Mapping[str, int], *, manager: str, reach: str = "{kind: local}") -> str:
    return textwrap.dedent(f"""
        name: standin
        kafka: {{version: 3.9.2, home: {directory}/kafka}}
        zookeeper: {{servers: ["127.0.0.1:{ports["zookeeper"]}"]}}
        reach: {reach}
        service_manager: {manager}
        brokers:
          - id: 1
            host: 127.0.0.1
            listeners: [{{name: PLAINTEXT, port: {ports["broker"]}}}]
            log_dirs: ["{directory}/data-1"]
            config_file: {directory}/broker-1/server.properties
            service: broker-1
            metrics_port: {ports["broker_metrics"]}
            properties:
              a.boolean: true
              an.octal: "012"
              a.date: "2026-01-02"
              a.template: "{{{{ 7 * 7 }}}} {{# not a comment #}}"
              a.path: 'C:\\temp'
        controllers:
          - id: 101
            host: 127.0.0.1
            port: {ports["controller"]}
            log_dir: {directory}/data-101
            config_file: {directory}/controller-101/controller.properties
            service: controller-101
            metrics_port: {ports["controller_metrics"]}
        secrets_file: {directory}/secrets.properties
        secrets:
          password.encoder.secret: {{env: KRB_PLANTED_SECRET}}
        deadlines: {{registration: 90}}
    """)


def to(node: Node, mode: BrokerMode = BrokerMode.HYBRID, **how: Any) -> PlaybookResult:
    """Its broker, restarted in this mode."""
    return restart_broker(node.spec, 1, mode, secrets=environment_secrets(), **how)


def lay_out(directory: Path, *, manager: str, reach: str = "{kind: local}") -> Node:
    ports = free_ports("zookeeper", "broker", "broker_metrics", "controller", "controller_metrics")
    text = cluster_text(directory, ports, manager=manager, reach=reach)
    (directory / "stand_in.py").write_text(STAND_IN)
    (directory / "behaviour").write_text("")
    for part in ("bin", "libs"):
        (directory / "kafka" / part).mkdir(parents=True)
    tool = directory / "kafka" / "bin" / "kafka-storage.sh"
    tool.write_text(STORAGE_TOOL)
    tool.chmod(0o755)
    (directory / "kafka" / "libs" / "kafka_2.13-3.9.2.jar").touch()
    return Node(directory, parse_cluster(text, source="standin.yaml", environment={}), text, ports)
