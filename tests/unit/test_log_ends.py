"""Log ends as the brokers answer: what a leader does not tell has a reason, and is asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from connected import nodes_that
from kafka.protocol.metadata import MetadataRequest
from observations import SPEC

from kraft_runbook.cluster.log_ends import LogEnds
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.log_ends import DENIED, read_log_ends

ID = UUID(int=7)


class Brokers:
    """What they answer. ``leaders``: by topic and partition; ``ends``: an end, or an error code below 0, turn by turn;
    ``by_name``: error codes of topics that are asked for by name. ``down``: brokers that do not answer.
    """

    def __init__(self) -> None:
        self.leaders: Mapping[str, list[int]] = {"t": [1, 2, 3], "u": [1]}
        self.ends: dict[tuple[str, int], list[int]] = {}
        self.by_name: Mapping[str, int] = {}
        self.down: set[str] = set()
        self.asked: list[tuple[str, int]] = []

    def read(self, *also: str, patience: float = 0) -> LogEnds:
        connect = nodes_that(self._answer)
        return read_log_ends(
            SPEC, secrets=lambda _: "", also=also, patience=patience, apart=0, at_once=2, connect=connect
        )

    def _answer(self, who: str, request: Any) -> Any:
        if who in self.down:
            raise Unreachable(f"{who} did not answer", way_out="start it")
        return self._metadata(request) if isinstance(request, MetadataRequest) else self._offsets(who, request)

    def _metadata(self, request: Any) -> Any:
        def topic(name: str, error: int, leaders: list[int]) -> Any:
            partitions = [SimpleNamespace(partition_index=n, leader_id=leader) for n, leader in enumerate(leaders)]
            return SimpleNamespace(name=name, error_code=error, topic_id=ID, partitions=partitions)

        if request.topics is None:
            topics = [topic(name, 0, leaders) for name, leaders in self.leaders.items()]
        else:
            topics = [topic(each.name, self.by_name.get(each.name, 3), []) for each in request.topics]
        return SimpleNamespace(cluster_id="c", topics=topics)

    def _offsets(self, who: str, request: Any) -> Any:
        found = []
        for each in request.topics:
            self.asked.append((who, len(each.partitions)))
            partitions = []
            for partition in each.partitions:
                turns = self.ends.setdefault((each.name, partition.partition_index), [10])
                end = turns.pop(0) if len(turns) > 1 else turns[0]
                partitions.append(
                    SimpleNamespace(
                        partition_index=partition.partition_index, error_code=max(0, -end), offset=max(end, -1)
                    )
                )
            found.append(SimpleNamespace(name=each.name, partitions=partitions))
        return SimpleNamespace(topics=found)


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def test_each_leader_is_asked_for_its_partitions_some_at_once(brokers: Brokers) -> None:
    brokers.leaders = {"t": [1, 1, 1, 2], "u": [3]}
    found = brokers.read("t", "gone")
    assert {name: dict(each.ends) for name, each in found.topics.items()} == {
        "t": {0: 10, 1: 10, 2: 10, 3: 10},
        "u": {0: 10},
    }
    assert (found.cluster_id, found.partitions, found.unread) == ("c", 5, {})
    assert found.topics["t"].id == "AAAAAAAAAAAAAAAAAAAABw"
    assert sorted(brokers.asked) == [("broker 1", 1), ("broker 1", 2), ("broker 2", 1), ("broker 3", 1)]


@pytest.mark.parametrize(
    ("changed", "unread"),
    [
        ({"leaders": {"t": [1, -1]}}, {"t-1": "it has no leader"}),
        ({"leaders": {"t": [1, 9]}}, {"t-1": "its leader 9 is not in the cluster file"}),
        ({"ends": {("t", 2): [-78]}}, {"t-2": "its leader answers error 78"}),
        ({"ends": {("u", 0): [-29]}}, {"u-0": DENIED}),
        ({"by_name": {"hidden": 29, "odd": 5}}, {"hidden": DENIED, "odd": "Metadata answers error 5"}),
        ({"down": {"broker 2"}}, {"t-1": "broker 2 did not answer"}),
    ],
)
def test_what_nobody_tells_has_its_reason(brokers: Brokers, changed: dict[str, Any], unread: dict[str, str]) -> None:
    for name, value in changed.items():
        setattr(brokers, name, value)
    assert brokers.read("hidden", "odd", "gone").unread == unread


def test_a_leader_that_does_not_tell_yet_is_asked_again(brokers: Brokers) -> None:
    brokers.ends = {("t", 2): [-78, -6, 12]}
    found = brokers.read(patience=600)
    assert (found.unread, found.topics["t"].ends[2]) == ({}, 12)


def test_metadata_is_asked_of_the_next_broker_and_of_none_in_vain(brokers: Brokers) -> None:
    brokers.down = {"broker 1"}
    brokers.leaders = {"t": [2]}
    assert brokers.read().partitions == 1
    brokers.down = {"broker 1", "broker 2", "broker 3"}
    with pytest.raises(Unreachable, match="broker 3"):
        brokers.read()
