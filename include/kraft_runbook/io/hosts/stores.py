"""Looking into the nodes' key stores and trust stores on their hosts. Changes nothing; no password is in any file,
argument, log or result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker, Controller
from kraft_runbook.cluster.stores import Certificate, StoreNamed, StoreSeen, stores_named
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.secrets import Secrets

SECONDS = 120.0
NAMED = {
    NameOID.COMMON_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COUNTRY_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.DOMAIN_COMPONENT,
    NameOID.USER_ID,
}
"""The attributes that RFC 2253 names (section 2.3). Of any other, e.g. emailAddress, Java writes the value's bytes."""
_REFERENCE = re.compile(r"\$\{secrets:([^:{}]+):([^{}]+)\}")


def node_stores(spec: ClusterSpec, node: Broker | Controller) -> tuple[StoreNamed, ...]:
    """The stores that a node's properties name: those of the migration where there is a ZooKeeper, else of KRaft."""
    return tuple(stores_named(_properties(spec, node)))


def read_stores(spec: ClusterSpec, *, secrets: Secrets) -> dict[int, tuple[StoreSeen, ...] | Unread]:
    """What each node's host shows of its stores, by node; a node that names none is left out. A host or a store that
    can't be read gives the reason, never an exception.
    """
    nodes: list[Broker | Controller] = [*spec.brokers, *spec.controllers]
    asked = {node.id: stores for node in nodes if (stores := node_stores(spec, node))}
    if not asked:
        return {}
    from kraft_runbook.io.hosts.ansible_runs import run_ansible  # slow to import, and only this needs it
    from kraft_runbook.io.hosts.inventory import host_name, label, node_variables
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
        labels={host_name(node): label(node) for node in there},
        directory=None,
    )
    found: dict[int, tuple[StoreSeen, ...] | Unread] = {}
    for node in there:
        host = report.hosts[host_name(node)]
        told = host.facts.get("stores")
        if told is None:
            found[node.id] = Unread(host.failure[1] if host.failure else f"ansible ended as {report.status}")
        else:
            found[node.id] = tuple(_seen(*each) for each in zip(asked[node.id], told, strict=True))
    return found


def _properties(spec: ClusterSpec, node: Broker | Controller) -> dict[str, str]:
    migrates = spec.zookeeper is not None
    if isinstance(node, Broker):
        return broker_properties(spec, node, BrokerMode.HYBRID if migrates else BrokerMode.KRAFT)
    return controller_properties(spec, node, ControllerMode.MIGRATION if migrates else ControllerMode.KRAFT)


def _asked(
    spec: ClusterSpec, store: StoreNamed, properties: Mapping[str, str], secrets: Secrets, values: list[str]
) -> dict[str, Any]:
    """What the host is asked of a store: with the password that this tool would write, or where its own is."""
    password = reference = None
    unknown = ""
    if store.password is not None:
        value = properties[store.password]
        match = _REFERENCE.fullmatch(value)
        if match is None:
            unknown = f"{store.password} is no reference to a file of the host"
        elif match.group(1) == spec.secrets_file and match.group(2) in spec.secrets:
            try:
                password = secrets(spec.secrets[match.group(2)])
                values.append(password)
            except RunbookError as error:
                unknown = error.problem
        else:
            reference = [match.group(1), match.group(2)]
    return {
        "path": store.path,
        "kind": store.kind,
        "type": store.type,
        "password": password,
        "reference": reference,
        "unknown": unknown,
    }


def _seen(store: StoreNamed, told: Mapping[str, Any]) -> StoreSeen:
    if told.get("wrong"):
        return StoreSeen(store.key, store.path, wrong=str(told["wrong"]))
    if told.get("unread"):
        return StoreSeen(store.key, store.path, unread=str(told["unread"]))
    if not told.get("certificate"):
        return StoreSeen(store.key, store.path)
    try:
        return StoreSeen(store.key, store.path, certificate=certificate_of(str(told["certificate"])))
    except ValueError:
        return StoreSeen(store.key, store.path, unread="its certificate could not be decoded")


def certificate_of(pem: str) -> Certificate:
    """Raises ValueError."""
    found = x509.load_pem_x509_certificate(pem.encode())
    names = tuple(_names(found))
    subject = found.subject.rfc4514_string() if all(each.oid in NAMED for each in found.subject) else None
    return Certificate(subject, found.not_valid_before_utc, found.not_valid_after_utc, names)


def _names(certificate: x509.Certificate) -> Iterator[str]:
    try:
        extension = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except x509.ExtensionNotFound:
        yield from (str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
        return
    assert isinstance(extension, x509.SubjectAlternativeName)
    yield from extension.get_values_for_type(x509.DNSName)
    yield from map(str, extension.get_values_for_type(x509.IPAddress))
