"""Looking into the nodes' key stores and trust stores on their hosts. Changes nothing; no password is in any file,
argument, log or result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker, Controller
from kraft_runbook.cluster.stores import KEYS, THIS_TOOL, TRUST, StoreNamed, StoreSeen, stores_named
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.hosts.certificates import StoreRead, store_read, with_anchors
from kraft_runbook.io.secrets import Secrets

SECONDS = 120.0
PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_REFERENCE = re.compile(r"\$\{secrets:([^:{}]+):([^{}]+)\}")


def node_stores(spec: ClusterSpec, node: Broker | Controller) -> tuple[StoreNamed, ...]:
    """The stores that a node's properties name: those of the migration where there is a ZooKeeper, else of KRaft."""
    return tuple(stores_named(_properties(spec, node)))


def read_stores(spec: ClusterSpec, *, secrets: Secrets) -> dict[int, tuple[StoreSeen, ...] | Unread]:
    """What each node's host shows of its stores, by node; a node that names none is left out. This tool's own are at
    ``THIS_TOOL``. A host or a store that can't be read gives the reason, never an exception.
    """
    nodes = spec.nodes
    asked = {node.id: stores for node in nodes if (stores := node_stores(spec, node))}
    own = list(own_stores(spec))
    if not asked:
        return with_anchors({THIS_TOOL: own} if own else {})
    from kraft_runbook.io.hosts.ansible_runs import run_ansible  # slow to import, and only this needs it
    from kraft_runbook.io.hosts.inventory import host_name, node_variables
    from kraft_runbook.io.hosts.playbooks import playbook_directory

    values: list[str] = []
    given = {
        str(node.id): [_asked(spec, each, _properties(spec, node), secrets, values) for each in asked[node.id]]
        for node in nodes
        if node.id in asked
    }
    there = [node for node in nodes if node.id in asked]
    report = run_ansible(
        playbook_directory() / "read_stores.yml",
        {host_name(node): node_variables(spec, node) for node in there},
        check=False,
        timeout=SECONDS,
        secret_text=json.dumps(given),
        secret_values=values,
        tell=lambda _: None,
        secrets=secrets,
        labels={host_name(node): node.named for node in there},
    )
    found: dict[int, list[StoreRead] | Unread] = {THIS_TOOL: own} if own else {}
    for node in there:
        host = report.hosts[host_name(node)]
        told = host.facts.get("stores")
        if told is None:
            found[node.id] = Unread(host.failure[1] if host.failure else f"ansible ended as {report.status}")
        else:
            found[node.id] = [_read(*each) for each in zip(asked[node.id], told, strict=True)]
    return with_anchors(found)


def _properties(spec: ClusterSpec, node: Broker | Controller) -> dict[str, str]:
    migrates = spec.zookeeper is not None
    if isinstance(node, Broker):
        return broker_properties(spec, node, BrokerMode.HYBRID if migrates else BrokerMode.KRAFT)
    return controller_properties(spec, node, ControllerMode.MIGRATION if migrates else ControllerMode.KRAFT)


def _asked(
    spec: ClusterSpec, store: StoreNamed, properties: Mapping[str, str], secrets: Secrets, values: list[str]
) -> dict[str, Any]:
    """What the host is asked of a store: with the passwords that this tool would write, or where its own are."""
    passwords: dict[str, dict[str, Any]] = {}
    unknown = []
    for name, key in (("password", store.password), ("key_password", store.key_password)):
        passwords[name] = {"value": None, "reference": None}
        if key is None:
            continue
        match = _REFERENCE.fullmatch(properties[key])
        if match is None:
            unknown.append(f"{key} is no reference to a file of the host")
        elif match.group(1) == spec.secrets_file and match.group(2) in spec.secrets:
            try:
                passwords[name]["value"] = secrets(spec.secrets[match.group(2)])
                values.append(passwords[name]["value"])
            except RunbookError as error:
                unknown.append(error.problem)
        else:
            passwords[name]["reference"] = [match.group(1), match.group(2)]
    return {
        "path": store.path,
        "kind": store.kind,
        "type": store.type,
        "of_zookeeper": store.of_zookeeper,
        **passwords,
        "unknown": "; ".join(unknown),
    }


def _read(store: StoreNamed, told: Mapping[str, Any]) -> StoreRead:
    if told.get("wrong"):
        return StoreRead(StoreSeen(store.key, store.path, wrong=str(told["wrong"])))
    if told.get("unread"):
        return StoreRead(StoreSeen(store.key, store.path, unread=str(told["unread"])))
    return store_read(store, told["certificates"])


def own_stores(spec: ClusterSpec) -> Iterator[StoreRead]:
    """This tool's own certificates, and those that it trusts, of the blocks by which it reaches brokers and
    controllers.
    """
    blocks = {"broker_security": spec.broker_security, "controller_security": spec.controller_security}
    for block, security in blocks.items():
        given = ((KEYS, "certificate_file", security.certificate_file), (TRUST, "ca_file", security.ca_file))
        for kind, key, path in given if security.protocol.is_tls else ():
            if path is None:
                continue
            named = StoreNamed(f"{block}.{key}", path, kind, "PEM", None)
            try:
                found = PEM.findall(Path(path).read_text(encoding="latin-1"))
            except OSError as error:
                why = f"this tool can't read it ({error.strerror or error})"
                yield StoreRead(StoreSeen(named.key, path, wrong=why))
                continue
            if found:
                yield store_read(named, found)
            else:
                yield StoreRead(StoreSeen(named.key, path, wrong="it holds no certificate"))
