"""Kafka's groups as brokers answer: what one group or one coordinator refuses hides no other."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from connected import nodes_that
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from observations import SPEC

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import TimedOut, Unreachable
from kraft_runbook.groups.look import KafkaMember, KafkaSide, LogBounds
from kraft_runbook.io.kafka.groups_seen import (
    TRIES,
    ConsumerGroupDescribeRequest,
    GroupSide,
    assigned,
    read_kafka_groups,
)
from kraft_runbook.io.kafka.log_ends import read_log_bounds


def encoded(**topics: list[int]) -> bytes:
    parts = [struct.pack("!hi", 0, len(topics))]
    for name, numbers in topics.items():
        parts += [
            struct.pack("!h", len(name)),
            name.encode(),
            struct.pack(f"!i{len(numbers)}i", len(numbers), *numbers),
        ]
    return b"".join(parts) + struct.pack("!i", -1)


class Brokers:
    """``coordinators``: by group, a broker's id, or an error code below 0. ``states``: by group; ``errors``: codes of
    DescribeGroups; ``offset_errors``: of OffsetFetch. ``types``: of the groups that are Dead for DescribeGroups and
    listed all the same; ``list_error``: of ListGroups. ``down``: brokers that do not answer; ``hung``: those that are
    waited for until the time is over, each time in ``waited_for``.
    """

    def __init__(self) -> None:
        self.offsets_topic = 0
        self.fresh: set[str] = set()
        self.moved: dict[str, int] = {}
        self.loads = 0
        self.coordinators: dict[str, int] = {}
        self.states: dict[str, str] = {}
        self.errors: dict[str, int] = {}
        self.offset_errors: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.list_error = 0
        self.down: set[str] = set()
        self.hung: set[str] = set()
        self.waited_for: list[str] = []
        self.asked: list[tuple[str, str, int]] = []

    def read(self, *names: str, silent: dict[int, str] | None = None) -> dict[str, GroupSide]:
        connect = nodes_that(self._answer)
        given: dict[str, Any] = {"secrets": lambda _: "", "at_once": 2, "apart": 0.0, "connect": connect}
        return dict(read_kafka_groups(SPEC, names, silent=silent, **given))

    def _answer(self, who: str, request: Any) -> Any:
        if who in self.hung:
            self.waited_for.append(who)
            raise TimedOut(f"{who} did not answer in 10 s", way_out="start it")
        if who in self.down:
            raise Unreachable(f"{who} did not answer", way_out="start it")
        if isinstance(request, MetadataRequest):
            assert request.allow_auto_topic_creation is False
            return SimpleNamespace(topics=[SimpleNamespace(error_code=3 if who in self.fresh else self.offsets_topic)])
        if isinstance(request, FindCoordinatorRequest):
            self.asked.append((who, "find", len(request.coordinator_keys)))
            known = self.coordinators | ({} if who == "broker 1" or 9 in self.moved.values() else self.moved)
            found = [(key, known[key]) for key in request.coordinator_keys if key in known]
            return SimpleNamespace(
                coordinators=[SimpleNamespace(key=k, node_id=n, error_code=max(0, -n)) for k, n in found]
            )
        if isinstance(request, DescribeGroupsRequest):
            self.asked.append((who, "describe", len(request.groups)))
            return SimpleNamespace(groups=[self._group(who, name) for name in request.groups])
        if isinstance(request, ListGroupsRequest):
            self.asked.append((who, "list", 1))
            if self.list_error > 100:
                raise Unreachable(f"{who} did not answer", way_out="start it")
            return SimpleNamespace(
                error_code=self.list_error,
                groups=[SimpleNamespace(group_id=name, group_type=kind) for name, kind in self.types.items()],
            )
        if isinstance(request, ConsumerGroupDescribeRequest):
            return SimpleNamespace(groups=[self._of_the_consumer_protocol(name) for name in request.group_ids])
        assert isinstance(request, OffsetFetchRequest)
        names = [each.group_id for each in request.groups]
        self.asked.append((who, "offsets", len(names)))
        partitions = [
            SimpleNamespace(partition_index=0, committed_offset=5, error_code=0),
            SimpleNamespace(partition_index=1, committed_offset=-1, error_code=0),
            SimpleNamespace(partition_index=2, committed_offset=-1, error_code=3),
        ]
        topics = [SimpleNamespace(name="t", partitions=partitions)]
        return SimpleNamespace(
            groups=[SimpleNamespace(group_id=n, error_code=self.offset_errors.get(n, 0), topics=topics) for n in names]
        )

    def _of_the_consumer_protocol(self, name: str) -> Any:
        held = SimpleNamespace(topic_partitions=[SimpleNamespace(topic_name="t", partitions=[0, 1])])
        member = SimpleNamespace(
            member_id="m", client_id="c", client_host="/10.0.0.1", instance_id="static", assignment=held
        )
        return SimpleNamespace(
            group_id=name,
            error_code=self.errors.get(name, 0),
            group_state="Stable",
            assignor_name="uniform",
            members=[member],
        )

    def _error(self, who: str, name: str) -> int:
        if name in self.moved and who != f"broker {self.moved[name]}":
            return 16
        self.loads -= 1
        return 14 if self.loads >= 0 else self.errors.get(name, 0)

    def _group(self, who: str, name: str) -> Any:
        member = SimpleNamespace(
            member_id="m",
            client_id="c",
            client_host="/10.0.0.1",
            group_instance_id=None,
            member_assignment=encoded(t=[0]),
        )
        state = self.states.get(name, "Stable")
        return SimpleNamespace(
            group_id=name,
            error_code=self._error(who, name),
            group_state=state,
            protocol_type="consumer",
            protocol_data="range",
            members=[member] if state == "Stable" else [],
        )


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def reason(found: GroupSide) -> str:
    assert isinstance(found, Unread), found
    return found.reason


def test_groups_are_asked_of_their_coordinators_some_a_request(brokers: Brokers) -> None:
    brokers.coordinators = {"a": 1, "b": 1, "c": 1, "d": 2}
    brokers.states = {"b": "Dead", "d": "Empty"}
    found = brokers.read("a", "b", "c", "d")
    assert isinstance(found["a"], KafkaSide) and found["b"] is None and isinstance(found["d"], KafkaSide)
    (member,) = found["a"].members
    assert (member.host, member.partitions) == ("10.0.0.1", frozenset({("t", 0)}))
    assert found["a"].offsets == {("t", 0): 5, ("t", 2): Unread("Kafka answers error 3")}
    assert sorted(brokers.asked) == [
        ("broker 1", "describe", 1),
        ("broker 1", "describe", 2),
        ("broker 1", "find", 2),
        ("broker 1", "find", 2),
        ("broker 1", "list", 1),
        ("broker 1", "offsets", 1),
        ("broker 1", "offsets", 1),
        ("broker 2", "describe", 1),
        ("broker 2", "offsets", 1),
    ]


def test_each_refusal_is_of_its_own_group(brokers: Brokers) -> None:
    brokers.coordinators = {"fine": 1, "loading": -14, "of 2": 2, "denied": 1, "offsets": 1, "of 9": 9}
    brokers.errors, brokers.offset_errors, brokers.down = {"denied": 30}, {"offsets": 30}, {"broker 2"}
    found = brokers.read("fine", "loading", "of 2", "denied", "offsets", "of 9", "nobody's")
    assert isinstance(found["fine"], KafkaSide)
    assert reason(found["loading"]) == "its coordinator loads it"
    assert reason(found["of 2"]) == "broker 2 did not answer"
    assert reason(found["denied"]) == "this tool's identity may not describe the group"
    assert isinstance(found["offsets"], KafkaSide) and isinstance(found["offsets"].offsets, Unread)
    assert reason(found["of 9"]) == "its coordinator 9 is not in the cluster file"
    assert reason(found["nobody's"]) == "no broker names its coordinator"


def test_a_group_that_is_not_classic_is_not_taken_for_absent(brokers: Brokers) -> None:
    """DescribeGroups calls each of them Dead."""
    names = ("new", "shared", "streams", "absent")
    brokers.coordinators = dict.fromkeys(names, 1)
    brokers.states = dict.fromkeys(names, "Dead")
    brokers.types = {"new": "Consumer", "shared": "share", "streams": "Streams", "another": "consumer"}
    found = brokers.read(*names)
    offsets = {("t", 0): 5, ("t", 2): Unread("Kafka answers error 3")}
    member = KafkaMember("m", "c", "10.0.0.1", "static", frozenset({("t", 0), ("t", 1)}))
    assert found["new"] == KafkaSide("Stable", "consumer", "uniform", (member,), offsets, "consumer")
    assert found["shared"] == KafkaSide("", "", group_type="share"), "it has no committed offsets to ask for"
    assert found["streams"] == KafkaSide("", "", offsets=offsets, group_type="streams")
    assert found["absent"] is None
    brokers.types = {"new": "consumer"}
    brokers.errors, brokers.states = {"new": 69}, {}
    assert reason(brokers.read("new")["new"]) == "it comes or goes at this moment"
    brokers.errors = {"new": 29}
    assert reason(brokers.read("new")["new"]).startswith(
        "this tool's identity may not describe a topic that the group's"
    )


@pytest.mark.parametrize("kind", ["", "classic"])
def test_a_group_that_came_since_is_asked_for_again(brokers: Brokers, kind: str) -> None:
    brokers.coordinators, brokers.states, brokers.types = {"a": 1}, {"a": "Dead"}, {"a": kind}
    assert reason(brokers.read("a")["a"]) == "it comes or goes at this moment"
    assert len([each for each in brokers.asked if each[1] == "list"]) == TRIES


@pytest.mark.parametrize(
    ("error", "why"),
    [(14, "its coordinator loads it"), (58, "Kafka answers error 58"), (999, "broker 1 did not answer")],
)
def test_a_group_is_absent_only_where_the_list_of_groups_was_read(brokers: Brokers, error: int, why: str) -> None:
    brokers.coordinators, brokers.states, brokers.list_error = {"a": 1, "b": 1}, {"a": "Dead"}, error
    found = brokers.read("a", "b")
    assert reason(found["a"]) == why and isinstance(found["b"], KafkaSide)


def test_where_two_brokers_know_no_offsets_topic_there_is_no_group_and_nothing_is_created(brokers: Brokers) -> None:
    brokers.offsets_topic = 3
    assert brokers.read("a") == {"a": None}
    assert not brokers.asked and brokers.read() == {}


def test_a_broker_that_has_just_started_and_knows_no_topic_is_not_believed(brokers: Brokers) -> None:
    brokers.coordinators, brokers.fresh = {"a": 2}, {"broker 1"}
    assert isinstance(brokers.read("a")["a"], KafkaSide)
    brokers.down = {"broker 2", "broker 3"}
    assert reason(brokers.read("a")["a"]).startswith("a broker does not know __consumer_offsets, and no other could")


def test_a_group_whose_coordinator_has_moved_is_asked_for_again_of_another_broker(brokers: Brokers) -> None:
    """Broker 1 does not know yet that broker 3 has the group."""
    brokers.coordinators, brokers.moved = {"a": 2, "b": 2}, {"a": 3}
    found = brokers.read("a", "b")
    assert isinstance(found["a"], KafkaSide) and isinstance(found["b"], KafkaSide)
    assert [(who, what) for who, what, _ in brokers.asked if what == "find"] == [
        ("broker 1", "find"),
        ("broker 2", "find"),
    ]
    brokers.moved = {"a": 9}
    assert reason(brokers.read("a")["a"]) == "its coordinator has just changed", "for a while alone"


def test_a_coordinator_that_loads_its_groups_is_asked_again(brokers: Brokers) -> None:
    brokers.coordinators, brokers.loads = {"a": 2}, 2
    assert isinstance(brokers.read("a")["a"], KafkaSide)


def test_the_next_broker_is_asked_and_with_none_all_are_unread(brokers: Brokers) -> None:
    brokers.coordinators, brokers.down = {"a": 2}, {"broker 1"}
    assert isinstance(brokers.read("a")["a"], KafkaSide)
    brokers.down = {f"broker {i}" for i in SPEC.broker_ids}
    assert "did not answer" in reason(brokers.read("a")["a"])


def test_a_broker_that_hangs_is_waited_for_once_by_who_asks_many_times(brokers: Brokers) -> None:
    brokers.coordinators, brokers.hung = {"a": 2, "b": 3, "c": 3}, {"broker 1", "broker 3"}
    silent: dict[int, str] = {}
    assert isinstance(brokers.read("a", "b", silent=silent)["a"], KafkaSide)
    assert reason(brokers.read("c", silent=silent)["c"]) == "broker 3 did not answer in 10 s"
    assert brokers.waited_for == ["broker 1", "broker 3"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", frozenset()),
        (encoded(t=[0, 2], u=[1]), frozenset({("t", 0), ("t", 2), ("u", 1)})),
        (encoded(), frozenset()),
    ],
)
def test_an_assignment(data: bytes, expected: frozenset[tuple[str, int]]) -> None:
    assert assigned(data) == expected


@pytest.mark.parametrize(
    "data", [b"\0", encoded(t=[0])[:-8], struct.pack("!hihi", 0, 1, -5, 3), struct.pack("!hih", 0, 2**31 - 1, -1)]
)
def test_an_assignment_that_is_none(data: bytes) -> None:
    assert isinstance(assigned(data), Unread)


# -- logs --------------------------------------------------------------------------------------------------------------


def test_the_bounds_of_logs_are_asked_for_these_topics_alone() -> None:
    asked: list[tuple[str, int]] = []

    def answer(who: str, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            return SimpleNamespace(cluster_id="c", topics=[_topic(each.name) for each in request.topics])
        if who == "broker 2":
            raise Unreachable("broker 2 did not answer", way_out="start it")
        (topic,) = request.topics
        asked.append((topic.name, topic.partitions[0].timestamp))
        end = {-1: 9, -2: 4}[topic.partitions[0].timestamp]
        answer = [
            SimpleNamespace(partition_index=p.partition_index, error_code=0, offset=end) for p in topic.partitions
        ]
        return SimpleNamespace(topics=[SimpleNamespace(name=topic.name, partitions=answer)])

    def _topic(name: str) -> Any:
        error = {"gone": 3, "denied": 29, "no name!": 17}.get(name, 0)
        leaders = [1, 2, -1]
        return SimpleNamespace(
            name=name,
            error_code=error,
            topic_id=UUID(int=7),
            partitions=[SimpleNamespace(partition_index=n, leader_id=i) for n, i in enumerate(leaders)],
        )

    topics = {"t", "gone", "denied", "no name!"}
    found = read_log_bounds(SPEC, topics, secrets=lambda _: "", connect=nodes_that(answer))
    assert found["gone"] is None and found["no name!"] is None and isinstance(found["denied"], Unread)
    of_7 = "AAAAAAAAAAAAAAAAAAAABw"
    assert found["t"] == {0: LogBounds(4, 9, of_7), 1: Unread("broker 2 did not answer"), 2: Unread("it has no leader")}
    assert asked == [("t", -2), ("t", -1)]
    assert read_log_bounds(SPEC, set(), secrets=lambda _: "") == {}


def test_a_topic_is_no_topic_where_two_brokers_do_not_know_it() -> None:
    knows: dict[str, set[str]] = {"broker 1": set(), "broker 2": {"t"}, "broker 3": set()}

    def answer(who: str, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            if who not in knows:
                raise Unreachable(f"{who} did not answer", way_out="start it")
            return SimpleNamespace(cluster_id="c", topics=[_topic(who, each.name) for each in request.topics])
        (topic,) = request.topics
        answers = [SimpleNamespace(partition_index=p.partition_index, error_code=0, offset=7) for p in topic.partitions]
        return SimpleNamespace(topics=[SimpleNamespace(name=topic.name, partitions=answers)])

    def _topic(who: str, name: str) -> Any:
        there = name in knows[who]
        partitions = [SimpleNamespace(partition_index=0, leader_id=2)] if there else []
        return SimpleNamespace(name=name, error_code=0 if there else 3, topic_id=UUID(int=0), partitions=partitions)

    def read() -> Any:
        return read_log_bounds(SPEC, {"t", "gone"}, secrets=lambda _: "", connect=nodes_that(answer))

    assert read() == {"t": {0: LogBounds(7, 7)}, "gone": None}, "a topic without an id"
    del knows["broker 2"], knows["broker 3"]
    told = {name: reason(side)[:24] for name, side in read().items()}
    assert told == dict.fromkeys(("t", "gone"), "one broker does not know")
