"""ACLs and delegation tokens in ZooKeeper that Kafka 3.9.2 can't handle; read from its source as znode_faults says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

from kraft_runbook.cluster.java_values import (
    NotJson,
    is_java_int,
    is_java_long,
    is_url_decodable,
    parse_json,
)
from kraft_runbook.metadata.znodes.fault_terms import (
    COPY,
    DIFFERS,
    START,
    Said,
    too_long,
)

_RESOURCE_TYPES = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
_OPERATIONS = {
    each.upper()
    for each in [
        "All",
        "Read",
        "Write",
        "Create",
        "Delete",
        "Alter",
        "Describe",
        "ClusterAction",
        "DescribeConfigs",
        "AlterConfigs",
        "IdempotentWrite",
        "CreateTokens",
        "DescribeTokens",
    ]
}


def acl_faults(resource_type: str, name: list[str], data: bytes) -> Said:
    """``AclEntry.fromBytes``, and which znodes ``loadAllAcls`` comes to: /<Type>/<name>, the type spelt as Kafka spells
    it.
    """
    if not name:
        return
    if resource_type not in _RESOURCE_TYPES:
        yield (
            (COPY if resource_type == "Any" else DIFFERS),
            f"{resource_type} is no resource type: Kafka does not see what lies here",
        )
        return
    if len(name) > 1:
        yield DIFFERS, "it lies too deep: Kafka does not see it"
        return
    if not data:
        return
    try:
        entries = parse_json(data)
    except NotJson:
        yield DIFFERS, "not JSON: Kafka takes it as empty"
        return
    problems = list(dict.fromkeys(_acl_problems(entries)))
    for problem in problems:
        yield COPY, problem
        yield START, problem
    if problems:
        return
    if any(_is_unknown(entry) for entry in entries["acls"]):
        yield DIFFERS, "an entry's operation or permission is unknown to Kafka 3.9, which then matches nothing"
    yield from too_long("its resource's name", name[0])
    for entry in entries["acls"]:
        yield from too_long("an entry's principal", entry["principal"])
        yield from too_long("an entry's host", entry["host"])


def _acl_problems(entries: object) -> Iterator[str]:
    if not isinstance(entries, dict):
        yield "it is not a JSON object"
        return
    if not (is_java_int(entries.get("version")) and entries["version"] == 1):
        yield "version is not 1"
    acls = entries.get("acls")
    if not isinstance(acls, list):
        yield "acls is not a list"
        return
    for entry in acls:
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(each), str) for each in ("principal", "host", "operation", "permissionType")
        ):
            yield "an entry lacks a principal, host, operation or permissionType"
        elif ":" not in entry["principal"]:
            yield "an entry's principal is not type:name"
        elif "ANY" in (entry["operation"].upper(), entry["permissionType"].upper()):
            yield "an entry says ANY, which only a search may"


def _is_unknown(entry: dict[str, str]) -> bool:
    return entry["operation"].upper() not in _OPERATIONS or entry["permissionType"].upper() not in ("ALLOW", "DENY")


def token_faults(data: bytes) -> Said:
    """``DelegationTokenManagerZk.fromBytes``. A starting broker logs what it can't read; the copy ends on it."""
    if not data:
        return
    try:
        token = parse_json(data)
    except NotJson:
        yield DIFFERS, "not JSON: Kafka takes it as no token"
        return
    if not isinstance(token, dict):
        yield COPY, "it is not a JSON object"
        return
    version = token.get("version")
    if not (is_java_int(version) and 1 <= version <= 3):
        yield COPY, "version is none of 1, 2, 3"
        return
    renewers = token.get("renewers")
    people: dict[str, list[Any]] = {
        each: [token.get(each)] for each in ("owner", *(["tokenRequester"] if version >= 3 else []))
    }
    people["renewers"] = renewers if isinstance(renewers, list) else [None]
    for name, principals in people.items():
        if not all(
            isinstance(each, str) and is_url_decodable(each) and re.search(":|%3A", each, re.IGNORECASE)
            for each in principals
        ):
            yield COPY, f"{name} is not type:name, escaped"
            continue
        for each in principals:
            yield from too_long(name, unquote_plus(each))
    for name in ("issueTimestamp", "expiryTimestamp", "maxTimestamp"):
        if not is_java_long(token.get(name)):
            yield COPY, f"{name} is not a whole number of 64 bits"
    if not isinstance(token.get("tokenId"), str):
        yield COPY, "tokenId is missing"
    else:
        yield from too_long("tokenId", token["tokenId"])
