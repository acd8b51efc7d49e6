"""What a copy holds in the place of a znode's data: what Kafka says of it stays the same, and no secret stays."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from asked_java import ask_java
from bad_znodes import BAD, GOOD, SCRAM, TOKEN, config, data_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kafka_jars import kafka_jar

from kraft_runbook.metadata.znodes.password_encoder import Undecodable, decode_password, length_of
from kraft_runbook.metadata.znodes.znode_faults import faults_of
from kraft_runbook.metadata.znodes.znode_rows import SCRAM_MECHANISMS
from kraft_runbook.rehearsal.known_configs import _BROKERS, is_known
from kraft_runbook.rehearsal.random_values import credential, encoded_password, scrambled
from kraft_runbook.rehearsal.replacing import (
    CENTURY_MS,
    LAST_MS,
    Dropped,
    Held,
    Replaced,
    Replacements,
    held,
    why_dropped,
)
from kraft_runbook.rehearsal.throwaway import SEATS

GIVEN = Replacements("bmV3LWNsdXN0ZXItaWQ", encoder_secret="the throwaway's", source_encoder_secret="the source's")
KEY = base64.b64encode(bytes(range(64))).decode()
CREDENTIAL = f"salt=c2FsdDEyMzQ1Njc4OTA=,stored_key={KEY},server_key={KEY},iterations=8192"
ENCODED = (
    f"keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,salt:{KEY},"
    f"iterations:16,encryptedPassword:{KEY},passwordLength:7,initializationVector:MTIzNDU2Nzg5MDEyMzQ1Ng=="
)
ZNODES = [*((path, data_of(content)) for path, content, _ in BAD), *((path, data_of(each)) for path, each in GOOD)]


def encoded(password: str, secret: str) -> str:
    return encoded_password(
        "ssl.key.password", ENCODED.replace("passwordLength:7", f"passwordLength:{len(password)}"),
        secret=secret, source_secret=None,
    )  # fmt: skip


def config_in(given: Held) -> dict[str, str]:
    found = json.loads(given.data)["config"]
    assert isinstance(found, dict)
    return found


# -- what was malformed stays malformed --------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "data"), ZNODES)
def test_kafka_has_the_same_faults_with_what_is_held_as_with_the_original(path: str, data: bytes) -> None:
    assert faults_of(path, held(path, data, GIVEN).data) == faults_of(path, data)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A znode of any kind, with some bytes of it replaced, left out or doubled."""
    path, data = draw(st.sampled_from([*ZNODES, ("/config/users/a", data_of(config(**{"SCRAM-SHA-256": CREDENTIAL})))]))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 9)))
        put = draw(st.sampled_from([b"", b'"', b"}", b",", b"1", b"9" * 12, b"x", b"=", b"\xff", b"null", b"[]", b" "]))
        data = data[:start] + put + data[end:]
    return path, data


@settings(max_examples=600, deadline=None)
@given(mutated())
@example(("/config/users/a", b'{"config":{"producer_byte_rate":"12x","x":"1d","y":"1x"}}'))
@example(("/config/clients/a", b'{"config":{"x":"\\ud800"}}'))
@example(("/config/brokers/1", b'{"config":{"x":1e999}}'))
def test_and_so_it_has_of_any_mutilated_one(znode: tuple[str, bytes]) -> None:
    path, data = znode
    assert faults_of(path, held(path, data, GIVEN).data) == faults_of(path, data)


@pytest.mark.parametrize(("path", "data"), [znode for znode in ZNODES if not znode[0].startswith(("/config", "/del"))])
def test_topics_states_acls_and_producer_ids_stay_byte_for_byte(path: str, data: bytes) -> None:
    assert held(path, data, GIVEN) == Held(data)


@pytest.mark.parametrize(("path", "content"), [znode for znode in GOOD if znode[0].startswith(("/config", "/del"))])
def test_names_and_quotas_stay(path: str, content: object) -> None:
    found = held(path, data_of(content), GIVEN)
    assert not {*found.replaced} - {Replaced.SCRAM_CREDENTIAL}
    if isinstance(content, dict):
        said, wanted = json.loads(found.data), json.loads(data_of(content))
        for each in (said, wanted):
            for mechanism in SCRAM_MECHANISMS:
                each.get("config", {}).pop(mechanism, None)
            for time in ("expiryTimestamp", "maxTimestamp"):  # moved: see below
                each.pop(time, None)
            each.get("config", {}).pop("connection_creation_rate", None)  # unlimited: see below
        assert said == wanted


