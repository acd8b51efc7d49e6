"""Znodes to canonical rows, one function a kind of znode. What can't be parsed becomes a row that names its path.

The formats are those of Kafka 3.9's ``ZkData``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from kraft_runbook.metadata import entities
from kraft_runbook.metadata.entities import Entity, Fingerprints, Kind, Row
from kraft_runbook.metadata.password_encoder import Undecodable, decode_password
from kraft_runbook.observation import MigrationZnode

DEFAULT_ENTITY = "<default>"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class Decoding:
    """What decoding needs beside the bytes. ``encoder_secret``: password.encoder.secret, or None with the reason it is not at hand."""

    fingerprints: Fingerprints
    encoder_secret: str | None = None
    why_no_encoder_secret: str = "password.encoder.secret is not named under 'secrets' in the cluster file"  # noqa: S105 - an explanation


class BadZnode(ValueError):
    """A znode's data is not what Kafka writes; the message says what is wrong."""


def rows_of(path: str, data: bytes, decoding: Decoding) -> list[Row]:
    """The rows of the znode at ``path`` (Kafka's path, without a chroot). Where its data can't be parsed, one row that names the path.

    A path that holds nothing to compare has no rows.
    """
    try:
        return list(dict.fromkeys(_route(path, data, decoding)))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, binascii.Error) as error:
        reason = str(error) if isinstance(error, BadZnode) else f"not what Kafka writes there ({type(error).__name__})"
        return [entities.unreadable(path, reason)]


def _route(path: str, data: bytes, decoding: Decoding) -> Iterable[Row]:
    match path.split("/")[1:]:
        case ["brokers", "topics", topic]:
            return topic_rows(topic, data)
        case ["brokers", "topics", topic, "partitions", partition, "state"]:
            return partition_state_rows(topic, int(partition), data)
        case ["config", "topics", topic]:
            return topic_config_rows(topic, data)
        case ["config", "brokers", broker]:
            return broker_config_rows(broker, data, decoding)
        case ["config", "users" | "clients" | "ips", _] | ["config", "users", _, "clients", _]:
            return quota_rows(path.removeprefix("/config/"), data, decoding)
        case ["kafka-acl", resource_type, *name]:
            return acl_rows("LITERAL", resource_type, "/".join(name), data)
        case ["kafka-acl-extended", pattern, resource_type, *name]:
            return acl_rows(pattern.upper(), resource_type, "/".join(name), data)
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


def path_of(kind: Kind, key: str) -> str | None:
    """Where ZooKeeper holds a row; None for a delegation token, whose id its key does not show, and for what no znode holds."""
    parts = entities.parse_key(key)
    match kind:
        case Kind.TOPIC | Kind.ASSIGNMENT:
            return f"/brokers/topics/{parts[0]}"
        case Kind.PARTITION_STATE:
            return f"/brokers/topics/{parts[0]}/partitions/{parts[1]}/state"
        case Kind.TOPIC_CONFIG:
            return f"/config/topics/{parts[0]}"
        case Kind.BROKER_CONFIG:
            return f"/config/brokers/{parts[0] or DEFAULT_ENTITY}"
        case Kind.CLIENT_QUOTA:
            names = sorted(parts[0], key=lambda part: str(part[0]), reverse=True)  # the user stands before its client
            return "/config/" + "/".join(f"{_ENTITY_ZNODES[part[0]]}/{_znode_name(part[1])}" for part in names)
        case Kind.SCRAM_CREDENTIAL:
            return f"/config/users/{_znode_name(parts[0])}"
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


_ENTITY_ZNODES = {"user": "users", "client-id": "clients", "ip": "ips"}


def _znode_name(name: str | None) -> str:
    """A quota entity's name as a znode's (``Sanitizer.sanitize``: URL encoding, with %20 for a space and %2A for an asterisk)."""
    return DEFAULT_ENTITY if name is None else quote(name, safe="-_.").replace("~", "%7E")


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def parse_object(data: bytes) -> dict[str, Any]:
    """The JSON object that a znode holds. Raises BadZnode, which never quotes the data: it may hold a secret."""
    try:
        parsed = json.loads(data)
    except (ValueError, UnicodeDecodeError):
        raise BadZnode("empty" if not data else "not JSON") from None
    if not isinstance(parsed, dict):
        raise BadZnode("not a JSON object")
    return parsed


