"""Znodes of every kind that the copy or a starting broker can't take, each with what is said of it; and ones that are
in order.
"""

from __future__ import annotations

import json
from typing import Any

from kraft_runbook.cluster.observation import Consequence

COPY, SYNC, START, DIFFERS, NOTED = (
    Consequence.COPY_FAILS,
    Consequence.SYNC_FAILS,
    Consequence.BROKER_STAYS_DOWN,
    Consequence.KRAFT_DIFFERS,
    Consequence.NOTED,
)

TOPIC = {
    "version": 3,
    "topic_id": "AAAAAAAAAAAAAAAAAAAAAA",
    "partitions": {"0": [1, 2]},
    "adding_replicas": {},
    "removing_replicas": {},
}
STATE = {"version": 1, "leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1, 2]}
ENTRY = {"principal": "User:a", "host": "*", "operation": "Read", "permissionType": "Allow"}
SCRAM = "salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096"
TOKEN = {
    "version": 3,
    "owner": "User%3Aa",
    "tokenRequester": "User%3Aa",
    "renewers": ["User%3Ab"],
    "issueTimestamp": 1,
    "maxTimestamp": 2,
    "expiryTimestamp": 2,
    "tokenId": "t",
}
BLOCK = {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"}
FEATURES = {"version": 2, "status": 1, "features": {"f": {"max_version_level": 1}}}


def config(**values: object) -> dict[str, Any]:
    """``__`` stands for a dot."""
    return {"version": 1, "config": {name.replace("__", "."): value for name, value in values.items()}}


def acl(**changes: object) -> dict[str, Any]:
    return {"version": 1, "acls": [ENTRY, {k: v for k, v in {**ENTRY, **changes}.items() if v is not None}]}


Bad = tuple[str, object, set[tuple[Consequence, str]]]


def _both(problem: str) -> set[tuple[Consequence, str]]:
    return {(COPY, problem), (START, problem)}


def _respelt(name: str) -> set[tuple[Consequence, str]]:
    return {(DIFFERS, f"Kafka spells its name {name}: after the copy it writes the entity once more, there")}


def _ipv6(name: str) -> set[tuple[Consequence, str]]:
    return {
        *_respelt(name),
        (
            START,
            f"it is an IPv6 address: after the copy Kafka writes it as {name}, which no broker that starts can resolve",
        ),
    }


def _topic(**changes: object) -> dict[str, object]:
    return {**TOPIC, **changes}


def _state(**changes: object) -> dict[str, object]:
    return {k: v for k, v in {**STATE, **changes}.items() if v is not ...}


_T, _S, _ACL, _TOK, _BLOCK = (
    "/brokers/topics/t",
    "/brokers/topics/s/partitions/0/state",
    "/kafka-acl/Topic/t",
    "/delegation_token/tokens/t",
    "/latest_producer_id_block",
)
LONGEST = "0:1," * 8191 + "0:1"
"""As many bytes as a record's text may have."""
_LONG = f"{LONGEST},1"
_TOO_LONG = "has more than 32,767 bytes, which no record of KRaft's metadata log takes"
_LISTS = "holds something else than lists of broker ids"
_WHOLE = "not a whole number of 32 bits"

BAD: tuple[Bad, ...] = (
    (_T, b"{", {(COPY, "it is not a JSON object")}),
    (_T, b"", {(COPY, "it is empty")}),
    (_T, _topic(topic_id="short"), {(COPY, "topic_id is no id")}),
    (_T, _topic(topic_id=None), {(COPY, "topic_id is no id")}),
    (_T, _topic(partitions={"x": [1]}), {(COPY, "a partition's number is none")}),
    (_T, _topic(partitions={"0": [1, "2"]}), {(COPY, f"partitions {_LISTS}")}),
    (_T, _topic(adding_replicas=None), {(COPY, "adding_replicas is not an object")}),
    (_T, _topic(removing_replicas={"0": None}), {(COPY, f"removing_replicas {_LISTS}")}),
    (
        _S,
        b"nonsense",
        {(DIFFERS, "not JSON: the copy takes every replica for in sync, and begins with leader epoch 0 again")},
    ),
    (_S, b"", {(COPY, "it is empty")}),
    (_S, _state(leader="1"), {(COPY, f"leader is {_WHOLE}")}),
    (_S, _state(leader_epoch=2**31), {(COPY, f"leader_epoch is {_WHOLE}")}),
    (_S, _state(controller_epoch=...), {(COPY, "controller_epoch is missing")}),
    (_S, _state(isr=[1.0]), {(COPY, "isr is not a list of broker ids")}),
    (_S, _state(leader_recovery_state=2), {(COPY, "leader_recovery_state is neither 0 nor 1")}),
    ("/config/topics/t", b"not json", {(DIFFERS, "it is not a JSON object: Kafka takes it as empty")}),
    (
        "/config/topics/t",
        {"version": 1, "config": []},
        {(DIFFERS, "config is not a JSON object: Kafka takes it as empty")},
    ),
    ("/config/topics/t", config(retention__ms=1000), _both("retention.ms is not a text in quotes")),
    ("/config/topics/t", config(retention__ms=None), _both("retention.ms is not a text in quotes")),
    ("/config/topics/t", config(retention__ms="abc"), {(START, "retention.ms is not a whole number of 64 bits")}),
    ("/config/topics/t", config(segment__bytes="13"), {(START, "segment.bytes is below 14")}),
    (
        "/config/topics/t",
        config(cleanup__policy="compact,remove"),
        {(START, "cleanup.policy is not made of compact and delete")},
    ),
    (
        "/config/topics/t",
        config(message__format__version="3.99"),
        {(START, "message.format.version names no version of Kafka")},
    ),
    (
        "/config/topics/t",
        config(remote__log__copy__disable="true"),
        {(START, "remote.log.copy.disable can't be true in ZooKeeper mode")},
    ),
    (
        "/config/topics/t",
        config(leader__replication__throttled__replicas="0:1,,1:2"),
        {(START, "leader.replication.throttled.replicas is not a list of partition:broker pairs without blanks")},
    ),
    (
        "/config/topics/t",
        config(made__up="1"),
        {
            (
                NOTED,
                (
                    "made.up is no topic config of Kafka 3.9: once in KRaft mode, no config of this topic can be"
                    " changed before it is deleted"
                ),
            )
        },
    ),
    (
        "/config/topics/t",
        config(sasl__jaas__config="x"),
        {
            (
                NOTED,
                (
                    "sasl.jaas.config is no topic config of Kafka 3.9: once in KRaft mode, no config of this topic can"
                    " be changed before it is deleted; the copy takes it for a password and decodes it"
                ),
            )
        },
    ),
    (
        "/config/topics/t",
        config(leader__replication__throttled__replicas=f"{LONGEST},"),
        {(COPY, f"leader.replication.throttled.replicas {_TOO_LONG}")},
    ),
    ("/config/brokers/1", config(ssl__cipher__suites=_LONG), {(COPY, f"ssl.cipher.suites {_TOO_LONG}")}),
    (
        "/config/brokers/<default>",
        config(ssl__cipher__suites="é" * 16_384),
        {(COPY, f"ssl.cipher.suites {_TOO_LONG}")},
    ),
    ("/config/brokers/first", config(), _both("its name is no broker's id")),
    ("/config/brokers/1", config(max__connections=5), _both("max.connections is not a text in quotes")),
    (
        "/config/brokers/1",
        config(leader__replication__throttled__rate=" 5"),
        {(START, "leader.replication.throttled.rate has blanks around it")},
    ),
    (
        "/config/brokers/<default>",
        config(leader__replication__throttled__rate="-5"),
        {(NOTED, "leader.replication.throttled.rate is no rate: brokers ignore it")},
    ),
    ("/config/clients/x", config(consumer_byte_rate="abc"), _both("consumer_byte_rate is not a number")),
    ("/config/clients/x", config(consumer_byte_rate="1_000"), _both("consumer_byte_rate is not a number")),
    (
        "/config/clients/x",
        config(consumer_byte_rate="1.5"),
        {(START, "consumer_byte_rate is not a whole number of 64 bits")},
    ),
    ("/config/clients/x", config(made_up="abc"), {(COPY, "made_up is not a number")}),
    ("/config/clients/x", config(made_up="1"), {(SYNC, "made_up is no quota of Kafka 3.9")}),
    ("/config/clients/a%zz", config(), _both("its name holds a % that is no escape")),
    ("/config/users/a%", config(), _both("its name holds a % that is no escape")),
    ("/config/users/a", config(**{"SCRAM-SHA-256": "salt=x"}), _both("the SCRAM-SHA-256 credential is malformed")),
    (
        "/config/users/a",
        config(**{"SCRAM-SHA-256": SCRAM.replace("4096", "4096 ")}),
        _both("the SCRAM-SHA-256 credential is malformed"),
    ),
    ("/config/users/a", config(**{"SCRAM-SHA-1": SCRAM}), {(COPY, "SCRAM-SHA-1 is not a number")}),
    ("/config/users/a/clients/c", config(**{"SCRAM-SHA-256": SCRAM}), {(COPY, "SCRAM-SHA-256 is not a number")}),
    (
        "/config/users/a/clients/c%",
        config(request_percentage="inf"),
        _both("its name holds a % that is no escape") | _both("request_percentage is not a number"),
    ),
    (
        "/config/clients/c",
        config(**{"SCRAM-SHA-512": SCRAM}),
        {
            (
                DIFFERS,
                "a SCRAM-SHA-512 credential stands here, which brokers ignore; the copy makes it one of the user 'c'",
            )
        },
    ),
    (
        "/config/ips/192.0.2.1",
        config(connection_creation_rate="1e3"),
        {(START, f"connection_creation_rate is {_WHOLE}")},
    ),
    ("/config/ips/::g", config(), {(START, "its name is neither an address nor a host's name")}),
    (
        "/config/ips/host.example",
        config(),
        {(NOTED, "it is a host's name: a broker that can't resolve it when it starts does not come up")},
    ),
    ("/config/ips/2001:db8::1", config(connection_creation_rate="20"), _ipv6("2001%3Adb8%3A%3A1")),
    ("/config/ips/[::1]", config(connection_creation_rate="20"), _ipv6("%5B%3A%3A1%5D")),
    (
        "/config/ips/2001%3Adb8%3A%3A1",
        config(connection_creation_rate="20"),
        {(START, "its name is neither an address nor a host's name")},
    ),
    ("/config/users/x%2cy", config(producer_byte_rate="1"), _respelt("x%2Cy")),
    ("/config/users/x%2cy", config(**{"SCRAM-SHA-256": SCRAM}), _respelt("x%2Cy")),
    ("/config/users/%61", config(producer_byte_rate="1"), _respelt("a")),
    ("/config/users/u/clients/~*", config(producer_byte_rate="1"), _respelt("%7E%2A")),
    ("/config/clients/café", config(producer_byte_rate="1"), _respelt("caf%C3%A9")),
    ("/config/clients/a+b", config(request_percentage="1d"), _respelt("a%20b")),
    (
        "/config/clients/%E9",
        config(request_percentage="1"),
        {
            (
                DIFFERS,
                (
                    "its escapes are not what Kafka writes: after the copy it writes the entity once more, under"
                    " another name"
                ),
            )
        },
    ),
    (_ACL, b"\xff", {(DIFFERS, "not JSON: Kafka takes it as empty")}),
    (_ACL, [], _both("it is not a JSON object")),
    (_ACL, {"version": 2, "acls": []}, _both("version is not 1")),
    (_ACL, {"version": 1}, _both("acls is not a list")),
    (_ACL, acl(host=None), _both("an entry lacks a principal, host, operation or permissionType")),
    (_ACL, acl(principal="a"), _both("an entry's principal is not type:name")),
    (_ACL, acl(operation="any"), _both("an entry says ANY, which only a search may")),
    (
        _ACL,
        acl(operation="Juggle"),
        {(DIFFERS, "an entry's operation or permission is unknown to Kafka 3.9, which then matches nothing")},
    ),
    (_ACL, acl(principal=f"User:{_LONG}"), {(COPY, f"an entry's principal {_TOO_LONG}")}),
    (_ACL, acl(host=_LONG), {(COPY, f"an entry's host {_TOO_LONG}")}),
    ("/kafka-acl/TOPIC/t", acl(), {(DIFFERS, "TOPIC is no resource type: Kafka does not see what lies here")}),
    (
        "/kafka-acl-extended/prefixed/Any/t",
        acl(),
        {(COPY, "Any is no resource type: Kafka does not see what lies here")},
    ),
    ("/kafka-acl/Topic/a/b", acl(), {(DIFFERS, "it lies too deep: Kafka does not see it")}),
    (_TOK, b"?", {(DIFFERS, "not JSON: Kafka takes it as no token")}),
    (_TOK, {**TOKEN, "version": 4}, {(COPY, "version is none of 1, 2, 3")}),
    (_TOK, {**TOKEN, "owner": "a"}, {(COPY, "owner is not type:name, escaped")}),
    (_TOK, {**TOKEN, "tokenRequester": "User%3Aa%"}, {(COPY, "tokenRequester is not type:name, escaped")}),
    (_TOK, {**TOKEN, "renewers": "User%3Aa"}, {(COPY, "renewers is not type:name, escaped")}),
    (_TOK, {**TOKEN, "maxTimestamp": "2"}, {(COPY, "maxTimestamp is not a whole number of 64 bits")}),
    (_TOK, {**TOKEN, "tokenId": 1}, {(COPY, "tokenId is missing")}),
    (_TOK, {**TOKEN, "tokenId": _LONG}, {(COPY, f"tokenId {_TOO_LONG}")}),
    (_TOK, {**TOKEN, "renewers": ["User%3Aa", f"User%3A{_LONG}"]}, {(COPY, f"renewers {_TOO_LONG}")}),
    (_BLOCK, {**BLOCK, "block_start": 0}, {(COPY, "block_start or block_end is not a whole number in quotes")}),
    (_BLOCK, {**BLOCK, "broker": "1"}, {(COPY, "broker is no id")}),
    (_BLOCK, {**BLOCK, "block_end": str(2**40)}, {(COPY, "the block is longer than 32 bits can say")}),
    (_BLOCK, b"", {(COPY, "it is empty")}),
    (_BLOCK, b"x", {(COPY, "it is not a JSON object")}),
    ("/feature", b"x", {(START, "it is not a JSON object")}),
    ("/feature", {**FEATURES, "status": 7}, {(START, "version, status or features is not what Kafka writes")}),
    ("/feature", {**FEATURES, "status": True}, {(START, "version, status or features is not what Kafka writes")}),
    ("/feature", {**FEATURES, "features": {"f": {}}}, {(START, "the levels of f are none")}),
)

GOOD: tuple[tuple[str, object], ...] = (
    (_T, TOPIC),
    (_T, {"version": 1, "topic_id": "AAAAAAAAAAAAAAAAAAAAAA==", "partitions": {}}),
    (_S, STATE),
    (_S, _state(leader=-1, isr=[], leader_recovery_state=1)),
    ("/config/topics/t", b""),
    ("/config/topics/t", {"version": 1}),
    (
        "/config/topics/t",
        config(
            retention__ms=" -1 ",
            cleanup__policy="compact, delete",
            min__cleanable__dirty__ratio="0x1p-1",
            message__format__version="2.8-IV1",
        ),
    ),
    (
        "/config/topics/t",
        config(
            leader__replication__throttled__replicas="*",
            follower__replication__throttled__replicas="0:1,1:2,",
            compression__type="zstd",
        ),
    ),
    ("/config/brokers/1", config(max__connections="nonsense", leader__replication__throttled__rate="5")),
    ("/config/topics/t", config(follower__replication__throttled__replicas=LONGEST)),
    ("/config/brokers/1", config(ssl__cipher__suites=LONGEST)),
    ("/config/brokers/<default>", b""),
    (
        "/config/users/bob%40x%20y",
        config(producer_byte_rate="3000000", request_percentage=" 1.5e1 ", **{"SCRAM-SHA-512": SCRAM}),
    ),
    ("/config/users/<default>/clients/<default>", config(consumer_byte_rate="+5", controller_mutation_rate="NaN")),
    ("/config/clients/a%20b", config(request_percentage="1d")),
    ("/config/clients/Az09.-_%7E%2A%2C%3Cdefault%3E%C3%A9", config(request_percentage="1")),
    ("/config/users/a+b", config()),  # nothing to write a second time
    ("/config/ips/2001:db8::1", config()),
    ("/config/ips/<default>", config(connection_creation_rate="20")),
    ("/config/ips/192.0.2.1", config(connection_creation_rate="20")),
    (_ACL, acl(operation="describe_configs".replace("_", ""), permissionType="DENY", principal="Group:x")),
    (_ACL, b""),
    (_ACL, acl(host=LONGEST)),
    (_TOK, TOKEN),
    (_TOK, {**TOKEN, "owner": "User%3A" + "%41" * 32_762}),
    (_TOK, {k: v for k, v in {**TOKEN, "version": 2}.items() if k != "tokenRequester"}),
    (_BLOCK, BLOCK),
    ("/feature", FEATURES),
    ("/feature", {"version": 1, "status": 0, "features": {"f": {"min_version_level": 1, "max_version_level": 2}}}),
)


def data_of(content: object) -> bytes:
    return content if isinstance(content, bytes) else json.dumps(content).encode()
