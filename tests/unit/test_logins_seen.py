"""Whom login lines name, which are secrets: super users, and users that the called nodes know."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from feature_looks import host_module
from observations import WHY, both, observation, on_host
from secured import LOGIN, MECHANISM, secured
from spoilt_clusters import by_mechanism

from kraft_runbook.cluster.client_security import SaslMechanism, SecurityProtocol
from kraft_runbook.cluster.login_modules import meaning_of, options_of
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.secrets_seen import LoginSeen, SecretsSeen
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.hosts.node_secrets import Look, NodeSecrets, ScramLogin
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.znodes.znode_rows import ScramCredential, scram_credential
from kraft_runbook.migration.checks import CHECKS, CheckResult, Verdict
from kraft_runbook.procedures.scram_login import scram_login
from lab.logins import credential

for each in ("kafka_host", "login_modules", "properties_text", "references"):
    host_module(each)
host_secrets = host_module("node_secrets")

TO_CONTROLLERS = "listener.name.controller.plain.sasl.jaas.config"
KNOWN = {"kafka": 1, "tool": 2}
KAFKA, TOOL = LoginSeen("kafka", 1, KNOWN), LoginSeen("tool", 2)
PASSWORD = "Hunter2"
LINE = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="kafka" password="{PASSWORD}"'


def by_plain(*super_users: str) -> ClusterSpec:
    """Everybody calls the controllers by PLAIN, the nodes with a login that is a secret."""
    spec = by_mechanism("PLAIN", "PLAIN", SaslMechanism.PLAIN)
    more = {
        "secrets": {**spec.secrets, TO_CONTROLLERS: SecretRef(env="LOGIN")},
        "controller_properties": {
            **spec.controller_properties,
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        },
        "authorizer": True,
        "super_users": super_users,
        "controller_security": spec.controller_security.model_copy(update={"username": "tool"}),
    }
    return spec.model_copy(update=more)


SPEC = by_plain("User:tool", "User:kafka")
NODES = (*SPEC.broker_ids, *SPEC.controller_ids)


def seen(logins: Mapping[int, LoginSeen | Unread] | None = None, tool: LoginSeen | Unread = TOOL) -> ClusterObservation:
    """Each node's login as ``KAFKA``, but for these."""
    found = dict.fromkeys(NODES, KAFKA) | dict(logins or {})
    spoilt = (on_host(i, secrets=SecretsSeen({TO_CONTROLLERS: each})) for i, each in found.items())
    return replace(both(*spoilt)(observation(Phase.ZOOKEEPER, SPEC)), own_login=tool)


def judged(code: str, look: ClusterObservation, spec: ClusterSpec = SPEC) -> CheckResult:
    return CHECKS[code].run(look, spec)


def test_the_user_of_a_login_that_is_a_secret_must_be_a_super_user() -> None:
    assert judged("KRB-PRE-106", seen()).passed
    told = judged("KRB-PRE-106", seen(), by_plain("User:tool"))
    assert told.verdict is Verdict.FAIL
    for who in ("broker 1", "controller 101"):
        assert f"{who} calls controllers as User:kafka, which is no super user" in told.evidence


@pytest.mark.parametrize(
    ("look", "why"),
    [
        (seen({101: WHY}), f"controller 101, who calls controllers: {TO_CONTROLLERS} can't be followed"),
        (on_host(101, secrets=WHY)(seen()), "controller 101, who calls controllers: a test did not read it"),
        (seen({2: LoginSeen(None)}), f"broker 2, who calls controllers: {TO_CONTROLLERS} names no user"),
    ],
)
def test_a_user_that_can_not_be_told_is_unknown(look: ClusterObservation, why: str) -> None:
    told = judged("KRB-PRE-106", look)
    assert told.verdict is Verdict.UNKNOWN and why in told.evidence


def test_a_login_of_the_jvm_is_unknown_and_told_to_be_set_as_a_property() -> None:
    spec = SPEC.model_copy(update={"secrets": {}})
    for code in ("KRB-PRE-106", "KRB-PRE-128"):
        told = judged(code, seen(), spec)
        assert told.verdict is Verdict.UNKNOWN and f"{TO_CONTROLLERS} is not set" in told.evidence


