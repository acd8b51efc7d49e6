"""How a topic whose name Kafka refuses is named to kafka-topics, as KRB-PRE-059 says."""

from __future__ import annotations

import re

import pytest

from kraft_runbook.migration.checks.catalogue import CHECKS

OTHERS = frozenset({"badtopic", "bad-topic", "bad_topic", "bad.topic", "ab", "a", "v1.x"})
FIX = CHECKS["KRB-PRE-059"].fix
REFUSED, DOT = r"[^\w.-]", "[.]"


def matched(given: str, topics: frozenset[str]) -> set[str]:
    """What ``--topic`` means (``TopicFilter.IncludeList`` of 3.9)."""
    pattern = given.strip().replace(",", "|").replace(" ", "")
    pattern = re.sub("[\"']+$", "", re.sub("^[\"']+", "", pattern))
    return {each for each in topics if re.fullmatch(pattern, each, re.ASCII)}


def as_told(name: str) -> str:
    return "".join(REFUSED if re.match(REFUSED, each, re.ASCII) else DOT if each == "." else each for each in name)


@pytest.mark.parametrize(
    "name", ["bad topic", "bad,topic", "v1.x y", "..", ".", "'bad topic'", "bäd", "a\tb", "a+b", "a/b"]
)
def test_the_pattern_matches_the_refused_name_and_no_other(name: str) -> None:
    assert f"'{REFUSED}'" in FIX and f"'{DOT}'" in FIX
    assert matched(as_told(name), OTHERS | {name}) == {name}


def test_the_plain_name_would_delete_another_topic() -> None:
    assert matched("bad topic", OTHERS | {"bad topic"}) == {"badtopic"}
    assert matched("..", OTHERS | {".."}) == {"..", "ab"}
    assert "'bad topic' means the topic 'badtopic'" in FIX
