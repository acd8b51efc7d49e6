"""A broker's dynamic configs that count for its listeners in ZooKeeper mode and may not in KRaft mode (KRB-PRE-095)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from asked_java import ask_java
from observations import SPEC, observation, tree
from secured import secured

from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.late_configs import OF_ALL_LISTENERS, is_late
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.sensitive import HIDDEN
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.io.zookeeper.read_entities import read_entities
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.copied_records import CopiedRecords
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets, ZnodeFindings
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.migration.checks import CHECKS, Severity, Verdict
from lab.installation import JARS

TLS, SASL, SASL_TLS = SecurityProtocol.SSL, SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL
OWN = "listener.name.internal."
AUTH, REAUTH, BUILDER = "ssl.client.auth", "connections.max.reauth.ms", "principal.builder.class"
PEM = ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates")
PROTOCOLS = "listener.security.protocol.map"


def told(spec: ClusterSpec, **brokers: Mapping[str, str]) -> str:
    """What the check says; ``b1``: broker 1's dynamic configs. Empty where it is in order."""
    late = {name.removeprefix("b"): configs for name, configs in brokers.items()}
    result = CHECKS["KRB-PRE-095"].run(tree(late_configs_of_brokers=late)(observation(Phase.ZOOKEEPER)), spec)
    assert result.severity is Severity.BLOCKING
    assert result.passed or result.verdict is Verdict.FAIL
    return "" if result.passed else result.evidence


def declaring(protocol: SecurityProtocol, also: Mapping[str, str], *secrets: str) -> ClusterSpec:
    """A cluster with one listener INTERNAL by this protocol, with these properties and secrets besides."""
    spec = secured(protocol)
    return spec.model_copy(
        update={
            "broker_properties": {**spec.broker_properties, **also},
            "secrets": {**spec.secrets, **{key: SecretRef(env="X") for key in secrets}},
        }
    )


@pytest.mark.parametrize(
    ("protocol", "key", "value", "in_file", "has"),
    [
        (TLS, OWN + AUTH, "required", {AUTH: "none"}, "none"),
        (TLS, OWN + AUTH, "required", {OWN + AUTH: "none"}, "none"),
        (TLS, AUTH, "requested", {AUTH: "none"}, "none"),
        (TLS, OWN + "ssl.enabled.protocols", "TLSv1.3", {}, "nothing"),
        (TLS, OWN + "ssl.principal.mapping.rules", "RULE:^CN=(.*)$/$1/", {}, "nothing"),
        (TLS, OWN + "ssl.keystore.location", "/b", {"ssl.keystore.location": "/a"}, "/a"),
        (TLS, OWN + "ssl.truststore.type", "PEM", {}, "nothing"),
        (TLS, OWN + BUILDER, "com.example.A", {BUILDER: "com.example.B"}, "com.example.B"),
        (SASL, "sasl.enabled.mechanisms", "PLAIN", {}, "SCRAM-SHA-512"),
        (SASL, OWN + "sasl.enabled.mechanisms", "PLAIN", {}, "SCRAM-SHA-512"),
        (SASL, OWN + REAUTH, "3600000", {}, "nothing"),
        (SASL, f"{OWN}scram-sha-512.{REAUTH}", "3600000", {REAUTH: "7200000"}, "7200000"),
        (SASL, OWN + "plain.sasl.server.callback.handler.class", "com.example.A", {}, "nothing"),
        (SASL_TLS, OWN + AUTH, "required", {OWN + AUTH: "none"}, "none"),
    ],
)
def test_what_the_file_has_otherwise_is_told(
    protocol: SecurityProtocol, key: str, value: str, in_file: dict[str, str], has: str
) -> None:
    assert is_late(key)
    spec = declaring(protocol, in_file)
    assert told(spec, b1={key: value}, b3={key: value}) == f"brokers 1, 3 have {key}={value}, and its file has {has}"
    same = declaring(protocol, {**in_file, key: f" {value} "})
    assert told(same, b1={key: value}) == "", "the file has it as well"


@pytest.mark.parametrize(
    ("protocol", "key", "value", "in_file"),
    [
        (TLS, OWN + AUTH, "required", {AUTH: "required"}),
        (TLS, OWN + AUTH, "none", {AUTH: "none"}),
        (TLS, AUTH, "requested", {OWN + AUTH: "required"}),
        (TLS, OWN + "ssl.keystore.type", "JKS", {}),
        (SASL, OWN + REAUTH, "0", {}),
        (SASL, f"{OWN}plain.{REAUTH}", "5", {OWN + REAUTH: "5"}),
        (SASL, OWN + "sasl.enabled.mechanisms", "B,A", {"sasl.enabled.mechanisms": "A, B"}),
        # what such a listener takes in neither mode
        (SASL, OWN + AUTH, "required", {}),
        (SASL_TLS, OWN + AUTH, "required", {}),
        (TLS, OWN + REAUTH, "5", {}),
        (TLS, "sasl.enabled.mechanisms", "PLAIN", {}),
        (TLS, "listener.name.another.ssl.client.auth", "none", {AUTH: "required"}),
    ],
)
def test_what_the_file_means_too_or_counts_in_neither_mode_is_in_order(
    protocol: SecurityProtocol, key: str, value: str, in_file: dict[str, str]
) -> None:
    assert told(declaring(protocol, in_file), b1={key: value}) == ""