def test_a_controllers_login_to_the_brokers_by_scram_counts_too() -> None:
    spec = secured(SecurityProtocol.SASL_PLAINTEXT).model_copy(update={"authorizer": True, "super_users": ("User:a",)})
    look = both(*(on_host(i, secrets=SecretsSeen({LOGIN: KAFKA})) for i in NODES))(observation(Phase.ZOOKEEPER, spec))
    assert (
        "controller 101 calls brokers as User:kafka, which is no super user"
        in judged("KRB-PRE-106", look, spec).evidence
    )


BY_SCRAM = secured(SecurityProtocol.SASL_PLAINTEXT)
OF_BROKERS = LoginSeen("kafka", 1)


@pytest.mark.parametrize(
    ("login", "verdict", "told"),
    [
        (OF_BROKERS, Verdict.PASS, ""),
        (LoginSeen("kafka", 2), Verdict.FAIL, "controllers 101, 102, 103 logs in as kafka, with another password than"),
        (LoginSeen("kafka", 2, known=True), Verdict.PASS, ""),
        (LoginSeen("kraft", 9, known=True), Verdict.PASS, ""),
        (
            LoginSeen("kraft", 9, known=False),
            Verdict.FAIL,
            "logs in as kraft, and ZooKeeper has no SCRAM credential of kraft with that password",
        ),
        (replace(OF_BROKERS, known=False), Verdict.FAIL, "ZooKeeper has no SCRAM credential of kafka"),
        (LoginSeen("kraft", 9), Verdict.UNKNOWN, "or name User:kraft under super_users"),
        (LoginSeen("kraft", 9, known=WHY), Verdict.UNKNOWN, WHY.reason),
        (LoginSeen(None, 9), Verdict.FAIL, "names no user, or no password, for brokers"),
        (WHY, Verdict.UNKNOWN, "can't be followed"),
    ],
)
def test_controllers_that_log_in_to_the_brokers_by_scram_do_so_as_a_user_whom_they_know(
    login: LoginSeen | Unread, verdict: Verdict, told: str
) -> None:
    spoilt = [on_host(i, secrets=SecretsSeen({LOGIN: OF_BROKERS})) for i in BY_SCRAM.broker_ids]
    spoilt += [on_host(i, secrets=SecretsSeen({LOGIN: login})) for i in BY_SCRAM.controller_ids]
    found = judged("KRB-PRE-128", both(*spoilt)(observation(Phase.ZOOKEEPER, BY_SCRAM)), BY_SCRAM)
    assert found.verdict is verdict and told in found.evidence


def test_a_scram_listener_with_a_handler_of_its_own_is_not_asked() -> None:
    key = "listener.name.internal.scram-sha-512.sasl.server.callback.handler.class"
    own = BY_SCRAM.model_copy(update={"broker_properties": {**BY_SCRAM.broker_properties, key: "com.example.Ldap"}})
    assert judged("KRB-PRE-128", observation(Phase.ZOOKEEPER, own), own).passed


def test_here_and_on_the_host_a_password_is_compared_with_what_zookeeper_keeps() -> None:
    def kept(password: str) -> ScramCredential:
        found = scram_credential(
            json.dumps({"version": 1, "config": {MECHANISM: credential(password)}}).encode(), MECHANISM
        )
        assert found is not None
        return found

    endless = kept(PASSWORD)._replace(iterations=2**31 - 1)
    users = {"kafka": kept(PASSWORD), "other": kept("x"), "none": None, "unread": WHY, "endless": endless}
    line = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    for user, known in {
        "kafka": True,
        "other": False,
        "none": False,
        "unread": WHY,
        "endless": None,
        "unasked": None,
    }.items():
        own = f'{line} username="{user}" password="{PASSWORD}";'
        look = Look(BY_SCRAM, environment_secrets({"X": own}), ScramLogin(LOGIN, MECHANISM, users))
        node = NodeSecrets(look, BY_SCRAM.controllers[0], {LOGIN: f"${{secrets:{BY_SCRAM.secrets_file}:{LOGIN}}}"})
        nothing = {"logins": {}, "compared": {}, "files": {}}
        assert node.seen(nothing).logins[LOGIN] == LoginSeen(user, 1, known=known)
        told = host_secrets.told({**node.asked, "config_file": "/none", "logins": {LOGIN: own}}, lambda _: "")
        assert node.seen(told).logins[LOGIN] == LoginSeen(user, 1, known=known)
        asked = str(node.asked["scram"])
        assert users["kafka"].salt.hex() in asked and users["kafka"].stored_key.hex() not in asked
        assert PASSWORD not in asked
    assert look.login("listener.name.other.sasl.jaas.config", own).known is None  # type: ignore[union-attr]


