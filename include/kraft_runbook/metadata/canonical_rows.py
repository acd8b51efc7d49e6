"""The canonical rows: one schema a kind of metadata, the same from ZooKeeper and from the metadata log.

A row is (kind, key, value). Key and value are canonical JSON: sorted keys, no spaces. Equal facts have equal texts: an
ISR is a sorted set, a quota a float, an ACL a row of its own. Secrets appear as fingerprints.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from kraft_runbook.cluster.sensitive import is_sensitive


class Kind(StrEnum):
    """The kinds of metadata that are compared, in the order of the report."""

    TOPIC = "topic"
    ASSIGNMENT = "replica assignment"
    PARTITION_STATE = "partition state"
    PARTITION_EPOCH = "partition epoch"
    """The version of the state znode, compared with the log's partition epoch. It is no metadata, but a rollback needs
    it (``parity.partition_epochs``).
    """
    TOPIC_CONFIG = "topic config"
    BROKER_CONFIG = "broker config"
    CLIENT_QUOTA = "client quota"
    SCRAM_CREDENTIAL = "SCRAM credential"
    ACL = "ACL"
    DELEGATION_TOKEN = "delegation token"  # noqa: S105 - the name of a kind
    PRODUCER_IDS = "producer id block"
    METADATA_VERSION = "metadata.version"
    CLUSTER_ID = "cluster id"
    BROKER = "hybrid broker"
    CONTROLLER = "controller"
    UNREADABLE = "unreadable znode"
    WHOLE_TOPIC = "whole topic"
    """Stands for all rows of a topic, by their fingerprint (``topic_prints``). No znode and no record holds it."""
    MANY_EPOCHS = "partition epochs of many topics"
    """Stands for the rows of kind PARTITION_EPOCH of many topics, packed."""

    @property
    def follows_the_log(self) -> bool:
        """Whether its rows are written to ZooKeeper in the log's order. The others follow sessions and elections, or
        are derived.
        """
        return self not in (
            Kind.METADATA_VERSION,
            Kind.CLUSTER_ID,
            Kind.BROKER,
            Kind.CONTROLLER,
            Kind.UNREADABLE,
            Kind.WHOLE_TOPIC,
            Kind.MANY_EPOCHS,
        )

    @property
    def is_of_a_topic(self) -> bool:
        """Whether its rows belong to one topic, whose name is the first part of their key."""
        return self in (Kind.TOPIC, Kind.ASSIGNMENT, Kind.PARTITION_STATE, Kind.PARTITION_EPOCH, Kind.TOPIC_CONFIG)


@dataclass(frozen=True, slots=True)
class Row:
    """One fact. ``key`` and ``value`` are canonical JSON.

    ``path``: the znode from which the fact was read; "" if from none. It is never built from the key, since a name has
    several spellings as a znode's name. It is no part of the fact.
    """

    kind: Kind
    key: str
    value: str
    path: str = field(default="", compare=False)


canonical: Callable[[object], str] = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
"""Canonical JSON: sorted keys, no spaces, no escapes of non-ASCII. One encoder for all: ``json.dumps`` makes one a
call, which takes longer than most values.
"""


def row(kind: Kind, key: Iterable[object], value: object) -> Row:
    """A row from plain values."""
    return Row(kind, canonical(list(key)), canonical(value))


UNDECODED = "undecoded"
"""The key of a value that could not be brought into a comparable form; it says why. Such a row makes the answer
INCONCLUSIVE.
"""


def undecoded(reason: str) -> dict[str, str]:
    return {UNDECODED: reason}


def why_undecoded(value: str) -> str | None:
    """The reason, where a canonical value is undecoded."""
    if not value.startswith('{"' + UNDECODED):
        return None
    return str(json.loads(value)[UNDECODED])


# -- secrets -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Fingerprints:
    """Secrets as keyed hashes: equal secrets of one run look equal, and a report without the run's salt does not help
    anybody to guess them.

    Passwords (which may be guessable) are stretched with PBKDF2; keys that are random already are not.
    """

    salt: bytes = field(repr=False)
    _known: dict[str, str] = field(default_factory=dict, repr=False)

    def key(self, value: bytes) -> str:
        """The fingerprint of a random key."""
        return "fingerprint:" + hmac.new(self.salt, value, hashlib.sha256).hexdigest()[:24]

    def password(self, value: str) -> str:
        """The fingerprint of a password."""
        if value not in self._known:
            self._known[value] = (
                "fingerprint:" + hashlib.pbkdf2_hmac("sha256", value.encode(), self.salt, 100_000).hex()[:24]
            )
        return self._known[value]


PASSWORD_CONFIGS = (
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.truststore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "sasl.jaas.config",
)
"""Dynamic broker configs of type PASSWORD (Kafka 3.9, ``DynamicBrokerConfig.DynamicPasswordConfigs``): encoded in
ZooKeeper, alone or behind a listener's prefix.
"""


def is_password_config(name: str) -> bool:
    """Whether ZooKeeper holds this config of a broker or a topic encoded (``DynamicBrokerConfig.isPasswordConfig``,
    which ``ZkConfigMigrationClient`` asks for both).
    """
    return name.endswith(PASSWORD_CONFIGS)


def is_hidden(name: str) -> bool:
    """Whether a config's value is shown by its fingerprint alone."""
    return is_password_config(name) or is_sensitive(name)


