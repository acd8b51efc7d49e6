"""The logins of the brokers' own listeners, of which a broker that lacks one ends at its start."""

from __future__ import annotations

from pathlib import Path

import pytest
from observations import SPEC, WHY, Spoil, both, broker, observation, on_host, part, tree
from secured import LOGIN, secured
from spoilt_clusters import NO_TREE

from kraft_runbook.cluster.broker_calls import enabled, prefixed
from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.controller_calls import controllers_listener
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.migration.checks import CHECKS, CheckResult, Verdict

DOCS = Path(__file__).resolve().parents[2] / "docs"
BY_SCRAM = secured(SecurityProtocol.SASL_PLAINTEXT)
WITHOUT = BY_SCRAM.model_copy(update={"secrets": {k: v for k, v in BY_SCRAM.secrets.items() if k != LOGIN}})
LACKS = f"brokers 1, 2, 3 have no login file and no {LOGIN}"


def asked(spec: ClusterSpec, *spoils: Spoil) -> CheckResult:
    return CHECKS["KRB-PRE-140"].run(both(*spoils)(observation(Phase.ZOOKEEPER)), spec)


def test_a_login_in_the_properties_is_enough() -> None:
    assert asked(BY_SCRAM).passed
    assert asked(SPEC).passed
    assert asked(secured(SecurityProtocol.SSL)).passed


def test_a_broker_without_any_login_is_refused() -> None:
    found = asked(WITHOUT)
    assert found.verdict is Verdict.FAIL
    assert found.evidence == LACKS


def test_the_login_of_another_mechanism_or_listener_does_not_count() -> None:
    both_mechanisms = {**BY_SCRAM.broker_properties, "sasl.enabled.mechanisms": "SCRAM-SHA-512, PLAIN"}
    assert (
        "no listener.name.internal.plain.sasl.jaas.config"
        in asked(BY_SCRAM.model_copy(update={"broker_properties": both_mechanisms})).evidence
    )
    of_another = {**WITHOUT.secrets, LOGIN.replace("internal", "clients"): SecretRef(env="X")}
    assert asked(WITHOUT.model_copy(update={"secrets": of_another})).evidence == LACKS


def dynamic(*keys: str) -> Spoil:
    return tree(encoded_broker_configs=keys)


def login_file(*sections: str) -> Spoil:
    return both(*(on_host(i, login_readable="", server_sections=sections) for i in (1, 2, 3)))


WITH_A_LOGIN_FILE = login_file("KafkaServer")


def test_a_section_of_the_jvms_login_file_counts_for_each_listener_or_for_its_own() -> None:
    assert asked(WITHOUT, WITH_A_LOGIN_FILE).passed
    assert asked(WITHOUT, login_file("internal.KafkaServer")).passed


@pytest.mark.parametrize("sections", [(), ("clients.KafkaServer",), ("INTERNAL.KafkaServer",)])
def test_a_login_file_without_a_section_for_the_listener_is_none(sections: tuple[str, ...]) -> None:
    """One for ZooKeeper alone is common. Of the listener's name Kafka takes small letters."""
    found = asked(WITHOUT, login_file(*sections))
    assert found.verdict is Verdict.FAIL
    assert found.evidence == (
        f"brokers 1, 2, 3 have no section KafkaServer or <listener>.KafkaServer in the login file and no {LOGIN}"
    )


def test_a_dynamic_login_does_not_count_since_kraft_mode_reads_it_too_late() -> None:
    found = asked(WITHOUT, dynamic(f"2:{LOGIN}", "1:listener.name.internal.ssl.keystore.password"))
    assert found.verdict is Verdict.FAIL
    assert found.evidence == (
        f"brokers 1, 3 have no login file and no {LOGIN};"
        f" broker 2 has no login file, and {LOGIN} in the dynamic configuration alone"
    )
    assert "Before the broker is restarted into KRaft mode, also write a login that only the dynamic" in found.fix
    assert asked(WITHOUT, dynamic(f"2:{LOGIN}"), WITH_A_LOGIN_FILE).passed
    assert asked(BY_SCRAM, dynamic(f"2:{LOGIN}")).passed


def test_a_default_login_of_all_brokers_is_none() -> None:
    """Kafka takes no setting of a listener for all brokers (``DynamicBrokerConfig.validateConfigs``)."""
    assert asked(WITHOUT, dynamic(f"<default>:{LOGIN}")).evidence == LACKS


def test_where_dynamic_configurations_were_not_read_a_broker_without_a_login_is_still_refused() -> None:
    assert asked(WITHOUT, NO_TREE).evidence == LACKS


@pytest.mark.parametrize(
    "spoil",
    [
        part(hosts=WHY),
        both(*(on_host(i, server_sections=WHY) for i in (1, 2, 3))),
        both(*(broker(i, running=False) for i in (1, 2, 3))),
    ],
)
def test_what_was_not_read_is_neither_a_login_nor_none(spoil: Spoil) -> None:
    assert asked(WITHOUT, spoil).verdict is Verdict.UNKNOWN
    assert asked(BY_SCRAM, spoil).passed


@pytest.mark.parametrize("name", ["forty-brokers.yaml", "mutual-tls.yaml"])
def test_an_example_gives_each_store_its_password_and_each_listener_its_logins(name: str) -> None:
    spec = parse_cluster((DOCS / name).read_text(), source=name, environment={})
    own = controllers_listener(spec)
    rendered = [
        *((broker_properties(spec, b, BrokerMode.HYBRID), b.listeners) for b in spec.brokers),
        *((controller_properties(spec, c, ControllerMode.MIGRATION), (own,)) for c in spec.controllers),
    ]
    for properties, listeners in rendered:
        stores = [key for key in properties if key.endswith("store.location")]
        assert stores
        assert [key for key in stores if key.replace(".location", ".password") not in properties] == []
        assert [
            key
            for listener in listeners
            if listener.protocol.is_sasl
            for mechanism in enabled(properties, listener)
            if (key := prefixed(listener, f"{mechanism.lower()}.sasl.jaas.config")) not in properties
        ] == []