@pytest.mark.parametrize("key", [*(OWN + each for each in PEM), OWN + "ssl.truststore.password", OWN + "opa.token"])
def test_of_a_secret_it_is_told_whether_the_file_has_one(key: str) -> None:
    assert told(declaring(TLS, {}), b2={key: HIDDEN}) == f"broker 2 has {key}, and its file has none"
    assert told(declaring(TLS, {}, key), b2={key: HIDDEN}) == ""


def test_a_login_of_one_mechanism_counts_with_both_names_alone() -> None:
    key = OWN + "plain.sasl.jaas.config"
    assert (
        told(declaring(SASL, {}, "sasl.jaas.config"), b2={key: HIDDEN}) == f"broker 2 has {key}, and its file has none"
    )
    assert told(declaring(SASL, {}, key), b2={key: HIDDEN}) == ""


def test_what_all_brokers_have_by_default_never_counts() -> None:
    assert told(SPEC, **{"<default>": {BUILDER: "com.example.A", PROTOCOLS: "PLAINTEXT:SSL"}}) == ""


@pytest.mark.parametrize(
    ("given", "has"),
    [
        ("internal:SASL_SSL, CONTROLLER:PLAINTEXT, OLD:SSL", ""),
        ("INTERNAL:SASL_SSL", f"{PROTOCOLS} without CONTROLLER"),
        ("CONTROLLER:PLAINTEXT", f"{PROTOCOLS} without INTERNAL"),
        (
            "INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            f"{PROTOCOLS} with INTERNAL:SASL_PLAINTEXT, and its file has INTERNAL:SASL_SSL",
        ),
    ],
)
def test_a_map_of_protocols_has_each_listener_as_the_file_has_it(given: str, has: str) -> None:
    assert told(secured(SASL_TLS), b2={PROTOCOLS: given}) == (has and f"broker 2 has {has}")


class Znodes:
    """Stands for the reader of ZooKeeper: a dict of znodes by path."""

    def __init__(self, data: dict[str, bytes]) -> None:
        self.data = data

    def children(self, path: str) -> list[str] | None:
        below = {each[len(path) + 1 :].split("/")[0] for each in self.data if each.startswith(f"{path}/")}
        return sorted(below) or None

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        return [self.children(path) for path in paths]

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [Znode(path, self.data[path], 0, 0, 0, 0, 0) if path in self.data else None for path in paths]


def test_what_is_late_of_brokers_dynamic_configs_is_read_and_no_secret() -> None:
    znodes = {
        "/config/brokers/3": (
            b'{"version":1,"config":{"listener.name.sasl.ssl.keystore.location":"/new.p12","max.connections":"5",'
            b'"listener.name.sasl.ssl.keystore.password":"encryptedPassword:abc","ssl.client.auth":"required",'
            b'"listener.name.sasl.max.connections":"5","listener.name.sasl.opa.key":"abc",'
            b'"listener.security.protocol.map":"SASL:SASL_SSL"}}'
        ),
        "/config/brokers/<default>": b'{"version":1,"config":{"max.connections":"9"}}',
    }
    findings = ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets())
    found = read_entities(cast(ZookeeperReader, Znodes(znodes)), findings, topics=(), copied=CopiedRecords())
    assert found.late_configs_of_brokers == {
        "3": {
            "listener.name.sasl.ssl.keystore.location": "/new.p12",
            "listener.name.sasl.ssl.keystore.password": HIDDEN,
            "ssl.client.auth": "required",
            "listener.name.sasl.opa.key": HIDDEN,
            PROTOCOLS: "SASL:SASL_SSL",
        }
    }


LOST, REFUSED, AGAIN, NEVER = "taken, not taken", "taken, refused", "taken, taken", "refused, refused"
"""What Kafka does with a dynamic config before and after the listeners are made: the last counts in neither mode."""
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=b;"
BY_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def made(here: Path, name: str, subject: str) -> None:
    """A key and its certificate as PEM, in one file and each in its own."""
    key, certificate = here / f"{name}.key", here / f"{name}.crt"
    how = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={subject}")
    subprocess.run(("openssl", "req", *how, "-keyout", key, "-out", certificate), check=True, capture_output=True)
    (here / f"{name}.pem").write_text(key.read_text() + certificate.read_text())