def config_value(name: str, value: str, fingerprints: Fingerprints) -> str:
    """A config's value as a row may show it."""
    return fingerprints.password(value) if is_hidden(name) else value


# -- one constructor a kind --------------------------------------------------------------------------------------------


def kafka_uuid(value: UUID) -> str:
    """A topic id as Kafka writes it: URL-safe base64 without padding (``Uuid.toString``)."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def uuid_of(text: str) -> UUID:
    """The reverse of ``kafka_uuid``. Raises ValueError."""
    return UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))


def topic(name: str, topic_id: str | None) -> Row:
    return row(Kind.TOPIC, [name], {"topic_id": topic_id})


def assignment(
    topic_name: str, partition: int, replicas: Iterable[int], adding: Iterable[int], removing: Iterable[int]
) -> Row:
    """Replicas in their order, the first one preferred; those being added and removed as sets."""
    return row(
        Kind.ASSIGNMENT,
        [topic_name, partition],
        {"replicas": list(replicas), "adding": sorted(adding), "removing": sorted(removing)},
    )


def partition_state(
    topic_name: str, partition: int, leader: int, leader_epoch: int, isr: Iterable[int], recovery: int
) -> Row:
    """The ISR is a set; ``recovery`` 1: the leader was elected uncleanly and still recovers. The partition's epoch is a
    row of its own.
    """
    value = {"leader": leader, "leader_epoch": leader_epoch, "isr": sorted(isr), "leader_recovery_state": recovery}
    return row(Kind.PARTITION_STATE, [topic_name, partition], value)


def partition_epoch(topic_name: str, partition: int, epoch: int) -> Row:
    """The log's partition epoch, or the version of the state znode."""
    return Row(Kind.PARTITION_EPOCH, canonical([topic_name, partition]), str(epoch))


def topic_config(topic_name: str, name: str, value: object) -> Row:
    """``value``: as ``config_value`` gives it, or undecoded."""
    return row(Kind.TOPIC_CONFIG, [topic_name, name], value)


def broker_config(broker: str, name: str, value: object) -> Row:
    """``broker``: the id, or "" for the cluster-wide default. ``value``: as ``config_value`` gives it, or undecoded."""
    return row(Kind.BROKER_CONFIG, [broker, name], value)


Entity = tuple[tuple[str, str | None], ...]
"""A quota's entity: (type, name) pairs sorted by type; a name of None is the default entity."""


def client_quota(entity: Entity, name: str, value: float) -> Row:
    return row(Kind.CLIENT_QUOTA, [[list(part) for part in sorted(entity, key=lambda p: p[0])], name], float(value))


def scram_credential(
    user: str,
    mechanism: str,
    salt: bytes,
    stored_key: bytes,
    server_key: bytes,
    iterations: int,
    fingerprints: Fingerprints,
) -> Row:
    digest = fingerprints.key(b"|".join((salt.hex().encode(), stored_key.hex().encode(), server_key.hex().encode())))
    return row(Kind.SCRAM_CREDENTIAL, [user, mechanism], {"keys": digest, "iterations": iterations})


def acl(resource_type: str, pattern: str, name: str, principal: str, host: str, operation: str, permission: str) -> Row:
    """An ACL has no value: everything is in the key, so that a resource's ACLs compare as a set. Names as in Kafka's
    enums, upper case.
    """
    return row(Kind.ACL, [resource_type, pattern, name, principal, host, operation, permission], {})


def delegation_token(
    token_id: str,
    owner: str,
    requester: str,
    renewers: Iterable[str],
    issued: int,
    maximum: int,
    expires: int,
    fingerprints: Fingerprints,
) -> Row:
    """A token's key is derived from the brokers' secret and stored nowhere; its id stands here as a fingerprint. Times
    in milliseconds since the epoch.
    """
    value = {
        "owner": owner,
        "requester": requester,
        "renewers": sorted(renewers),
        "issued": issued,
        "max": maximum,
        "expires": expires,
    }
    return row(Kind.DELEGATION_TOKEN, [fingerprints.key(token_id.encode())], value)


