"""Znodes to rows: what Kafka writes, what merely looks different, and what is garbled."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Fingerprints, Kind
from kraft_runbook.metadata.znodes.cluster_rows import parse_migration
from kraft_runbook.metadata.znodes.password_encoder import Undecodable, decode_password
from kraft_runbook.metadata.znodes.znode_faults import faults_of
from kraft_runbook.metadata.znodes.znode_rows import BadZnode, Decoding, path_of, quota_entity, rows_of
from kraft_runbook.metadata.znodes.znode_values import double

DECODING = Decoding(Fingerprints(b"salt"), encoder_secret="the-encoder-secret")
STATE = "/brokers/topics/a/partitions/0/state"


def rows(path: str, value: Any, decoding: Decoding = DECODING) -> list[tuple[Kind, str, str]]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return [(r.kind, r.key, r.value) for r in rows_of(path, data, decoding)]


def test_a_reordered_isr_spacing_and_the_controller_epoch_make_no_difference() -> None:
    one = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'
    two = (
        b'{ "isr": [3, 1, 2], "leader_epoch": 0, "leader": 1, "leader_recovery_state": 0, "controller_epoch": 99,'
        b' "version": 1 }'
    )
    assert rows(STATE, one) == rows(STATE, two)
    assert rows(STATE, one) != rows(STATE, one.replace(b'"leader_epoch":0', b'"leader_epoch":1'))


def test_the_order_of_replicas_makes_a_difference() -> None:
    znode = {"version": 3, "topic_id": "x", "partitions": {"0": [1, 2]}, "adding_replicas": {}, "removing_replicas": {}}
    assert rows("/brokers/topics/a", znode) != rows("/brokers/topics/a", znode | {"partitions": {"0": [2, 1]}})


@pytest.mark.parametrize(
    ("path", "data", "reason"),
    [
        (STATE, b"", "empty"),
        (STATE, b"\xff\xfe", "not JSON"),
        (STATE, b"[1]", "not a JSON object"),
        (STATE, b'{"x":' * 100_000, "not JSON"),
        ("/config/topics/a", b'{"config":{"x":"\\ud800"}}', "not what Kafka writes there (UnicodeEncodeError)"),
        (STATE, b'{"leader":1}', "not what Kafka writes there (KeyError)"),
        (
            STATE,
            b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":"1,2"}',
            "a list of broker ids is something else",
        ),
        (STATE, b'{"leader":1,"leader_epoch":0,"isr":[1]}', "not what Kafka writes there (KeyError)"),
        (STATE, b'{"leader":"1","leader_epoch":0,"controller_epoch":1,"isr":[1]}', "a number is something else"),
        (
            "/brokers/topics/a/partitions/00/state",
            b"{}",
            "its name is not how Kafka writes a number: no broker reads it",
        ),
        ("/brokers/ids/01", b"{}", "its name is not how Kafka writes a number: no broker reads it"),
        ("/brokers/topics/a", b'{"version":3}', "not what Kafka writes there (KeyError)"),
        ("/config/topics/a", b'{"config":{"x":1}}', "'config' does not map names to texts"),
        (
            "/config/users/u",
            b'{"config":{"producer_byte_rate":"fast"}}',
            "the quota producer_byte_rate is not a number",
        ),
        (
            "/config/users/u",
            b'{"config":{"producer_byte_rate":"1_000"}}',
            "the quota producer_byte_rate is not a number",
        ),
        ("/config/users/a%2", b"{}", "its name holds a % without two hexadecimal digits: Kafka's copy ends on it"),
        ("/config/clients/a%ff", b"{}", "the escapes in its name are not UTF-8: Kafka would read another name"),
        ("/config/users/u/clients/c", b'{"config":{"SCRAM-SHA-256":"x"}}', "the quota SCRAM-SHA-256 is not a number"),
        ("/kafka-acl/topic/a", b'{"version":1,"acls":[]}', "Kafka reads no ACLs below topic"),
        ("/kafka-acl/Topic/a", b'{"version":2,"acls":[]}', "ACLs of a version that Kafka does not read"),
        (
            "/config/users/u",
            b'{"config":{"SCRAM-SHA-256":"salt=c2FsdA==,iterations=1"}}',
            "the SCRAM-SHA-256 credential is malformed",
        ),
        ("/latest_producer_id_block", b'{"broker":1,"block_start":"x"}', "a number is something else"),
    ],
)
def test_a_garbled_znode_is_named_by_its_path_and_its_data_is_not_shown(path: str, data: bytes, reason: str) -> None:
    assert rows(path, data) == [(Kind.UNREADABLE, f'["{path}"]', json.dumps(reason))]


@pytest.mark.parametrize(
    ("path", "znode"),
    [
        (
            "/kafka-acl/Topic/a",
            {
                "version": 1,
                "acls": [{"principal": "User:a", "host": "*", "operation": "Read", "permissionType": "Allow"}],
            },
        ),
        ("/config/topics/a", {"version": 1, "config": {"retention.ms": "1"}}),
        (STATE, {"leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1]}),
    ],
)
@pytest.mark.parametrize("behind", [b" trailing", b"\n{}", b"}", b"\x00\xff"])
def test_what_stands_behind_the_json_is_not_looked_at_as_jackson_does_not(
    path: str, znode: object, behind: bytes
) -> None:
    data = json.dumps(znode).encode()
    assert rows(path, data + behind) == rows(path, data) != []
    assert faults_of(path, data + behind) == faults_of(path, data) == ()


@given(
    st.binary(max_size=40),
    st.sampled_from(
        [
            STATE,
            "/brokers/topics/a",
            "/config/users/u",
            "/kafka-acl/Topic/t",
            "/delegation_token/tokens/x",
            "/cluster/id",
        ]
    ),
)
def test_no_data_whatever_breaks_the_reader(data: bytes, path: str) -> None:
    for row in rows_of(path, data, DECODING):
        json.loads(row.value)


def test_quota_entities_are_unsanitized() -> None:
    assert quota_entity("users/bob%40x%20y/clients/%3Cdefault%3E%2A") == (
        ("user", "bob@x y"),
        ("client-id", "<default>*"),
    )
    assert quota_entity("users/<default>") == (("user", None),)
    assert quota_entity("users/CN%3Dx%2C+O%3Dy") == quota_entity("users/CN%3Dx%2c%20O%3Dy") == (("user", "CN=x, O=y"),)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0),
        (" 1e3 ", 1000.0),
        ("5d", 5.0),
        (".5F", 0.5),
        ("0x1p4", 16.0),
        ("-Infinity", float("-inf")),
        ("+1.", 1.0),
    ],
)
def test_doubles_are_read_as_java_reads_them(text: str, number: float) -> None:
    assert double(text) == number


@pytest.mark.parametrize(
    "text", ["", "1_0", "inf", "nan", "infinity", "0x10", "1e", "١", "1 0", "--1", "0x1p", "Infinityf"]
)
def test_what_java_takes_for_no_double_is_none(text: str) -> None:
    with pytest.raises(BadZnode):
        double(text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/brokers/topics/a", {"partitions": {"0": [1]}, "topic_id": "x"}),
        (STATE, {"leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1]}),
        ("/config/topics/a", {"config": {"x": "1"}}),
        ("/config/brokers/<default>", {"config": {"x": "1"}}),
        (
            "/kafka-acl/TransactionalId/x",
            {
                "version": 1,
                "acls": [
                    {"principal": "User:u", "host": "*", "operation": "IdempotentWrite", "permissionType": "Allow"}
                ],
            },
        ),
        (
            "/kafka-acl-extended/prefixed/Topic/a/b",
            {
                "version": 1,
                "acls": [{"principal": "User:u", "host": "*", "operation": "Read", "permissionType": "Deny"}],
            },
        ),
        ("/latest_producer_id_block", {"broker": 1, "block_start": "0", "block_end": "999"}),
        ("/cluster/id", {"id": "x"}),
        ("/brokers/ids/1", {"endpoints": ["PLAINTEXT://h:1"], "rack": "r"}),
        ("/controller", {"brokerid": 101, "kraftControllerEpoch": 3}),
    ],
)
def test_every_row_carries_its_znode_and_where_a_key_has_one_path_leads_back_to_it(path: str, value: Any) -> None:
    found = rows_of(path, json.dumps(value).encode(), DECODING)
    assert found
    assert {path_of(row.kind, row.key) for row in found} == {row.path for row in found} == {path}


def test_a_credential_is_of_the_name_as_it_stands_and_may_stand_below_clients() -> None:
    znode = {"config": {"SCRAM-SHA-512": "salt=c2FsdA==,stored_key=YQ==,server_key=Yg==,iterations=4096"}}
    (default,), (literal,), (client,) = (
        rows(f"/config/{path}", znode) for path in ("users/<default>", "users/%3Cdefault%3E", "clients/a+b")
    )
    assert default[1] == literal[1] == '["<default>","SCRAM-SHA-512"]'
    assert client[1] == '["a b","SCRAM-SHA-512"]'


def test_acls_are_a_set_in_kafkas_own_names() -> None:
    entry = {"principal": "User:u", "host": "*", "operation": "DescribeConfigs", "permissionType": "Allow"}
    other = entry | {"operation": "All"}
    znode = {"version": 1, "acls": [entry, other, entry]}
    assert sorted(rows("/kafka-acl/Cluster/kafka-cluster", znode)) == sorted(
        rows("/kafka-acl/Cluster/kafka-cluster", {"version": 1, "acls": [other, entry]})
    )
    assert "DESCRIBE_CONFIGS" in rows("/kafka-acl/Cluster/kafka-cluster", znode)[0][1]
    respelt = znode | {"acls": [entry | {"operation": "describeCONFIGS", "permissionType": "ALLOW"}, other]}
    assert sorted(rows("/kafka-acl/Cluster/kafka-cluster", respelt)) == sorted(
        rows("/kafka-acl/Cluster/kafka-cluster", znode)
    )
    for wrong in ({"operation": "DESCRIBE_CONFIGS"}, {"permissionType": "yes"}, {"principal": "u"}):
        ((kind, _, _),) = rows("/kafka-acl/Cluster/kafka-cluster", znode | {"acls": [entry | wrong]})
        assert kind is Kind.UNREADABLE
    assert rows("/kafka-acl/Group/a", b"") == [], "Kafka reads an empty znode as none"


def test_a_token_without_a_requester_was_asked_for_by_its_owner() -> None:
    token = {
        "version": 2,
        "owner": "User%3Abob",
        "renewers": [],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "the-token-id",
    }
    ((_, key, value),) = rows("/delegation_token/tokens/the-token-id", token)
    assert json.loads(value)["requester"] == json.loads(value)["owner"] == "User:bob"
    assert "the-token-id" not in key


def test_an_empty_producer_id_block_is_no_row() -> None:
    assert rows("/latest_producer_id_block", b"") == []


def test_migration_is_read_and_a_garbled_one_refused() -> None:
    znode = {
        "version": 0,
        "kraft_metadata_offset": 5,
        "kraft_controller_id": 101,
        "kraft_metadata_epoch": 2,
        "kraft_controller_epoch": 3,
    }
    assert parse_migration(json.dumps(znode).encode()).kraft_metadata_offset == 5
    with pytest.raises(BadZnode, match="lacks a field"):
        parse_migration(b'{"version":0}')


# -- passwords ---------------------------------------------------------------------------------------------------------


def encode_password(password: str, secret: str) -> str:
    """As Kafka's EncryptingPasswordEncoder does by default, with fewer iterations."""
    salt, vector = os.urandom(256), os.urandom(16)
    key = hashlib.pbkdf2_hmac("sha512", secret.encode(), salt, 16, 16)
    padder = PKCS7(128).padder()
    sealer = Cipher(AES(key), CBC(vector)).encryptor()
    text = sealer.update(padder.update(password.encode()) + padder.finalize()) + sealer.finalize()
    plain = {
        "keyFactoryAlgorithm": "PBKDF2WithHmacSHA512",
        "cipherAlgorithm": "AES/CBC/PKCS5Padding",
        "keyLength": "128",
        "salt": base64.b64encode(salt).decode(),
        "iterations": "16",
        "encryptedPassword": base64.b64encode(text).decode(),
        "passwordLength": str(len(password)),
        "initializationVector": base64.b64encode(vector).decode(),
    }
    return ",".join(f"{name}:{value}" for name, value in plain.items())


