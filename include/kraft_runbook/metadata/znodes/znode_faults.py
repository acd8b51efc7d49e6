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

from collections.abc import Generator
from itertools import chain
from urllib.parse import unquote_plus

from kraft_runbook.cluster.java_values import (
    LONG_RANGE,
    NotJson,
    is_java_base64,
    is_java_double,
    is_java_int,
    is_kafka_uuid,
    is_url_decodable,
    java_int,
    java_long,
    parse_json,
    trim,
)
from kraft_runbook.cluster.observation import Consequence, ZnodeFault
from kraft_runbook.metadata.canonical_rows import is_password_config
from kraft_runbook.metadata.znodes.access_faults import acl_faults, token_faults
from kraft_runbook.metadata.znodes.fault_terms import (
    COPY,
    DIFFERS,
    NOTED,
    START,
    SYNC,
    Said,
    not_an_object,
    parsed_json,
    too_long,
)
from kraft_runbook.metadata.znodes.quota_addresses import address_fault, is_ipv6
from kraft_runbook.metadata.znodes.topic_config_values import is_known, refused
from kraft_runbook.metadata.znodes.znode_rows import DEFAULT_ENTITY, SCRAM_MECHANISMS
from kraft_runbook.metadata.znodes.znode_values import BadZnode, desanitize, sanitize


def faults_of(path: str, data: bytes | None) -> tuple[ZnodeFault, ...]:
    """The problems of the znode at ``path`` (Kafka's path, without a chroot), with their effects. ``data``: None where
    it holds none at all (null). Values are never quoted, since they may be secrets.
    """
    return tuple(dict.fromkeys(ZnodeFault(path, consequence, problem) for consequence, problem in _route(path, data)))


def _route(path: str, found: bytes | None) -> Said:
    data = found or b""
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
            return acl_faults(resource_type, name, data)
        case ["kafka-acl-extended", _, resource_type, *name]:
            return acl_faults(resource_type, name, data)
        case ["delegation_token", "tokens", _]:
            return token_faults(data)
        case ["latest_producer_id_block"]:
            return _producer_ids(found)
        case ["feature"]:
            return _features(data)
        case _:
            return iter(())


# -- topics ------------------------------------------------------------------------------------------------------------


def _topic(data: bytes) -> Said:
    """``TopicZNode.decode``. What is no JSON has no id there, and the copy asks for one."""
    topic = parsed_json(data)
    if not isinstance(topic, dict):
        yield COPY, not_an_object(data)
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


def _state(data: bytes) -> Said:
    """``TopicPartitionStateZNode.decode``. What is no JSON counts as no state: the copy makes one up, with leader epoch
    0 and every replica in the ISR.
    """
    try:
        state = parse_json(data)
    except NotJson:
        yield DIFFERS, "not JSON: the copy takes every replica for in sync, and begins with leader epoch 0 again"
        return
    if not isinstance(state, dict):
        yield COPY, not_an_object(data)
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


def _topic_config(data: bytes) -> Said:
    config = yield from _config(data)
    for name, value in config.items():
        yield from topic_config_faults(name, value)


def topic_config_faults(name: str, value: str) -> Said:
    """One config of a topic (``LogConfig``, ``TopicConfigHandler``)."""
    yield from _texts(name, value)
    problem = refused(name, value)
    if problem:
        yield START, f"{name} {problem}"
    elif not is_known(name):
        decoded = "; the copy takes it for a password and decodes it" if is_password_config(name) else ""
        yield (
            NOTED,
            (
                f"{name} is no topic config of Kafka 3.9: once in KRaft mode, no config of this topic can be changed"
                f" before it is deleted{decoded}"
            ),
        )


def _texts(name: str, value: str) -> Said:
    """The texts of a ConfigRecord. A password counts as it is decoded (``ZnodeFindings``)."""
    yield from too_long("a config's name", name)
    if not is_password_config(name):
        yield from too_long(name, value)


_THROTTLE_RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def _broker_config(broker: str, data: bytes) -> Said:
    """``DynamicBrokerConfig`` ignores what it can't take; ``BrokerConfigHandler`` parses the broker's id and these
    rates.
    """
    if broker != DEFAULT_ENTITY and java_int(broker) is None:
        yield COPY, "its name is no broker's id"
        if java_int(trim(broker)) is None:
            yield START, "its name is no broker's id"
    config = yield from _config(data)
    for name, text in config.items():
        yield from _texts(name, text)
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


def _quotas(kind: str, names: tuple[str, ...], data: bytes) -> Said:
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
        yield from chain.from_iterable(too_long("its name", unquote_plus(name)) for name in names)
    for name, value in config.items():
        yield from too_long("a quota's name", name)
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


def _spellings(kind: str, names: tuple[str, ...]) -> Said:
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


def _scram(kind: str, name: str, mechanism: str, value: str) -> Said:
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
    parsed = parsed_json(data)
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


def passwords_of(data: bytes) -> dict[str, str]:
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


# -- producer ids, features --------------------------------------------------------------------------------------------


def _producer_ids(data: bytes | None) -> Said:
    """``ProducerIdBlockZNode.parseProducerIdBlockData``: the ends are texts. Null says that no block was handed out; no
    other kind of znode is read differently where it is null than where it has no bytes.
    """
    if data is None:
        return
    block = parsed_json(data)
    if not isinstance(block, dict):
        yield COPY, not_an_object(data)
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


def _features(data: bytes) -> Said:
    """``FeatureZNode.decode``, which a broker runs when it starts."""
    parsed = parsed_json(data)
    if not isinstance(parsed, dict):
        yield START, not_an_object(data)
        return
    version, status, features = parsed.get("version"), parsed.get("status"), parsed.get("features")
    if (
        not (is_java_int(version) and version in (1, 2))
        or not (is_java_int(status) and status in (0, 1))
        or not isinstance(features, dict)
    ):
        yield START, "version, status or features is not what Kafka writes"
        return
    for name, levels in features.items():
        most = levels.get("max_version_level") if isinstance(levels, dict) else None
        least = levels.get("min_version_level") if isinstance(levels, dict) and version == 1 else 1
        if not (is_java_int(most) and is_java_int(least) and 1 <= least <= most):
            yield START, f"the levels of {name} are none"
