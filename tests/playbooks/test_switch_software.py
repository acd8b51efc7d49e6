"""A node is brought to another Kafka: its link, its files, one restart; and nothing where it is there already."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_in_node import Node

from kraft_runbook.cluster.feature_levels import NodeHost
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, Unread
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.hosts.feature_state import read_feature_state
from kraft_runbook.io.hosts.playbooks import PlaybookResult, play
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.software.class_checks import missing_classes
from kraft_runbook.software.plays import switch_software, target_of
from lab.installation import JARS, JARS4, kafka4_version


@pytest.fixture
def newer(node: Node) -> Software:
    """Kafka 4 installed beside, as far as the playbook looks."""
    home = node.directory / "kafka-4"
    (home / "libs").mkdir(parents=True)
    (home / "libs" / "kafka_2.13-4.1.1.jar").touch()
    return Software(version="4.1.1", home=str(home))


def linked(node: Node, newer: Software) -> ClusterSpec:
    broker = node.spec.broker(1).model_copy(update={"home_link": str(node.directory / "link")})
    kafka = node.spec.kafka.model_copy(update={"upgrade_to": newer})
    return node.spec.model_copy(update={"kafka": kafka, "brokers": (broker,)})


def switch(spec: ClusterSpec, to: Software, *, check: bool = False) -> PlaybookResult:
    return play(spec, switch_software(spec, 1, to), secrets=environment_secrets(), check=check)


def test_up_again_and_back_each_restarts_the_process_once(node: Node, newer: Software) -> None:
    link = node.directory / "link"
    link.symlink_to(node.spec.kafka.home)
    spec = linked(node, newer)
    node.run_broker(BrokerMode.KRAFT)
    first = node.pid()

    rehearsed = switch(spec, newer, check=True)
    assert (str(link.readlink()), node.pid()) == (spec.kafka.home, first)
    assert any("link" in each.path for each in rehearsed.diffs)

    up = switch(spec, newer)
    assert (str(link.readlink()), up.restarted) == (newer.home, True)
    second = node.pid()
    assert second != first and len(node.starts()) == 2

    again = switch(spec, newer)
    assert (again.changed, node.pid(), len(node.starts())) == ((), second, 2)

    back = switch(spec, spec.kafka)
    assert (str(link.readlink()), back.restarted, len(node.starts())) == (spec.kafka.home, True, 3)


def test_killed_between_link_and_restart_the_next_run_restarts_once(node: Node, newer: Software) -> None:
    link = node.directory / "link"
    link.symlink_to(node.spec.kafka.home)
    node.run_broker(BrokerMode.KRAFT)
    link.unlink()
    link.symlink_to(newer.home)  # what a run did that was killed right after
    assert switch(linked(node, newer), newer).restarted
    assert len(node.starts()) == 2


def test_software_that_is_not_installed_there_is_refused_before_anything_is_touched(
    node: Node, newer: Software
) -> None:
    link = node.directory / "link"
    link.symlink_to(node.spec.kafka.home)
    Path(newer.home, "libs", "kafka_2.13-4.1.1.jar").unlink()
    node.run_broker(BrokerMode.KRAFT)
    pid, files = node.pid(), node.files()
    with pytest.raises(StepFailed, match=r"Kafka 4\.1\.1 is not installed in"):
        switch(linked(node, newer), newer)
    assert (node.pid(), node.files(), str(link.readlink())) == (pid, files, node.spec.kafka.home)


def test_a_home_that_is_no_link_is_named_and_left(node: Node, newer: Software) -> None:
    for name in ("link", "broker-1"):
        (node.directory / name).mkdir()
    with pytest.raises(StepFailed, match=r"link is no symbolic link") as failed:
        switch(linked(node, newer), newer)
    assert "start Kafka through a link of its own" in failed.value.way_out


def test_a_cluster_file_without_a_target_or_a_link_is_refused(node: Node, newer: Software) -> None:
    with pytest.raises(Refused, match="names no other Kafka to go on to"):
        target_of(node.spec)
    with pytest.raises(Refused, match="node 1 has no home_link"):
        switch_software(node.spec, 1, newer)


def test_where_a_link_leads_is_told_by_the_home_s_own_name_and_unknown_where_there_is_none(
    node: Node, newer: Software
) -> None:
    """A home may be a link itself. Of a link that is not there, its own path would be taken for what it leads to."""
    spec, link = linked(node, newer), node.directory / "link"
    assert isinstance(_home(spec), Unread)
    installed = node.directory / "installed"
    Path(newer.home).rename(installed)
    Path(newer.home).symlink_to(installed)
    link.symlink_to(installed)
    assert _home(spec) == newer.home
    link.unlink()
    link.symlink_to(node.directory)
    assert _home(spec) == str(node.directory.resolve())


def test_a_class_that_the_target_lacks_is_told_by_the_node_s_host(node: Node) -> None:
    """Over the jars of both versions of Kafka. 3.9.2 runs with this handler; a broker of 4.1.1 ends at its start."""
    handler = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
    homes = [node.directory / "old", node.directory / "new"]
    for home, jars in zip(homes, (JARS, JARS4), strict=True):
        home.mkdir()
        (home / "libs").symlink_to(jars)
    spec = linked(node, Software(version=kafka4_version(), home=str(homes[1])))
    spec = spec.model_copy(update={"kafka": spec.kafka.model_copy(update={"home": str(homes[0])})})
    properties = broker_properties(spec, spec.broker(1), BrokerMode.KRAFT)
    key = "listener.name.internal.oauthbearer.sasl.server.callback.handler.class"
    login = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required secret=Hunter2;"
    Path(spec.broker(1).config_file).parent.mkdir(parents=True, exist_ok=True)
    held = {**properties, key: handler, "sasl.jaas.config": login}
    Path(spec.broker(1).config_file).write_text(render_properties(held, header="by hand"))
    host = read_feature_state(spec, [1], dynamic_classes={1: [("metric.reporters (dynamic)", "com.example.Mine")]})[1]
    assert isinstance(host, NodeHost) and "Hunter2" not in str(host)
    assert spec.kafka.upgrade_to is not None
    said = [str(each) for each in missing_classes(host, spec.kafka.upgrade_to, written=held)]
    assert [each.partition(", which")[0] for each in said] == [
        f"{key} names {handler}",
        "metric.reporters (dynamic) names com.example.Mine",
    ]
    assert [str(each) for each in missing_classes(host, spec.kafka, written=held)] == [
        f"metric.reporters (dynamic) names com.example.Mine, which no jar of {homes[0]} has"
    ]
    assert host.further_jars[str(homes[0])] == ("jmx_prometheus_javaagent-1.0.1.jar",)
    assert isinstance(host.allowed_urls, Unread) and "does not run" in host.allowed_urls.reason


def _home(spec: ClusterSpec) -> str | Unread | None:
    host = read_feature_state(spec, [1])[1]
    assert isinstance(host, NodeHost), host
    return host.home
