"""Feature levels of a real cluster on Kafka 4, walked up and down."""

from __future__ import annotations

from collections.abc import Iterator

import on_kafka4
import pytest
from labs import Lab

from kraft_runbook.cluster.feature_levels import METADATA_VERSION

FURTHER = (
    "group.version",
    "transaction.version",
    "eligible.leader.replicas.version",
    "share.version",
    "kraft.version",
)
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def on_new() -> Iterator[Lab]:
    with on_kafka4.finalized_lab(on_new=(1, 2, 3, 101, 102, 103)) as lab:
        yield lab


def test_on_4_the_levels_go_up_and_down_and_the_plan_says_of_each_what_the_server_says(on_new: Lab) -> None:
    """Every feature at every level on the way, and each of its targets, with some out of range. 4.x answers for the
    request as a whole.
    """
    now, asked = 21, 0
    for level in (21, 17, 22, 23, 25, 23, 27, 24, 27):
        if level != now:
            on_kafka4.set_level(on_new, level, down=level < now)
        now = level
        seen = on_kafka4.look(on_new)
        for feature, targets in {METADATA_VERSION: range(5, 30), **dict.fromkeys(FURTHER, range(4))}.items():
            answers = on_kafka4.ask_every_level(on_new, seen, feature, targets)
            asked += len(answers)
            for answer in answers.values():
                assert answer.accepted or answer.code, answer
    assert asked > 9 * 24
    for feature, level in (("group.version", 1), ("transaction.version", 2), ("share.version", 1)):
        on_kafka4.set_level(on_new, level, feature=feature)
        seen = on_kafka4.look(on_new)
        on_kafka4.ask_every_level(on_new, seen, feature, range(4))
        on_kafka4.set_level(on_new, 0, feature=feature, down=True)
