"""The level tables, read out of two versions' jars without Java: what the jars' own classes say."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from asked_java import ask_java
from feature_looks import host_module, kafka3, kafka4, software_in

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.metadata.log.record_schemas import not_read
from kraft_runbook.metadata.metadata_version import LEVELS
from lab.installation import JARS, JARS4, OTHERS, fetch_jars, jars_of, kafka4_version
from lab.layout import load

ASKED = Path(__file__).with_name("PrintFeatureLevels.java")
errors, _, reader = (host_module(each) for each in ("kafka_host", "installation", "feature_levels"))


THREE, FOUR = load().kafka.version, kafka4_version()


@pytest.mark.parametrize("version", [THREE, FOUR, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)])
def test_names_numbers_stars_and_ranges_are_those_of_the_jars_own_classes(version: str) -> None:
    jars = JARS if version == THREE else fetch_jars(version, jars=jars_of(version))
    lines = [line.split() for line in ask_java(ASKED, jars=jars).splitlines()]
    software = software_in(jars)
    assert software.version == version
    assert not isinstance(software.records, Unread) and len(software.records) >= 25
    of_broker = 3 if release_of(version) < (4, 3) else 4
    assert not_read(software.records) == () and software.records["RegisterBrokerRecord"] == of_broker
    table = software.features[METADATA_VERSION]
    levels = [line[1:] for line in lines if line[0] == "level"]
    # Nothing comes before the first one, so that Java can't be asked whether it changed anything.
    assert [[str(each.number), each.name] for each in table.levels] == [each[:2] for each in levels]
    assert [each.changes_metadata for each in table.levels][1:] == [each[2] == "true" for each in levels][1:]
    theirs = {name: (int(low), int(high)) for _, name, low, high in (line for line in lines if line[0] == "range")}
    ours = {name: tuple(each.supported) for name, each in software.features.items()}
    assert {name: each for name, each in ours.items() if name in theirs} == theirs
    assert all(each == (0, 0) for name, each in ours.items() if name not in theirs)


def test_the_dependency_that_there_is_is_read() -> None:
    needs = {
        (name, level.number): dict(level.needs)
        for name, table in kafka4().features.items()
        for level in table.levels
        if level.needs
    }
    assert needs == {("eligible.leader.replicas.version", 1): {METADATA_VERSION: 23}}


def test_stars_differ_between_versions_so_no_table_is_another_ones() -> None:
    def starred(software: object, level: int) -> bool:
        found = software.features[METADATA_VERSION].level(level)  # type: ignore[attr-defined]
        return bool(found and found.changes_metadata)

    assert [starred(kafka3(), 22), starred(kafka4(), 22)] == [True, False]
    assert [starred(kafka3(), 23), starred(kafka4(), 23)] == [False, True]


def test_the_tools_own_list_of_names_agrees() -> None:
    for software in (kafka3(), kafka4()):
        named = {each.name: each.number for each in software.features[METADATA_VERSION].levels}
        assert {name: number for name, number in named.items() if name in LEVELS} == {
            name: number for name, number in LEVELS.items() if name in named
        }


def test_a_home_without_the_jar_of_the_records_says_so_and_its_levels_are_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    source = JARS4 / f"kafka-server-common-{kafka4_version()}.jar"
    (tmp_path / "libs" / source.name).symlink_to(source)
    found = reader.levels_of(str(tmp_path))
    assert found["features"]["metadata.version"]["highest"] == 27
    assert f"kafka-metadata-{kafka4_version()}.jar could not be read (FileNotFoundError" in found["records"]["unread"]


def jar(directory: Path, **classes: bytes) -> str:
    (directory / "libs").mkdir()
    with zipfile.ZipFile(directory / "libs" / "kafka-server-common-9.9.9.jar", "w") as out:
        for name, data in classes.items():
            out.writestr(f"org/apache/kafka/server/common/{name}.class", data)
    return str(directory)


def original(name: str) -> bytes:
    with zipfile.ZipFile(JARS / f"kafka-server-common-{load().kafka.version}.jar") as source:
        return source.read(f"org/apache/kafka/server/common/{name}.class")


@pytest.mark.parametrize(
    "classes",
    [
        {},
        {"MetadataVersion": b"no class file"},
        {"MetadataVersion": original("MetadataVersion")[:5000]},
        {"GroupVersion": original("GroupVersion")},
    ],
)
def test_a_jar_whose_levels_can_t_be_read_is_an_error_and_no_empty_table(
    classes: dict[str, bytes], tmp_path: Path
) -> None:
    with pytest.raises(errors.HostError, match="could not be read"):
        reader.levels_of(jar(tmp_path, **classes))


def test_a_home_without_kafka_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.HostError, match=f"there is no Kafka in {tmp_path}"):
        reader.levels_of(str(tmp_path))
    (tmp_path / "libs").mkdir()
    with pytest.raises(errors.HostError, match="no kafka-server-common jar; one is needed"):
        reader.levels_of(str(tmp_path))
