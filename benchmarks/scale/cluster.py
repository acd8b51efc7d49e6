"""The harness's cluster as a cluster file, and where its things lie. Everything is on loopback and below
one directory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml

from benchmarks.scale.tree import Shape
from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.migration.copy_tuning import heap_needed

NAME = "scale"
VERSION = "3.9.2"
CLUSTER_ID = "c2NhbGUtYmVuY2htYXJrcw"
MOST_BROKERS = 200
DEFAULT_DIRECTORY = Path("build/scale")
DEFAULT_NETWORK = "127.88.8"

HARNESS_PROPERTIES = {"broker.session.timeout.ms": "60000"}
"""A stand-in that misses a heartbeat while a controller collects garbage must not be fenced: each would change every
partition that it leads.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of the harness. ``controller_heap`` and ``zookeeper_heap`` as Java's -Xmx; ``properties``: further ones
    of every controller.

    ``quiet``: ``org.apache.kafka.controller`` and ``org.apache.kafka.image`` log at WARN; at INFO they write a line a
    record on every controller.
    """

    directory: Path
    partitions: int
    brokers: int = 30
    controllers: int = 1
    network: str = DEFAULT_NETWORK
    controller_heap: str = "1g"
    zookeeper_heap: str = "1g"
    properties: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False

    @property
    def shape(self) -> Shape:
        return Shape(self.partitions, self.brokers)

    @property
    def clusters(self) -> Path:
        """The directory of the cluster file: ``--clusters-dir``."""
        return self.directory / "clusters"

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def zookeeper_data(self) -> Path:
        return self.directory / "zookeeper"

    @property
    def ghosts(self) -> Path:
        """What the process of the stand-ins tells (``stand_ins.Told``)."""
        return self.directory / "ghosts.json"

    @property
    def result(self) -> Path:
        return self.directory / "result.json"

    def save(self) -> None:
        given = asdict(self) | {"directory": str(self.directory), "properties": dict(self.properties)}
        (self.directory / "plan.json").write_text(json.dumps(given, indent=1) + "\n")


def heaps(partitions: int, brokers: int) -> tuple[str, str]:
    """The -Xmx of a controller and of ZooKeeper that a cluster of this size needs; Kafka's own 1g where that does.

    A controller's is what the runbook would ask for (``copy_tuning``). ZooKeeper's is thrice what lives in it (2.4 GB
    at 2M partitions): Kafka's scripts have G1 mark once 35 % of the heap live (InitiatingHeapOccupancyPercent), and in
    6g each reading of the tree had it mark for four cpu-seconds.
    """
    controller = math.ceil(heap_needed(partitions, brokers).mib / 1024)
    return f"{max(1, controller)}g", f"{max(1, math.ceil(4 * partitions / 1_000_000))}g"


def saved_plan(directory: Path) -> Plan:
    """The plan of the cluster in this directory. Raises RunbookError where there is none."""
    path = directory.absolute() / "plan.json"
    if not path.exists():
        raise RunbookError(
            f"there is no cluster of this harness in {directory}",
            way_out="python -m benchmarks.scale up --directory … --partitions …",
        )
    given = json.loads(path.read_text())
    return Plan(**(given | {"directory": directory.absolute()}))


def write_cluster_file(plan: Plan) -> ClusterSpec:
    """Write ``clusters/scale.yaml`` and read it back as everything else will."""
    if not 3 <= plan.brokers <= MOST_BROKERS:
        raise RunbookError(
            f"{plan.brokers} brokers: the harness stands in for 3 to {MOST_BROKERS}", way_out="give another --brokers"
        )
    plan.clusters.mkdir(parents=True, exist_ok=True)
    (plan.clusters / f"{NAME}.yaml").write_text(yaml.safe_dump(_cluster(plan), sort_keys=False))
    return load_spec(plan)


def load_spec(plan: Plan) -> ClusterSpec:
    return load_cluster(NAME, directory=plan.clusters, environment={})


def _cluster(plan: Plan) -> dict[str, object]:
    here, network = plan.directory, plan.network
    return {
        "name": NAME,
        "description": f"{plan.partitions} partitions; its brokers are stand-ins of benchmarks.scale",
        "cluster_id": CLUSTER_ID,
        "kafka": {"version": VERSION, "home": str(here / "kafka"), "inter_broker_listener": "PLAINTEXT"},
        "zookeeper": {"servers": [f"{network}.1:2181"], "properties": {"zookeeper.session.timeout.ms": 60000}},
        "reach": {"kind": "local"},
        "service_manager": {"kind": "supervisor", "socket": f"unix://{here}/none.sock"},
        "brokers": [
            {
                "id": number,
                "host": f"{network}.{10 + number}",
                "listeners": [{"name": "PLAINTEXT", "port": 9092}],
                "log_dirs": [str(here / f"broker-{number}")],
                "config_file": str(here / f"broker-{number}.properties"),
                "service": f"broker-{number}",
                "metrics_port": 7071,
            }
            for number in range(1, plan.brokers + 1)
        ],
        "controllers": [
            {
                "id": 3000 + number,
                "host": f"{network}.{240 + number}",
                "port": 9093,
                "log_dir": str(here / f"controller-{3000 + number}"),
                "config_file": str(here / f"controller-{3000 + number}.properties"),
                "service": f"controller-{3000 + number}",
                "metrics_port": 7071,
            }
            for number in range(1, plan.controllers + 1)
        ],
        "controller_properties": HARNESS_PROPERTIES | dict(plan.properties),
    }
