"""Levels of metadata.version: those of Kafka's own enum."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_java import ask_java

from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.metadata_version import LEVELS, NEWEST_LEVEL, highest_level, required_level
from lab.installation import JARS
from lab.layout import load


def test_the_levels_of_every_release_up_to_the_labs_kafka_are_those_of_its_own_enum() -> None:
    source = Path(__file__).with_name("PrintMetadataVersions.java")
    theirs = {name: int(level) for name, level in map(str.split, ask_java(source, jars=JARS).splitlines())}
    assert {name: level for name, level in LEVELS.items() if level <= max(theirs.values())} == theirs
    assert required_level(".".join(load().kafka.version.split(".")[:2])) == max(theirs.values())


def test_levels_rise_by_one_with_each_version() -> None:
    assert list(LEVELS.values()) == list(range(1, len(LEVELS) + 1))
    assert sorted(LEVELS, key=lambda name: [int(part) for part in name.replace("-IV", ".").split(".")]) == list(LEVELS)


def test_a_release_stands_for_its_latest_level_and_what_came_before_kraft_for_none() -> None:
    assert [required_level(ibp) for ibp in ("3.9", "3.7", "3.7-IV2", "4.0", "2.8")] == [21, 19, 17, 25, 0]


def test_a_version_of_kafka_supports_the_levels_of_its_release_and_one_that_is_not_known_none() -> None:
    versions = ("3.9.2", "4.0.1", "4.1.1", "4.2.2", "4.3.1", "4.4.0")
    assert [highest_level(each) for each in versions] == [21, 25, 27, 29, 30, NEWEST_LEVEL]
    assert highest_level("4.5.0") is None


def test_a_version_that_no_kafka_knows_is_refused() -> None:
    with pytest.raises(RunbookError, match=r"inter\.broker\.protocol\.version 9\.9 is not one that Kafka knows"):
        required_level("9.9")
