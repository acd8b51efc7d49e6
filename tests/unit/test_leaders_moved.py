"""Which of a stopped broker's partitions have another leader, as the others answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from observations import SPEC

from kraft_runbook.io.kafka.leaders_moved import LeadersMoved

Answer = Mapping[str, int] | None


class Client:
    """Answers Metadata with these leaders, one after the other, the last one again and again. As librdkafka's clients,
    it has the length of its queue.
    """

    def __init__(self, *answers: Answer) -> None:
        self._answers: Iterator[Answer] = iter(answers)
        self._last: Answer = None

    def __len__(self) -> int:
        return 0

    def list_topics(self, timeout: float) -> Any:
        self._last = next(self._answers, self._last)
        if self._last is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        partitions = {int(n): SimpleNamespace(leader=leader) for n, leader in self._last.items()}
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions=partitions)})


def watched(*answers: Answer) -> LeadersMoved:
    asked = LeadersMoved(SPEC, 1, secrets=lambda _: "", client=lambda *_, **__: Client(*answers), rest=0.001)
    with asked as leaders:
        ends = time.monotonic() + 5
        while leaders.led and not (leaders.looks and not leaders.looks[-1][1]) and time.monotonic() < ends:
            time.sleep(0.005)
    return leaders


def test_each_look_says_how_many_have_no_other_leader_until_none_is_left() -> None:
    leaders = watched(
        {"0": 1, "1": 1, "2": 2},
        {"0": 1, "1": 1, "2": 2},
        None,
        {"0": 2, "1": -1, "2": 2},
        {"0": 2, "2": 1},
    )
    assert leaders.led == 2
    assert [left for _, left in leaders.looks] == [2, 1, 0], "partition 1 was deleted, and 2 was another's at first"


def test_where_nobody_answers_at_first_nothing_is_said() -> None:
    leaders = watched(None)
    assert (leaders.led, leaders.looks) == (None, [])
