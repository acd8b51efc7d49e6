"""Reading the configuration files of brokers that no cluster file describes yet. Changes nothing. Secrets stay on
their hosts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.hosts.ansible_reports import value_of
from kraft_runbook.io.hosts.ansible_runs import run_ansible
from kraft_runbook.io.hosts.foreign_inventory import InventoryHost
from kraft_runbook.io.hosts.inventory import known_hosts_arguments
from kraft_runbook.io.hosts.playbooks import playbook_directory
from kraft_runbook.io.secrets import Secrets

SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class AskedHost:
    """One broker's host, and where its file, its service and its Kafka are said to be."""

    at: InventoryHost
    config_file: str
    service: str
    home: str
    version: str


@dataclass(frozen=True, slots=True)
class ReadHost:
    """The file (None: there is none), whether the service is defined, whether that Kafka is at that home."""

    config: Mapping[str, str] | Unread | None
    service_defined: bool | Unread
    has_software: bool | Unread


def read_hosts(
    asked: Sequence[AskedHost],
    *,
    manager: str,
    socket: str | None,
    secrets: Secrets,
    known_hosts: str | None = None,
    become_password: SecretRef | None = None,
) -> tuple[ReadHost, ...]:
    """Each host's answer, in order; a host that can't be read is Unread with its reason. The last two: as in a cluster
    file's ``reach``.
    """
    further = {
        **({"ansible_ssh_common_args": known_hosts_arguments(known_hosts)} if known_hosts else {}),
        **({"ansible_become_password": become_password} if become_password else {}),
    }
    names = [f"host-{at}" for at in range(len(asked))]
    report = run_ansible(
        playbook_directory() / "gather_host_facts.yml",
        {name: {**_variables(each, manager, socket), **further} for name, each in zip(names, asked, strict=True)},
        check=False,
        timeout=SECONDS,
        secret_text=None,
        secret_values=[],
        tell=lambda _: None,
        secrets=secrets,
        labels={name: each.at.name for name, each in zip(names, asked, strict=True)},
    )
    found = []
    for name in names:
        host = report.hosts[name]
        facts = host.facts.get("0", {})
        reason = host.failure[1] if host.failure else report.ending
        config, service, software = (
            value_of(facts.get(key, {"unread": reason})) for key in ("config", "service_defined", "classpath_ok")
        )
        found.append(ReadHost(config, service, software))
    return tuple(found)


def _variables(asked: AskedHost, manager: str, socket: str | None) -> dict[str, Any]:
    """What ``gather_host_facts`` is given of a host of which only the place of its files is known."""
    here = {"ansible_python_interpreter": sys.executable} if asked.at.reach.get("ansible_connection") == "local" else {}
    node = {
        "node_id": 0,
        "name": asked.service,
        "host": "localhost",
        "ports": [],
        "log_dirs": ["/"],
        "config_file": asked.config_file,
        "must_reach": [],
    }
    return {
        "ansible_host": asked.at.host,
        **here,
        **asked.at.reach,
        "manager": manager,
        **({"manager_socket": socket} if socket else {}),
        "secrets_file": "",
        "kafka_home": asked.home,
        "kafka_version": asked.version,
        "replicas": False,
        "replicas_seconds": 1.0,
        "nodes": [node],
    }