@given(st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF), max_size=20))
def test_a_password_reads_back(password: str) -> None:
    assert decode_password(encode_password(password, "s"), "s") == password


def test_a_wrong_secret_is_told_without_showing_anything() -> None:
    with pytest.raises(Undecodable, match=r"password\.encoder\.secret does not decode it"):
        decode_password(encode_password("hunter2", "right"), "wrong")


def test_an_encoded_password_compares_with_a_plain_one_by_fingerprint_and_neither_is_shown() -> None:
    name = "listener.name.sasl.ssl.keystore.password"
    encoded = encode_password("hunter2", "the-encoder-secret")
    ((_, _, value),) = rows("/config/brokers/1", {"config": {name: encoded}})
    assert json.loads(value) == canonical_rows.config_value(name, "hunter2", DECODING.fingerprints)
    assert "hunter2" not in value


def test_without_the_encoders_secret_a_password_is_undecoded_and_says_why() -> None:
    encoded = encode_password("hunter2", "x")
    ((_, _, value),) = rows(
        "/config/brokers/1", {"config": {"ssl.key.password": encoded}}, Decoding(DECODING.fingerprints)
    )
    assert (
        canonical_rows.why_undecoded(value)
        == "password.encoder.secret is not named under 'secrets' in the cluster file"
    )