def test_of_the_users_as_whom_controllers_may_call_zookeeper_is_asked() -> None:
    class Reader:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> Reader:
            return self

        def __exit__(self, *_: object) -> None: ...

        def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
            assert paths == ["/config/users"]
            return [("kafka", "a%20b", "a+b", "bad")]

        def get_many(self, paths: Sequence[str]) -> list[Znode]:
            text = "salt=x" if "bad" in "".join(paths) else credential(PASSWORD)
            data = json.dumps({"version": 1, "config": {MECHANISM: text}}).encode()
            return [Znode(path, data, 0, 0, 0, 0, 0) for path in paths]

    reads: Any = Reader
    spec = BY_SCRAM.model_copy(update={"super_users": tuple(f"User:{n}" for n in ("kafka", "a b", "gone", "bad"))})
    found = scram_login(spec, secrets=environment_secrets({}), reads=reads)
    assert found and (found.key, found.mechanism) == (LOGIN, MECHANISM)
    users = dict(found.users) if not isinstance(found.users, Unread) else {}
    assert isinstance(users.pop("kafka"), ScramCredential) and users.pop("gone") is None
    assert {name: type(each) for name, each in users.items()} == {"a b": Unread, "bad": Unread}
    assert scram_login(SPEC, secrets=environment_secrets({}), reads=reads) is None
    assert (
        scram_login(BY_SCRAM.model_copy(update={"zookeeper": None}), secrets=environment_secrets({}), reads=reads)
        is None
    )


def test_every_user_that_logs_in_by_plain_is_known_with_its_password() -> None:
    assert judged("KRB-PRE-128", seen()).passed
    told = judged("KRB-PRE-128", seen({2: LoginSeen("broker", 1), 3: LoginSeen("kafka", 9)}, LoginSeen("tool", 9)))
    assert told.verdict is Verdict.FAIL
    assert "broker 2 logs in as broker, and there is no user_broker at the controllers" in told.evidence
    assert "broker 3 logs in as kafka, and user_kafka has another password at the controllers" in told.evidence
    assert "this tool logs in as tool, and user_tool has another password at the controllers" in told.evidence
    assert "broker 1" not in told.evidence and "controller 101" not in told.evidence


def test_one_controller_that_does_not_know_the_others_is_found_and_what_was_not_read_is_unknown() -> None:
    told = judged("KRB-PRE-128", seen({103: LoginSeen("kafka", 1, {"tool": 2})}))
    assert "there is no user_kafka at the controllers" in told.evidence and told.verdict is Verdict.FAIL
    assert judged("KRB-PRE-128", seen(tool=WHY)).verdict is Verdict.UNKNOWN
    assert judged("KRB-PRE-128", seen({101: WHY})).verdict is Verdict.UNKNOWN


def test_a_listener_with_a_handler_of_its_own_is_not_asked() -> None:
    key = "listener.name.controller.plain.sasl.server.callback.handler.class"
    own = SPEC.model_copy(update={"controller_properties": {**SPEC.controller_properties, key: "com.example.Ldap"}})
    assert judged("KRB-PRE-128", seen({i: LoginSeen("other", 7) for i in NODES}), own).passed


def test_options_are_read_as_kafka_reads_them() -> None:
    line = f'{LINE} user_a="x\\"y" user_b=${{secrets:/s:b}};'
    assert options_of(line) == {"username": "kafka", "password": PASSWORD, "user_a": 'x"y', "user_b": "${secrets:/s:b}"}
    for bad in ("", "a.B required; a.C required;", "a.B required username;"):
        with pytest.raises(ValueError):
            options_of(bad)


def test_a_login_has_one_meaning_however_it_is_written() -> None:
    key = f"listener.name.a.{LOGIN}"
    other = f"  {LINE.split()[0]} REQUIRED\n password='{PASSWORD}' username=kafka ; "
    assert meaning_of(key, other) == meaning_of(key, f"{LINE};") != meaning_of(key, f"{LINE} user_a=b;")
    assert meaning_of("ssl.key.password", " a b ") == "a b"


