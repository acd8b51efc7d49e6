"""A cluster file says of many nodes at once what they have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import ClusterFileError

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "forty-brokers.yaml"
REST = """
name: many
kafka: {version: 3.9.2, home: /opt/kafka}
zookeeper: {servers: ["zk:2181"]}
reach: {kind: ssh}
service_manager: {kind: systemd}
controllers:
  - {id: 1001, host: c, port: 9093, log_dir: /c, config_file: /c.properties, service: c, metrics_port: 7071}
broker_defaults:
  listeners: [{name: PLAINTEXT, port: 9092}]
  log_dirs: [/data]
  config_file: /etc/server.properties
  service: kafka
  metrics_port: 7071
  properties: {num.io.threads: 8, ssl.keystore.location: "/etc/{host}-{id:02}.jks"}
"""


def parsed(brokers: str, rest: str = REST) -> ClusterSpec:
    return parse_cluster(f"{rest}brokers:\n{brokers}\n", source="many.yaml", environment={})


def problems(brokers: str, rest: str = REST) -> tuple[str, ...]:
    with pytest.raises(ClusterFileError) as refused:
        parsed(brokers, rest)
    return tuple(refused.value.problems)


def test_forty_secured_brokers_take_sixty_lines() -> None:
    text = EXAMPLE.read_text()
    spec = parse_cluster(text, source="forty.yaml", environment={})
    assert len(text.splitlines()) <= 60
    assert spec.broker_ids == tuple(range(1, 41))
    broker = spec.broker(7)
    assert (broker.host, broker.rack) == ("kafka07.example.org", "a")
    assert broker.advertised(broker.listener("CLIENTS")) == "kafka7.public.example.org:9094"
    assert broker_properties(spec, broker, BrokerMode.ZOOKEEPER)["ssl.keystore.location"] == (
        "/etc/kafka/kafka07.example.org.p12"
    )
    assert [each.host for each in spec.controllers] == [f"controller{n}.example.org" for n in (1, 2, 3)]


def test_a_node_overrides_a_default_and_properties_join_key_by_key() -> None:
    spec = parsed(
        '  - {id: 1-2, host: "k[1:2]"}\n  - {id: 9, host: odd, service: other, properties: {num.io.threads: 4}}'
    )
    assert [each.service for each in spec.brokers] == ["kafka", "kafka", "other"]
    assert spec.broker(2).properties == {"num.io.threads": "8", "ssl.keystore.location": "/etc/k2-02.jks"}
    assert spec.broker(9).properties == {"num.io.threads": "4", "ssl.keystore.location": "/etc/odd-09.jks"}


def test_a_node_without_range_and_defaults_stays_as_it_is_written() -> None:
    rest, _, _ = REST.partition("broker_defaults")
    own = "listeners: [{name: PLAINTEXT, port: 1}], log_dirs: [/d], config_file: /f, service: s, metrics_port: 2"
    spec = parsed(f'  - {{id: 1, host: h, {own}, properties: {{client.id: "a{{id}}"}}}}', rest)
    assert spec.broker(1).properties == {"client.id": "a{id}"}


@pytest.mark.parametrize(
    ("brokers", "named"),
    [
        ("  - {id: 9-3, host: k}", "is no range of ids"),
        ('  - {id: 1-3, host: "k[1:2]"}', "2 hosts for 3 ids (1-3)"),
        ("  - {id: 1-3, host: k}", "would be the host of 3 nodes"),
        ('  - {id: 1-5000, host: "k[1:5000]"}', "at most 1000"),
    ],
)
def test_a_range_that_is_not_understood_is_one_problem_with_its_line(brokers: str, named: str) -> None:
    (problem,) = problems(brokers)
    assert named in problem
    assert problem.startswith("line 17: brokers.0: ")


def test_a_wrong_default_is_told_once_where_it_is_written() -> None:
    found = problems('  - {id: 1-3, host: "k[1:3]"}', REST.replace("log_dirs", "logdirs"))
    assert "line 11: broker_defaults.logdirs: unknown key; remove it or correct its spelling" in found
    assert found[0].startswith("line 17: brokers.0.log_dirs: missing") and len(found) == 2, found


def test_two_nodes_on_one_port_are_told_with_the_line_of_their_entry_or_default() -> None:
    found = problems('  - {id: 1-2, host: "k[1:2]"}\n  - {id: 3, host: k2}')
    assert len(found) == 2
    assert all(each.startswith(("line 10: broker_defaults.listeners", "line 14: broker_defaults.")) for each in found)


def test_a_default_has_no_id_and_is_a_mapping() -> None:
    assert "each node has an id of its own" in "".join(problems("  - {id: 1, host: k}", f"{REST}  id: 4\n"))
    rest, _, _ = REST.partition("broker_defaults")
    assert "a mapping of keys is needed" in "".join(problems("  - {id: 1, host: k}", f"{rest}broker_defaults: 4\n"))


def test_a_secret_in_a_default_is_refused_with_its_line() -> None:
    found = problems('  - {id: 1-2, host: "k[1:2]"}', REST.replace("num.io.threads", "ssl.key.password"))
    assert any(each.startswith("line 15: broker_defaults.properties.ssl.key.password: a secret") for each in found)