def test_kafka_itself_loses_refuses_or_loads_again_what_is_called_late(tmp_path: Path) -> None:
    for name, subject in (("a", "a"), ("b", "a"), ("other", "other")):
        made(tmp_path, name, subject)
    texts = {key: (tmp_path / f"a{end}").read_text() for key, end in zip(PEM, (".key", ".crt", ".crt"), strict=True)}
    new = {key: (tmp_path / f"b{end}").read_text() for key, end in zip(PEM, (".key", ".crt", ".crt"), strict=True)}
    own, stores = "listener.name.own.", {"ssl.keystore.location": f"{tmp_path}/a.pem"}
    stores |= {"ssl.truststore.location": f"{tmp_path}/a.crt"}
    tls = {
        "listeners": "OWN://127.0.0.1:0,IN://127.0.0.1:0",
        "advertised.listeners": "OWN://h:1,IN://h:2",
        PROTOCOLS: "OWN:SSL,IN:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "IN",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
    }
    sasl = {
        PROTOCOLS: "OWN:SASL_PLAINTEXT,IN:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        f"{own}plain.sasl.jaas.config": LOGIN,
    }
    of_tls = {
        AUTH: "required",
        BUILDER: "AskLateConfigs$Other",
        "ssl.enabled.protocols": "TLSv1.2",
        "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.engine.factory.class": "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
    }
    cases: list[tuple[dict[str, str], dict[str, str], str]] = [
        *((tls | stores, {own + key: value}, LOST) for key, value in of_tls.items()),
        *((tls | stores, {key: value}, LOST) for key, value in of_tls.items()),
        (tls | stores, {own + "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"}, LOST),
        (tls | stores, {"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"}, NEVER),
        (tls | stores, {own + AUTH: "required", "max.connections": "7"}, REFUSED),
        (tls | stores, {own + "ssl.keystore.location": f"{tmp_path}/b.pem"}, AGAIN),
        (tls | stores, {own + "ssl.truststore.location": f"{tmp_path}/b.crt"}, AGAIN),
        (tls | stores, {own + "ssl.keystore.location": f"{tmp_path}/other.pem"}, REFUSED),
        (tls, {own + "ssl.keystore.location": f"{tmp_path}/a.pem"}, REFUSED),
        (tls, {own + "ssl.truststore.location": f"{tmp_path}/a.crt"}, REFUSED),
        (tls | texts, {own + key: value for key, value in new.items()}, AGAIN),
        (tls, {own + key: value for key, value in new.items()}, REFUSED),
        (tls | sasl, {own + REAUTH: "5"}, LOST),
        (tls | sasl, {f"{own}plain.{REAUTH}": "7"}, LOST),
        (tls | sasl, {REAUTH: "5"}, NEVER),
        (tls | sasl, {f"{own}plain.sasl.jaas.config": LOGIN.replace("=b", "=c")}, LOST),
        (
            tls | sasl,
            {own + "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256", f"{own}scram-sha-256.sasl.jaas.config": BY_SCRAM},
            LOST,
        ),
        (tls | stores, {PROTOCOLS: "OWN:PLAINTEXT,IN:PLAINTEXT,CONTROLLER:PLAINTEXT"}, REFUSED),
        (tls | stores, {PROTOCOLS: "OWN:SSL,IN:PLAINTEXT"}, NEVER),  # with the roles of KRaft mode
    ]
    late = [is_late(next(iter(dynamic))) for _, dynamic, _ in cases]
    assert late == [found != NEVER or PROTOCOLS in dynamic for _, dynamic, found in cases]
    given = "".join(
        "".join(
            f"{of} {key}={value}".replace("\n", "\\n") + "\n"
            for of, configs in (("file", file), ("dynamic", dynamic))
            for key, value in configs.items()
        )
        + "\n"
        for file, dynamic, _ in cases
    )
    asked = ask_java(Path(__file__).with_name("AskLateConfigs.java"), jars=JARS, given=given).splitlines()
    names, found = set(asked[0].split(",")), asked[1:]
    assert list(zip(cases, found, strict=True)) == [(case, case[2]) for case in cases]
    limits = {"max.connections", "max.connection.creation.rate", "num.network.threads"}
    of_stores = {
        f"ssl.{kind}.{what}" for kind in ("keystore", "truststore") for what in ("type", "location", "password")
    }
    elsewhere = {"listeners", "advertised.listeners", PROTOCOLS, "sasl.jaas.config"}
    passwords = {"ssl.key.password", "ssl.keystore.password", "ssl.truststore.password"}
    assert names == OF_ALL_LISTENERS | limits | of_stores | passwords | elsewhere
