"""One value for versions: Apache's and Confluent's compare rightly, and nothing else compares them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from feature_looks import host_module
from observations import SPEC, observation

from kraft_runbook.cluster.config_tables import config_table
from kraft_runbook.cluster.distributions import (
    APACHE,
    CONFLUENT_COMMUNITY,
    CONFLUENT_SERVER,
    LAYOUTS,
    Distribution,
    distribution_of,
)
from kraft_runbook.cluster.kafka_version import KafkaVersion, release_of
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import ClusterFileError
from kraft_runbook.metadata.metadata_version import highest_level
from kraft_runbook.migration.eligibility import not_eligible
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.software.java import needed_java

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("include", "plugins", "playbooks", "dags", "lab")


@pytest.mark.parametrize(
    ("text", "release", "patch"),
    [
        ("3.9.2", (3, 9), 2),
        ("4.1.1", (4, 1), 1),
        ("3.9.0.redhat-00003", (3, 9), 0),
        ("4.2.0-SNAPSHOT", (4, 2), 0),
        ("3.9-IV0", (3, 9), None),
        ("7.9.2-ccs", (3, 9), None),
        ("7.9.10-ce", (3, 9), None),
        ("7.10.0-ccs", (3, 10), None),
        ("8.0.0-ce", (4, 0), None),
        ("8.1.2-ccs", (4, 1), None),
        ("6.2.1-ccs", (2, 8), None),
        ("5.5.1-ccs", (2, 5), None),
        ("unknown", (0, 0), None),
        ("", (0, 0), None),
    ],
)
def test_a_version_names_kafkas_release(text: str, release: tuple[int, int], patch: int | None) -> None:
    assert (release_of(text), KafkaVersion.of(text).patch) == (release, patch)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("3.9.10", "3.9.2"),
        ("3.10.0", "3.9.9"),
        ("4.0.0", "3.9.2"),
        ("7.9.10-ccs", "7.9.2-ccs"),
        ("7.9.2-ce", "7.9.1-ccs"),
        ("8.0.0-ccs", "7.9.2-ccs"),
        ("4.0.0", "7.9.2-ccs"),
        ("8.0.0-ce", "3.9.2"),
    ],
)
def test_newer_is_told_by_kafkas_release_first(newer: str, older: str) -> None:
    assert KafkaVersion.of(newer).newer_than(KafkaVersion.of(older))
    assert not KafkaVersion.of(older).newer_than(KafkaVersion.of(newer))


def test_of_two_distributions_in_one_release_neither_is_newer() -> None:
    theirs, ours = KafkaVersion.of("7.9.2-ccs"), KafkaVersion.of("3.9.2")
    assert not theirs.newer_than(ours) and not ours.newer_than(theirs)


@pytest.mark.parametrize(
    ("version", "may_be"),
    [("4.0.0", True), ("8.0.0-ccs", True), ("8.0.3-ce", True), ("4.0", True), ("4.0.1", False), ("8.1.0-ccs", False)],
)
def test_confluents_software_may_be_any_release_of_its_minor_version(version: str, may_be: bool) -> None:
    assert KafkaVersion.of(version).may_be("4.0.0") is may_be


def file_of(version: str, **more: object) -> ClusterSpec:
    kafka = {**SPEC.kafka.model_dump(exclude_none=True), "version": version, **more}
    data = SPEC.model_dump(mode="json", by_alias=True, exclude_none=True)
    return ClusterSpec.model_validate({**data, "kafka": kafka})


def test_a_confluent_number_without_its_ending_is_told_with_both() -> None:
    with pytest.raises(ValueError, match=r"no version 7\.9\.2; .*7\.9\.2-ccs .*or 7\.9\.2-ce"):
        file_of("7.9.2")


@pytest.mark.parametrize(("version", "told"), [("7.8.3-ccs", "is too old"), ("8.0.0-ce", "has no ZooKeeper mode")])
def test_a_cluster_file_judges_confluents_versions_by_kafkas_release(version: str, told: str) -> None:
    with pytest.raises((ValueError, ClusterFileError), match=told):
        file_of(version)


def test_confluents_protocol_version_is_kafkas() -> None:
    assert file_of("7.9.2-ccs").kafka.ibp == "3.9"


@pytest.mark.parametrize("version", ["7.9.2-ccs", "7.9.2-ce"])
@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.HYBRID, Phase.DUAL_WRITE])
def test_every_check_of_the_migration_says_of_confluents_what_it_says_of_kafkas(version: str, phase: Phase) -> None:
    """But KRB-PRE-011, whose question Confluent's number does not answer."""
    seen = observation(phase)
    theirs = replace(
        seen,
        brokers={i: replace(each, software_version=version) for i, each in seen.brokers.items()},
        controllers={i: replace(each, software_version=version) for i, each in seen.controllers.items()},
    )
    stage = phase.value
    ours = {each.code: each.verdict for each in MIGRATION.checks.run(seen, SPEC, stage).results}
    told = {each.code: each.verdict for each in MIGRATION.checks.run(theirs, file_of(version), stage).results}
    assert {code for code in ours if ours[code] is not told[code]} == ({"KRB-PRE-011"} & ours.keys())
    assert told.get("KRB-PRE-011", Verdict.UNKNOWN) is Verdict.UNKNOWN
    assert not_eligible(theirs) == not_eligible(seen)


@pytest.mark.parametrize(("theirs", "ours"), [("7.9.2-ccs", "3.9.2"), ("8.0.1-ce", "4.0.1"), ("8.1.0-ccs", "4.1.0")])
def test_tables_of_a_release_are_found_by_confluents_name(theirs: str, ours: str) -> None:
    assert config_table(theirs) == config_table(ours)
    assert highest_level(theirs) == highest_level(ours) is not None
    assert needed_java(theirs) == needed_java(ours)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.9.2", APACHE),
        ("3.9.0.redhat-1", APACHE),
        ("7.9.2-ccs", CONFLUENT_COMMUNITY),
        ("7.9.2-ce", CONFLUENT_SERVER),
    ],
)
def test_a_distribution_is_told_by_the_versions_ending(version: str, expected: Distribution) -> None:
    assert distribution_of(version) is expected


def test_the_hosts_know_the_same_layouts() -> None:
    host_module("kafka_host")
    assert host_module("installation").LAYOUTS == LAYOUTS


def test_no_other_place_takes_a_version_of_kafka_apart() -> None:
    """A text such as 7.9.2-ccs would be compared as 7, and 8.0.0-ccs would not be what 4.0.0 is."""
    apart = re.compile(r"version\w*\)?\.(split|partition|rpartition|startswith)\(|int\(\w*version\[|[=!]= \"\d+\.\d")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for line in path.read_text().splitlines()
        if apart.search(line)
    ]
    assert found == []
    for wrong in (
        'int(spec.kafka.version.split(".")[0])',
        'version.startswith("4.")',
        "int(version[0])",
        'target == "4.0.0"',
    ):
        assert apart.search(wrong), wrong
