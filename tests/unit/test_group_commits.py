"""Committing for a group without members: what Kafka answers, and what a person is told of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connected import nodes_that
from kafka.protocol.metadata import FindCoordinatorRequest
from observations import SPEC

from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.group_commits import commit_offsets

T0, T1 = ("t", 0), ("t", 1)


class Brokers:
    """``coordinator``: its id, or an error code below 0, one for each question, the last for all that follow.
    ``codes``: of each partition, likewise. ``taken``: what was committed, and where.
    """

    def __init__(self) -> None:
        self.coordinator: list[int] = [2]
        self.codes: dict[tuple[str, int], list[int]] = {}
        self.down: set[str] = set()
        self.taken: list[tuple[str, tuple[str, int], int]] = []
        self.kept_for: tuple[int, int] | None = None

    def commit(self, offsets: dict[tuple[str, int], int], **how: Any) -> None:
        connect = nodes_that(self._answer)
        commit_offsets(SPEC, "g", offsets, secrets=lambda _: "", apart=0.0, connect=connect, **how)

    def _answer(self, who: str, request: Any) -> Any:
        if who in self.down:
            raise Unreachable(f"{who} did not answer", way_out="start it")
        if isinstance(request, FindCoordinatorRequest):
            found = _next(self.coordinator)
            return SimpleNamespace(error_code=max(0, -found), node_id=found)
        assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
        self.kept_for = request.API_VERSION, request.retention_time_ms
        topics = []
        for topic in request.topics:
            answers = []
            for each in topic.partitions:
                code = _next(self.codes.get((topic.name, each.partition_index), [0]))
                if not code:
                    self.taken.append((who, (topic.name, each.partition_index), each.committed_offset))
                answers.append(SimpleNamespace(partition_index=each.partition_index, error_code=code))
            topics.append(SimpleNamespace(name=topic.name, partitions=answers))
        return SimpleNamespace(topics=topics)


def _next(answers: list[int]) -> int:
    return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def test_the_coordinator_takes_them(brokers: Brokers) -> None:
    brokers.down = {"broker 1"}
    brokers.commit({T0: 5, T1: 0})
    assert brokers.taken == [("broker 2", T0, 5), ("broker 2", T1, 0)]
    assert brokers.kept_for == (8, -1)


def test_a_time_of_their_own_is_asked_for_where_kafka_still_takes_one(brokers: Brokers) -> None:
    """OffsetCommit has none from version 5 on."""
    brokers.commit({T0: 5}, kept=True)
    assert brokers.taken == [("broker 2", T0, 5)]
    assert brokers.kept_for == (4, 10 * 365 * 86_400_000)


def test_nothing_is_asked_for_nothing(brokers: Brokers) -> None:
    brokers.down = {f"broker {each.id}" for each in SPEC.brokers}
    brokers.commit({})


def test_a_coordinator_that_moves_is_looked_for_again_and_gets_what_is_left(brokers: Brokers) -> None:
    brokers.coordinator = [-15, 2, 3]
    brokers.codes = {T1: [16, 14, 0]}
    brokers.commit({T0: 5, T1: 6})
    assert brokers.taken == [("broker 2", T0, 5), ("broker 3", T1, 6)]


def test_a_coordinator_that_has_not_heard_of_a_topic_yet_is_asked_again(brokers: Brokers) -> None:
    brokers.codes = {T0: [3, 3, 0]}
    brokers.commit({T0: 5, T1: 6})
    assert sorted(brokers.taken) == [("broker 2", T0, 5), ("broker 2", T1, 6)]


def test_many_go_in_several_requests(brokers: Brokers) -> None:
    brokers.commit({("t", n): n for n in range(5)}, at_once=2)
    assert [partition[1] for _, partition, _ in brokers.taken] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("codes", "kind", "says"),
    [
        ({T0: [25]}, Refused, "has members in Kafka.*UNKNOWN_MEMBER_ID"),
        ({T0: [29]}, Refused, "may not read the topic"),
        ({T0: [30]}, Refused, "may not commit for the group"),
        ({T0: [3]}, StepFailed, "did not take 1 offsets of group g: t-0 .there is no such partition"),
        ({T0: [16]}, StepFailed, "coordinator of group g was not ready in 0 s: error 16 for t-0"),
    ],
)
def test_what_is_not_taken_is_said(brokers: Brokers, codes: Any, kind: type[Exception], says: str) -> None:
    brokers.codes = codes
    with pytest.raises(kind, match=says):
        brokers.commit({T0: 5, T1: 6}, timeout=0)


@pytest.mark.parametrize(
    ("coordinator", "kind", "says"),
    [
        (-30, Refused, "may not ask for the coordinator of group g"),
        (99, Refused, "broker 99, which the cluster file does not name"),
    ],
)
def test_a_coordinator_that_can_not_be_asked(
    brokers: Brokers, coordinator: int, kind: type[Exception], says: str
) -> None:
    brokers.coordinator = [coordinator]
    with pytest.raises(kind, match=says):
        brokers.commit({T0: 5})


def test_no_broker_answers(brokers: Brokers) -> None:
    brokers.down = {f"broker {each.id}" for each in SPEC.brokers}
    with pytest.raises(Unreachable, match="broker 3 did not answer"):
        brokers.commit({T0: 5})