# -- topics -------------------------------------------------------------------------------------------------------------


def topic_rows(name: str, data: bytes) -> Iterator[Row]:
    """/brokers/topics/T, version 3 (KIP-516): its id, and each partition's assignment."""
    parsed = parse_object(data)
    yield entities.topic(name, parsed.get("topic_id"))
    adding, removing = parsed.get("adding_replicas") or {}, parsed.get("removing_replicas") or {}
    for partition, replicas in parsed["partitions"].items():
        yield entities.assignment(name, int(partition), _ids(replicas), _ids(adding.get(partition, [])), _ids(removing.get(partition, [])))


def assigned_partitions(data: bytes) -> tuple[int, ...]:
    """The partitions that /brokers/topics/T names; none where it can't be parsed (``topic_rows`` says so)."""
    try:
        return tuple(sorted(int(p) for p in parse_object(data)["partitions"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def partition_state_rows(topic: str, partition: int, data: bytes) -> Iterator[Row]:
    """/brokers/topics/T/partitions/P/state. controller_epoch is ZooKeeper's own and not compared."""
    parsed = parse_object(data)
    recovery = int(parsed.get("leader_recovery_state", 0))
    yield entities.partition_state(topic, partition, int(parsed["leader"]), int(parsed["leader_epoch"]), _ids(parsed["isr"]), recovery)


def _ids(value: object) -> list[int]:
    if not isinstance(value, list) or not all(isinstance(each, int) for each in value):
        raise BadZnode("a list of broker ids is something else")
    return value


# -- configs ------------------------------------------------------------------------------------------------------------


def _config(data: bytes) -> dict[str, str]:
    """The ``config`` of a config znode. An empty znode, as an intermediate path may be, has none."""
    if not data:
        return {}
    config = parse_object(data).get("config", {})
    if not isinstance(config, dict) or not all(isinstance(v, str) for v in config.values()):
        raise BadZnode("'config' does not map names to texts")
    return config


def topic_config_rows(name: str, data: bytes) -> Iterator[Row]:
    """/config/topics/T."""
    for key, value in _config(data).items():
        yield entities.topic_config(name, key, value)


def broker_config_rows(znode: str, data: bytes, decoding: Decoding) -> Iterator[Row]:
    """/config/brokers/<id> and /config/brokers/<default>; passwords are decoded, and shown as fingerprints."""
    name = "" if znode == DEFAULT_ENTITY else znode
    for key, value in _config(data).items():
        yield entities.broker_config(name, key, _broker_config_value(key, value, decoding))


def _broker_config_value(name: str, value: str, decoding: Decoding) -> object:
    if entities.is_password_config(name):
        if decoding.encoder_secret is None:
            return entities.undecoded(decoding.why_no_encoder_secret)
        try:
            value = decode_password(value, decoding.encoder_secret)
        except Undecodable as error:
            return entities.undecoded(str(error))
    return entities.config_value(name, value, decoding.fingerprints)


def quota_entity(path: str) -> Entity:
    """The entity of a quota znode: ``users/U``, ``clients/C``, ``users/U/clients/C``, ``ips/I`` below /config, names sanitized (%XX)."""
    types = {"users": "user", "clients": "client-id", "ips": "ip"}
    parts = path.split("/")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple((types[kind], None if name == DEFAULT_ENTITY else unquote(name)) for kind, name in pairs)


def quota_rows(path: str, data: bytes, decoding: Decoding) -> Iterator[Row]:
    """A znode of quotas, as ``quota_entity`` takes it; a user's also holds SCRAM credentials."""
    entity = quota_entity(path)
    for key, value in _config(data).items():
        if key in SCRAM_MECHANISMS:
            yield _scram_row(entity[0][1] or "", key, value, decoding.fingerprints)
        else:
            try:
                number = float(value)
            except ValueError:
                raise BadZnode(f"the quota {key} is not a number") from None
            yield entities.client_quota(entity, key, number)


def _scram_row(user: str, mechanism: str, value: str, fingerprints: Fingerprints) -> Row:
    """``salt=…,stored_key=…,server_key=…,iterations=…`` (``ScramCredentialUtils``)."""
    fields = dict(part.strip().split("=", 1) for part in value.split(","))
    try:
        salt, stored, server = (base64.b64decode(fields[name], validate=True) for name in ("salt", "stored_key", "server_key"))
        return entities.scram_credential(user, mechanism, salt, stored, server, int(fields["iterations"]), fingerprints)
    except (KeyError, ValueError):
        raise BadZnode(f"the {mechanism} credential is malformed") from None


# -- ACLs, tokens, producer ids -----------------------------------------------------------------------------------------


def acl_rows(pattern: str, resource_type: str, name: str, data: bytes) -> Iterator[Row]:
    """/kafka-acl/<Type>/<name> and /kafka-acl-extended/prefixed/<Type>/<name>. ``pattern``: LITERAL or PREFIXED."""
    for entry in parse_object(data)["acls"]:
        yield entities.acl(_enum(resource_type), pattern, name, entry["principal"], entry["host"], _enum(entry["operation"]), entry["permissionType"].upper())


def _enum(name: str) -> str:
    """``TransactionalId`` as ``TRANSACTIONAL_ID`` (``SecurityUtils``)."""
    return "".join(f"_{c}" if c.isupper() and at else c for at, c in enumerate(name)).upper()


def delegation_token_rows(data: bytes, decoding: Decoding) -> Iterator[Row]:
    """/delegation_token/tokens/<id>. Names are sanitized (%XX); before version 3 the owner is the requester."""
    token = parse_object(data)
    yield entities.delegation_token(
        token["tokenId"],
        unquote(token["owner"]),
        unquote(token.get("tokenRequester") or token["owner"]),
        [unquote(each) for each in token["renewers"]],
        int(token["issueTimestamp"]),
        int(token["maxTimestamp"]),
        int(token["expiryTimestamp"]),
        decoding.fingerprints,
    )


def producer_id_rows(data: bytes) -> Iterator[Row]:
    """/latest_producer_id_block. It is there and empty until the first block is handed out."""
    if data:
        block = parse_object(data)
        yield entities.producer_ids(int(block["block_start"]), int(block["block_end"]))


# -- the cluster --------------------------------------------------------------------------------------------------------


def cluster_id_rows(data: bytes) -> Iterator[Row]:
    """/cluster/id."""
    yield entities.cluster_id(str(parse_object(data)["id"]))


def broker_rows(broker_id: str, data: bytes) -> Iterator[Row]:
    """/brokers/ids/<id>."""
    parsed = parse_object(data)
    yield entities.broker(int(broker_id), parsed["endpoints"], parsed.get("rack"))


def controller_rows(data: bytes) -> Iterator[Row]:
    """/controller: the KRaft controller that claimed it. Held by a ZooKeeper broker, its epoch is -1."""
    parsed = parse_object(data)
    yield entities.controller("/controller", int(parsed["brokerid"]), int(parsed.get("kraftControllerEpoch", -1)))


def migration_rows(data: bytes) -> Iterator[Row]:
    """/migration: the controller that writes to ZooKeeper."""
    parsed = parse_migration(data)
    yield entities.controller("/migration", parsed.kraft_controller_id, parsed.kraft_controller_epoch)


def parse_migration(data: bytes) -> MigrationZnode:
    """/migration (KIP-866). Raises BadZnode."""
    parsed = parse_object(data)
    try:
        return MigrationZnode(
            kraft_metadata_offset=int(parsed["kraft_metadata_offset"]),
            kraft_controller_id=int(parsed["kraft_controller_id"]),
            kraft_metadata_epoch=int(parsed["kraft_metadata_epoch"]),
            kraft_controller_epoch=int(parsed["kraft_controller_epoch"]),
        )
    except (KeyError, TypeError, ValueError):
        raise BadZnode("/migration lacks a field or holds something else than numbers") from None