def test_what_kafka_wrote_stays_byte_for_byte() -> None:
    written = b'{"version":1,"config":{"retention.ms":"1000","cleanup.policy":"compact"}}'
    assert held("/config/topics/t", written, GIVEN) == Held(written)
    quota = b'{"version":1,"config":{"producer_byte_rate":"3000000"}}'
    assert held("/config/users/alice", quota, GIVEN) == Held(quota)


# -- no secret stays ---------------------------------------------------------------------------------------------------

SECRETS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/", min_size=12, max_size=40)


@settings(max_examples=100, deadline=None)
@given(SECRETS, st.sampled_from(["salt", "stored_key", "server_key", "stored_kex", ""]), st.sampled_from("=,: "))
def test_no_credential_stays_however_it_is_malformed(secret: str, field: str, behind: str) -> None:
    for path in ("/config/users/alice", "/config/users/<default>", "/config/clients/c", "/config/users/u/clients/c"):
        for mechanism in (*SCRAM_MECHANISMS, "SCRAM-SHA-1"):
            value = f"{CREDENTIAL},{field}={secret}{behind}x"
            found = held(path, data_of(config(**{mechanism: value})), GIVEN)
            assert secret.encode() not in found.data
            assert KEY.encode() not in found.data


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/config/brokers/1", data_of(config(ssl__key__password="hunter2secret"))),
        ("/config/brokers/1", data_of(config(**{"listener.name.x.ssl.key.password": f"salt:{KEY},hunter2secret"}))),
        ("/config/brokers/<default>", data_of(config(my__reporter__token="hunter2secret"))),
        ("/config/topics/t", data_of(config(my__interceptor__key="hunter2secret"))),
        ("/config/users/a", data_of(config(made_up="hunter2secret"))),
        ("/config/users/a", b'{"config":{"SCRAM-SHA-256":"hunter2secret"'),
        ("/config/users/a", b'{"config":{"SCRAM-SHA-256":"hunter2secret"},"config":{}}'),
        ("/config/users/a", b'{"config":{}} hunter2secret'),
        ("/config/users/a", b'{"config":{},"note":"hunter2secret"}'),
        ("/config/users/a", b'{"config":{"SCRAM-SHA-256":["hunter2secret"]}}'),
        ("/config/users/a", b'{"config":"hunter2secret"}'),
        ("/config/users/a", b'{"version":"hunter2secret","config":{}}'),
        ("/config/users/a", b'["hunter2secret"]'),
        ("/config/users/a", b'"hunter2secret"'),
        ("/config/users", b"hunter2secret"),
        ("/config/users/a/clients", b"hunter2secret"),
        ("/config/made-up/a", data_of(config(anything="hunter2secret"))),
        ("/config/made-up/a/b", b"hunter2secret"),
        ("/delegation_token/tokens/t", data_of({**TOKEN, "hmac": "hunter2secret"})),
        ("/delegation_token/tokens/t", data_of({**TOKEN, "renewers": [{"x": "hunter2secret"}]})),
        ("/delegation_token/tokens/t", data_of({**TOKEN, "tokenId": {"x": "hunter2secret"}})),
        ("/delegation_token/tokens/t", b"hunter2secret"),
        ("/delegation_token/tokens/t", b'"hunter2secret"'),
        ("/delegation_token", b"hunter2secret"),
        ("/cluster/id", b"hunter2secret"),
        ("/cluster", b"hunter2secret"),
    ],
)
def test_whatever_else_may_be_secret_does_not_stay_and_is_counted(path: str, data: bytes) -> None:
    assert b"hunter2secret" in data
    assert b"hunter2secret" not in held(path, data, GIVEN).data


