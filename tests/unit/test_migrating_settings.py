"""The settings of the migrating consumer: what is asked for, what is refused and how that is said."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from kraft_runbook_consumer.errors import SettingError
from kraft_runbook_consumer.metrics import NAME, Collector, samples
from kraft_runbook_consumer.settings import embedded_config, fetch_config, read_settings

LEAST = {"group.id": "g", "zookeeper.connect": "zk:2181"}
MIGRATING = {
    **LEAST,
    "coordination.migration.enabled": "true",
    "coordination.migration.bootstrap.servers": "broker:9092",
}


def test_an_old_member_needs_a_group_and_a_zookeeper() -> None:
    found = read_settings(LEAST)
    assert (found.migrates, found.bootstrap, found.strategy, found.reset) == (False, None, "range", "latest")
    assert (found.commit_seconds, found.session_seconds, found.auto_commit) == (60.0, 6.0, True)


def test_a_migrating_member_needs_brokers_besides() -> None:
    found = read_settings({**MIGRATING, "coordination.migration.enabled": True, "auto.offset.reset": "smallest"})
    assert (found.migrates, found.bootstrap, found.reset) == (True, "broker:9092", "earliest")


def test_what_is_given_for_the_embedded_consumer_reaches_it() -> None:
    given = {
        **MIGRATING,
        "coordination.migration.session.timeout.ms": 10000,
        "coordination.migration.security.protocol": "SASL_SSL",
        "coordination.migration.sasl.password": "planted",
        "fetch.message.max.bytes": 5000,
    }
    found = read_settings(given)
    embedded = embedded_config(found, "g_me")
    assert embedded["session.timeout.ms"] == "10000" and embedded["client.id"] == "g_me"
    assert (embedded["group.id"], embedded["partition.assignment.strategy"]) == ("g", "cooperative-sticky")
    fetching = fetch_config(found, "broker:9092", "g_me")
    assert (fetching["sasl.password"], fetching["max.partition.fetch.bytes"]) == ("planted", "5000")
    assert "session.timeout.ms" not in fetching and "planted" not in repr(found)


SECURE = {**LEAST, "zookeeper.ssl.client.enable": "true"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"zookeeper.connect": "zk"}, "group.id is missing"),
        ({"group.id": "g"}, "zookeeper.connect is missing"),
        ({**LEAST, "group.id": "a/b"}, "group.id holds a /"),
        ({**LEAST, "consumer.id": "a/b"}, "consumer.id holds a /"),
        ({**MIGRATING, "coordination.migration.session.timeout.ms": "abc"}, "session.timeout.ms=abc is no number"),
        ({**LEAST, "auto.comit.enable": "true"}, "did you mean auto.commit.enable?"),
        ({**LEAST, "nonsense": "1"}, "docs/migrating-consumer.md"),
        ({**LEAST, "coordination.migration.enabled": "yes"}, "coordination.migration.enabled=yes is neither"),
        ({**LEAST, "coordination.migration.enabled": "true"}, "coordination.migration.bootstrap.servers is missing"),
        ({**MIGRATING, "coordination.migration.client.id": "x"}, "coordination.migration.client.id can't be set"),
        ({**LEAST, "auto.commit.interval.ms": "-1"}, "auto.commit.interval.ms=-1 is no number"),
        ({**LEAST, "auto.offset.reset": "none"}, "give one of smallest, earliest, largest, latest"),
        ({**LEAST, "partition.assignment.strategy": "sticky"}, "give one of range, roundrobin"),
        ({**LEAST, "zookeeper.ssl.client.enable": "yes"}, "zookeeper.ssl.client.enable=yes is neither"),
        ({**LEAST, "zookeeper.ssl.truststore.location": "/ca.pem"}, "set zookeeper.ssl.client.enable=true"),
        ({**LEAST, "zookeeper.ssl.truststor.location": "/ca.pem"}, "did you mean zookeeper.ssl.truststore.location?"),
        ({**SECURE, "zookeeper.ssl.keystore.type": "JKS"}, "zookeeper.ssl.keystore.type=JKS can't be read"),
        ({**SECURE, "zookeeper.ssl.endpoint.identification.algorithm": "LDAPS"}, "LDAPS is not known"),
        ({**SECURE, "zookeeper.ssl.truststore.location": "/none.pem"}, "the file of zookeeper.ssl.truststore.location"),
        ({**LEAST, "zookeeper.sasl.username": "kafka"}, "one is missing"),
        ({**LEAST, "zookeeper.sasl.password": "planted"}, "one is missing"),
    ],
)
def test_bad_settings_are_named_with_the_way_out(given: dict[str, object], told: str) -> None:
    with pytest.raises(SettingError) as raised:
        read_settings(given)
    assert "planted" not in str(raised.value)
    assert told in str(raised.value) and "What to do: " in str(raised.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({**LEAST, "offsets.storage": "kafka"}, "set offsets.storage=zookeeper"),
        ({**LEAST, "dual.commit.enabled": "true"}, "set dual.commit.enabled=false"),
        ({**MIGRATING, "offsets.storage": "zookeeper"}, "set offsets.storage=kafka"),
        ({**MIGRATING, "dual.commit.enabled": "false"}, "set dual.commit.enabled=true"),
    ],
)
def test_commits_to_kafka_are_refused_first(given: dict[str, object], told: str) -> None:
    """KIP-125's first step: every member commits to ZooKeeper alone. A migrating one then commits to both."""
    with pytest.raises(SettingError, match=told):
        read_settings(given)


