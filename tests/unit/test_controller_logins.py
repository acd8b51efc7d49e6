"""The controllers' own listener: who can log in there, as the cluster file has it."""

from __future__ import annotations

import pytest
from observations import SPEC, WHY, observation, on_host

from kraft_runbook.cluster.client_security import ClientSecurity, SaslMechanism, SecurityProtocol
from kraft_runbook.cluster.controller_calls import CALLED_BY
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.migration.checks import CHECKS, CheckResult, Verdict

OWN = "listener.name.controller."
ENABLED, PLAIN_LOGIN = f"{OWN}sasl.enabled.mechanisms", f"{OWN}plain.sasl.jaas.config"
STORES = {f"{OWN}ssl.keystore.location": "/k.jks", f"{OWN}ssl.truststore.location": "/t.jks"}
PLAIN = {CALLED_BY: "PLAIN", ENABLED: "PLAIN"}


def listening(
    protocol: SecurityProtocol,
    controllers: dict[str, str],
    brokers: dict[str, str],
    *,
    tool: SaslMechanism | None = SaslMechanism.PLAIN,
) -> ClusterSpec:
    """The lab, whose controllers listen by this protocol."""
    login = {"sasl_mechanism": tool, "username": "tool", "password": SecretRef(env="X")} if protocol.is_sasl else {}
    return SPEC.model_copy(
        update={
            "controller_listener": SPEC.controller_listener.model_copy(update={"protocol": protocol}),
            "controller_security": ClientSecurity(protocol=protocol, **login),
            "controller_properties": controllers,
            "broker_properties": {**SPEC.broker_properties, **brokers},
        }
    )


def asked(spec: ClusterSpec, code: str = "KRB-PRE-101") -> CheckResult:
    return CHECKS[code].run(observation(Phase.ZOOKEEPER), spec)


def test_one_mechanism_on_both_sides_is_in_order() -> None:
    assert asked(listening(SecurityProtocol.SASL_SSL, PLAIN | STORES, {CALLED_BY: "PLAIN"})).passed


@pytest.mark.parametrize(
    ("brokers", "said"),
    [
        ({CALLED_BY: "GSSAPI"}, "brokers 1, 2, 3: to controllers by GSSAPI (sasl.mechanism.controller.protocol)"),
        (
            {CALLED_BY: "PLAIN", "sasl.mechanism.inter.broker.protocol": "GSSAPI"},
            "controllers 101, 102, 103, brokers 1, 2, 3: to brokers by GSSAPI (sasl.mechanism.inter.broker.protocol)",
        ),
        (
            {CALLED_BY: "OAUTHBEARER", "sasl.mechanism.inter.broker.protocol": "AWS_MSK_IAM"},
            "controllers 101, 102, 103, brokers 1, 2, 3: to brokers by AWS_MSK_IAM",
        ),
        ({CALLED_BY: "OAUTHBEARER"}, "brokers 1, 2, 3: to controllers by OAUTHBEARER"),
        ({CALLED_BY: "PLAIN", "sasl.enabled.mechanisms": "GSSAPI,OAUTHBEARER,PLAIN"}, None),
    ],
)
def test_kerberos_and_tokens_between_nodes_are_refused_by_name_and_clients_may_use_them(
    brokers: dict[str, str], said: str | None
) -> None:
    spec = between_brokers_by(listening(SecurityProtocol.SASL_PLAINTEXT, PLAIN, {}), brokers)
    result = asked(spec, "KRB-PRE-114")
    assert result.passed if said is None else said in result.evidence, result
    assert said is None or "Clients may go on with Kerberos or tokens" in result.fix


def between_brokers_by(spec: ClusterSpec, said: dict[str, str]) -> ClusterSpec:
    """The brokers' own listener by SASL too, with PLAIN unless it is said otherwise."""
    brokers = tuple(
        each.model_copy(
            update={
                "listeners": tuple(
                    listener.model_copy(update={"protocol": SecurityProtocol.SASL_PLAINTEXT})
                    for listener in each.listeners
                )
            }
        )
        for each in spec.brokers
    )
    held = {**spec.broker_properties, "sasl.mechanism.inter.broker.protocol": "PLAIN", **said}
    return spec.model_copy(update={"brokers": brokers, "broker_properties": held})


