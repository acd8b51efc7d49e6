"""IPv6 addresses: bare in a cluster file, in brackets wherever Kafka, ZooKeeper or a client takes host:port."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest
from observations import CLUSTERS, observation

from kraft_runbook.cluster.addresses import address, one_spelling, split_address
from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, BrokerZnode, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import ClusterFileError
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.procedures.look_at_nodes import accepts

LAB = (CLUSTERS / "lab.yaml").read_text()
TEXT = (
    LAB.replace('servers: ["${KRB_LAB_NET:-127.10.0}.1:2181"]', 'servers: ["[2001:db8::1]:2181", "zoo-2:2181"]')
    .replace("host: ${KRB_LAB_NET:-127.10.0}.11\n", 'host: "2001:db8::11"\n')
    .replace("host: ${KRB_LAB_NET:-127.10.0}.101\n", 'host: "2001:db8::101"\n')
)


def parse(text: str) -> ClusterSpec:
    return parse_cluster(text, source="lab.yaml", environment={"PROJECT_ROOT": "/project"})


def test_every_address_is_written_as_kafka_writes_it() -> None:
    spec = parse(TEXT)
    broker, controller = spec.brokers[0], spec.controllers[0]
    hybrid, migrating = (
        broker_properties(spec, broker, BrokerMode.HYBRID),
        controller_properties(spec, controller, ControllerMode.MIGRATION),
    )
    assert spec.bootstrap_servers[0] == "[2001:db8::11]:9092" and spec.bootstrap_servers[1] == "127.10.0.12:9092"
    assert (
        hybrid["listeners"]
        == hybrid["advertised.listeners"]
        == "PLAINTEXT://[2001:db8::11]:9092,SASL://[2001:db8::11]:9094"
    )
    assert migrating["listeners"] == "CONTROLLER://[2001:db8::101]:9093"
    assert hybrid["controller.quorum.voters"].startswith("101@[2001:db8::101]:9093,102@127.10.0.102:9093,")
    assert hybrid["zookeeper.connect"] == migrating["zookeeper.connect"] == "[2001:db8::1]:2181,zoo-2:2181"


def test_a_live_endpoint_is_compared_as_kafka_registers_it() -> None:
    spec = parse(TEXT.replace("SASL, port: 9094", "CLIENT_SASL, port: 9094"))
    seen = observation(Phase.ZOOKEEPER, spec)
    brokers = {
        b.id: BrokerZnode(b.id, tuple(f"{each.name}://{b.advertised(each)}" for each in b.listeners), b.rack)
        for b in spec.brokers
    }
    seen = replace(seen, zookeeper=replace(seen.zookeeper, brokers=brokers))  # type: ignore[type-var]
    (result,) = [each for each in CHECKS.run(seen, spec, Phase.ZOOKEEPER).results if each.code == "KRB-PRE-008"]
    assert result.passed, result.evidence


@pytest.mark.parametrize(
    "host",
    ["[2001:db8::11]", "2001:db8::11:9092:1:2:3:4:5", "fe80::1%eth0", "kafka-1:9092", "2001:db8:::11", "%", "a]"],
)
def test_other_spellings_of_a_host_are_refused_with_the_right_one(host: str) -> None:
    with pytest.raises(
        ClusterFileError,
        match=(
            r"brokers\.0\.host: .*(stands alone, without brackets, port and zone|means something on one machine only)"
        ),
    ):
        parse(TEXT.replace('"2001:db8::11"', f'"{host}"'))


@pytest.mark.parametrize("server", ["2001:db8::1:2181", "[2001:db8::1]", "[2001:db8:::1]:2181", "[zoo]:2181"])
def test_a_zookeeper_server_without_brackets_is_refused(server: str) -> None:
    with pytest.raises(ClusterFileError, match=r"an IPv6 address stands in brackets: \[::1\]:2181"):
        parse(TEXT.replace("[2001:db8::1]:2181", server))


@pytest.mark.parametrize(("host", "port"), [("::1", 9092), ("kafka-1", 1), ("127.0.0.1", 65535)])
def test_an_address_comes_apart_as_it_was_made(host: str, port: int) -> None:
    assert split_address(address(host, port)) == (host, port)


def test_a_listener_on_an_ipv6_address_is_seen() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        port = server.getsockname()[1]
        assert accepts(*split_address(f"[::1]:{port}")) is True
    assert accepts("::1", port) is False


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("CONTROLLER://KAFKA-2:9093", "CONTROLLER://kafka-2:9093", True),
        ("CONTROLLER://[2001:DB8:0:0:0:0:0:4]:9093", "CONTROLLER://[2001:db8::4]:9093", True),
        ("4@[2001:DB8:0:0:0:0:0:4]:9093", "4@[2001:db8::4]:9093", True),
        ("Kafka-2:9093", "kafka-2:9093", True),
        ("CONTROLLER://kafka-2:9093", "OTHER://kafka-2:9093", False),
        ("4@kafka-2:9093", "5@kafka-2:9093", False),
        ("kafka-2:9093", "kafka-2:9094", False),
        ("kafka-2:9093", "kafka-2.example.com:9093", False),
        ("localhost:9093", "127.0.0.1:9093", False),
    ],
)
def test_an_address_is_the_same_however_its_host_is_spelt_and_no_name_is_resolved(
    one: str, other: str, same: bool
) -> None:
    assert (one_spelling(one) == one_spelling(other)) is same
