"""Config providers: what refers to one, what declares one, and what a node's file says of them."""

from __future__ import annotations

from observations import SPEC, observation

from kraft_runbook.cluster.config_providers import undeclared, with_providers
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.checks import CHECKS

VAULT = {"config.providers.vault.class": "com.example.Vault", "ssl.key.password": "${vault:kv/kafka:key}"}


def test_a_provider_is_named_where_its_class_is_declared() -> None:
    found = with_providers(VAULT)
    assert found["config.providers"] == "vault"
    assert undeclared(found) == {}
    both = with_providers({**VAULT, "ssl.keystore.password": "${secrets:/own/file:key}"})
    assert both["config.providers"] == "secrets,vault"
    assert both["config.providers.secrets.class"].endswith("FileConfigProvider")


def test_a_reference_to_a_file_of_the_hosts_own_needs_no_secrets_in_the_cluster_file() -> None:
    spec = SPEC.model_copy(update={"secrets": {}, "secrets_file": None})
    broker = spec.brokers[0].model_copy(update={"properties": {"ssl.key.password": "${secrets:/own/file:key}"}})
    assert broker_properties(spec, broker, BrokerMode.KRAFT)["config.providers"] == "secrets"
    assert "config.providers" not in broker_properties(spec, spec.brokers[1], BrokerMode.KRAFT)


def test_a_reference_is_asked_for_wherever_it_stands_in_the_value() -> None:
    line = 'org.example.Login required username="a" password="${vault:kv:a}" token="${env:B}";'
    found = undeclared(with_providers({"sasl.jaas.config": line, "log.dir": "${kafka.logs.dir}"}))
    assert found == {"vault": ["sasl.jaas.config"], "env": ["sasl.jaas.config"]}


def test_controllers_need_the_provider_of_what_they_have_from_the_brokers() -> None:
    """delegation.token.secret.key goes to the controllers; the provider's class does not."""
    secret = {"delegation.token.secret.key": "${vault:kv:t}", "config.providers.vault.class": "com.example.Vault"}
    spec = SPEC.model_copy(update={"broker_properties": {**SPEC.broker_properties, **secret}})
    spec = spec.model_copy(update={"secrets": {k: v for k, v in spec.secrets.items() if "token" not in k}})
    result = CHECKS["KRB-PRE-103"].run(observation(Phase.ZOOKEEPER), spec)
    assert result.evidence.startswith("controllers 101, 102, 103: delegation.token.secret.key refers to")
    own = {**spec.controller_properties, "config.providers.vault.class": "com.example.Vault"}
    spec = spec.model_copy(update={"controller_properties": own})
    assert CHECKS["KRB-PRE-103"].run(observation(Phase.ZOOKEEPER), spec).passed
    rendered = controller_properties(spec, spec.controllers[0], ControllerMode.MIGRATION)
    assert rendered["config.providers"] == "secrets,vault"
