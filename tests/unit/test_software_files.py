"""What a node's file may not hold for another version of Kafka: asked of the configuration classes of both versions."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest
from observations import SPEC

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.upgrade.file_keys import (
    ACL_AUTHORIZER,
    GONE_FAMILIES,
    GONE_IN_4,
    SMALLEST,
    SMALLEST_SEGMENT,
    file_findings,
)
from kraft_runbook.upgrade.java import needed_java
from lab.installation import JARS, JARS4, java, kafka4_version
from lab.layout import load

THREE, FOUR = load().kafka.version, kafka4_version()


@cache
def answers(jars: Path, *files: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    asked = [java(), "-cp", f"{jars}/*", Path(__file__).with_name("AskKafkaConfig.java"), *files]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    keys = frozenset(line.removeprefix("key ") for line in told if line.startswith("key "))
    return keys, tuple(line.removeprefix("file ").strip() for line in told if line.startswith("file"))


def test_the_keys_that_kafka_4_reads_over_are_those_that_3_9_has_and_it_has_not() -> None:
    gone = answers(JARS)[0] - answers(JARS4)[0]
    assert {key for key in gone if not key.startswith(GONE_FAMILIES)} == GONE_IN_4
    assert not {key for key in answers(JARS4)[0] if key.startswith(GONE_FAMILIES)}


def test_what_is_said_to_be_refused_is_refused_and_what_is_rendered_is_taken(tmp_path: Path) -> None:
    kraft = broker_properties(SPEC, SPEC.broker(1), BrokerMode.KRAFT)
    files = {
        "broker": kraft,
        "controller": controller_properties(SPEC, SPEC.controller(101), ControllerMode.KRAFT),
        "zookeeper": broker_properties(SPEC, SPEC.broker(1), BrokerMode.ZOOKEEPER),
        "small": {**kraft, "log.segment.bytes": str(SMALLEST_SEGMENT - 1)},
        "large": {**kraft, "log.segment.bytes": str(SMALLEST_SEGMENT)},
    }
    for key, smallest in SMALLEST.items():
        files[f"{key} below"] = {**kraft, key: str(-1 if smallest == 1 else smallest - 1)}
        files[f"{key} least"] = {**kraft, key: str(smallest)}
    paths = []
    for name, properties in files.items():
        paths.append(tmp_path / name)
        here = {
            key: value for key, value in properties.items() if not value.startswith("${")
        }  # no secrets file is here
        paths[-1].write_text(render_properties(here, header=name))
    said = dict(zip(files, answers(JARS4, *paths)[1], strict=True))
    ours = {name: any(each.refused for each in file_findings(given, FOUR)) for name, given in files.items()}
    assert {name: bool(text) for name, text in said.items()} == ours, said


def test_the_authorizer_of_zookeeper_is_refused_and_named() -> None:
    (found,) = (
        each for each in file_findings({"authorizer.class.name": ACL_AUTHORIZER, "process.roles": "broker"}, FOUR)
    )
    assert found.refused and "ClassNotFoundException" in found.problem


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("delegation.token.master.key", "delegation.token.secret.key; without it tokens are off"),
        ("inter.broker.protocol.version", "metadata.version, a feature level"),
        ("zookeeper.connect", "take it out of the cluster file"),
        ("password.encoder.secret", "take it out of the cluster file"),
    ],
)
def test_a_key_that_is_read_over_says_what_takes_its_place(key: str, words: str) -> None:
    (found,) = file_findings({key: "x", "process.roles": "broker"}, FOUR)
    assert (
        not found.refused
        and found.problem == f"{FOUR} reads over {key} in silence"
        and words in str(found).replace("T", "t")
    )


def test_the_older_software_is_asked_nothing() -> None:
    assert file_findings({"zookeeper.connect": "x"}, THREE) == ()


def test_each_software_needs_the_java_that_its_own_class_files_are_for() -> None:
    """Class file major version 52 is Java 8, 61 is 17. The broker's class alone counts: clients of 4.x run on 11."""
    for jars, version in ((JARS, THREE), (JARS4, FOUR)):
        listed = ["unzip", "-p", str(jars / f"kafka_2.13-{version}.jar"), "kafka/Kafka.class"]
        head = subprocess.run(listed, capture_output=True, check=True).stdout[:8]
        assert int.from_bytes(head[6:8], "big") - 44 == needed_java(version)
