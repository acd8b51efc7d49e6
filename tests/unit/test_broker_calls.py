"""What a migrating controller needs to call the brokers, for each security protocol between brokers."""

from __future__ import annotations

import pytest
from observations import SPEC, observation
from secured import KEYS, LOGIN, MECHANISM, OF_BROKERS, SASL, TRUST, secured

from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks import Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS

SSL, SASL_PLAINTEXT, SASL_SSL = SecurityProtocol.SSL, SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL
OWN = "sasl.mechanism.inter.broker.protocol"
ENABLED = "listener.name.internal.sasl.enabled.mechanisms"


def said(spec: ClusterSpec) -> dict[str, str]:
    """The two checks that do not pass, with their evidence."""
    report = CHECKS.run(observation(Phase.ZOOKEEPER, spec), spec, Phase.ZOOKEEPER, gate="start")
    return {
        r.code: r.evidence
        for r in report.results
        if r.verdict is not Verdict.PASS and r.code in ("KRB-PRE-078", "KRB-PRE-079")
    }


def rendered(spec: ClusterSpec, mode: ControllerMode = ControllerMode.MIGRATION) -> dict[str, str]:
    return controller_properties(spec, spec.controllers[0], mode)


@pytest.mark.parametrize("protocol", SecurityProtocol)
def test_a_cluster_file_that_says_all_of_it_is_clean(protocol: SecurityProtocol) -> None:
    assert said(secured(protocol)) == {}


@pytest.mark.parametrize("protocol", [SASL_PLAINTEXT, SASL_SSL])
def test_controllers_get_the_brokers_mechanism_and_what_kafka_wants_beside_it(protocol: SecurityProtocol) -> None:
    found = rendered(secured(protocol))
    assert (found[OWN], found[ENABLED]) == (MECHANISM, MECHANISM)
    assert LOGIN in found


def test_what_the_cluster_file_says_of_controllers_comes_first() -> None:
    both = {**SASL, "sasl.enabled.mechanisms": f"{MECHANISM},PLAIN"}
    found = rendered(secured(SASL_PLAINTEXT, {OWN: "PLAIN", "sasl.enabled.mechanisms": "PLAIN"}, both))
    assert found[OWN] == found["sasl.enabled.mechanisms"] == "PLAIN"
    assert ENABLED not in found


def test_finalized_controllers_call_no_broker() -> None:
    assert not {OWN, ENABLED} & rendered(secured(SASL_SSL), ControllerMode.KRAFT).keys()


def test_the_labs_client_listener_asks_nothing_of_controllers() -> None:
    assert said(SPEC) == {}
    assert not any("sasl" in key for key in rendered(SPEC))


@pytest.mark.parametrize(
    ("spec", "evidence"),
    [
        (
            secured(SSL, {}),
            "ssl.truststore.location is missing; controllers 101, 102, 103: ssl.keystore.location is missing, "
            "and the listener has ssl.client.auth=",
        ),
        (secured(SSL, TRUST), "ssl.keystore.location is missing, and the listener has ssl.client.auth=required"),
        (secured(SASL_SSL, {}), "controllers 101, 102, 103: ssl.truststore.location is missing"),
        (
            secured(SASL_SSL, TRUST, {**OF_BROKERS[SASL_SSL], "listener.name.internal.ssl.client.auth": "required"}),
            "ssl.keystore.location is missing, and the listener has ssl.client.auth=required",
        ),
        (
            secured(SASL_PLAINTEXT).model_copy(
                update={"secrets": SPEC.secrets, "broker_properties": {**SASL, LOGIN: "a.Login required;"}}
            ),
            f"{LOGIN} is missing",
        ),
        (secured(SASL_PLAINTEXT, {OWN: "PLAIN"}), f"{OWN} is PLAIN, the listener takes {MECHANISM}"),
        (
            secured(SASL_PLAINTEXT, {ENABLED: "PLAIN"}),
            f"{ENABLED} lacks {MECHANISM}, without which Kafka does not start",
        ),
        (
            secured(SASL_PLAINTEXT, None, {"listener.name.internal.sasl.kerberos.service.name": "kafka"}),
            "sasl.kerberos.service.name is missing",
        ),
    ],
)
def test_controllers_that_could_not_log_in_block_before_the_copy(spec: ClusterSpec, evidence: str) -> None:
    assert evidence in said(spec)["KRB-PRE-078"]


@pytest.mark.parametrize(
    ("spec", "evidence"),
    [
        (
            secured(SASL_PLAINTEXT).model_copy(update={"secrets": SPEC.secrets}),
            "the login comes from the JVM's java.security.auth.login.config",
        ),
        (
            secured(SASL_SSL, {}, SASL),
            "ssl.truststore.location is not set, as on the brokers: the JVM's own truststore counts",
        ),
        (
            secured(SSL, TRUST, {**TRUST, **KEYS, "ssl.client.auth": "requested"}),
            "the controller calls as User:ANONYMOUS",
        ),
        (
            secured(SSL, None, {**OF_BROKERS[SSL], "ssl.endpoint.identification.algorithm": ""}),
            "the controller verifies their host names",
        ),
    ],
)
def test_what_only_the_jvm_decides_warns(spec: ClusterSpec, evidence: str) -> None:
    found = said(spec)
    assert found.keys() == {"KRB-PRE-079"}
    assert evidence in found["KRB-PRE-079"]


def test_pem_texts_and_a_listeners_own_stores_count() -> None:
    own = {
        "listener.name.internal.ssl.truststore.certificates": "${dir:/run/pem:certificates}",
        "listener.name.internal.ssl.keystore.location": "/k.pem",
    }
    assert said(secured(SSL, own)) == {}
