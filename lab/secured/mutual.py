"""The secured lab with mutual TLS in the place of every login: brokers, controllers, ZooKeeper and this tool know each
other by their certificates alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lab.layout import ROOT

RULES = r"RULE:^CN=(?:broker|controller)-[0-9]+$/kafka/,RULE:^CN=(.*)$/$1/"
"""Nodes are ``User:kafka`` whatever their certificates' numbers; of everybody else the common name is the user."""
AT_LISTENER = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": RULES}


def write_mutual_cluster_file(directory: Path) -> Path:
    """Write ``lab.yaml`` below ``directory``: the secured lab's own, by certificates. Returns the file."""
    document = yaml.safe_load((ROOT / "lab" / "secured" / "lab.yaml").read_text())
    document["description"] = "A secured lab. Mutual TLS between brokers, controllers, ZooKeeper and this tool"
    _ask_for_certificates(document)
    for key in ("broker_properties", "controller_properties"):
        kept = {name: value for name, value in document[key].items() if "sasl." not in name}
        document[key] = kept | AT_LISTENER
    document["secrets"] = {name: ref for name, ref in document["secrets"].items() if "sasl." not in name}
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "lab.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False).replace("${PROJECT_ROOT}", str(ROOT)))
    return path


def _ask_for_certificates(document: dict[str, Any]) -> None:
    """Each listener by SSL, and this tool by a certificate of its own; at ZooKeeper by the brokers', whose znodes it
    has to delete on the way back.
    """
    at_zookeeper = document["zookeeper"]["security"]
    own = str(at_zookeeper["certificate_file"])
    plain = {"protocol": "SSL", "ca_file": at_zookeeper["ca_file"]}
    document["broker_security"] = plain | {"certificate_file": own, "key_file": own}
    document["controller_security"] = dict(document["broker_security"])
    brokers = own.replace("tool.pem", "kafka.pem")
    document["zookeeper"]["security"] = plain | {"certificate_file": brokers, "key_file": brokers}
    document["controller_listener"]["protocol"] = "SSL"
    for broker in document["brokers"]:
        for listener in broker["listeners"]:
            listener["protocol"] = "SSL"
