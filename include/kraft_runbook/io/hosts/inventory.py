"""How a node's host is named, reached and described to Ansible. Every variable follows from the cluster file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller

N = TypeVar("N", Broker, Controller, Broker | Controller)


def node_of(spec: ClusterSpec, node_id: int) -> Broker | Controller:
    return spec.broker(node_id) if node_id in spec.broker_ids else spec.controller(node_id)


def host_name(node: Broker | Controller) -> str:
    """The node's name in Ansible. The service's name won't do, since it may be the same on every host."""
    return node.named.replace(" ", "-")


def node_variables(spec: ClusterSpec, node: Broker | Controller) -> dict[str, Any]:
    """The variables of a node that every playbook gets: how to reach it, its service, its files, its address."""
    if isinstance(node, Broker):
        place, log_dirs, ports = (
            node.waited_for(node.listener(spec.client_listener)),
            node.log_dirs,
            [each.port for each in node.listeners],
        )
        if own := node.as_controller:  # playbooks look for the metadata log in the first directory
            log_dirs, ports = tuple(dict.fromkeys((own.log_dir, *log_dirs))), [*ports, own.port]
        must_reach: list[str] = []
        log4j_file = None
    else:
        place, log_dirs, ports, log4j_file = node.waited_for, (node.log_dir,), [node.port], node.log4j_file
        servers = spec.zookeeper.servers if spec.zookeeper else ()
        must_reach = [*servers, *(_inter_broker_address(spec, broker) for broker in spec.brokers)]
    manager = spec.service_manager
    return {
        **_reach(spec, node),
        "node_id": node.id,
        "node_host": node.host,
        "address": place,
        "ports": [*ports, node.metrics_port],
        "must_reach": must_reach,
        "service": node.service,
        "manager": manager.kind,
        **({"manager_socket": manager.socket} if manager.socket else {}),
        "stop_timeout": manager.stop_timeout,
        "start_timeout": spec.deadlines.registration,
        "config_file": node.config_file,
        **({"log4j_file": log4j_file} if log4j_file else {}),
        "files_read_at_start": [
            node.config_file,
            *([spec.secrets_file] if spec.secrets and spec.secrets_file else []),
            *([log4j_file] if log4j_file else []),
            *([node.home_link] if node.home_link else []),
        ],
        "file_header": file_header(node, spec),
        "secrets_file": spec.secrets_file or "",
        "log_dirs": list(log_dirs),
        "kafka_home": spec.kafka.home,
        "kafka_version": spec.kafka.version,
    }


def _inter_broker_address(spec: ClusterSpec, broker: Broker) -> str:
    return broker.advertised(broker.listener(spec.kafka.inter_broker_listener))


def _reach(spec: ClusterSpec, node: Broker | Controller) -> dict[str, Any]:
    reach = spec.reach
    become: dict[str, Any] = {"ansible_become": True} if reach.become else {}
    if reach.become_password is not None:
        become["ansible_become_password"] = reach.become_password  # ansible_runs puts a place in memory there
    if reach.kind == "local":
        return {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **become}
    known = {
        "ansible_user": reach.user,
        "ansible_ssh_private_key_file": reach.private_key_file,
        "ansible_ssh_common_args": known_hosts_arguments(reach.known_hosts),
    }
    return {
        "ansible_connection": "ssh",
        "ansible_host": node.host,
        "ansible_port": reach.port,
        "ansible_python_interpreter": reach.python,
        **{k: v for k, v in known.items() if v},
        **become,
    }


def known_hosts_arguments(path: str | None) -> str:
    """What ssh is given so that the hosts' keys in this file count, and it learns none by itself."""
    if path is None:
        return ""
    return f'-o UserKnownHostsFile="{path}" -o StrictHostKeyChecking=yes -o UpdateHostKeys=no'


def file_header(node: Broker | Controller, spec: ClusterSpec) -> str:
    """The first line of each file that this tool writes on a host; any other file is kept before it is replaced."""
    return f"{node.named.capitalize()} of cluster {spec.name}"


def by_machine(spec: ClusterSpec, nodes: Iterable[N]) -> list[list[N]]:
    """The nodes, grouped by machine, since Ansible takes its time for each machine."""
    machines: dict[str, list[N]] = {}
    for each in nodes:
        machines.setdefault(spec.machine_of(each), []).append(each)
    return list(machines.values())
