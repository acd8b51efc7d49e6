"""An installation laid out like Confluent's (``share/java/kafka``, scripts without ``.sh``) is found and used. Apache's
jars stand in for theirs, under names as theirs have.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from played import provision_controller
from stand_in_node import CLUSTER_ID, Node

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, NodeHost, SoftwareLevels
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.io.hosts.feature_state import read_feature_state
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.hosts.playbooks import play
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.metadata_version import highest_level
from kraft_runbook.software.plays import switch_software
from lab.installation import JARS
from lab.layout import load

VERSION = "7.9.2-ccs"


@pytest.fixture
def theirs(node: Node) -> Node:
    """The stand-in's Kafka, laid out like Confluent's."""
    home = node.directory / "kafka"
    shutil.rmtree(home / "libs")
    (home / "bin" / "kafka-storage.sh").rename(home / "bin" / "kafka-storage")
    lay_jars(home)
    kafka = node.spec.kafka.model_copy(update={"version": VERSION})
    return Node(node.directory, node.spec.model_copy(update={"kafka": kafka}), node.text, node.ports)


def lay_jars(home: Path) -> None:
    own = load().kafka.version
    jars = home / "share" / "java" / "kafka"
    jars.mkdir(parents=True)
    for jar in JARS.glob("*.jar"):
        (jars / jar.name.replace(f"-{own}.jar", f"-{VERSION}.jar")).symlink_to(jar)
    (jars / f"kafka-server-common-{VERSION}-javadoc.jar").touch()
    (jars / "kafka.jar").symlink_to(jars / f"kafka_2.13-{VERSION}.jar")


def test_a_controller_is_formatted_and_started_and_the_software_is_found(theirs: Node) -> None:
    provision_controller(theirs.spec, 101, CLUSTER_ID, secrets=environment_secrets())
    assert f"cluster.id={CLUSTER_ID}" in (theirs.directory / "data-101" / "meta.properties").read_text()
    assert theirs.starts("controller-101") == ["True"]
    found = gather_host_facts(theirs.spec)
    assert (found[1].classpath_ok, found[101].classpath_ok) == (True, True)
    other = theirs.spec.model_copy(update={"kafka": theirs.spec.kafka.model_copy(update={"version": "7.9.1-ccs"})})
    assert gather_host_facts(other)[1].classpath_ok is False


def test_the_levels_are_read_out_of_its_jars_and_a_link_leads_to_it(theirs: Node) -> None:
    link = theirs.directory / "link"
    link.symlink_to(theirs.directory)
    broker = theirs.spec.broker(1).model_copy(update={"home_link": str(link)})
    spec = theirs.spec.model_copy(update={"brokers": (broker,)})
    to = Software(version=VERSION, home=spec.kafka.home)
    theirs.run_broker()
    play(spec, switch_software(spec, 1, to), secrets=environment_secrets(), check=True)

    host = read_feature_state(spec, [1])[1]
    assert isinstance(host, NodeHost)
    levels = host.software[spec.kafka.home]
    assert isinstance(levels, SoftwareLevels) and levels.version == VERSION
    assert levels.features[METADATA_VERSION].supported.highest == highest_level(VERSION)
