"""Which brokers do not hear of changes in ZooKeeper, by the names that Linux keeps of their threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import SPEC, WHY, broker, config, observation, on_host

from kraft_runbook.cluster.node_properties import ZOOKEEPER_AUTHORIZER
from kraft_runbook.cluster.observation import ClusterObservation, Unread, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_parts import Authorizer
from kraft_runbook.migration.listener_threads import deaf, expected

ACLS = ("/kafka-acl-changes", "/kafka-acl-extended-changes")


@pytest.mark.parametrize(
    ("properties", "znodes"),
    [
        ({}, ("/config/changes",)),
        ({"authorizer.class.name": ZOOKEEPER_AUTHORIZER}, ("/config/changes", *ACLS)),
        ({"authorizer.class.name": Authorizer().kraft}, ("/config/changes",)),
        ({"delegation.token.secret.key": "<set>"}, ("/config/changes", "/delegation_token/token_changes")),
        ({"delegation.token.master.key": "<set>"}, ("/config/changes", "/delegation_token/token_changes")),
        ({"delegation.token.secret.key": ""}, ("/config/changes",)),
    ],
)
def test_a_broker_listens_where_its_configuration_says(properties: dict[str, str], znodes: tuple[str, ...]) -> None:
    assert expected(properties) == znodes


def found(seen: ClusterObservation) -> dict[int, tuple[str, ...] | Unread]:
    assert was_read(seen.hosts)
    return deaf(seen, seen.hosts)


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.HYBRID])
def test_each_dead_listener_is_named(phase: Phase) -> None:
    assert found(observation(phase)) == {}
    assert found(
        on_host(2, listener_threads=("/config/changes", "/kafka-acl-exte", "/delegation_tok"))(observation(phase))
    ) == {2: ("/kafka-acl-changes",)}


def test_threads_whose_names_keep_both_ends_are_known_too() -> None:
    newer = ("/config..thread", "/delega..thread", "/kafka-..thread", "/kafka-..thread")
    assert found(on_host(2, listener_threads=newer)(observation(Phase.ZOOKEEPER))) == {}
    assert found(on_host(2, listener_threads=newer[1:])(observation(Phase.ZOOKEEPER))) == {2: ("/config/changes",)}


def test_a_broker_in_kraft_mode_and_one_that_is_down_listen_to_nothing() -> None:
    assert found(on_host(2, listener_threads=())(observation(Phase.DUAL_WRITE))) == {}
    assert found(on_host(2, listener_threads=())(broker(2, running=False)(observation(Phase.ZOOKEEPER)))) == {}


def test_what_could_not_be_seen_is_no_answer() -> None:
    zookeeper = observation(Phase.ZOOKEEPER)
    assert deaf(zookeeper, {}) == {i: Unread(f"node {i}'s host was not examined") for i in SPEC.broker_ids}
    assert found(on_host(2, config=WHY)(zookeeper)) == found(broker(2, mode=WHY)(zookeeper)) == {2: WHY}
    assert found(on_host(2, config=None)(zookeeper)) == {2: Unread("its configuration file is not there")}
    assert found(on_host(2, listener_threads=())(zookeeper)) == {
        2: Unread("its host shows none of its threads by name")
    }
    named = on_host(2, listener_threads=(), controller_threads=("zk-broker-2-to-",))(zookeeper)
    assert found(config(2, authorizer__class__name=None, delegation__token__secret__key=None)(named)) == {
        2: ("/config/changes",)
    }


def test_hosts_of_other_nodes_do_not_matter() -> None:
    hybrid = observation(Phase.HYBRID)
    assert was_read(hybrid.hosts)
    nameless = {i: replace(host, listener_threads=()) if i > 100 else host for i, host in hybrid.hosts.items()}
    assert deaf(hybrid, nameless) == {}
