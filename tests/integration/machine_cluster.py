"""A Kafka cluster in ZooKeeper mode on three machines (``machines.py``): reached by SSH, with sudo, its processes units
of systemd that are always started again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import by_hand
import yaml
from confluent_kafka.admin import AdminClient
from labs import Lab
from machines import NETWORK, USER, Machine, Machines, machines, run
from played import restart_broker

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.io.zookeeper.servers import server_mode
from lab import ROOT
from lab.health import missing_in
from lab.installation import JARS, java, lay_out
from lab.seed import topics

HOME, ON_MACHINE = "/opt/kafka", Path("/opt/jars")
UNIT = """[Unit]
Description={name}
[Service]
User=kafka
ExecStart={command}
Restart=always
RestartSec=1
TimeoutStopSec=330
SuccessExitStatus=143
Environment=JAVA_HOME={java_home}
"""
ZOOKEEPER = """dataDir=/var/lib/kafka/zookeeper
clientPort=2181
clientPortAddress={address}
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok,mntr
maxClientCnxns=0
tickTime=2000
"""


@dataclass(frozen=True)
class OnMachines(Lab):
    """Such a cluster. Its file lies in ``clusters``, as that of any cluster; no supervisor knows it."""

    machines: Machines = field(default_factory=lambda: Machines(Path()))
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "KRAFT_RUNBOOK_CLUSTERS": str(self.clusters), **self.given}

    def machine(self, number: int) -> Machine:
        return self.machines.every[number - 1]

    def starts(self) -> dict[str, int]:
        """How often each service of each machine was started: ``2/kafka-broker``."""
        counted: dict[str, int] = {}
        for each in self.machines.every:
            for line in (each.root / "opt/starts.log").read_text().splitlines():
                name = f"{each.number}/{line.split()[1]}"
                counted[name] = counted.get(name, 0) + 1
        return counted


def cluster_document(directory: Path, made: Machines) -> dict[str, Any]:
    """The lab's own cluster file for three machines, each with a broker and a controller, the first with ZooKeeper."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "include" / "clusters" / "lab.yaml").read_text())
    document["description"] = "Three machines with a broker and a controller each, reached by SSH"
    document["kafka"]["home"] = HOME
    document["zookeeper"]["servers"] = [f"{NETWORK}.11:2181"]
    document["reach"] = {
        "kind": "ssh",
        "user": USER,
        "become": True,
        "private_key_file": str(made.key),
        "known_hosts": str(made.known_hosts),
    }
    document["service_manager"] = {"kind": "systemd", "stop_timeout": 330}
    document["secrets_file"] = "/etc/kafka/secrets.properties"
    document["rehearsal"]["directory"] = str(directory / "rehearsal")
    for kind, port in (("broker", 7071), ("controller", 7072)):
        for number, node in enumerate(document[f"{kind}s"], 1):
            data = f"/var/lib/kafka/{kind}"
            node["host"] = f"{NETWORK}.{10 + number}"
            node["config_file"] = f"/etc/kafka/{kind}.properties"
            node["service"], node["metrics_port"] = f"kafka-{kind}", port
            node |= {"log_dirs": [data]} if kind == "broker" else {"log_dir": data}
    return document


@contextlib.contextmanager
def cluster_on_machines(directory: Path) -> Iterator[OnMachines]:
    """The cluster, with some topics; this thread reaches its machines meanwhile. Ended and removed afterwards. Skips
    where no machine can run.
    """
    with machines() as made:
        clusters = directory / "clusters"
        clusters.mkdir(parents=True)
        (clusters / "lab.yaml").write_text(yaml.safe_dump(cluster_document(directory, made), sort_keys=False))
        spec = load_cluster("lab", directory=clusters, environment={})
        names = ("KRB_LAB_PASSWORD_ENCODER_SECRET", "KRB_LAB_TOKEN_SECRET")
        given = {name: secrets.token_urlsafe(24) for name in names}
        lab = OnMachines(spec, directory, NETWORK, clusters, made, given)
        for number in (1, 2, 3):
            install(made.add(f"h{number}", binds=binds()))
        with made.entered():
            for machine in made.every:
                made.boot(machine)
            bring_up(lab)
            yield lab


def binds() -> dict[Path, str]:
    java_home = java().parent.parent
    found = {java_home: str(java_home), JARS.resolve(): str(ON_MACHINE)}
    settings = Path("/etc/java-17-openjdk")  # Debian's Java has links into it
    return found | ({settings: str(settings)} if settings.exists() else {})


def install(machine: Machine) -> None:
    """Kafka's home, the units and the directories: what a cluster's operator has made before."""
    root, command = machine.root, java()
    jars = [ON_MACHINE / jar.name for jar in JARS.glob("*.jar")]
    lay_out(root / HOME[1:], jars=jars, java_command=command, class_archive=Path("/none"))
    starts = {
        "kafka-broker": f"{machine.address}:7071 kafka.Kafka /etc/kafka/broker.properties",
        "kafka-controller": f"{machine.address}:7072 kafka.Kafka /etc/kafka/controller.properties",
        "zookeeper": "none org.apache.zookeeper.server.quorum.QuorumPeerMain /etc/kafka/zookeeper.properties",
    }
    for name, words in starts.items():
        unit = UNIT.format(
            name=name, command=f"{HOME}/bin/run-service.sh {name} {words}", java_home=command.parent.parent
        )
        (root / f"etc/systemd/system/{name}.service").write_text(unit)
    for directory in ("etc/kafka", "var/lib/kafka"):
        (root / directory).mkdir()
    (root / "opt/starts.log").touch()
    (root / "etc/kafka/zookeeper.properties").write_text(ZOOKEEPER.format(address=machine.address))
    run("chroot", root, "chown", "-R", "kafka:kafka", "/etc/kafka", "/var/lib/kafka", "/opt/starts.log")


def bring_up(lab: OnMachines) -> None:
    """ZooKeeper by its operator, the brokers by this tool's own play, and some topics."""
    code, said = lab.machines.said(lab.machine(1), "sudo systemctl start zookeeper")
    assert code == 0, said
    (server,) = lab.spec.ensemble.servers
    by_hand.wait_until("ZooKeeper serves", lambda: server_mode(server) == "standalone")
    for broker in lab.spec.brokers:
        restart_broker(lab.spec, broker.id, BrokerMode.ZOOKEEPER, secrets=lab.secrets)
    client = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})

    def missing() -> str:
        return missing_in(client.list_topics(timeout=10), lab.spec.broker_ids, holds_partitions=False)

    by_hand.wait_until("the brokers know each other", lambda: not missing())
    topics.create(client, lab.spec, extra=0)
    by_hand.wait_until("all is in sync", lambda: not missing(), shows=missing)
