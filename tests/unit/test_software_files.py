"""What a node's file may not hold for another version of Kafka: asked of the configuration classes of both versions."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from asked_java import ask_java
from observations import SPEC

from kraft_runbook.cluster.config_tables import (
    DEFAULTS_OF_3_9,
    GONE_FAMILIES,
    LEAST_IN_3_9,
    MEBIBYTE,
    SAME_IN_OTHER_WORDS,
    STRICTER,
    ConfigTable,
    config_table,
)
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ControllerMode, Unread
from kraft_runbook.cluster.properties_text import render_properties
from kraft_runbook.software.file_keys import ACL_AUTHORIZER, file_findings
from kraft_runbook.software.java import needed_java
from kraft_runbook.software.oauth import ALLOWED_URLS, OAUTH_URLS
from lab.installation import JARS, JARS4, OTHERS, fetch_jars, jars_of, kafka4_version
from lab.layout import load

THREE, FOUR = load().kafka.version, kafka4_version()


class Definition(NamedTuple):
    """Of one key; ``refused``: what a list may not be; ``words``: those that it may hold (``PrintConfigBounds``)."""

    of_type: str
    least: int | None
    greatest: int | None
    refused: str
    default: str
    words: frozenset[str]


@cache
def definitions(jars: Path) -> Mapping[tuple[str, str], Definition]:
    """By kind and key."""
    found = {}
    for line in ask_java(Path(__file__).with_name("PrintConfigBounds.java"), jars=jars).splitlines():
        kind, key, of_type, low, high, refused, default, words = line.split()
        least, greatest = (None if each == "-" else int(each) for each in (low, high))
        told = frozenset(words.split(",")) - {"-"}
        found[kind, key] = Definition(of_type, least, greatest, refused, default, told)
    return found


def said_of_files(jars: Path, *files: Path) -> tuple[str, ...]:
    told = ask_java(Path(__file__).with_name("AskKafkaConfig.java"), *files, jars=jars).splitlines()
    return tuple(line.removeprefix("file ").strip() for line in told if line.startswith("file"))


def table(version: str) -> ConfigTable:
    found = config_table(version)
    assert isinstance(found, ConfigTable)
    return found


def require_the_difference(version: str, jars: Path) -> None:
    """The table of that release is what its jars differ in from 3.9's; of keys that came with Kafka 4 and are there
    still, what they say.
    """
    ours = table(version)
    raised = {key: low for key, low in ours.least.items() if key not in not_yet(version).least}
    for kind, gone, least in (("broker", ours.gone, raised), ("topic", ours.topics_gone, ours.topics_least)):
        old, new = (of_kind(kind, each) for each in (JARS, jars))
        assert {key for key in old.keys() - new.keys() if not key.startswith(GONE_FAMILIES)} == gone & old.keys()
        assert not [key for key in new if key in gone or key.startswith(GONE_FAMILIES)]
        both = old.keys() & new.keys()
        lows = {key: (old[key].least, new[key].least) for key in both}
        assert {key: low for key, (was, low) in lows.items() if low is not None and (was is None or was < low)} == least
        assert {key: lows[key][0] for key in least if lows[key][0] is not None} == {
            key: low for key, low in LEAST_IN_3_9.items() if key in least
        }
        highs = [(old[key].greatest, new[key].greatest) for key in both]
        assert not [each for each in highs if each[1] is not None and (each[0] is None or each[1] < each[0])]
        if kind == "broker":
            stricter = {key for key in both if old[key].refused == "-" != new[key].refused}
            if new.get("config.providers", old["log.dirs"]).refused != "-":
                stricter.add("config.providers")  # 3.9 takes it and defines it nowhere
            assert stricter == ours.entries - later(old)
            filled = {key for key in both if new[key].refused == "filled" != old[key].refused}
            assert filled - {"process.roles"} == ours.filled - later(old), "no node is without roles"
            others = {key: new[key].default for key in both if old[key].default != new[key].default}
            matters = {k: v for k, v in others.items() if v != "-" and not k.startswith("group.share.")}
            of_old = {key: each for key, each in ours.defaults.items() if key in DEFAULTS_OF_3_9}
            assert {k: v for k, v in matters.items() if k not in SAME_IN_OTHER_WORDS | gone} == of_old
            assert {key: old[key].default for key in of_old} == {
                key: default for key, default in DEFAULTS_OF_3_9.items() if key in of_old
            }
            came = {key: each for key, each in ours.defaults.items() if key not in DEFAULTS_OF_3_9}
            assert {key: new[key].default for key in came} == came
            assert {key: new[key].greatest for key in ours.greatest} == ours.greatest


def not_yet(version: str) -> ConfigTable:
    return STRICTER.get(KafkaVersion.of(version).minor, ConfigTable())


def require_what_a_later_one_takes(version: str, later: str) -> None:
    """What that release refuses and the later one takes is what its jars are stricter in."""
    for kind in ("broker", "topic"):
        old, new = (of_kind(kind, jars(each)) for each in (version, later))
        both = old.keys() & new.keys()
        lows = {key: (old[key].least, new[key].least) for key in both}
        highs = {key: (old[key].greatest, new[key].greatest) for key in both}
        found = ConfigTable(
            least={key: low for key, (low, then) in lows.items() if low is not None and (then is None or then < low)},
            greatest={
                k: high for k, (high, then) in highs.items() if high is not None and (then is None or then > high)
            },
            words={key: more for key in both if (more := new[key].words - old[key].words)},
        )
        ours, still = (not_yet(each) if kind == "broker" else ConfigTable() for each in (version, later))
        assert found == ConfigTable(
            least={key: low for key, low in ours.least.items() if key not in still.least},
            greatest=ours.greatest,
            words={key: words for key, words in ours.words.items() if key in new and new[key].words},
        )
        assert not [key for key in both if old[key].refused != "-" != new[key].refused == "-"]


def jars(version: str) -> Path:
    return JARS if version == THREE else fetch_jars(version, jars=jars_of(version))


def of_kind(kind: str, jars: Path) -> Mapping[str, Definition]:
    return {key: each for (of, key), each in definitions(jars).items() if of == kind}


def later(old: Mapping[str, Definition]) -> set[str]:
    """Keys of lists that came with Kafka 4."""
    return {"group.share.assignors"} - old.keys()


def test_the_table_is_the_difference_of_both_versions_definitions() -> None:
    require_the_difference(FOUR, JARS4)


@pytest.mark.long
@pytest.mark.parametrize("version", OTHERS)
def test_the_table_of_each_other_kafka_is_that_of_its_jars(version: str) -> None:
    require_the_difference(version, fetch_jars(version, jars=jars_of(version)))


@pytest.mark.long
@pytest.mark.parametrize(("now", "target"), [*pairwise(("4.0.2", FOUR, "4.1.2", "4.2.2", "4.3.1", "4.4.0"))])
def test_what_a_roll_within_kafka_4_takes_away_and_changes_is_what_the_jars_of_both_differ_in(
    now: str, target: str
) -> None:
    before, after = table(now), table(target)
    ours = after.beyond(before)
    for kind, gone, least in (("broker", ours.gone, ours.least), ("topic", ours.topics_gone, ours.topics_least)):
        old, new = (of_kind(kind, fetch_jars(each, jars=jars_of(each))) for each in (now, target))
        assert {key for key in old.keys() - new.keys() if not key.startswith("internal.")} == gone & old.keys()
        both = old.keys() & new.keys()
        lows = {key: (old[key].least, new[key].least) for key in both}
        assert {key: low for key, (was, low) in lows.items() if low is not None and (was is None or was < low)} == least
        if kind == "topic":
            assert not [key for key in both if old[key].default != new[key].default]
        else:
            highs = {key: new[key].greatest for key in both if new[key].greatest != old[key].greatest}
            assert highs == ours.greatest
            assert {key for key in both if old[key].refused == "-" != new[key].refused} == ours.entries - {
                "config.providers"  # 4.1 takes it and defines it nowhere
            }
            filled = {key for key in both if new[key].refused == "filled" != old[key].refused}
            assert filled - {"process.roles"} == ours.filled
            changed = {key: new[key].default for key in both if old[key].default != new[key].default}
            assert changed == {k: v for k, v in after.defaults.items() if before.defaults.get(k) != v}
    assert ours.families == ()


def test_what_3_9_does_not_take_yet_is_what_its_jars_are_stricter_in() -> None:
    require_what_a_later_one_takes(THREE, FOUR)


@pytest.mark.long
@pytest.mark.parametrize("version", [THREE, FOUR, *OTHERS[:-1]])
def test_what_each_release_does_not_take_yet_is_what_its_jars_are_stricter_in(version: str) -> None:
    require_what_a_later_one_takes(version, OTHERS[-1])


ONLY_LATER = {
    "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor, uniform",
    "group.coordinator.append.linger.ms": "-1",
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "group.share.max.size": "9",
    "group.share.record.lock.duration.ms": "60001",
    "share.coordinator.append.linger.ms": "-1",
}


@pytest.mark.parametrize(
    ("version", "refused"),
    [
        (THREE, [key for key in ONLY_LATER if not key.startswith("share.")]),
        ("4.0.2", [key for key in ONLY_LATER if "linger" in key or "protocols" in key]),
        (FOUR, [key for key in ONLY_LATER if "linger" in key]),
        ("4.2.2", []),
        ("4.4.0", []),
    ],
)
def test_what_only_a_later_release_takes_is_named_for_the_ones_before_it(version: str, refused: list[str]) -> None:
    held = {"process.roles": "broker", **ONLY_LATER}
    found = file_findings(held, version, now="4.4.0")
    assert sorted(each.key for each in found) == sorted(refused) and all(each.refused for each in found)


@pytest.mark.parametrize("version", [THREE, FOUR, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)])
def test_kafka_itself_refuses_just_that(version: str, tmp_path: Path) -> None:
    kraft = broker_properties(SPEC, SPEC.broker(1), BrokerMode.KRAFT)
    shown = {key: value for key, value in kraft.items() if not value.startswith("${")}
    shown["group.share.max.record.lock.duration.ms"] = "60001" if version != THREE else "60000"
    paths = [tmp_path / key for key in ONLY_LATER]
    for path in paths:
        path.write_text(render_properties({**shown, path.name: ONLY_LATER[path.name]}, header=path.name))
    said = said_of_files(jars(version), *paths)
    ours = [bool(file_findings({**kraft, path.name: ONLY_LATER[path.name]}, version, now=version)) for path in paths]
    assert [bool(text) for text in said] == ours, said


def test_each_release_has_what_the_ones_before_it_took_away_and_an_unknown_one_has_no_table() -> None:
    assert "segment.bytes" not in table("4.0.2").topics_least and "segment.bytes" in table("4.2.0").topics_least
    assert "num.replica.fetchers" not in table("4.1.1").least and table("4.4.0").least["num.replica.fetchers"] == 1
    assert "group.share.enable" in table("4.3.0").gone and "group.share.enable" not in table("4.2.2").gone
    assert "log.dirs" in table("4.2.0").entries and not table("4.1.1").entries
    assert table("4.0.2").defaults["group.coordinator.append.linger.ms"] == "5"
    assert table("4.3.0").defaults["group.coordinator.append.linger.ms"] == "-1"
    assert table("3.9.2") == STRICTER["3.9"] and table("3.8.1") == ConfigTable()
    lost = "max.decompressed.message.bytes"
    assert [version for version in ("4.2.2", "4.3.0", "4.3.1", "4.4.0") if lost in table(version).topics_gone] == [
        "4.3.0",
        "4.3.1",
    ], "it came with 4.2.2 and with 4.4.0"
    for version in ("4.5.0", "5.0.0", "4.10.0"):
        found = config_table(version)
        assert isinstance(found, Unread) and "4.0 to 4.4 were asked" in found.reason
        assert [each.key for each in file_findings({"log.segment.bytes": "1"}, version)] == ["process.roles"]


@pytest.mark.parametrize("version", ["4.3.2", "4.3", "8.3.0-ccs", "8.3.1-ce"])
def test_whether_a_release_that_was_not_asked_has_a_key_that_its_releases_differ_in_is_unknown(version: str) -> None:
    key = "max.decompressed.message.bytes"
    assert table(version).unsure == {key} and not table(version).has_lost(key)
    assert key not in table(version).topics_gone
    (found,) = file_findings({key: "1", "process.roles": "broker"}, version, now="4.2.2")
    assert (found.key, found.unknown, found.refused) == (key, True, False)
    assert f"whether {version} knows {key} is not known: 4.3.1, the last that was asked, does not" in found.problem
    assert file_findings({key: "1", "process.roles": "broker"}, version, now="4.3.1") == (), "it is read over now too"


@pytest.mark.parametrize("version", ["4.0.3", "4.2.3", "4.3.1", "4.4.0", "4.4.1", "8.2.0-ccs", "8.4.0-ccs"])
def test_a_release_that_was_not_asked_is_else_judged_by_its_minor_version(version: str) -> None:
    assert not table(version).unsure


def test_what_is_said_to_be_refused_is_refused_and_what_is_rendered_is_taken(tmp_path: Path) -> None:
    kraft = broker_properties(SPEC, SPEC.broker(1), BrokerMode.KRAFT)
    files = {
        "broker": kraft,
        "controller": controller_properties(SPEC, SPEC.controller(101), ControllerMode.KRAFT),
        "zookeeper": broker_properties(SPEC, SPEC.broker(1), BrokerMode.ZOOKEEPER),
        "small": {**kraft, "log.segment.bytes": str(MEBIBYTE - 1)},
        "large": {**kraft, "log.segment.bytes": str(MEBIBYTE)},
    }
    for key, smallest in table(FOUR).least.items():
        below = smallest - 1 if smallest != 1 else -1  # without remote storage 0 threads are taken
        files[f"{key} below"] = {**kraft, key: str(below)}
        files[f"{key} least"] = {**kraft, key: str(smallest)}
    paths = []
    for name, properties in files.items():
        paths.append(tmp_path / name)
        here = {
            key: value for key, value in properties.items() if not value.startswith("${")
        }  # no secrets file is here
        paths[-1].write_text(render_properties(here, header=name))
    said = dict(zip(files, said_of_files(JARS4, *paths), strict=True))
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


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("log.dirs", "/a, /b,", "log.dirs=/a, /b, has an empty entry, which 4.2.2 does not take. Take the comma out"),
        ("listener.name.x.ssl.cipher.suites", "A,,B", "has an empty entry"),
        ("group.consumer.assignors", " ", "is empty, and 4.2.2 takes no empty list. Leave it out"),
    ],
)
def test_a_list_that_4_2_does_not_take_is_named(key: str, value: str, words: str) -> None:
    """4.2.2, 4.3.1 and 4.4.0 said so of these files; 4.1.1 takes them."""
    (found,) = file_findings({"process.roles": "broker", key: value}, "4.2.2")
    assert words in str(found) and found.refused
    assert file_findings({"process.roles": "broker", "ssl.cipher.suites": "", "log.dirs": "/a,/b"}, "4.2.2") == ()
    assert file_findings({"process.roles": "broker", key: value}, "4.1.1") == ()


@pytest.mark.long
@pytest.mark.parametrize("version", OTHERS)
def test_a_list_with_an_entry_twice_is_taken(version: str, tmp_path: Path) -> None:
    """KAFKA-19875: it is not what KRB-UPG-006 names."""
    kraft = {
        key: value
        for key, value in broker_properties(SPEC, SPEC.broker(1), BrokerMode.KRAFT).items()
        if not value.startswith("${")
    }
    reporter = "org.apache.kafka.common.metrics.JmxReporter"
    twice = {"log.dirs": "/a,/a", "log.cleanup.policy": "compact,compact", "metric.reporters": f"{reporter},{reporter}"}
    paths = []
    for key, value in twice.items():
        paths.append(tmp_path / key)
        paths[-1].write_text(render_properties({**kraft, key: value}, header=key))
        assert file_findings({**kraft, key: value}, version) == ()
    assert said_of_files(fetch_jars(version, jars=jars_of(version)), *paths) == ("",) * 3


def test_a_number_that_4_3_takes_no_longer_is_named() -> None:
    key = "share.coordinator.snapshot.update.records.per.snapshot"
    (found,) = file_findings({"process.roles": "broker", key: "501"}, "4.3.1")
    assert found.refused and found.problem == f"{key}=501 is above the greatest that 4.3.1 takes (500)"
    assert file_findings({"process.roles": "broker", key: "500"}, "4.3.1") == ()
    assert file_findings({"process.roles": "broker", key: "501"}, "4.2.2") == ()


def test_a_key_that_the_version_that_runs_reads_over_too_is_not_told() -> None:
    held = {"process.roles": "broker", "zookeeper.connect": "x", "group.share.enable": "true", "log.segment.bytes": "1"}
    told = {now: [each.key for each in file_findings(held, "4.3.1", now=now)] for now in ("", THREE, "4.2.2", "4.3.0")}
    refused = "log.segment.bytes"
    everything = [refused, "group.share.enable", "zookeeper.connect"]
    assert told == {"": everything, THREE: everything, "4.2.2": everything[:2], "4.3.0": [refused]}


def test_kafka_4_asks_no_url_of_oauthbearer_that_is_not_allowed() -> None:
    """KRB-UPG-026: 3.9 asks every one."""
    program = Path(__file__).with_name("AskOauthUrl.java")
    told = {jars: ask_java(program, "https://id/keys", *OAUTH_URLS, jars=jars).splitlines() for jars in (JARS, JARS4)}
    assert told[JARS] == ["takes"] * 2
    assert all(ALLOWED_URLS in each and "https://id/keys" in each for each in told[JARS4]) and len(told[JARS4]) == 2


def test_the_older_software_takes_what_4_no_longer_does() -> None:
    held = {"zookeeper.connect": "x", "log.segment.bytes": "14", "authorizer.class.name": ACL_AUTHORIZER}
    assert file_findings(held, THREE) == ()


def test_each_software_needs_the_java_that_its_own_class_files_are_for() -> None:
    """Class file major version 52 is Java 8, 61 is 17. The broker's class alone counts: clients of 4.x run on 11."""
    for jars, version in ((JARS, THREE), (JARS4, FOUR)):
        listed = ["unzip", "-p", str(jars / f"kafka_2.13-{version}.jar"), "kafka/Kafka.class"]
        head = subprocess.run(listed, capture_output=True, check=True).stdout[:8]
        assert int.from_bytes(head[6:8], "big") - 44 == needed_java(version)
