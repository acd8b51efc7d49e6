"""The migrating consumer's assignors equal those of the 1.1.1 client: its own classes are asked, in random cases."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from asked_java import ask_java

from kraft_runbook_consumer.assignors import RANGE, ROUND_ROBIN, assign, colliding, java_hash, subdivide
from kraft_runbook_consumer.znodes import (
    BLACK_LIST,
    STATIC,
    WHITE_LIST,
    Registration,
    by_topic,
    decode_offset,
    decode_partitions,
    decode_registration,
)
from lab import ROOT

JARS = ROOT / "build" / "jars-old"
PATTERNS = ("t[01]", r"t\d+", "t1,t2", ' "t.*" ', r"t[.]x", "nothing", ".*")


def random_topics(draw: random.Random) -> dict[str, tuple[int, ...]]:
    topics = {f"t{n}": tuple(range(draw.randrange(0, 14))) for n in range(draw.randrange(1, 6))}
    if draw.random() < 0.2:
        topics["t.x"] = (0, 1, 5)
    if draw.random() < 0.2:
        topics["__consumer_offsets"] = (0, 1, 2)
    return topics


def random_member(draw: random.Random, topics: Mapping[str, object]) -> Registration:
    threads = draw.choice((1, 1, 2, 3, 12))
    if draw.random() < 0.3:
        return Registration({draw.choice(PATTERNS): threads}, draw.choice((WHITE_LIST, BLACK_LIST)))
    asked = draw.sample([*topics, "absent"], draw.randrange(1, len(topics) + 2))
    return Registration({topic: draw.choice((1, threads)) for topic in asked}, STATIC)


def random_case(draw: random.Random) -> tuple[str, dict[str, Registration], dict[str, tuple[int, ...]]]:
    topics = random_topics(draw)
    members = {
        f"g_host{draw.choice(('', 'A', '-b', '_'))}-{draw.randrange(10**12, 10**13)}-{draw.getrandbits(32):08x}": (
            random_member(draw, topics)
        )
        for _ in range(draw.randrange(1, 6))
    }
    return draw.choice((RANGE, ROUND_ROBIN)), members, topics


def asked(strategy: str, members: Mapping[str, Registration], topics: Mapping[str, tuple[int, ...]]) -> str:
    znodes = {f"/consumers/g/ids/{m}": registration.encode(1).decode() for m, registration in members.items()}
    for topic, numbers in topics.items():
        znodes[f"/brokers/topics/{topic}"] = json.dumps({"version": 1, "partitions": {str(n): [1] for n in numbers}})
    return json.dumps({"strategy": strategy, "members": [*members], "znodes": znodes})


def test_a_thousand_random_groups_are_assigned_as_by_the_jar() -> None:
    draw = random.Random(111)
    cases = []
    while len(cases) < 1000:
        case = random_case(draw)
        every = [(topic, number) for topic, numbers in case[2].items() for number in numbers]
        if case[0] == RANGE or colliding(every) is None:
            cases.append(case)
    given = "\n".join(asked(*case) for case in cases)
    answers = ask_java(Path(__file__).with_name("AskOldAssignors.java"), jars=JARS, given=given).splitlines()
    assert len(answers) == len(cases)
    for case, answer in zip(cases, answers, strict=True):
        ours = sorted((t, n, thread.name) for (t, n), thread in assign(*case).items())
        assert ours == sorted(map(tuple, json.loads(answer))), case
    assert sum(len(json.loads(answer)) for answer in answers) > 10_000


def test_partitions_are_dealt_to_threads_as_by_the_jar() -> None:
    draw = random.Random(112)
    cases = []
    for _ in range(300):
        topics = {f"t{n}": draw.choice((1, 2, 3, 12)) for n in range(draw.randrange(1, 5))}
        held = {(topic, number) for topic in topics for number in draw.sample(range(20), draw.randrange(0, 12))}
        cases.append((topics, held))
    questions = []
    for topics, held in cases:
        threads = {f"m-{n}": [t for t, many in topics.items() if n < many] for n in range(max(topics.values()))}
        counts = {topic: len(numbers) for topic, numbers in by_topic(held).items()}
        questions.append(json.dumps({"threads": threads, "counts": counts}))
    program = Path(__file__).with_name("AskOldAssignors.java")
    answers = ask_java(program, jars=JARS, given="\n".join(questions)).splitlines()
    for (topics, held), answer in zip(cases, answers, strict=True):
        numbers = by_topic(held)  # the jar counts from zero (KIP-125: relative partitions)
        theirs = sorted((topic, numbers[topic][relative], thread) for topic, relative, thread in json.loads(answer))
        assert theirs == sorted((t, n, thread.name) for (t, n), thread in subdivide("m", topics, held).items())
        assert len(theirs) == len(held)


def test_hashes_that_collide_are_found() -> None:
    assert java_hash("Aa-0") == java_hash("BB-0") == 2031075
    assert colliding([("BB", 0), ("Aa", 1), ("Aa", 0)]) == (("Aa", 0), ("BB", 0))
    assert colliding([("Aa", 0), ("Aa", 1)]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"topic",
        b'{"subscription":{"t":0}}',
        b'{"subscription":{"t":1000000000}}',
        b'{"subscription":{"t":true}}',
        b'{"subscription":{"(":1},"pattern":"white_list"}',
        b'{"subscription":{"a":1,"b":1},"pattern":"white_list"}',
        b'{"subscription":{"a":1},"pattern":"other"}',
        b"\xff",
    ],
)
def test_a_registration_that_can_not_be_read_asks_for_nothing(data: bytes) -> None:
    assert decode_registration(data) == Registration()


def test_registrations_come_back_as_they_were_written() -> None:
    for each in (Registration({"t": 2}), Registration({r"t\..*": 1}, WHITE_LIST)):
        assert decode_registration(each.encode(5)) == each
    assert Registration({"t": 2}).encode(5) == (
        b'{"version": 1, "subscription": {"t": 2}, "pattern": "static", "timestamp": "5"}'
    )


def test_offsets_and_partitions_are_read() -> None:
    assert [decode_offset(d) for d in (b"12", b"", None, b"-1", b"x", "\u0661".encode())] == [12, *[None] * 5]
    assert decode_partitions(b'{"partitions":{"10":[1],"2":[]}}') == (2, 10)
    with pytest.raises(ValueError, match="no partitions"):
        decode_partitions(b"[]")
