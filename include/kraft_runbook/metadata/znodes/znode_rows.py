"""Znodes to canonical rows, one function a kind of znode. What can't be parsed becomes a row that names its path.

The formats are those of Kafka 3.9's ``ZkData``; names are read as the copy reads them (``kafka.zk.migration``):
sanitized are those of quotas and credentials (``ZkConfigMigrationClient``) and the principals in tokens
(``DelegationTokenManagerZk``); verbatim those of topics, brokers, ACLs' resources and tokens.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.acl_names import OPERATIONS, PERMISSIONS, RESOURCE_TYPES
from kraft_runbook.metadata.canonical_rows import Entity, Fingerprints, Kind, Row
from kraft_runbook.metadata.znodes.cluster_rows import broker_rows, cluster_id_rows, controller_rows, migration_rows
from kraft_runbook.metadata.znodes.password_encoder import Undecodable, decode_password
from kraft_runbook.metadata.znodes.znode_json import parse_object
from kraft_runbook.metadata.znodes.znode_values import (
    INT32,
    INT64,
    PATH_NUMBER,
    BadZnode,
    desanitize,
    double,
    json_int,
    json_text,
    json_texts,
    number_in_a_path,
    whole,
)

__all__ = [
    "BadZnode",
    "Decoding",
    "assigned_partitions",
    "path_of",
    "quota_entity",
    "rows_of",
    "stat_rows",
]

DEFAULT_ENTITY = "<default>"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class Decoding:
    """What decoding needs beside the bytes. ``encoder_secret``: password.encoder.secret, or None with the reason it is
    not at hand.
    """

    fingerprints: Fingerprints
    encoder_secret: str | None = None
    why_no_encoder_secret: str = "password.encoder.secret is not named under 'secrets' in the cluster file"  # noqa: S105 - an explanation


def rows_of(path: str, data: bytes, decoding: Decoding) -> list[Row]:
    """The rows of the znode at ``path`` (Kafka's path, without a chroot). Where its data can't be parsed, one row that
    names the path.

    A path that holds nothing to compare has no rows. Each row carries ``path``.
    """
    try:
        rows = dict.fromkeys(_route(path, data, decoding))
        "".join(
            row.key + row.value for row in rows
        ).encode()  # half a surrogate pair, which JSON can hold, has no bytes
        return [Row(row.kind, row.key, row.value, path) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, binascii.Error) as error:
        reason = str(error) if isinstance(error, BadZnode) else f"not what Kafka writes there ({type(error).__name__})"
        return [canonical_rows.unreadable(path, reason)]


def _route(path: str, data: bytes, decoding: Decoding) -> Iterable[Row]:
    match path.split("/")[1:]:
        case ["brokers", "topics", topic]:
            return topic_rows(topic, data)
        case ["brokers", "topics", topic, "partitions", partition, "state"]:
            return partition_state_rows(topic, number_in_a_path(partition), data)
        case ["config", "topics", topic]:
            return topic_config_rows(topic, data, decoding)
        case ["config", "brokers", broker]:
            return broker_config_rows(broker, data, decoding)
        case ["config", "users" | "clients" | "ips", _] | ["config", "users", _, "clients", _]:
            return quota_rows(path.removeprefix("/config/"), data, decoding)
        case ["kafka-acl", resource_type, *name]:
            return acl_rows("LITERAL", resource_type, "/".join(name), data)
        case ["kafka-acl-extended", "prefixed", resource_type, *name]:
            return acl_rows("PREFIXED", resource_type, "/".join(name), data)
        case ["delegation_token", "tokens", _]:
            return delegation_token_rows(data, decoding)
        case ["latest_producer_id_block"]:
            return producer_id_rows(data)
        case ["cluster", "id"]:
            return cluster_id_rows(data)
        case ["brokers", "ids", broker]:
            return broker_rows(broker, data)
        case ["controller"]:
            return controller_rows(data)
        case ["migration"]:
            return migration_rows(data)
        case _:
            return ()


def stat_rows(path: str, version: int) -> list[Row]:
    """The rows from a znode's stat: for a partition's state its version, which must not be lower than the partition's
    epoch.
    """
    match path.split("/")[1:]:
        case ["brokers", "topics", topic, "partitions", partition, "state"] if PATH_NUMBER.fullmatch(partition):
            found = canonical_rows.partition_epoch(topic, int(partition), version)
            return [Row(found.kind, found.key, found.value, path)]
        case _:
            return []


def path_of(kind: Kind, key: str) -> str | None:
    """Where ZooKeeper holds a row, for the kinds of which each key has one path.

    None for those whose names are sanitized (quotas, credentials): a name has many spellings; for tokens, whose ids
    their keys do not show; and for what no znode holds.
    """
    parts = canonical_rows.parse_key(key)
    match kind:
        case Kind.TOPIC | Kind.ASSIGNMENT:
            return f"/brokers/topics/{parts[0]}"
        case Kind.PARTITION_STATE | Kind.PARTITION_EPOCH:
            return f"/brokers/topics/{parts[0]}/partitions/{parts[1]}/state"
        case Kind.TOPIC_CONFIG:
            return f"/config/topics/{parts[0]}"
        case Kind.BROKER_CONFIG:
            return f"/config/brokers/{parts[0] or DEFAULT_ENTITY}"
        case Kind.ACL:
            root = "/kafka-acl" if parts[1] == "LITERAL" else f"/kafka-acl-extended/{parts[1].lower()}"
            return f"{root}/{_camel(parts[0])}/{parts[2]}"
        case Kind.PRODUCER_IDS:
            return "/latest_producer_id_block"
        case Kind.CLUSTER_ID:
            return "/cluster/id"
        case Kind.BROKER:
            return f"/brokers/ids/{parts[0]}"
        case Kind.CONTROLLER | Kind.UNREADABLE:
            return str(parts[0])
        case _:
            return None


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


# -- topics ------------------------------------------------------------------------------------------------------------


def topic_rows(name: str, data: bytes) -> Iterator[Row]:
    """/brokers/topics/T, version 3 (KIP-516): its id, and each partition's assignment."""
    parsed = parse_object(data)
    yield canonical_rows.topic(name, parsed.get("topic_id"))
    adding, removing = (parsed.get(change, {}) for change in ("adding_replicas", "removing_replicas"))
    if type(adding) is not dict or type(removing) is not dict:
        raise BadZnode("the replicas being added or removed are no JSON object")
    for partition, replicas in parsed["partitions"].items():
        yield canonical_rows.assignment(
            name, whole(partition), _ids(replicas), _ids(adding.get(partition, [])), _ids(removing.get(partition, []))
        )


def assigned_partitions(data: bytes) -> tuple[int, ...]:
    """The partitions that /brokers/topics/T names; none where it can't be parsed (``topic_rows`` says so)."""
    try:
        return tuple(sorted({whole(p) for p in parse_object(data)["partitions"]}))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def partition_state_rows(topic: str, partition: int, data: bytes) -> Iterator[Row]:
    """/brokers/topics/T/partitions/P/state. controller_epoch is ZooKeeper's own and not compared, but Kafka reads none
    without it.
    """
    parsed = parse_object(data)
    recovery, _ = json_int(parsed.get("leader_recovery_state", 0)), json_int(parsed["controller_epoch"])
    yield canonical_rows.partition_state(
        topic, partition, json_int(parsed["leader"]), json_int(parsed["leader_epoch"]), _ids(parsed["isr"]), recovery
    )


def _ids(value: object) -> list[int]:
    if not isinstance(value, list) or not all(type(each) is int and each in INT32 for each in value):
        raise BadZnode("a list of broker ids is something else")
    return value


# -- configs -----------------------------------------------------------------------------------------------------------


def _config(data: bytes) -> dict[str, str]:
    """The ``config`` of a config znode. An empty znode, as an intermediate path may be, has none."""
    if not data:
        return {}
    config = parse_object(data).get("config", {})
    if not isinstance(config, dict) or not all(isinstance(v, str) for v in config.values()):
        raise BadZnode("'config' does not map names to texts")
    return config


def topic_config_rows(name: str, data: bytes, decoding: Decoding) -> Iterator[Row]:
    """/config/topics/T; passwords as of brokers. Kafka knows none of a topic, but its copy decodes what has such a name
    (``ZkConfigMigrationClient.readTopicConfigs``).
    """
    for key, value in _config(data).items():
        yield canonical_rows.topic_config(name, key, _config_value(key, value, decoding))


def broker_config_rows(znode: str, data: bytes, decoding: Decoding) -> Iterator[Row]:
    """/config/brokers/<id> and /config/brokers/<default>; passwords are decoded, and shown as fingerprints."""
    name = "" if znode == DEFAULT_ENTITY else znode
    for key, value in _config(data).items():
        yield canonical_rows.broker_config(name, key, _config_value(key, value, decoding))


def _config_value(name: str, value: str, decoding: Decoding) -> object:
    if canonical_rows.is_password_config(name):
        if decoding.encoder_secret is None:
            return canonical_rows.undecoded(decoding.why_no_encoder_secret)
        try:
            value = decode_password(value, decoding.encoder_secret)
        except Undecodable as error:
            return canonical_rows.undecoded(str(error))
    return canonical_rows.config_value(name, value, decoding.fingerprints)


def quota_entity(path: str) -> Entity:
    """The entity of a quota znode: ``users/U``, ``clients/C``, ``users/U/clients/C``, ``ips/I`` below /config, names
    sanitized (%XX).
    """
    types = {"users": "user", "clients": "client-id", "ips": "ip"}
    parts = path.split("/")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple((types[kind], None if name == DEFAULT_ENTITY else desanitize(name)) for kind, name in pairs)


def quota_rows(path: str, data: bytes, decoding: Decoding) -> Iterator[Row]:
    """A znode of quotas, as ``quota_entity`` takes it; also of SCRAM credentials, which the copy takes from all but
    those of a user's clients.

    A credential's user is the znode's name even where that is ``<default>``.
    """
    entity = quota_entity(path)
    for key, value in _config(data).items():
        if key in SCRAM_MECHANISMS and len(entity) == 1:
            yield _scram_row(desanitize(path.partition("/")[2]), key, value, decoding.fingerprints)
        else:
            try:
                number = double(value)
            except BadZnode:
                raise BadZnode(f"the quota {key} is not a number") from None
            yield canonical_rows.client_quota(entity, key, number)


class ScramCredential(NamedTuple):
    """What ZooKeeper keeps of a user's password, by one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def scram_credential(data: bytes, mechanism: str) -> ScramCredential | None:
    """Of a user's znode; None where it has none by this mechanism. Raises BadZnode."""
    value = _config(data).get(mechanism)
    return None if value is None else _scram_credential(mechanism, value)


def _scram_row(user: str, mechanism: str, value: str, fingerprints: Fingerprints) -> Row:
    found = _scram_credential(mechanism, value)
    return canonical_rows.scram_credential(user, mechanism, *found, fingerprints)


def _scram_credential(mechanism: str, value: str) -> ScramCredential:
    """``salt=…,stored_key=…,server_key=…,iterations=…`` (``ScramCredentialUtils``)."""
    fields = dict(part.split("=", 1) for part in value.split(","))
    try:
        if len(fields) != 4:
            raise BadZnode("it has four fields")
        salt, stored, server = (_base64(fields[name]) for name in ("salt", "stored_key", "server_key"))
        return ScramCredential(salt, stored, server, whole(fields["iterations"]))
    except (KeyError, ValueError):
        raise BadZnode(f"the {mechanism} credential is malformed") from None


def _base64(text: str) -> bytes:
    """As Java's encoder writes it: Python's decoder takes more for base64 than Java's."""
    found = base64.b64decode(text, validate=True)
    if base64.b64encode(found).decode() != text:
        raise BadZnode("a key is not base64")
    return found


# -- ACLs, tokens, producer ids ----------------------------------------------------------------------------------------


def acl_rows(pattern: str, resource_type: str, name: str, data: bytes) -> Iterator[Row]:
    """/kafka-acl/<Type>/<name> and /kafka-acl-extended/prefixed/<Type>/<name>. ``pattern``: LITERAL or PREFIXED. An
    empty znode holds none.

    Kafka lists the types that there are, but reads each one's resources below its own spelling alone
    (``AclAuthorizer.loadAllAcls``).
    """
    if not data:
        return
    if resource_type not in _RESOURCE_TYPES:
        raise BadZnode(f"Kafka reads no ACLs below {resource_type}")
    parsed = parse_object(data)
    if json_int(parsed["version"]) != 1:
        raise BadZnode("ACLs of a version that Kafka does not read")
    for entry in parsed["acls"]:
        operation, permission = _named(_OPERATIONS, entry["operation"]), _named(_PERMISSIONS, entry["permissionType"])
        yield canonical_rows.acl(
            _RESOURCE_TYPES[resource_type],
            pattern,
            name,
            _principal(entry["principal"]),
            json_text(entry["host"]),
            operation,
            permission,
        )


_RESOURCE_TYPES: Mapping[str, str] = {_camel(name): name for name in RESOURCE_TYPES.values()}
_OPERATIONS, _PERMISSIONS = (
    {name.replace("_", ""): name for name in names} for names in (OPERATIONS.values(), PERMISSIONS.values())
)


def _named(names: Mapping[str, str], text: str) -> str:
    """An enum's constant by its name without underscores, in any case (``SecurityUtils.valueFromMap``)."""
    found = names.get(json_text(text).upper())
    if found is None:
        raise BadZnode("an ACL names an operation or a permission that Kafka does not know")
    return found


def _principal(text: str) -> str:
    if ":" not in json_text(text):
        raise BadZnode("a principal is not of the form type:name")
    return text


def delegation_token_rows(data: bytes, decoding: Decoding) -> Iterator[Row]:
    """/delegation_token/tokens/<id>. Names are sanitized (%XX); before version 3 the owner is the requester. An empty
    znode is no token.
    """
    if not data:
        return
    token = parse_object(data)
    version = json_int(token["version"])
    if not 1 <= version <= 3:
        raise BadZnode("a token of a version that Kafka does not read")
    owner = desanitize(json_text(token["owner"]))
    yield canonical_rows.delegation_token(
        json_text(token["tokenId"]),
        _principal(owner),
        owner if version < 3 else _principal(desanitize(json_text(token["tokenRequester"]))),
        [_principal(desanitize(each)) for each in json_texts(token["renewers"])],
        json_int(token["issueTimestamp"], INT64),
        json_int(token["maxTimestamp"], INT64),
        json_int(token["expiryTimestamp"], INT64),
        decoding.fingerprints,
    )


def producer_id_rows(data: bytes) -> Iterator[Row]:
    """/latest_producer_id_block. It is there and empty until the first block is handed out."""
    if data:
        block = parse_object(data)
        json_int(block["broker"])  # not compared, but Kafka reads no block without it
        yield canonical_rows.producer_ids(
            *(whole(json_text(block[name]), INT64) for name in ("block_start", "block_end"))
        )
