"""A property with one value on ZooKeeper and another in KRaft mode: which node has which, and the way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from observations import SPEC, observation, on_host
from test_adoption import COMMON, apart, taken

from kraft_runbook.cluster.contradictions import contradictions
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Authorizer
from kraft_runbook.migration.checks.hosts import the_authorizer_is_kept

RULES = "confluent.authorizer.access.rule.providers"
CONFLUENTS = "io.confluent.kafka.security.authorizer.ConfluentServerAuthorizer"
ON_ZOOKEEPER, IN_KRAFT = "CONFLUENT,ZK_ACL", "CONFLUENT,KRAFT_ACL"


def having(**changes: Any) -> ClusterSpec:
    return SPEC.model_copy(update=changes)


def test_brokers_have_the_one_until_kraft_mode_and_the_other_in_it_and_the_first_again_on_the_way_back() -> None:
    spec = having(broker_properties={RULES: ON_ZOOKEEPER}, broker_properties_in_kraft={RULES: IN_KRAFT, "own": "1"})
    there = [BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT, BrokerMode.HYBRID, BrokerMode.ZOOKEEPER]
    rendered = [broker_properties(spec, spec.brokers[0], mode) for mode in there]
    assert [each[RULES] for each in rendered] == [ON_ZOOKEEPER, ON_ZOOKEEPER, IN_KRAFT, ON_ZOOKEEPER, ON_ZOOKEEPER]
    assert ["own" in each for each in rendered] == [False, False, True, False, False]


@pytest.mark.parametrize("mode", ControllerMode)
def test_controllers_get_what_brokers_enforce_in_kraft_mode_from_the_start(mode: ControllerMode) -> None:
    spec = having(
        broker_properties={"delete.topic.enable": "true"}, broker_properties_in_kraft={"delete.topic.enable": "false"}
    )
    assert controller_properties(spec, spec.controllers[0], mode)["delete.topic.enable"] == "false"


def test_another_authorizer_is_rendered_by_mode() -> None:
    spec = having(authorizer=Authorizer(zookeeper="com.example.Old", kraft="com.example.New"))
    key = "authorizer.class.name"
    for mode, name in ((BrokerMode.ZOOKEEPER, "Old"), (BrokerMode.HYBRID, "Old"), (BrokerMode.KRAFT, "New")):
        assert broker_properties(spec, spec.brokers[0], mode)[key] == f"com.example.{name}"
    for of_controller in ControllerMode:
        assert controller_properties(spec, spec.controllers[0], of_controller)[key] == "com.example.New"
    kept = broker_properties(having(authorizer=True), spec.brokers[0], BrokerMode.KRAFT)[key]
    assert kept == "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.mark.parametrize(
    ("authorizer", "found", "told"),
    [
        (Authorizer(zookeeper=CONFLUENTS, kraft=CONFLUENTS), CONFLUENTS, "ConfluentServerAuthorizer becomes"),
        (True, CONFLUENTS, f"broker 1 has {CONFLUENTS}, which this runbook can't carry over unless"),
        (False, CONFLUENTS, "the cluster file says 'authorizer: false'"),
    ],
)
def test_preflight_compares_the_brokers_authorizer_with_the_declared_one(
    authorizer: bool | Authorizer, found: str, told: str
) -> None:
    spec = having(authorizer=authorizer)
    seen = observation(Phase.ZOOKEEPER)
    for broker_id in spec.broker_ids:
        seen = on_host(broker_id, config={"authorizer.class.name": found})(seen)
    seen = replace(seen, zookeeper=replace(seen.zookeeper, tree=replace(seen.tree, acl_count=0)))  # type: ignore[type-var]
    assert told in str(the_authorizer_is_kept(seen, spec))


def test_a_broker_can_not_have_its_own_value_of_it_too() -> None:
    own = SPEC.brokers[0].model_copy(update={"properties": {RULES: ON_ZOOKEEPER}})
    spec = having(broker_properties_in_kraft={RULES: IN_KRAFT}, brokers=(own, *SPEC.brokers[1:]))
    assert any(
        f"brokers.0.properties.{RULES}: broker_properties_in_kraft has this key" in p for p in contradictions(spec)
    )


def test_what_follows_from_the_phase_and_a_secret_in_clear_are_refused_there_too() -> None:
    spec = having(broker_properties_in_kraft={"zookeeper.connect": "zk:2181", "ssl.key.password": "planted"})
    found = [each for each in contradictions(spec) if each.startswith("broker_properties_in_kraft.")]
    assert len(found) == 2 and "planted" not in str(found)


def test_adopt_proposes_it_for_confluents_authorizer() -> None:
    file = {**COMMON, "authorizer.class.name": CONFLUENTS, "super.users": "User:a", RULES: "CONFLUENT, ZK_ACL"}
    made, spec, _ = taken(file, file)
    assert apart(spec, [file, file]) == {}
    assert spec.authorizers == Authorizer(zookeeper=CONFLUENTS, kraft=CONFLUENTS)
    assert broker_properties(spec, spec.brokers[0], BrokerMode.KRAFT)[RULES] == IN_KRAFT
    assert controller_properties(spec, spec.controllers[0], ControllerMode.MIGRATION)[RULES] == IN_KRAFT
    assert any(note.startswith(f"{RULES}: {IN_KRAFT} in KRaft mode") for note in made.notes)
