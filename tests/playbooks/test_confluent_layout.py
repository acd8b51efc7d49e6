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
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.feature_state import read_feature_state
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.hosts.playbooks import play
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.metadata_version import highest_level
from kraft_runbook.software.plays import switch_software
from lab.installation import JARS, JARS4, kafka4_version
from lab.layout import load

VERSION, TARGET = "7.9.2-ccs", "8.1.1-ccs"


@pytest.fixture
def theirs(node: Node) -> Node:
    """The stand-in's Kafka, laid out like Confluent's."""
    home = node.directory / "kafka"
    shutil.rmtree(home / "libs")
    (home / "bin" / "kafka-storage.sh").rename(home / "bin" / "kafka-storage")
    lay_jars(home)
    kafka = node.spec.kafka.model_copy(update={"version": VERSION})
    return Node(node.directory, node.spec.model_copy(update={"kafka": kafka}), node.text, node.ports)


def lay_jars(home: Path, *, of: Path = JARS, own: str = "", version: str = VERSION) -> None:
    """``own``: the version in the names of the jars in ``of``, which become ``version``."""
    own = own or load().kafka.version
    jars = home / "share" / "java" / "kafka"
    jars.mkdir(parents=True)
    for jar in of.glob("*.jar"):
        (jars / jar.name.replace(f"-{own}.jar", f"-{version}.jar")).symlink_to(jar)
    (jars / f"kafka-server-common-{version}-javadoc.jar").touch()
    (jars / "kafka.jar").symlink_to(jars / f"kafka_2.13-{version}.jar")


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


def test_a_roll_leads_a_node_from_one_tree_to_the_other_and_back(theirs: Node) -> None:
    """Each restarts it once; the levels of both are told by the release that Confluent's number stands for."""
    target = theirs.directory / "kafka-8"
    lay_jars(target, of=JARS4, own=kafka4_version(), version=TARGET)
    link = theirs.directory / "link"
    link.symlink_to(theirs.spec.kafka.home)
    to = Software(version=TARGET, home=str(target))
    broker = theirs.spec.broker(1).model_copy(update={"home_link": str(link)})
    kafka = theirs.spec.kafka.model_copy(update={"upgrade_to": to})
    spec = theirs.spec.model_copy(update={"kafka": kafka, "brokers": (broker,)})
    theirs.run_broker(BrokerMode.KRAFT)

    host = read_feature_state(spec, [1])[1]
    assert isinstance(host, NodeHost)
    newest = {}
    for home in (spec.kafka.home, to.home):
        levels = host.software[home]
        assert isinstance(levels, SoftwareLevels)
        newest[levels.version] = levels.features[METADATA_VERSION].supported.highest
    assert newest == {each: highest_level(each) for each in (VERSION, TARGET)}

    for software in (to, spec.kafka):
        assert play(spec, switch_software(spec, 1, software), secrets=environment_secrets()).restarted
        assert str(link.readlink()) == software.home
    assert len(theirs.starts()) == 3
    other = to.model_copy(update={"version": "8.1.0-ccs"})
    with pytest.raises(StepFailed, match=r"Kafka 8\.1\.0-ccs is not installed in"):
        play(spec, switch_software(spec, 1, other), secrets=environment_secrets())