@pytest.mark.parametrize("whose", ["<default>", "1"])
@pytest.mark.parametrize(
    "name",
    [
        "metric.reporters",
        "principal.builder.class",
        "listener.name.x.ssl.engine.factory.class",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
    ],
)
def test_what_would_call_other_servers_once_a_broker_loads_it_does_not_come_into_the_copy(
    whose: str, name: str
) -> None:
    """Seats and controllers load the configs of all brokers, and whoever has a broker's id loads that broker's."""
    written = data_of(config(**{name: "PLAINTEXT://kafka-9.example.com:9092"}, log__retention__ms="2"))
    found = held(f"/config/brokers/{whose}", written, GIVEN)
    assert config_in(found) == {"log.retention.ms": "2"} and found.replaced == ()
    (told,) = found.left_out
    assert told.startswith(f"{name}: ") and "example.com" not in told
    none = held(f"/config/brokers/{whose}", data_of(config(**{name: ""})), GIVEN)
    assert config_in(none) == {name: ""} and none.left_out == (), "nothing is set"


@pytest.mark.parametrize("whose", ["<default>", "1"])
@pytest.mark.parametrize("name", [*SEATS, "listener.name.plaintext.num.network.threads"])
def test_no_config_of_the_copy_takes_more_than_the_seats_have(whose: str, name: str) -> None:
    """It would come before the properties of their files: a buffer of 1 GiB is more than their heap."""
    found = held(f"/config/brokers/{whose}", data_of(config(**{name: "1073741824"}, log__retention__ms="2")), GIVEN)
    assert config_in(found) == {"log.retention.ms": "2"} and found.replaced == ()
    assert [each.partition(":")[0] for each in found.left_out] == [name]


MOST = "2147483647"


@pytest.mark.parametrize("whose", ["<default>", "1"])
@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("max.connections.per.ip", "5", MOST),
        ("max.connections", " 400 ", MOST),
        ("max.connection.creation.rate", "0", MOST),
        ("listener.name.plaintext.max.connections", "7", MOST),
        ("listener.name.plaintext.max.connection.creation.rate", "7", MOST),
        ("max.connections.per.ip.overrides", "10.0.0.1:5 , kafka-9.example.com: 7,", f"127.0.0.1:{MOST}"),
        ("max.connections.per.ip.overrides", "2001:db8::1:5", f"127.0.0.1:{MOST}"),
        *(("max.connections.per.ip.overrides", value, value) for value in ("10.0.0.1", "kafka-9:many", "a:1,b", "")),
        *(("max.connections", value, value) for value in ("nonsense", "1e3", "", "2147483648")),
    ],
)
def test_no_broker_limits_connections_in_the_copy(whose: str, name: str, value: str, instead: str) -> None:
    """There all peers have a few loopback addresses. The config stays one: Kafka's copy has as many of them."""
    found = held(f"/config/brokers/{whose}", data_of(config(**{name: value}, log__retention__ms="2")), GIVEN)
    assert config_in(found) == {name: instead, "log.retention.ms": "2"} and found.replaced == ()
    told = f"{name}: a limit of connections: all peers have a few loopback addresses here; {instead} is in its place"
    assert found.left_out == ((told,) if instead != value else ()), "Kafka limits nothing by what it can't read"


@pytest.mark.parametrize("whose", ["<default>", "192.0.2.1", "127.0.0.1", "host.example"])
def test_no_address_is_limited_in_the_copy_and_every_other_quota_is(whose: str) -> None:
    quotas = {"connection_creation_rate": "20", "producer_byte_rate": "5"}
    found = held(f"/config/ips/{whose}", data_of(config(**quotas)), GIVEN)
    assert config_in(found) == quotas | {"connection_creation_rate": MOST}
    (told,) = found.left_out
    assert told.startswith("connection_creation_rate: a limit of connections") and MOST in told
    malformed = data_of(config(connection_creation_rate="1e3"))
    assert held(f"/config/ips/{whose}", malformed, GIVEN).left_out == ()
    assert config_in(held("/config/users/a", data_of(config(**quotas)), GIVEN)) == quotas, "no address"


@pytest.mark.parametrize(("value", "stays"), [("true", False), (" TRUE ", False), ("false", True), ("yes", True)])
def test_no_topic_is_tiered_in_the_copy(value: str, stays: bool) -> None:
    """Tiered storage is off there, and a broker does not start with a tiered topic then."""
    found = held("/config/topics/t", data_of(config(remote__storage__enable=value, retention__ms="7")), GIVEN)
    assert config_in(found) == {**({"remote.storage.enable": value} if stays else {}), "retention.ms": "7"}
    assert [each.partition(":")[0] for each in found.left_out] == ([] if stays else ["remote.storage.enable"])
    assert found.replaced == ()