def test_metrics_have_the_names_that_the_jmx_exporter_gives() -> None:
    registry = CollectorRegistry()
    registry.register(Collector(lambda: samples(group="g", client="g_me", kafka_mode=True, assigned_by_kafka=3)))
    told = list(text_string_to_metric_families(openmetrics.generate_latest(registry).decode()))
    assert [(each.name, len(each.samples)) for each in told] == [(NAME, 2)], "Prometheus' own parser takes it"
    text = generate_latest(registry).decode()
    assert (
        'kafka_consumer_ZookeeperConsumerConnector_Value{clientId="g_me",groupId="g",'
        'name="ActiveKafkaCoordinationCount"} 1.0'
    ) in text
    assert (
        'kafka_consumer_ZookeeperConsumerConnector_Value{clientId="g_me",groupId="g",name="KafkaOwnedPartitionsCount"}'
        " 3.0"
    ) in text


def test_two_consumers_of_one_process_are_told_apart_in_one_registry() -> None:
    registry = CollectorRegistry(auto_describe=True)  # as prometheus_client.REGISTRY
    read = [
        lambda: samples(group="g", client="g_a", kafka_mode=True, assigned_by_kafka=1),
        lambda: samples(group="h", client="h_b", kafka_mode=False, assigned_by_kafka=2),
    ]
    collector = Collector(read[0])
    registry.register(collector)
    collector.add(read[1])

    def told() -> dict[tuple[str, str, str], float]:
        families = list(text_string_to_metric_families(openmetrics.generate_latest(registry).decode()))
        assert [each.name for each in families] == [NAME], "a page that names it twice is refused"
        found = {tuple(map(each.labels.get, LABELS)): each.value for each in families[0].samples}
        assert len(found) == len(families[0].samples)
        return found

    first = {("g", "g_a", "ActiveKafkaCoordinationCount"): 1.0, ("g", "g_a", "KafkaOwnedPartitionsCount"): 1.0}
    second = {("h", "h_b", "ActiveKafkaCoordinationCount"): 0.0, ("h", "h_b", "KafkaOwnedPartitionsCount"): 2.0}
    assert told() == first | second
    collector.remove(read[0])
    assert told() == second


LABELS = ("groupId", "clientId", "name")