@pytest.mark.parametrize(
    "said",
    [
        {ENABLED: "GSSAPI"},
        {"sasl.kerberos.service.name": "kafka"},
        {f"{OWN}gssapi.sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;"},
    ],
)
def test_kafkas_default_is_in_order_where_kerberos_is_meant(said: dict[str, str]) -> None:
    spec = listening(SecurityProtocol.SASL_PLAINTEXT, said, {"sasl.kerberos.service.name": "kafka"})
    result = asked(spec)
    assert "is not set" not in result.evidence
    assert "this tool: controller_security has PLAIN, the controllers' listener takes GSSAPI" in result.evidence


@pytest.mark.parametrize(
    ("controllers", "brokers", "told"),
    [
        ({ENABLED: "PLAIN"}, {CALLED_BY: "PLAIN"}, f"controllers 101, 102, 103: {CALLED_BY} is not set"),
        (PLAIN, {}, f"brokers 1, 2, 3: {CALLED_BY} is not set"),
        ({CALLED_BY: "PLAIN"}, {CALLED_BY: "PLAIN"}, "is PLAIN, the controllers' listener takes GSSAPI"),
        (PLAIN, {CALLED_BY: "OAUTHBEARER"}, "brokers 1, 2, 3: sasl.mechanism.controller.protocol is OAUTHBEARER"),
    ],
)
def test_a_caller_without_a_mechanism_that_the_listener_takes_is_named(
    controllers: dict[str, str], brokers: dict[str, str], told: str
) -> None:
    result = asked(listening(SecurityProtocol.SASL_PLAINTEXT, controllers, brokers))
    assert result.verdict is Verdict.FAIL
    assert told in result.evidence


KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true"
BOTH = {ENABLED: "GSSAPI,PLAIN"}
"""The tool logs in by password, nodes by Kerberos."""


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, id="between brokers"),
        pytest.param({}, id="nowhere: it is Kafka's default, and the JVM has the login"),
    ],
)
def test_a_cluster_that_relies_on_kafkas_default_mechanism_is_not_blocked(said: dict[str, str]) -> None:
    spec = listening(SecurityProtocol.SASL_PLAINTEXT, BOTH, {}).model_copy(update={"broker_properties": said})
    assert asked(spec).passed
    told = asked(spec, "KRB-PRE-102").evidence
    assert (f"brokers 1, 2, 3: {CALLED_BY} is not set, nor anything of Kerberos" in told) is (not said)
    assert "the login and the serviceName come from java.security.auth.login.config" in told


@pytest.mark.parametrize(
    "said", [{"sasl.mechanism.inter.broker.protocol": "PLAIN"}, {PLAIN_LOGIN: "${secrets:/s:l}"}, {ENABLED: "PLAIN"}]
)
def test_a_node_whose_properties_name_another_mechanism_is_blocked_without_its_name(said: dict[str, str]) -> None:
    result = asked(listening(SecurityProtocol.SASL_PLAINTEXT, BOTH, said))
    assert result.verdict is Verdict.FAIL
    assert f"brokers 1, 2, 3: {CALLED_BY} is not set: Kafka takes GSSAPI, and nothing here says" in result.evidence


def test_kerberos_needs_the_name_of_the_service_in_the_properties_or_in_the_login() -> None:
    login = f"{OWN}gssapi.sasl.jaas.config"
    wanted = "sasl.kerberos.service.name is missing, and the login names no serviceName"
    for said, code, told in (
        ({login: f"{KERBEROS};"}, "KRB-PRE-101", wanted),
        ({login: f'{KERBEROS} serviceName="kafka";'}, "KRB-PRE-101", None),
        ({login: f"{KERBEROS};", f"{OWN}sasl.kerberos.service.name": "kafka"}, "KRB-PRE-101", None),
        ({login: "${secrets:/s:l}"}, "KRB-PRE-101", None),
        ({login: "${secrets:/s:l}"}, "KRB-PRE-102", "the login must name a serviceName, and it is a secret"),
        ({login: "${secrets:/s:l}", "sasl.kerberos.service.name": "kafka"}, "KRB-PRE-102", None),
    ):
        named = {CALLED_BY: "GSSAPI", **said}
        result = asked(listening(SecurityProtocol.SASL_PLAINTEXT, BOTH | named, named), code)
        assert result.passed is (told is None), (said, result.evidence)
        assert (
            told is None
            or f"controllers 101, 102, 103, brokers 1, 2, 3: {told}" in result.evidence
            or ("sasl.kerberos.service.name is not set: " + told in result.evidence)
        )