def test_what_is_replaced_is_told_an_entry_each() -> None:
    users = data_of(config(**dict.fromkeys(SCRAM_MECHANISMS, CREDENTIAL), producer_byte_rate="5"))
    assert held("/config/users/a", users, GIVEN).replaced == (Replaced.SCRAM_CREDENTIAL,) * 2
    brokers = data_of(config(ssl__key__password=encoded("x", "s"), log__retention__ms="2", my__token="y"))
    assert held("/config/brokers/1", brokers, GIVEN).replaced == (Replaced.ENCODED_PASSWORD, Replaced.SENSITIVE_CONFIG)
    assert config_in(held("/config/brokers/1", brokers, GIVEN))["log.retention.ms"] == "2"
    token = data_of({**TOKEN, "hmac": "x"})
    assert held("/delegation_token/tokens/t", token, GIVEN).replaced == (Replaced.DELEGATION_TOKEN,)
    found = held("/cluster/id", b'{"version":"1","id":"old"}', GIVEN)
    assert found == Held(b'{"version":"1","id":"bmV3LWNsdXN0ZXItaWQ"}', (Replaced.CLUSTER_ID,))


# -- the shapes --------------------------------------------------------------------------------------------------------


def test_a_credential_keeps_its_lengths_and_iterations_and_is_another_each_time() -> None:
    made = {credential(CREDENTIAL) for _ in range(5)}
    assert len(made) == 5
    for each in made:
        fields = dict(part.split("=", 1) for part in each.split(","))
        assert list(fields) == ["salt", "stored_key", "server_key", "iterations"]
        assert fields["iterations"] == "8192"
        assert [len(base64.b64decode(fields[name])) for name in list(fields)[:3]] == [14, 64, 64]
        assert not {"c2FsdDEyMzQ1Njc4OTA=", KEY} & set(fields.values())


@given(st.text(max_size=40))
def test_a_scrambled_text_has_its_length_and_keeps_what_is_neither_letter_nor_digit(text: str) -> None:
    made = scrambled(text)
    assert len(made) == len(text)
    for old, new in zip(text, made, strict=True):
        assert (old.isalpha(), old.isdigit()) == (new.isalpha(), new.isdigit()) or not old.isascii()
        assert old == new or old.isalnum()
    assert made != text or not any(each.isascii() and each.isalnum() for each in text)


@pytest.mark.parametrize("source", ["the source's", "another", None])
def test_the_throwaway_opens_exactly_what_the_source_opens(source: str | None) -> None:
    stored = encoded("s3cr3t!", "the source's")
    made = encoded_password("ssl.key.password", stored, secret="the throwaway's", source_secret=source)
    if source == "another":
        with pytest.raises(Undecodable):
            decode_password(made, "the throwaway's")
    else:
        assert len(decode_password(made, "the throwaway's")) == 7
    with pytest.raises(Undecodable):
        decode_password(made, "the source's")


@pytest.mark.parametrize(("length", "made_long"), [(90, 130), (32_768, 32_768)])
def test_a_login_line_is_one_again_and_no_shorter(length: int, made_long: int) -> None:
    name = "listener.name.sasl.plain.sasl.jaas.config"
    made = encoded_password(name, encoded("x" * length, "s"), secret="t", source_secret="s")
    assert decode_password(made, "t").startswith("org.apache.kafka.common.security.plain.PlainLoginModule required ")
    assert length_of(made) == len(decode_password(made, "t")) == made_long


@pytest.mark.parametrize(
    "broken",
    [
        ENCODED.replace("iterations:16", "iterations:0"),
        ENCODED.replace("passwordLength:7", "passwordLength:x"),
        ENCODED.replace("salt:", "sa1t:"),
        ENCODED.replace("AES/CBC", "DES/CBC"),
        ENCODED.replace("MTIzNDU2Nzg5MDEyMzQ1Ng==", "MTIz"),
        ENCODED.replace(f"encryptedPassword:{KEY},", ""),
        "plain words",
        "",
    ],
)
def test_a_malformed_password_is_opened_by_no_secret_and_says_nothing_of_the_old_one(broken: str) -> None:
    made = encoded_password("ssl.key.password", broken, secret="t", source_secret=None)
    with pytest.raises(Undecodable):
        decode_password(made, "t")
    assert KEY not in made
    assert "plain" not in made


