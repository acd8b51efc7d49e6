"""A lab adopted as it runs: by ``kraft-runbook adopt``, and what no broker's file tells by hand, as its notes ask."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from labs import Lab

from kraft_runbook.cli.app import main
from kraft_runbook.cluster.cluster_file import load_cluster, parse_cluster
from kraft_runbook.cluster.controller_calls import CALLED_BY
from kraft_runbook.io.secrets import Secrets, environment_secrets
from lab import ROOT

UNTOLD = (
    *("broker_security", "controller_security", "controller_listener", "controller_properties", "controllers"),
    *("metrics", "deadlines", "approvals"),
)
"""Blocks of the cluster file of which no broker's file says anything."""


def adopt(lab: Lab, directory: Path) -> Lab:
    """The lab by the file ``adopted.yaml``, which is written into the directory as it is."""
    spec = lab.spec
    brokers = {
        f"b{each.id}": {
            "ansible_host": each.host,
            "krb_config_file": each.config_file,
            "krb_service": each.service,
            "krb_metrics_port": each.metrics_port,
        }
        for each in spec.brokers
    }
    controllers = {
        f"c{each.id}": {
            "ansible_host": each.host,
            **{f"krb_{key}": getattr(each, key) for key in ("id", "port", "log_dir", "config_file", "service")},
        }
        for each in spec.controllers
    }
    inventory = directory / "hosts.yml"
    groups = {"kafka_broker": {"hosts": brokers}, "kafka_controller": {"hosts": controllers}}
    inventory.write_text(json.dumps({"all": {"vars": {"ansible_connection": "local"}, "children": groups}}))
    with pytest.raises(SystemExit) as ended:
        main(
            [
                *("adopt", "--name", "adopted", "--inventory", str(inventory), "--clusters-dir", str(directory)),
                *("--supervisor", str(spec.service_manager.socket), "--kafka-home", spec.kafka.home),
            ]
        )
    assert not ended.value.code
    return replace(lab, spec=load_cluster("adopted", directory=directory, environment=lab.environment))


def completed(lab: Lab, directory: Path) -> tuple[Lab, Secrets]:
    """The adopted lab with what its notes ask for taken from the lab's own file: the logins of this tool, and how the
    controllers are secured. Its secrets: the variables that the adopted file proposes, with the lab's values.
    """
    data = yaml.safe_load((directory / "adopted.yaml").read_text())
    own = yaml.safe_load(((lab.clusters or ROOT / "include" / "clusters") / "lab.yaml").read_text())
    data = {key: value for key, value in data.items() if key != "controller_defaults"}
    data |= {key: own[key] for key in UNTOLD if key in own}
    asked = own["broker_properties"].get(CALLED_BY)
    data["broker_properties"] |= {CALLED_BY: asked} if asked else {}
    data["zookeeper"] |= {key: own["zookeeper"][key] for key in ("security",) if key in own["zookeeper"]}
    proposed = dict(data.get("secrets") or {})
    data["secrets"] = {**{key: ref for key, ref in own["secrets"].items() if key not in proposed}, **proposed}
    open_ones = lab.spec.broker_properties  # a login that holds no secret is hidden on the hosts, too
    values = {
        ref["env"]: lab.secrets(lab.spec.secrets[key]) if key in lab.spec.secrets else open_ones[key]
        for key, ref in proposed.items()
    }
    spec = parse_cluster(yaml.safe_dump(data), source="adopted.yaml", environment=lab.environment)
    return replace(lab, spec=spec), environment_secrets({**lab.environment, **values})
