"""Znodes that Kafka 3.9.2 can't handle: in the metadata copy, right after it, or when a broker starts. One function a
kind of znode.

Read from Kafka's source, and exactly what throws there: ``ZkData`` (the formats), ``Json`` (whose numbers are no
texts), ``ZkTopicMigrationClient``, ``ZkConfigMigrationClient``, ``AclAuthorizer.loadAllAcls``,
``DelegationTokenManagerZk`` and ``ZkMigrationClient`` for the copy; ``KRaftMigrationZkWriter.handle…Snapshot`` for the
sync back to ZooKeeper that follows it; ``ZkConfigManager.startup`` with its handlers, ``LogManager`` and
``AclAuthorizer.configure`` for a broker's start. Any exception in the copy is a fatal fault of the controller, and of
the next one.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any

from kraft_runbook.cluster.java_values import (
    LONG_RANGE,
    NotJson,
    is_java_base64,
    is_java_double,
    is_java_int,
    is_java_long,
    is_kafka_uuid,
    is_url_decodable,
    java_int,
    java_long,
    parse_json,
    trim,
)
from kraft_runbook.cluster.observation import Consequence, ZnodeFault
from kraft_runbook.metadata.canonical_rows import is_password_config
from kraft_runbook.metadata.znodes.quota_addresses import address_fault, is_ipv6
from kraft_runbook.metadata.znodes.topic_config_values import is_known, refused
from kraft_runbook.metadata.znodes.znode_rows import DEFAULT_ENTITY, SCRAM_MECHANISMS
from kraft_runbook.metadata.znodes.znode_values import BadZnode, desanitize, sanitize

COPY, SYNC, START, DIFFERS, NOTED = (
    Consequence.COPY_FAILS,
    Consequence.SYNC_FAILS,
    Consequence.BROKER_STAYS_DOWN,
    Consequence.KRAFT_DIFFERS,
    Consequence.NOTED,
)
_Said = Iterator[tuple[Consequence, str]]


def faults_of(path: str, data: bytes) -> tuple[ZnodeFault, ...]:
    """The problems of the znode at ``path`` (Kafka's path, without a chroot), with their effects. Values are never
    quoted, since they may be secrets.
    """
    return tuple(dict.fromkeys(ZnodeFault(path, consequence, problem) for consequence, problem in _route(path, data)))


def _route(path: str, data: bytes) -> _Said:
    match path.split("/")[1:]:
        case ["brokers", "topics", _]:
            return _topic(data)
        case ["brokers", "topics", _, "partitions", _, "state"]:
            return _state(data)
        case ["config", "topics", _]:
            return _topic_config(data)
        case ["config", "brokers", broker]:
            return _broker_config(broker, data)
        case ["config", "users" | "clients" | "ips" as kind, name]:
            return _quotas(kind, (name,), data)
        case ["config", "users", user, "clients", client]:
            return _quotas("users/clients", (user, client), data)
        case ["kafka-acl", resource_type, *name]:
            return _acls(resource_type, name, data)
        case ["kafka-acl-extended", _, resource_type, *name]:
            return _acls(resource_type, name, data)
        case ["delegation_token", "tokens", _]:
            return _token(data)
        case ["latest_producer_id_block"]:
            return _producer_ids(data)
        case ["feature"]:
            return _features(data)
        case _:
            return iter(())


# -- topics ------------------------------------------------------------------------------------------------------------


def _topic(data: bytes) -> _Said:
    """``TopicZNode.decode``. What is no JSON has no id there, and the copy asks for one."""
    topic = _parsed(data)
    if not isinstance(topic, dict):
        yield COPY, _not_an_object(data)
        return
    topic_id = topic.get("topic_id")
    if "topic_id" in topic and not (isinstance(topic_id, str) and is_kafka_uuid(topic_id)):
        yield COPY, "topic_id is no id"
    lists = {name: topic.get(name, {}) for name in ("partitions", "adding_replicas", "removing_replicas")}
    for name, each in lists.items():
        if not isinstance(each, dict):
            yield COPY, f"{name} is not an object"
        elif isinstance(lists["partitions"], dict) and not all(
            _are_ids(each[number]) for number in lists["partitions"] if number in each
        ):
            yield COPY, f"{name} holds something else than lists of broker ids"
    if isinstance(lists["partitions"], dict) and any(java_int(each) is None for each in lists["partitions"]):
        yield COPY, "a partition's number is none"


def _state(data: bytes) -> _Said:
    """``TopicPartitionStateZNode.decode``. What is no JSON counts as no state: the copy makes one up, with leader epoch
    0 and every replica in the ISR.
    """
    try:
        state = parse_json(data)
    except NotJson:
        yield DIFFERS, "not JSON: the copy takes every replica for in sync, and begins with leader epoch 0 again"
        return
    if not isinstance(state, dict):
        yield COPY, _not_an_object(data)
        return
    for name in ("leader", "leader_epoch", "controller_epoch"):
        if not is_java_int(state.get(name)):
            yield COPY, f"{name} is {'missing' if name not in state else 'not a whole number of 32 bits'}"
    if not _are_ids(state.get("isr")):
        yield COPY, "isr is not a list of broker ids"
    recovery = state.get("leader_recovery_state", 0)
    if not is_java_int(recovery) or recovery % 256 not in (0, 1):  # Kafka takes its last byte
        yield COPY, "leader_recovery_state is neither 0 nor 1"


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(map(is_java_int, value))


# -- configs -----------------------------------------------------------------------------------------------------------


def _topic_config(data: bytes) -> _Said:
    config = yield from _config(data)
    for name, value in config.items():
        yield from topic_config_faults(name, value)


def topic_config_faults(name: str, value: str) -> _Said:
    """One config of a topic (``LogConfig``, ``TopicConfigHandler``)."""
    problem = refused(name, value)
    if problem:
        yield START, f"{name} {problem}"
    elif not is_known(name):
        yield (
            NOTED,
            (
                f"{name} is no topic config of Kafka 3.9: once in KRaft mode, no config of this topic can be changed"
                " before it is deleted"
            ),
        )


_THROTTLE_RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def _broker_config(broker: str, data: bytes) -> _Said:
    """``DynamicBrokerConfig`` ignores what it can't take; ``BrokerConfigHandler`` parses the broker's id and these
    rates.
    """
    if broker != DEFAULT_ENTITY and java_int(broker) is None:
        yield COPY, "its name is no broker's id"
        if java_int(trim(broker)) is None:
            yield START, "its name is no broker's id"
    config = yield from _config(data)
    for rate in _THROTTLE_RATES:
        value = config.get(rate)
        number = java_long(trim(value)) if value is not None else 0
        if number is None or number < 0:
            yield NOTED, f"{rate} is no rate: brokers ignore it"
        elif value is not None and java_long(value) is None:
            yield START, f"{rate} has blanks around it"


_LONG, _DOUBLE, _INT = "whole number of 64 bits", "number", "whole number of 32 bits"
_CLIENT_QUOTAS = {
    "producer_byte_rate": _LONG,
    "consumer_byte_rate": _LONG,
    "request_percentage": _DOUBLE,
    "controller_mutation_rate": _DOUBLE,
}
_QUOTAS = {
    "users": _CLIENT_QUOTAS,
    "clients": _CLIENT_QUOTAS,
    "users/clients": _CLIENT_QUOTAS,
    "ips": {"connection_creation_rate": _INT},
}
_PARSES = {
    _LONG: lambda text: java_long(text) is not None,
    _INT: lambda text: java_int(text) is not None,
    _DOUBLE: is_java_double,
}


def _quotas(kind: str, names: tuple[str, ...], data: bytes) -> _Said:
    """A broker's handlers parse the quotas they know; the copy takes everything that is no SCRAM credential for a
    number, and the sync back knows these alone.
    """
    for name in names:
        if not is_url_decodable(name):
            yield COPY, "its name holds a % that is no escape"
            yield START, "its name holds a % that is no escape"
    if kind == "ips" and (found := address_fault(names[0])):
        yield found
    known = _QUOTAS[kind]
    config = yield from _config(data)
    if config:
        yield from _spellings(kind, names)
    for name, value in config.items():
        if name in SCRAM_MECHANISMS and kind != "users/clients":
            yield from _scram(kind, names[0], name, value)
            continue
        is_number = is_java_double(value)
        if not is_number:
            yield COPY, f"{name} is not a number"
        elif name not in known:
            yield SYNC, f"{name} is no quota of Kafka 3.9"
        if name in known and not _PARSES[known[name]](value):
            yield START, f"{name} is not a {known[name] if is_number else _DOUBLE}"


def _spellings(kind: str, names: tuple[str, ...]) -> _Said:
    """The sync that follows the copy writes every entity at Kafka's own spelling of its name
    (``KRaftMigrationZkWriter.handleClientQuotasSnapshot``).

    A znode of another spelling stays beside it. So at least one of two spellings of an entity is reported.
    """
    for name in names:
        if name == DEFAULT_ENTITY or not is_url_decodable(name):
            continue
        try:
            spelt = sanitize(desanitize(name))
        except BadZnode:
            yield (
                DIFFERS,
                (
                    "its escapes are not what Kafka writes: after the copy it writes the entity once more, under"
                    " another name"
                ),
            )
            continue
        if spelt != name:
            yield DIFFERS, f"Kafka spells its name {spelt}: after the copy it writes the entity once more, there"
        if kind == "ips" and is_ipv6(name):
            yield (
                START,
                (
                    f"it is an IPv6 address: after the copy Kafka writes it as {spelt}, which no broker that starts can"
                    " resolve"
                ),
            )


def _scram(kind: str, name: str, mechanism: str, value: str) -> _Said:
    """``ScramCredentialUtils.credentialFromString``."""
    tokens = value.split(",")
    while tokens and not tokens[-1]:  # String.split leaves empty ones at the end out
        tokens.pop()
    fields = dict(token.split("=", 1) for token in tokens if token.find("=") > 0)
    whole = (
        len(fields) == 4
        and all(token.find("=") > 0 for token in tokens)
        and fields.keys() == {"salt", "stored_key", "server_key", "iterations"}
    )
    if (
        not whole
        or java_int(fields["iterations"]) is None
        or not all(is_java_base64(fields[each]) for each in ("salt", "stored_key", "server_key"))
    ):
        yield COPY, f"the {mechanism} credential is malformed"
        if kind == "users" and name != DEFAULT_ENTITY:
            yield START, f"the {mechanism} credential is malformed"
    elif kind != "users" or name == DEFAULT_ENTITY:
        yield (
            DIFFERS,
            f"a {mechanism} credential stands here, which brokers ignore; the copy makes it one of the user {name!r}",
        )


def _config(data: bytes) -> Generator[tuple[Consequence, str], None, dict[str, str]]:
    """``ConfigEntityZNode.decode``: gives the properties. What is no JSON has none there; a value that is no text
    throws, and nothing of the znode is taken.
    """
    if not data:
        return {}
    parsed = _parsed(data)
    config = parsed.get("config", {}) if isinstance(parsed, dict) else None
    if not isinstance(config, dict):
        yield (
            DIFFERS,
            f"{'config is' if isinstance(parsed, dict) else 'it is'} not a JSON object: Kafka takes it as empty",
        )
        return {}
    wrong = sorted(name for name, value in config.items() if not isinstance(value, str))
    for name in wrong:
        yield COPY, f"{name} is not a text in quotes"
        yield START, f"{name} is not a text in quotes"
    return {} if wrong else config


def passwords_of(path: str, data: bytes) -> dict[str, str]:
    """The configs of a znode of /config/brokers or /config/topics that the copy decodes as passwords, encoded as they
    are.
    """
    try:
        config = parse_json(data)["config"] if data else {}
    except (NotJson, KeyError, TypeError):
        return {}  # faults_of says so
    return (
        {name: value for name, value in config.items() if isinstance(value, str) and is_password_config(name)}
        if isinstance(config, dict)
        else {}
    )


# -- ACLs, tokens, producer ids, features ------------------------------------------------------------------------------

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


def _acls(resource_type: str, name: list[str], data: bytes) -> _Said:
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
    if not problems and any(_is_unknown(entry) for entry in entries["acls"]):
        yield DIFFERS, "an entry's operation or permission is unknown to Kafka 3.9, which then matches nothing"


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


def _token(data: bytes) -> _Said:
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
    people = {each: [token.get(each)] for each in ("owner", *(["tokenRequester"] if version >= 3 else []))}
    people["renewers"] = renewers if isinstance(renewers, list) else [None]
    for name, principals in people.items():
        if not all(
            isinstance(each, str) and is_url_decodable(each) and re.search(":|%3A", each, re.IGNORECASE)
            for each in principals
        ):
            yield COPY, f"{name} is not type:name, escaped"
    for name in ("issueTimestamp", "expiryTimestamp", "maxTimestamp"):
        if not is_java_long(token.get(name)):
            yield COPY, f"{name} is not a whole number of 64 bits"
    if not isinstance(token.get("tokenId"), str):
        yield COPY, "tokenId is missing"


def _producer_ids(data: bytes) -> _Said:
    """``ProducerIdBlockZNode.parseProducerIdBlockData``: the ends are texts."""
    if not data:
        return
    block = _parsed(data)
    if not isinstance(block, dict):
        yield COPY, _not_an_object(data)
        return
    if not is_java_int(block.get("broker")):
        yield COPY, "broker is no id"
    ends = [
        java_long(each) if isinstance(each := block.get(name), str) else None for name in ("block_start", "block_end")
    ]
    first, last = ends
    if first is None or last is None:
        yield COPY, "block_start or block_end is not a whole number in quotes"
    elif not is_java_int(last - first + 1) or last - first not in LONG_RANGE:
        yield COPY, "the block is longer than 32 bits can say"


def _features(data: bytes) -> _Said:
    """``FeatureZNode.decode``, which a broker runs when it starts."""
    parsed = _parsed(data)
    if not isinstance(parsed, dict):
        yield START, _not_an_object(data)
        return
    version, features = parsed.get("version"), parsed.get("features")
    if (
        not (is_java_int(version) and version in (1, 2))
        or parsed.get("status") not in (0, 1)
        or not isinstance(features, dict)
    ):
        yield START, "version, status or features is not what Kafka writes"
        return
    for name, levels in features.items():
        most = levels.get("max_version_level") if isinstance(levels, dict) else None
        least = levels.get("min_version_level") if isinstance(levels, dict) and version == 1 else 1
        if not (is_java_int(most) and is_java_int(least) and 1 <= least <= most):
            yield START, f"the levels of {name} are none"


def _parsed(data: bytes) -> Any:
    try:
        return parse_json(data)
    except NotJson:
        return None


def _not_an_object(data: bytes) -> str:
    return "it is not a JSON object" if data.strip() else "it is empty"