def test_kafka_s_own_encoder_opens_the_replaced_password_with_the_throwaway_s_secret_alone() -> None:
    program, jars = Path(__file__).with_name("AskPasswordEncoder.java"), kafka_jar("kafka-server-common").parent
    ciphers = ("AES/CBC/PKCS5Padding", "AES/CTR/NoPadding", "AES/GCM/NoPadding")
    encode = "".join(f"encode old-secret {cipher} hunter2\n" for cipher in ciphers)
    made: list[str] = []
    asked = ""
    for cipher, stored in zip(ciphers, ask_java(program, jars=jars, given=encode).splitlines(), strict=True):
        made += (encoded_password("x", stored, secret="new-secret", source_secret=each) for each in ("old-secret", "y"))
        asked += f"decode old-secret {cipher} {stored}\n"
        asked += "".join(f"decode new-secret {cipher} {each}\n" for each in made[-2:])
    told = iter(ask_java(program, jars=jars, given=asked).splitlines())
    for cipher, opened, unopened in zip(ciphers, made[::2], made[1::2], strict=True):
        assert next(told) == "hunter2"
        assert next(told) == decode_password(opened, "new-secret") != "hunter2"
        with pytest.raises(Undecodable):
            decode_password(unopened, "new-secret")
        assert next(told) == "refused" or cipher == "AES/CTR/NoPadding"  # which has nothing to tell a wrong key by


# -- which znodes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "ephemeral", "why"),
    [
        ("/brokers/ids/1", True, Dropped.EPHEMERAL),
        ("/controller", True, Dropped.CONTROLLER),
        ("/controller", False, Dropped.CONTROLLER),
        ("/migration", False, Dropped.MIGRATION),
        ("/kraft_runbook_claim", False, Dropped.CLAIM),
        ("/consumers", False, Dropped.CONSUMERS),
        ("/consumers/g/ids/x", True, Dropped.CONSUMERS),
        ("/hbase", False, Dropped.NOT_KAFKAS),
        ("/zookeeper/quota", False, Dropped.NOT_KAFKAS),
        ("/", False, None),
        ("", False, None),
        ("/controller_epoch", False, None),
        ("/brokers/topics/t", False, None),
        ("/config/users/alice", False, None),
        ("/delegation_token/tokens/t", False, None),
        ("/kafka-acl-extended/prefixed/Topic/t", False, None),
    ],
)
def test_what_is_dropped_and_why(path: str, ephemeral: bool, why: Dropped | None) -> None:
    assert why_dropped(path, ephemeral=ephemeral) is why


def test_the_configs_that_brokers_take_while_they_run_are_those_of_the_jar() -> None:
    program = Path(__file__).with_name("PrintDynamicConfigs.java")
    told = set(ask_java(program, jars=kafka_jar("kafka_2.13").parent).split())
    assert told == _BROKERS
    assert is_known("brokers", "listener.name.x.max.connections")
    assert is_known("brokers", "listener.name.x.scram-sha-256.sasl.jaas.config")
    assert not is_known("brokers", "listener.name.x.my.token")


def test_a_znode_without_data_holds_none() -> None:
    assert held("/config/users/a", b"", GIVEN) == Held(b"")
    assert SCRAM  # the list of bad znodes has credentials at all


@pytest.mark.parametrize(
    ("times", "moved"),
    [
        ({"expiryTimestamp": 1_700_000_000_000, "maxTimestamp": 1_700_600_000_000}, CENTURY_MS),
        ({"expiryTimestamp": LAST_MS, "maxTimestamp": LAST_MS - 1}, 0),
        ({"expiryTimestamp": True, "maxTimestamp": "soon"}, 0),
    ],
)
def test_a_copied_token_does_not_expire_in_the_rehearsal(times: dict[str, Any], moved: int) -> None:
    """Its controllers delete what has expired, and the tree would have changed. What Kafka can't read stays so."""
    path, issued = "/delegation_token/tokens/t", 1_699_999_999_000
    made = json.loads(held(path, data_of({**TOKEN, "issueTimestamp": issued, **times}), GIVEN).data)
    assert made["issueTimestamp"] == issued
    assert {name: made[name] for name in times} == {name: at + moved if moved else at for name, at in times.items()}
