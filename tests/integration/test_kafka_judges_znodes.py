"""What Kafka's own classes throw on is what is told of a znode: thousands of them, in order and mutilated, judged by
both.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from pathlib import Path

from asked_java import ask_java
from bad_znodes import BAD, GOOD, config, data_of

from kraft_runbook.cluster.observation import Consequence
from kraft_runbook.metadata.znodes.topic_config_values import _JUDGES
from kraft_runbook.metadata.znodes.znode_faults import faults_of
from kraft_runbook.rehearsal.replacing import Replacements, held
from lab.installation import fetch_jars

JUDGE = Path(__file__).with_name("ZnodeJudge.java")
TOLD = {Consequence.COPY_FAILS: "copy", Consequence.BROKER_STAYS_DOWN: "start"}
NUMBERS = [
    "0",
    "1",
    "-1",
    "+1",
    "00",
    "13",
    "14",
    "22",
    "23",
    "-131072",
    "-131073",
    "17",
    "18",
    "9",
    "10",
    "2147483647",
    "2147483648",
    "-2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "1.0",
    "1.",
    ".5",
    ".",
    "1e3",
    "1e",
    "1e400",
    "-0",
    "1d",
    "1f",
    "1L",
    "0x1p3",
    "0x1",
    "0x.8p0",
    "0xp0",
    "NaN",
    "nan",
    "-NaN",
    "Infinity",
    "inf",
    "Infinity1",
    "1_000",
    "true",
    "True",
    "false",
    "yes",
    "null",
    "compact",
    "delete",
    "compact,delete",
    ",compact",
    "compact,",
    "lz4",
    "ZSTD",
    "CreateTime",
    "createtime",
    "3.9",
    "3.9.2",
    "3.9-IV0",
    "4.0",
    "4.0-IV0",
    "4.0-IV2",
    "0.8",
    "0.8.2",
    "0.8.2.1",
    "0.10.2-IV0",
    "0.10.2-IV1",
    "2.1-IV2",
    "3.7-IV4",
    "3.7-IV5",
    "3",
    "3.",
    "*",
    "*,",
    ",*",
    "0:1",
    "0:1,",
    ",0:1",
    "0:1,,1:2",
    "0:1:2",
    "99999999999:1",
    "1:99999999999",
    "a:1",
]
VALUES = (*NUMBERS, "", " ", " 1", "1 ", "\t1\n", "\u00a01", "0:1, 1:2", " 0:1 ", "0:1 ,1:2", "\u0661")
FRAGMENTS = (
    b"null",
    b"true",
    b"1.5",
    b"1e2",
    b'"1"',
    b"NaN",
    b"2147483648",
    b"-",
    b"[]",
    b"{}",
    b"[1]",
    b'"',
    b",",
    b":",
    b"{",
    b"}",
    b"%",
    b"%2",
    b"\xff",
    b"=",
    b" ",
)
NAMES = ("a%", "a%2", "a%2F", "a%zz", "%+1", "%-1", "%-0", "%ff", "+", "a b", "%%41", "%4%31")


def znodes() -> Iterator[tuple[str, bytes]]:
    for path, content in (*((path, content) for path, content, _ in BAD), *GOOD):
        data = data_of(content)
        draw = random.Random(f"{path} {data!r}")  # a case more changes no other
        yield path, data
        for _ in range(25):
            at = draw.randrange(len(data) + 1)
            yield path, data[:at] + draw.choice(FRAGMENTS) + data[at + draw.randrange(4) :]
    for value in VALUES:
        for name in _JUDGES:
            yield "/config/topics/t", data_of(config(**{name: value}))
        for name in ("consumer_byte_rate", "request_percentage", "connection_creation_rate", "x"):
            for path in ("/config/clients/c", "/config/users/u", "/config/ips/192.0.2.1", "/config/users/u/clients/c"):
                yield path, data_of(config(**{name: value}))
        yield f"/config/brokers/{value}", data_of(config()) if value.strip() else b""
        for field in ("salt", "stored_key", "iterations"):
            yield (
                "/config/users/u",
                data_of(
                    config(
                        **{
                            "SCRAM-SHA-256": ",".join(
                                f"{each}={value if each == field else '1' * 4}"
                                for each in ("salt", "stored_key", "server_key", "iterations")
                            )
                        }
                    )
                ),
            )
    for name in NAMES:
        yield f"/config/users/{name}", b""
        yield f"/config/users/u/clients/{name}", b""
        yield f"/config/clients/{name}", b""


def judged(cases: list[tuple[str, bytes]]) -> list[set[str]]:
    lines = "".join(
        f"{base64.b64encode(path.encode()).decode()} {base64.b64encode(data).decode()}\n" for path, data in cases
    )
    told = ask_java(JUDGE, jars=fetch_jars("3.9.2"), given=lines)
    return [set(filter(None, line.split(","))) for line in told.splitlines()]


def test_kafka_s_own_classes_throw_where_a_fault_is_told_and_nowhere_else() -> None:
    """What Jackson makes of a name that is not UTF-8 is not followed: it may take it for another. So of what is told to
    be lost without a word not all is, and not all ends the copy that is told to.
    """
    cases = list(dict.fromkeys(each for each in znodes() if lies_where_kafka_looks(each[0])))
    assert len(cases) > 5000
    differing = {}
    for (path, data), kafka in zip(cases, judged(cases), strict=True):
        found = {each.consequence for each in faults_of(path, data)}
        told = {TOLD[each] for each in found if each in TOLD}
        lost = Consequence.KRAFT_DIFFERS in found and told < kafka
        if told != kafka and not lost and not (b"\xff" in data and kafka < told):
            differing[path, data] = (kafka, told)
    assert differing == {}


def test_kafka_throws_on_a_copy_s_znodes_where_it_throws_on_the_original_and_nowhere_else() -> None:
    """What a rehearsal's copy holds in their place: it dies of what the migration would die of."""
    given = Replacements("bmV3", encoder_secret="the throwaway's", source_encoder_secret="the source's")
    cases = list(dict.fromkeys(each for each in znodes() if lies_where_kafka_looks(each[0])))
    copies = [(path, held(path, data, given).data) for path, data in cases]
    assert sum(copy != case for copy, case in zip(copies, cases, strict=True)) > 500
    told = zip(cases, copies, judged(cases), judged(copies), strict=True)
    assert {case: (copy, kafka, of_copy) for case, copy, kafka, of_copy in told if kafka != of_copy} == {}


def lies_where_kafka_looks(path: str) -> bool:
    return not path.startswith("/kafka-acl") or (path.count("/") == 3 and path.startswith("/kafka-acl/Topic/"))