def producer_ids(first: int, last: int) -> Row:
    """The block of producer ids handed out last, both ends included."""
    return row(Kind.PRODUCER_IDS, [], {"first": first, "last": last})


def metadata_version(ibp: str, covered: bool) -> Row:
    """Whether ``metadata.version`` is at least inter.broker.protocol.version."""
    return row(Kind.METADATA_VERSION, [], {"inter.broker.protocol.version": ibp, "covered": covered})


def cluster_id(value: str) -> Row:
    return row(Kind.CLUSTER_ID, [], value)


def broker(broker_id: int, endpoints: Iterable[str], rack: str | None) -> Row:
    """A live broker in migration mode."""
    return row(Kind.BROKER, [broker_id], {"endpoints": sorted(endpoints), "rack": rack})


def controller(where: str, controller_id: int, epoch: int) -> Row:
    """The active controller's id and epoch, as ``where`` has it (/controller, /migration)."""
    return row(Kind.CONTROLLER, [where], {"id": controller_id, "epoch": epoch})


def whole_topic(name: str, fingerprint: str) -> Row:
    """All of a topic. ``fingerprint``: as ``TopicPrint.value`` gives it, or a word for why there is none."""
    return Row(Kind.WHOLE_TOPIC, f"[{canonical(name)}]", canonical(fingerprint))


def unreadable(path: str, reason: str) -> Row:
    """A znode that could not be parsed. KRaft has no such row, so it is always a difference."""
    return Row(Kind.UNREADABLE, canonical([path]), canonical(reason), path)


# -- showing them ------------------------------------------------------------------------------------------------------


def describe_paths(kind: Kind, paths: Iterable[str]) -> str:
    """Znodes for people. A token's name is its id, which is shown nowhere."""
    return ", ".join(
        sorted({f"{path.rpartition('/')[0]}/<id>" if kind is Kind.DELEGATION_TOKEN else path for path in paths if path})
    )


def describe_key(kind: Kind, key: str, paths: Iterable[str] = ()) -> str:
    """A row's key for people, with the znode where ZooKeeper holds it: the one where it was seen (``paths``), if its
    name does not tell.
    """
    parts = parse_key(key)
    seen = describe_paths(kind, paths)
    match kind:
        case Kind.TOPIC:
            return f"{parts[0]} (/brokers/topics/{parts[0]})"
        case Kind.ASSIGNMENT:
            return f"{parts[0]}-{parts[1]} (/brokers/topics/{parts[0]})"
        case Kind.PARTITION_STATE | Kind.PARTITION_EPOCH:
            return f"{parts[0]}-{parts[1]} (/brokers/topics/{parts[0]}/partitions/{parts[1]}/state)"
        case Kind.TOPIC_CONFIG:
            return f"{parts[0]}: {parts[1]} (/config/topics/{parts[0]})"
        case Kind.BROKER_CONFIG:
            return (
                f"{f'broker {parts[0]}' if parts[0] else 'every broker'}: {parts[1]}"
                f" (/config/brokers/{parts[0] or '<default>'})"
            )
        case Kind.CLIENT_QUOTA:
            entity = ", ".join(f"{each[0]} {'<default>' if each[1] is None else each[1]}" for each in parts[0])
            return f"{entity}: {parts[1]}" + (f" ({seen})" if seen else "")
        case Kind.SCRAM_CREDENTIAL:
            return f"user {parts[0]}, {parts[1]} ({seen or '/config/users'})"
        case Kind.ACL:
            return (
                f"{parts[6]} {parts[5]} on {parts[1]} {parts[0]} {parts[2]!r} to {parts[3]} from {parts[4]}"
                f" ({seen or '/kafka-acl'})"
            )
        case Kind.DELEGATION_TOKEN:
            return f"token with {parts[0]} (/delegation_token/tokens)"
        case Kind.PRODUCER_IDS:
            return "/latest_producer_id_block"
        case Kind.METADATA_VERSION:
            return "metadata.version and inter.broker.protocol.version"
        case Kind.CLUSTER_ID:
            return "/cluster/id and the controllers' meta.properties"
        case Kind.BROKER:
            return f"broker {parts[0]} (/brokers/ids/{parts[0]})"
        case Kind.CONTROLLER | Kind.UNREADABLE | Kind.WHOLE_TOPIC | Kind.MANY_EPOCHS:
            return str(parts[0])


def describe_value(value: str | None) -> str:
    """A row's value for people; None: there is no such row."""
    if value is None:
        return "absent"
    plain = json.loads(value)
    if isinstance(plain, Mapping):
        return ", ".join(f"{name} {_plain(each)}" for name, each in plain.items()) or "present"
    return _plain(plain)


def _plain(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def parse_key(key: str) -> list[Any]:
    """A row's key as plain parts."""
    parts: list[Any] = json.loads(key)
    return parts
