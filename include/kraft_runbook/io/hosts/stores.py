"""Looking into the nodes' key stores, trust stores and secrets on their hosts. Changes nothing; no password is in any
file, argument, log or result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, Unread
from kraft_runbook.cluster.secrets_seen import LoginSeen, SecretsSeen
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.cluster.stores import KEYS, THIS_TOOL, TRUST, StoreNamed, StoreSeen, stores_named
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.hosts.certificates import StoreRead, store_read, with_anchors
from kraft_runbook.io.hosts.node_secrets import Look, NodeSecrets
from kraft_runbook.io.secrets import Secrets

SECONDS = 120.0
PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_REFERENCE = re.compile(r"\$\{secrets:([^:{}]+):([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class SecuredRead:
    """``stores``: what each node's host shows of its stores, by node; a node that names none is left out. This tool's
    own are at ``THIS_TOOL``. ``secrets``: the same of each node's secrets. ``own_login``: this tool's, at the
    controllers.
    """

    stores: Mapping[int, tuple[StoreSeen, ...] | Unread]
    secrets: Mapping[int, SecretsSeen]
    own_login: LoginSeen | Unread


def read_secured(spec: ClusterSpec, *, secrets: Secrets) -> SecuredRead:
    """The stores and the secrets of all nodes, in one run. A host or a part that can't be read gives the reason, never
    an exception.
    """
    look = Look(spec, secrets)
    properties = {node.id: _properties(spec, node) for node in spec.nodes}
    asked = {node: tuple(stores_named(its)) for node, its in properties.items()}
    secrets_of = {node.id: NodeSecrets(look, node, properties[node.id]) for node in spec.nodes}
    there = [node for node in spec.nodes if asked[node.id] or secrets_of[node.id].asks]
    values: list[str] = []
    given = {
        str(node.id): {
            "stores": [_asked(look, each, properties[node.id], values) for each in asked[node.id]],
            "secrets": secrets_of[node.id].asked,
        }
        for node in there
    }
    told = _told(spec, there, given, values, secrets) if there else {}
    own = list(own_stores(spec))
    found: dict[int, list[StoreRead] | Unread] = {THIS_TOOL: own} if own else {}
    for node in there:
        if not asked[node.id]:
            continue
        facts = told[node.id]
        found[node.id] = (
            facts
            if isinstance(facts, Unread)
            else [_read(*each) for each in zip(asked[node.id], facts["stores"], strict=True)]
        )
    nothing: dict[str, Any] = {"secrets": {"logins": {}, "compared": {}}}
    seen: dict[int, SecretsSeen] = {}
    for node_id, its in secrets_of.items():
        facts = told.get(node_id, nothing)
        seen[node_id] = its.seen(facts if isinstance(facts, Unread) else facts["secrets"])
    return SecuredRead(with_anchors(found), seen, look.own_login(spec.controller_security))


def _told(
    spec: ClusterSpec,
    there: Sequence[Broker | Controller],
    given: Mapping[str, Any],
    values: Sequence[str],
    secrets: Secrets,
) -> dict[int, Mapping[str, Any] | Unread]:
    """What these nodes' hosts answer."""
    from kraft_runbook.io.hosts.ansible_runs import run_ansible  # slow to import, and only this needs it
    from kraft_runbook.io.hosts.inventory import host_name, node_variables
    from kraft_runbook.io.hosts.playbooks import playbook_directory

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
    told: dict[int, Mapping[str, Any] | Unread] = {}
    for node in there:
        host = report.hosts[host_name(node)]
        why = host.failure[1] if host.failure else f"ansible ended as {report.status}"
        told[node.id] = host.facts if host.facts.get("stores") is not None else Unread(why)
    return told


def _properties(spec: ClusterSpec, node: Broker | Controller) -> dict[str, str]:
    migrates = spec.zookeeper is not None
    if isinstance(node, Broker):
        return broker_properties(spec, node, BrokerMode.HYBRID if migrates else BrokerMode.KRAFT)
    return controller_properties(spec, node, ControllerMode.MIGRATION if migrates else ControllerMode.KRAFT)


def _asked(look: Look, store: StoreNamed, properties: Mapping[str, str], values: list[str]) -> dict[str, Any]:
    """What the host is asked of a store: with the passwords that this tool would write, or where its own are."""
    passwords: dict[str, dict[str, str | None]] = {}
    unknown = []
    for name, key in (("password", store.password), ("key_password", store.key_password)):
        value = reference = None
        try:
            value = None if key is None else look.follow(properties[key])
            reference = properties[key] if key is not None and value is None else None
        except RunbookError as error:
            unknown.append(error.problem)
        values += [value] if value else []
        passwords[name] = {"value": value, "reference": reference}
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