def test_a_tls_listener_without_a_certificate_and_a_caller_without_one_are_named() -> None:
    result = asked(listening(SecurityProtocol.SSL, {}, {}))
    assert "controllers 101, 102, 103: ssl.keystore.location is missing: its listener has no cert" in result.evidence
    result = asked(listening(SecurityProtocol.SSL, {**STORES, "ssl.client.auth": "required"}, {}))
    assert "brokers 1, 2, 3: ssl.keystore.location is missing, and the controllers' listener has" in result.evidence
    asking = listening(SecurityProtocol.SSL, {**STORES, "ssl.client.auth": "required"}, STORES)
    assert asked(asking).evidence.startswith("this tool: controller_security has no certificate_file and key_file")
    own = asking.controller_security.model_copy(update={"certificate_file": "/own.pem", "key_file": "/own.pem"})
    assert asked(asking.model_copy(update={"controller_security": own})).passed


def test_the_tool_calls_the_controllers_as_their_listener_is_called() -> None:
    spec = listening(SecurityProtocol.SSL, STORES, STORES).model_copy(update={"controller_security": ClientSecurity()})
    assert asked(spec).evidence == "this tool: controller_security has the protocol PLAINTEXT, the listener SSL"


def test_what_the_jvm_decides_is_told() -> None:
    named = {PLAIN_LOGIN: "${secrets:/s:l}"}
    spec = listening(SecurityProtocol.SASL_SSL, PLAIN | STORES, {CALLED_BY: "PLAIN", **STORES})
    result = asked(spec, "KRB-PRE-102")
    assert result.verdict is Verdict.FAIL and PLAIN_LOGIN in result.evidence
    spec = listening(SecurityProtocol.SASL_SSL, PLAIN | STORES | named, {CALLED_BY: "PLAIN", **STORES, **named})
    assert asked(spec, "KRB-PRE-102").passed


def test_a_broker_in_zookeeper_mode_is_not_told_how_to_call_controllers() -> None:
    spec = listening(SecurityProtocol.SASL_SSL, PLAIN, {CALLED_BY: "PLAIN", PLAIN_LOGIN: "${secrets:/s:l}"})
    rendered = {mode: broker_properties(spec, spec.brokers[0], mode) for mode in BrokerMode}
    assert CALLED_BY not in rendered[BrokerMode.ZOOKEEPER] and PLAIN_LOGIN not in rendered[BrokerMode.ZOOKEEPER]
    for mode in (BrokerMode.HYBRID, BrokerMode.KRAFT):
        assert rendered[mode][CALLED_BY] == "PLAIN" and PLAIN_LOGIN in rendered[mode]


@pytest.mark.parametrize("has_them", [True, False])
def test_a_file_of_a_broker_in_zookeeper_mode_is_alike_with_them_and_without(has_them: bool) -> None:
    spec = listening(SecurityProtocol.SASL_SSL, PLAIN, {CALLED_BY: "PLAIN"})
    held = broker_properties(spec, spec.brokers[1], BrokerMode.ZOOKEEPER) | ({CALLED_BY: "PLAIN"} if has_them else {})
    seen = on_host(spec.brokers[1].id, config=held)(observation(Phase.ZOOKEEPER))
    assert f"broker {spec.brokers[1].id} " not in CHECKS["KRB-PRE-046"].run(seen, spec).evidence


@pytest.mark.parametrize("code", ["KRB-PRE-129", "KRB-PRE-130"])
def test_a_login_at_zookeeper_is_not_asked_for_where_it_makes_no_difference(code: str) -> None:
    """Znodes are open, and this tool needs no login: a login file that can't be read is no obstacle."""
    seen = on_host(2, zookeeper_login=WHY)(observation(Phase.ZOOKEEPER))
    assert CHECKS[code].run(seen, SPEC).passed
    login = {"sasl_mechanism": "DIGEST-MD5", "username": "kafka", "password": SecretRef(env="X")}
    ensemble = SPEC.ensemble.model_copy(
        update={"security": type(SPEC.ensemble.security)(protocol="SASL_PLAINTEXT", **login)}
    )
    by_login = SPEC.model_copy(update={"zookeeper": ensemble})
    with_acls = SPEC.model_copy(
        update={"zookeeper": SPEC.ensemble.model_copy(update={"properties": {"zookeeper.set.acl": "true"}})}
    )
    assert {CHECKS[code].run(seen, each).verdict for each in (by_login, with_acls)} == {Verdict.UNKNOWN}
