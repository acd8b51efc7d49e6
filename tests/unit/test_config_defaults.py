"""Types and defaults of brokers' keys: those of Kafka's definitions. One spelling of a value: as Kafka parses it."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from asked_java import ask_java

from kraft_runbook.cluster.config_defaults import (
    BOOLEANS,
    FRACTIONS,
    LISTS,
    NUMBERS,
    TEXTS,
    as_parsed,
    is_default,
)
from kraft_runbook.cluster.config_tables import DEFAULTS_OF_3_9, SAME_IN_OTHER_WORDS
from lab.installation import JARS, JARS4, OTHERS, fetch_jars, jars_of

TABLES = {
    "LIST": LISTS,
    "BOOLEAN": BOOLEANS,
    "INT": NUMBERS,
    "LONG": NUMBERS,
    "SHORT": NUMBERS,
    "DOUBLE": FRACTIONS,
    "STRING": TEXTS,
    "CLASS": TEXTS,
}
OF_JAVA = {"ssl.enabled.protocols", "ssl.keymanager.algorithm", "ssl.protocol", "ssl.trustmanager.algorithm"}
OF_OTHER_KEYS = {
    "broker.id",
    "inter.broker.protocol.version",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "node.id",
    "process.roles",
    "security.inter.broker.protocol",
}
OF_KAFKA_4_1 = {"group.share.partition.max.record.locks"}


@cache
def told(jars: Path) -> dict[str, tuple[str, str | None]]:
    """By key: its type and its default."""
    found = {}
    for line in ask_java(Path(__file__).with_name("PrintConfigDefaults.java"), jars=jars).splitlines():
        named, is_set, default = line.partition(" =")
        key, kind = named.split()
        found[key] = (kind, default if is_set else None)
    return found


def test_every_key_has_the_type_and_the_default_that_kafka_defines() -> None:
    apart = {*OF_JAVA, *OF_OTHER_KEYS, *OF_KAFKA_4_1, *DEFAULTS_OF_3_9, *SAME_IN_OTHER_WORDS}
    expected: dict[str, dict[str, str | None]] = {kind: {} for kind in TABLES}
    for key, (kind, default) in told(JARS).items():
        if kind in TABLES:
            expected[kind][key] = None if key in apart or key.startswith("zookeeper.ssl.") else default
    for kind, table in TABLES.items():
        of_kind = {key: table.get(key) for key in expected[kind]}
        assert of_kind == expected[kind]
        if table is not TEXTS:
            assert expected[kind].keys() <= table.keys()
    assert set().union(*TABLES.values()) <= set().union(*expected.values())


@pytest.mark.parametrize("version", ["", *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)])
def test_a_default_is_the_same_in_every_release_that_has_the_key(version: str) -> None:
    theirs = told(fetch_jars(version, jars=jars_of(version)) if version else JARS4)
    ours = {key: default for table in TABLES.values() for key, default in table.items() if default is not None}
    assert {key: theirs[key][1] for key in ours.keys() & theirs.keys()} == {
        key: ours[key] for key in ours.keys() & theirs.keys()
    }


ODD = ["", " ", "a, b", "a,b", "a ,\tb", "a,b,", ",", "a,,b", "A,b", "b,a", "a b", "a\u00a0,b", "a\u00a0"]
ODD += [
    "true",
    "TRUE",
    " True ",
    "tru",
    "false",
    "1",
    "+1",
    "01",
    "-1",
    "1.0",
    "1.",
    "1e0",
    "1f",
    "1_0",
    "10",
    "0",
    "-0",
]
ODD += ["-0.0", "0x1p0", "NaN", "2147483648", "9223372036854775808", "\u0661", "inf", "Infinity"]


@pytest.mark.parametrize("kind", ["LIST", "BOOLEAN", "INT", "LONG", "SHORT", "DOUBLE", "STRING"])
def test_texts_of_one_spelling_are_one_value_to_kafka(kind: str, tmp_path: Path) -> None:
    key = next(key for key, (its, default) in told(JARS).items() if its == kind and key in TABLES[kind])
    given = tmp_path / "given.properties"
    escaped = ["".join(f"\\u{ord(each):04x}" for each in text) for text in ODD]
    given.write_text("".join(f"{kind}.{at}={text}\n" for at, text in enumerate(escaped)))
    lines = ask_java(Path(__file__).with_name("AskParsedConfigs.java"), given, jars=JARS).splitlines()
    parsed = dict(line.partition("=")[::2] for line in lines)
    alike = [
        (one, other)
        for one, other in combinations(range(len(ODD)), 2)
        if as_parsed(key, ODD[one]) == as_parsed(key, ODD[other])
    ]
    assert alike
    assert [
        (ODD[one], ODD[other]) for one, other in alike if parsed[f"{kind}.{one}"] != parsed[f"{kind}.{other}"]
    ] == []


def test_a_key_without_a_default_has_none_whatever_it_is_set_to() -> None:
    assert not is_default("log.retention.ms", "604800000")
    assert not is_default("no.key.of.kafka", "")
