"""A lab that begins in KRaft mode: every node's configuration, and its storage formatted with one new cluster id."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import QuorumKind
from kraft_runbook.errors import StepFailed
from kraft_runbook.rehearsal.random_values import new_cluster_id


def prepare_in_kraft(spec: ClusterSpec) -> None:
    """Configure and format brokers and controllers, as an operator does who never had ZooKeeper (kafka-storage format).

    Raises StepFailed with what the tool said.
    """
    for broker in spec.brokers:
        properties = broker_properties(spec, broker, BrokerMode.KRAFT)
        _write(broker.config_file, render_properties(properties, header=f"Broker {broker.id} of {spec.name}"))
    for controller in spec.controllers_alone:
        properties = controller_properties(spec, controller, ControllerMode.KRAFT)
        _write(
            controller.config_file, render_properties(properties, header=f"Controller {controller.id} of {spec.name}")
        )
    cluster_id, voters = new_cluster_id(), first_voters(spec)
    controllers = {each.config_file for each in spec.controllers}

    def form(config_file: str) -> None:
        format_storage(spec, config_file, cluster_id, *(voters if config_file in controllers else ()))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda node: form(node.config_file), spec.nodes))


def first_voters(spec: ClusterSpec) -> tuple[str, ...]:
    """What the tool is told of the first voters of a dynamic quorum, each with a new id of its directory: the log then
    begins with them, and with kraft.version 1. Nothing for a static one, whose voters the files name.
    """
    if spec.quorum is QuorumKind.STATIC:
        return ()
    voters = ",".join(f"{each.id}@{each.address}:{new_cluster_id()}" for each in spec.controllers)
    return (f"--initial-controllers={voters}",)


def format_storage(spec: ClusterSpec, config_file: str, cluster_id: str, *further: str) -> None:
    """Format the log directories that a node's configuration names. ``further``: what else the tool is told. Raises
    StepFailed with what it said.
    """
    command = [f"{spec.kafka.home}/bin/kafka-storage.sh", "format", f"--cluster-id={cluster_id}", "-c", config_file]
    command += further
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise StepFailed(
            f"formatting the storage of {config_file} failed: {(done.stderr or done.stdout).strip()[-500:]}",
            way_out="correct the configuration that it names, then bring the lab up anew: python -m lab up --fresh",
        )


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)
