"""The processor time of the nodes' processes and of ZooKeeper's, as their hosts show it. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraft_runbook.cluster.processor_time import Spent
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.hosts.ansible_reports import HostReport
from kraft_runbook.io.hosts.ansible_runs import run_ansible
from kraft_runbook.io.hosts.inventory import by_machine, host_name, node_variables
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.secrets import FROM_ENVIRONMENT, Secrets

_SECONDS = 60.0


def read_processor_time(spec: ClusterSpec, *, secrets: Secrets = FROM_ENVIRONMENT) -> dict[str, Spent | Unread]:
    """By ``broker 1``, ``controller 101`` and ``ZooKeeper host:port``. A ZooKeeper server is looked for on the hosts of
    the nodes. What can't be read is Unread with its reason, never an exception.
    """
    nodes = spec.nodes
    ensemble = spec.zookeeper.servers if spec.zookeeper else ()
    machines = {f"host-of-{host_name(together[0])}": together for together in by_machine(spec, nodes)}
    servers = {name: _servers_there(spec, together) for name, together in machines.items()}
    try:
        report = run_ansible(
            playbook_directory() / "read_cpu.yml",
            {
                name: {
                    **node_variables(spec, together[0]),
                    "services": {each.named: each.service for each in together},
                    "listeners": servers[name],
                }
                for name, together in machines.items()
            },
            check=False,
            timeout=_SECONDS,
            secret_text=None,
            secret_values=[],
            tell=lambda _: None,
            secrets=secrets,
            labels={name: ", ".join(each.named for each in together) for name, together in machines.items()},
        )
    except (RunbookError, OSError) as error:
        why = Unread(error.problem if isinstance(error, RunbookError) else str(error))
        return dict.fromkeys([*(each.named for each in nodes), *(f"ZooKeeper {each}" for each in ensemble)], why)
    found: dict[str, Spent | Unread] = {
        f"ZooKeeper {each}": Unread("no node of the cluster file is on its host") for each in ensemble
    }
    for name, together in machines.items():
        host = report.hosts[name]
        for key in (each.named for each in together):
            found[key] = _spent(key, host, report.output)
        for server in servers[name]:
            found[f"ZooKeeper {server}"] = _spent(server, host, report.output)
    return found


def _servers_there(spec: ClusterSpec, together: list[Broker | Controller]) -> list[str]:
    servers = spec.zookeeper.servers if spec.zookeeper else ()
    here = {each.host for each in together}
    return [each for each in servers if spec.reach.kind == "local" or each.rpartition(":")[0].strip("[]") in here]


def _spent(key: str, host: HostReport, output: str) -> Spent | Unread:
    told: Mapping[str, Any] = host.facts.get(key) or {}
    if "value" in told:
        return Spent(str(told["value"]["process"]), float(told["value"]["seconds"]))
    why = told.get("unread") or (host.failure[1] if host.failure else output.rpartition("\n")[2])
    return Unread(str(why or "ansible said nothing"))