def of_host(properties: Mapping[str, str], **environment: str) -> tuple[NodeSecrets, Look]:
    spec = SPEC.model_copy(update={"secrets": {k: SecretRef(env="WORD") for k in ("a.password", TO_CONTROLLERS)}})
    look = Look(spec, environment_secrets(environment))
    return NodeSecrets(look, spec.broker(1), properties), look


def test_no_secret_is_among_what_a_host_is_asked_nor_in_what_was_seen() -> None:
    file = SPEC.secrets_file
    given = {key: f"${{secrets:{file}:{key}}}" for key in ("a.password", TO_CONTROLLERS)}
    node, look = of_host(given, WORD=f"{LINE} user_kafka={PASSWORD} user_b=other;")
    assert PASSWORD not in str(node.asked)
    found = node.seen({"logins": {}, "compared": {"a.password": {"value": False}}, "files": {}})
    assert found.logins == {TO_CONTROLLERS: LoginSeen("kafka", 1, {"kafka": 1, "b": 2})}
    assert found.as_on_host == {"a.password": False} and PASSWORD not in str(found)
    assert Look(look.spec, look.secrets).digest("x") != look.digest("x")


def test_a_secret_that_is_missing_here_or_a_host_that_was_not_read_is_told() -> None:
    given = {"a.password": f"${{secrets:{SPEC.secrets_file}:a.password}}", TO_CONTROLLERS: "${secrets:/own:line}"}
    node, _ = of_host(given)
    found = node.seen(WHY)
    assert found.logins == {TO_CONTROLLERS: WHY}
    missing = found.as_on_host["a.password"]
    assert isinstance(missing, Unread) and "WORD is not set" in missing.reason
    assert found.as_on_host[TO_CONTROLLERS] == WHY


def test_what_is_to_be_in_kraft_mode_is_compared_with_a_file_of_that_mode(tmp_path: Path) -> None:
    """One secret has a value for KRaft mode alone, one is the same in both, one is there in KRaft mode alone."""
    words = {"a.password": "one", "b.password": "two"}
    spec = SPEC.model_copy(update={"secrets": {key: SecretRef(env=word) for key, word in words.items()}})
    look = Look(spec, environment_secrets({"one": "1", "two": "2"}))
    a, b = (f"${{secrets:{SPEC.secrets_file}:{key}}}" for key in words)
    before, after = {"x.password": a, "y.password": a}, {"x.password": b, "y.password": a, "z.password": b}
    node = NodeSecrets(look, spec.broker(1), before, after)
    assert {*node.asked["wanted_in_kraft"]} == {"x.password", "z.password"}
    asked = {**node.asked, "config_file": str(tmp_path / "server.properties")}
    held = {"x.password": "1", "y.password": "1", "z.password": "1"}
    for more, same in (({}, {"x.password": True, "y.password": True}), ({"process.roles": "broker"}, None)):
        text = "".join(f"{key}={value}\n" for key, value in {**held, **more}.items())
        (tmp_path / "server.properties").write_text(text)
        told = host_secrets.told(asked, lambda _: "")
        found = node.seen(told).as_on_host
        assert found == (same or {"x.password": False, "y.password": True, "z.password": False})


def test_each_file_of_a_reference_but_the_one_that_is_written_is_asked_of_its_host() -> None:
    kafkas = "org.apache.kafka.common.config.provider"
    node, _ = of_host(
        {
            **{f"config.providers.{name}.class": f"{kafkas}.{name}ConfigProvider" for name in ("File", "Directory")},
            "config.providers.vault.class": "com.example.Vault",
            "config.providers.secrets.class": f"{kafkas}.FileConfigProvider",
            "a.password": f"${{secrets:{SPEC.secrets_file}:a.password}}",
            "b.password": "${File:/own:one}${File:/own:two}",
            "c.password": "${Directory:/of/words:c}",
            "d.password": "${vault:/kv:d}",
        }
    )
    assert node.asked["files"] == ["/own", "/of/words/c"]
    told = {"logins": {}, "compared": {}, "files": {"/own": {"value": ""}, "/of/words/c": {"unread": WHY.reason}}}
    assert node.seen(told).files == {"/own": "", "/of/words/c": WHY}
    assert node.seen(WHY).files == {"/own": WHY, "/of/words/c": WHY}
