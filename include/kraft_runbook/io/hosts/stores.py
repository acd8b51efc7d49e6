"""What the nodes' hosts are asked of their key stores, trust stores and secrets, and what that says. Changes nothing;
no password is in any file, argument, log or result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties, kraft_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, Unread
from kraft_runbook.cluster.secrets_seen import LoginSeen, SecretsSeen
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.cluster.stores import KEYS, THIS_TOOL, TRUST, StoreNamed, StoreSeen, stores_named
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.hosts.certificates import StoreRead, store_read, with_anchors
from kraft_runbook.io.hosts.node_secrets import Look, NodeSecrets, ScramLogin
from kraft_runbook.io.secrets import Secrets

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


class SecuredQuestion:
    """What the hosts are asked of the nodes' stores and secrets. ``asked``: by node; one that names none is left out.
    ``text``: the same as the playbook reads it. ``values``: the secrets in it.
    """

    def __init__(self, spec: ClusterSpec, secrets: Secrets, scram: ScramLogin | None = None) -> None:
        self._look = Look(spec, secrets, scram)
        properties = {node.id: _properties(spec, node) for node in spec.nodes}
        self._stores = {node: tuple(stores_named(its)) for node, its in properties.items()}
        self._secrets = {
            node.id: NodeSecrets(self._look, node, properties[node.id], kraft_properties(spec, node.id))
            for node in spec.nodes
        }
        self.values: list[str] = []
        self.asked: dict[int, Any] = {
            node: {
                "stores": [_asked(self._look, each, its, self.values) for each in self._stores[node]],
                "secrets": self._secrets[node].asked,
            }
            for node, its in properties.items()
            if self._stores[node] or self._secrets[node].asks
        }

    @property
    def text(self) -> str:
        return json.dumps({str(node): asked for node, asked in self.asked.items()})

    def answered(self, told: Mapping[int, Mapping[str, Any] | Unread]) -> SecuredRead:
        """``told``: each host's answer, or why there is none."""
        spec = self._look.spec
        own = list(own_stores(spec))
        found: dict[int, list[StoreRead] | Unread] = {THIS_TOOL: own} if own else {}
        for node, stores in self._stores.items():
            if not stores:
                continue
            facts = told[node]
            found[node] = (
                facts
                if isinstance(facts, Unread)
                else [_read(*each) for each in zip(stores, facts["stores"], strict=True)]
            )
        nothing: dict[str, Any] = {"secrets": {"logins": {}, "compared": {}, "files": {}}}
        seen: dict[int, SecretsSeen] = {}
        for node, its in self._secrets.items():
            facts = told[node] if node in self.asked else nothing
            seen[node] = its.seen(facts if isinstance(facts, Unread) else facts["secrets"])
        return SecuredRead(with_anchors(found), seen, self._look.own_login(spec.controller_security))


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
