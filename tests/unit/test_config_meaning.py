"""Two spellings of one configuration are alike; a different one is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.config_meaning import alike, meaning
from kraft_runbook.runbook.differing_files import differing_keys

APACHES = {
    "broker.id": "0",
    "num.network.threads": "3",
    "log.dirs": "/tmp/kafka-logs",
    "zookeeper.connect": "localhost:2181",
}
"""config/server.properties of Kafka 3.9.2 names no listener."""
AS_RENDERED = {
    **APACHES,
    "listeners": "PLAINTEXT://:9092",
    "advertised.listeners": "PLAINTEXT://b1.example.org:9092",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "inter.broker.protocol.version": "3.9",
    "config.providers": "secrets",
    "config.providers.secrets.class": "F",
}


def apart(on_disk: dict[str, str], rendered: dict[str, str]) -> tuple[str, ...]:
    return differing_keys(*alike(on_disk, rendered, newest_ibp="3.9"))


def test_apaches_own_file_means_what_is_rendered_of_it() -> None:
    assert apart(APACHES, AS_RENDERED) == ()


def test_a_file_that_names_a_protocol_between_brokers_means_its_listener() -> None:
    listeners = {"listeners": "SASL_SSL://h:9093, PLAINTEXT://h:9092", "security.inter.broker.protocol": "SASL_SSL"}
    rendered = {
        "listeners": "SASL_SSL://h:9093,PLAINTEXT://h:9092",
        "advertised.listeners": "SASL_SSL://h:9093,PLAINTEXT://h:9092",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "SASL_SSL",
        "inter.broker.protocol.version": "3.9-IV0",
    }
    assert apart(listeners, rendered) == ()
    assert apart({**listeners, "inter.broker.listener.name": "SASL_SSL"}, rendered) == (
        "security.inter.broker.protocol (only in the file)",
    )


SAME = [
    ({"num.io.threads": "8"}, {}),
    ({}, {"log.retention.hours": "168"}),
    ({"auto.create.topics.enable": "true"}, {}),
    ({"ssl.endpoint.identification.algorithm": "https"}, {}),
    ({"reserved.broker.max.id": "+01000"}, {}),
    ({"controller.quorum.voters": " "}, {}),
    ({"authorizer.class.name": ""}, {}),
    ({"log.cleaner.io.buffer.load.factor": "0.90"}, {}),
    ({"principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"}, {}),
    ({"sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-512"}, {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"}),
    (
        {"listener.name.sasl.sasl.enabled.mechanisms": "PLAIN ,GSSAPI"},
        {"listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,GSSAPI"},
    ),
    ({"auto.create.topics.enable": "FALSE"}, {"auto.create.topics.enable": "false"}),
    ({"log.retention.ms": "060"}, {"log.retention.ms": "60"}),
    ({"process.roles": ""}, {}),
    ({"broker.rack": "a "}, {"broker.rack": "a"}),
    (
        {"listener.name.sasl.plain.sasl.server.callback.handler.class": "com.example.Handler "},
        {"listener.name.sasl.plain.sasl.server.callback.handler.class": "com.example.Handler"},
    ),
    ({"zookeeper.connect": "a:2181, b:2181,/kafka"}, {"zookeeper.connect": "a:2181,b:2181/kafka"}),
    ({"zookeeper.connect": "a:2181/"}, {"zookeeper.connect": "a:2181"}),
    ({"process.roles": " ", "inter.broker.protocol.version": "3.9"}, {"inter.broker.protocol.version": "3.9-IV0"}),
]
"""A file, and a rendering of the same meaning."""


@pytest.mark.parametrize(("on_disk", "rendered"), SAME)
def test_a_default_and_another_spelling_make_no_difference(on_disk: dict[str, str], rendered: dict[str, str]) -> None:
    assert apart({**APACHES, **on_disk}, {**AS_RENDERED, **rendered}) == ()
    assert apart({**APACHES, **rendered}, {**AS_RENDERED, **on_disk}) == ()


@pytest.mark.parametrize(
    ("on_disk", "rendered"),
    [
        ({"log.retention.ms": "604800000"}, {"log.retention.hours": "168"}),
        ({"log.retention.minutes": ""}, {}),
        ({"broker.rack": ""}, {}),
        ({"ssl.endpoint.identification.algorithm": ""}, {}),
        ({"ssl.endpoint.identification.algorithm": "HTTPS"}, {}),
        ({"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, {"sasl.enabled.mechanisms": "GSSAPI,PLAIN"}),
        ({"sasl.enabled.mechanisms": "PLAIN,"}, {"sasl.enabled.mechanisms": "PLAIN"}),
        ({"sasl.enabled.mechanisms": "${vault:a ,b}"}, {"sasl.enabled.mechanisms": "${vault:a,b}"}),
        ({"num.recovery.threads.per.data.dir": "1"}, {}),
        ({"ssl.protocol": "TLSv1.3"}, {}),
        ({"zookeeper.ssl.client.enable": "false"}, {}),
        ({"num.io.threads": "${env:THREADS}"}, {}),
        ({"num.io.threads": "8_"}, {"num.io.threads": "8"}),
        ({"confluent.metrics.reporter.topic": "TRUE"}, {"confluent.metrics.reporter.topic": "true"}),
        ({"com.example.plugin": "a "}, {"com.example.plugin": "a"}),
        ({"allow.everyone.if.no.acl.found": "true "}, {"allow.everyone.if.no.acl.found": "true"}),
        ({"listener.name.sasl.com.example.plugin": "a "}, {"listener.name.sasl.com.example.plugin": "a"}),
        ({"listener.name.sasl.plain.plugin": "a "}, {"listener.name.sasl.plain.plugin": "a"}),
        ({"zookeeper.connect": "z:2181/kafka,"}, {"zookeeper.connect": "z:2181/kafka"}),
        ({"zookeeper.connect": "z:2181/a, b"}, {"zookeeper.connect": "z:2181/a,b"}),
        ({"listener.name.sasl.sasl.enabled.mechanisms": "GSSAPI"}, {}),
    ],
)
def test_what_may_mean_something_else_is_a_difference(on_disk: dict[str, str], rendered: dict[str, str]) -> None:
    assert apart({**APACHES, **on_disk}, {**AS_RENDERED, **rendered})


@pytest.mark.parametrize(
    "change",
    [
        {"num.network.threads": "4"},
        {"listeners": "PLAINTEXT://:9093"},
        {"listeners": "PLAINTEXT://10.0.0.1:9092"},
        {"advertised.listeners": "PLAINTEXT://other.example.org:9092"},
        {"listener.security.protocol.map": "PLAINTEXT:SSL"},
        {"security.inter.broker.protocol": "SSL"},
        {"inter.broker.protocol.version": "3.8"},
        {"log.dirs": "/data"},
        {"config.providers": "vault"},
        {"auto.create.topics.enable": "false"},
        {"zookeeper.connect": "localhost:2181/kafka"},
    ],
)
def test_what_changes_the_meaning_is_a_difference(change: dict[str, str]) -> None:
    assert apart({**APACHES, **change}, AS_RENDERED)


def test_blanks_that_are_all_the_difference_are_shown_in_quotes() -> None:
    on_disk, rendered = ({**APACHES, "com.example.plugin": each} for each in ("a ", "a"))
    assert apart(on_disk, rendered) == ("com.example.plugin (file: 'a ', rendered: 'a')",)


@pytest.mark.parametrize(
    ("on_disk", "differs"),
    [
        ({"config.providers": "vault,secrets,"}, False),
        ({"config.providers": "secrets, vault"}, True),
        ({"config.providers": "secrets,vault "}, True),
        ({"config.providers.secrets.class": "F "}, True),
    ],
)
def test_of_a_config_provider_kafka_trims_neither_name_nor_class(on_disk: dict[str, str], differs: bool) -> None:
    both = {**AS_RENDERED, "config.providers": "secrets,vault"}
    assert bool(apart({**both, **on_disk}, both)) is differs


def test_what_the_cluster_file_says_and_the_file_does_not_is_a_difference() -> None:
    assert apart(APACHES, {**AS_RENDERED, "num.io.threads": "9"}) == ("num.io.threads (not in the file)",)


NAMES = st.sampled_from(["PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT"])
BLANK = st.sampled_from(["", " ", "  "])


@given(st.lists(NAMES, min_size=1, max_size=3, unique=True), st.data())
def test_blanks_order_and_what_is_derived_make_no_difference(names: list[str], data: st.DataObject) -> None:
    listeners = [f"{name}://h:{9092 + at}" for at, name in enumerate(names)]
    inter = data.draw(st.sampled_from(names))
    protocols = [f"{name}:{name}" for name in names]
    whole = {
        "listeners": ",".join(listeners),
        "advertised.listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(protocols),
        "inter.broker.listener.name": inter,
        "inter.broker.protocol.version": "3.9",
        "log.dirs": "/a,/b",
        "super.users": "User:a;User:b",
    }
    blank = f"{data.draw(BLANK)},{data.draw(BLANK)}"
    spelt = {
        "listeners": blank.join(listeners),
        "listener.security.protocol.map": blank.join(data.draw(st.permutations([*protocols, "UNUSED:SSL"]))),
        "log.dirs": f"{data.draw(BLANK)}/a{blank}/b{data.draw(BLANK)}",
        "super.users": data.draw(st.sampled_from(["User:b;User:a", "User:a; User:b", "User:a;User:b;"])),
        data.draw(st.sampled_from(["inter.broker.listener.name", "security.inter.broker.protocol"])): inter,
    }
    for there, here in data.draw(st.lists(st.sampled_from(SAME), max_size=4)):
        spelt, whole = {**there, **spelt}, {**here, **whole}
    if data.draw(st.booleans()):
        spelt["inter.broker.protocol.version"] = data.draw(st.sampled_from(["3.9", "3.9-IV0 "]))
    assert apart(spelt, whole) == ()
    assert meaning(meaning(spelt, newest_ibp="3.9"), newest_ibp="3.9") == meaning(spelt, newest_ibp="3.9")
