"""A member that keeps a group warm: what Kafka answers it, when it leaves, and what a person is told."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from connected import nodes_that
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from observations import SPEC

from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.group_anchor import Anchor
from kraft_runbook.procedures.warm_groups import WarmGroups


class Coordinator:
    """Kafka's, of one group. ``beats``: what it answers to heartbeats, the last again and again. ``members``: how many
    are in the generation that the anchor joins. ``there``: client ids of those that were there. ``leaves``: what it
    answers to one that leaves, the last again and again. ``did``: what it was asked.
    """

    def __init__(self, *beats: Any, members: int = 1, there: tuple[str, ...] = (), joins: int = 0) -> None:
        self.beats, self.members, self.there, self.joins = list(beats or (0,)), members, there, joins
        self.leaves: list[Any] = [left()]
        self.did: list[str] = []
        self.away = False
        self.let_in = threading.Event()
        self.let_in.set()
        self.beaten = threading.Event()

    def __call__(self, who: str, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            return SimpleNamespace(error_code=0, node_id=2)
        if self.away:
            raise Unreachable("broker 2 did not answer", way_out="start it")
        self.did.append(type(request).__name__.removesuffix("Request"))
        return {
            DescribeGroupsRequest: self.describe,
            JoinGroupRequest: self.join,
            SyncGroupRequest: self.sync,
            HeartbeatRequest: self.beat,
            LeaveGroupRequest: self.leave,
        }[type(request)](request)

    def describe(self, request: Any) -> Any:
        members = [SimpleNamespace(client_id=each) for each in self.there]
        return SimpleNamespace(groups=[SimpleNamespace(members=members)])

    def join(self, request: Any) -> Any:
        assert [each.name for each in request.protocols] == ["range", "mine"]
        if not request.member_id:
            return SimpleNamespace(error_code=79, member_id="m", members=[], leader="", generation_id=-1)
        self.let_in.wait(10)
        every = [SimpleNamespace(member_id=f"m{n or ''}") for n in range(self.members)]
        return SimpleNamespace(error_code=self.joins, member_id="m", members=every, leader="m", generation_id=3)

    def sync(self, request: Any) -> Any:
        (mine,) = request.assignments
        assert (mine.member_id, request.generation_id) == ("m", 3)
        return SimpleNamespace(error_code=0)

    def beat(self, request: Any) -> Any:
        self.beaten.set()
        found = self.beats.pop(0) if len(self.beats) > 1 else self.beats[0]
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(error_code=found)

    def leave(self, request: Any) -> Any:
        assert [each.member_id for each in request.members] == ["m"]
        return self.leaves.pop(0) if len(self.leaves) > 1 else self.leaves[0]


def left(code: int = 0, of_member: int = 0) -> Any:
    """An answer to one that leaves."""
    return SimpleNamespace(error_code=code, members=[SimpleNamespace(error_code=of_member)])


def anchor(kafka: Coordinator, **how: float) -> Anchor:
    return Anchor(SPEC, "g", ("range", "mine"), lambda _: "", connect=nodes_that(kafka), look=0.001, **how)


def held(kafka: Coordinator, **how: float) -> Anchor:
    """Until it has ended by itself."""
    with anchor(kafka, **how) as found:
        assert found.over.wait(10)
    return found


def test_it_leaves_as_soon_as_another_member_comes_and_never_joins_beside_it() -> None:
    kafka = Coordinator(0, 0, 27)
    assert held(kafka).said == "it left when the first member came"
    assert kafka.did == ["DescribeGroups", "JoinGroup", "JoinGroup", "SyncGroup", *["Heartbeat"] * 3, "LeaveGroup"]


def test_a_member_that_was_let_in_with_it_is_assigned_nothing_by_it() -> None:
    kafka = Coordinator(members=2)
    assert held(kafka).said == "it left when the first member came"
    assert kafka.did == ["DescribeGroups", "JoinGroup", "JoinGroup", "LeaveGroup"]


def test_where_members_are_there_already_it_does_not_make_them_rebalance() -> None:
    kafka = Coordinator(there=("app",))
    assert held(kafka).said == "members were there already"
    assert kafka.did == ["DescribeGroups"]
    after_a_kill = Coordinator(27, there=("kraft-runbook",))
    assert held(after_a_kill).said == "it left when the first member came"


def test_it_leaves_at_the_end_also_where_nobody_has_come() -> None:
    kafka = Coordinator()
    with anchor(kafka) as found:
        assert kafka.beaten.wait(10)
        assert found.said == "it is in the group"
    assert found.said == "it left before a member came"
    assert kafka.did[-1] == "LeaveGroup"


def test_it_leaves_also_where_kafka_has_not_let_it_in_yet() -> None:
    kafka = Coordinator()
    kafka.let_in.clear()
    with anchor(kafka) as found:
        while kafka.did.count("JoinGroup") < 2:
            pass
    assert found.said == "it was still waiting to join"
    assert kafka.did[-1] == "LeaveGroup"
    kafka.let_in.set()


@pytest.mark.parametrize(
    ("kafka", "says"),
    [
        (Coordinator(joins=26), r"Kafka takes no session of 6 s \(group.min.session.timeout.ms\)"),
        (Coordinator(joins=30), "this tool's identity may not join it: grant it READ on the group"),
        (Coordinator(joins=81), "Kafka answered error 81"),
    ],
)
def test_what_goes_wrong_is_told(kafka: Coordinator, says: str) -> None:
    assert re.fullmatch(says, held(kafka).said)


def test_a_coordinator_that_moves_is_looked_for_again() -> None:
    kafka = Coordinator(0, 16, 27)
    assert held(kafka).said == "it left when the first member came"
    assert kafka.did.count("JoinGroup") == 3, "once more, by the name that it has"


def test_one_that_kafka_does_not_know_any_more_joins_again_where_nobody_came_meanwhile() -> None:
    kafka = Coordinator(0, 25, 0, 27)
    assert held(kafka).said == "it left when the first member came"
    assert kafka.did.count("JoinGroup") == 4, "by another name, which Kafka gives it first"
    assert kafka.did.count("LeaveGroup") == 1
    taken = Coordinator(0, 25)
    beat = taken.beat

    def with_another(request: Any) -> Any:
        taken.there = ("app",)
        return beat(request)

    taken.beat = with_another  # type: ignore[method-assign]
    assert held(taken).said == "members were there already"
    assert "LeaveGroup" not in taken.did


LOST = Unreachable("broker 2 went away", way_out="start it")
STAYS = "Kafka did not say that it has left: it may be in the group for 6 s more"


def test_after_a_move_of_the_coordinator_its_member_leaves_where_others_are_there_by_then() -> None:
    kafka = Coordinator(0, 16)
    beat = kafka.beat

    def with_another(request: Any) -> Any:
        kafka.there = ("kraft-runbook", "app")
        return beat(request)

    kafka.beat = with_another  # type: ignore[method-assign]
    assert held(kafka).said == "members were there already"
    assert kafka.did[-2:] == ["DescribeGroups", "LeaveGroup"]


def test_it_leaves_by_another_connection_where_its_own_was_lost() -> None:
    kafka = Coordinator(0, LOST)
    assert held(kafka).said == "it could not go on: broker 2 went away"
    assert kafka.did[-1] == "LeaveGroup"


def test_it_leaves_also_where_its_block_ends_while_the_coordinator_moves() -> None:
    kafka = Coordinator(16)
    found = Anchor(SPEC, "g", ("range", "mine"), lambda _: "", connect=nodes_that(kafka), look=0.03)
    with found:
        assert kafka.beaten.wait(10)
    assert kafka.did.count("JoinGroup") == 2 and kafka.did[-1] == "LeaveGroup"


@pytest.mark.parametrize("answer", [left(16), left(0, 16), left(15)])
def test_an_answer_that_does_not_let_it_leave_is_tried_again_and_told(answer: Any) -> None:
    """A coordinator that has just moved is not known at once, and loads its groups first."""
    kafka = Coordinator(27)
    kafka.leaves = [answer, answer, answer, left()]
    assert held(kafka).said == "it left when the first member came"
    assert kafka.did.count("LeaveGroup") == 4
    never = Coordinator(27)
    never.leaves = [answer]
    assert held(never, leaves_within=0.0).said == f"it left when the first member came; {STAYS}"


def test_one_whose_coordinator_does_not_answer_leaves_by_another_connection_and_says_so() -> None:
    kafka, silent = Coordinator(), threading.Event()
    beat = kafka.beat

    def late(request: Any) -> Any:
        answer = beat(request)
        silent.wait(10)
        return answer

    kafka.beat = late  # type: ignore[method-assign]
    with anchor(kafka) as found:
        assert kafka.beaten.wait(10)
    assert found.said == "its coordinator did not answer"
    assert kafka.did[-1] == "LeaveGroup"
    silent.set()


def test_a_member_that_kafka_does_not_know_any_more_has_left() -> None:
    kafka = Coordinator(22)
    kafka.leaves = [left(0, 25)]
    assert held(kafka).said == "Kafka answered error 22"
    assert kafka.did.count("LeaveGroup") == 1


def test_one_whose_block_has_ended_before_it_found_its_coordinator_does_not_join() -> None:
    kafka, found, asked = Coordinator(), threading.Event(), threading.Event()

    def slow(who: str, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            asked.set()
            found.wait(10)
        return kafka(who, request)

    ended = Anchor(SPEC, "g", ("range", "mine"), lambda _: "", connect=nodes_that(slow), look=0.001)
    with ended:
        assert asked.wait(10)
        ended._ends.set()
        found.set()
        assert ended.over.wait(10)
    assert "JoinGroup" not in kafka.did and ended.said == "it has not joined yet"


def test_one_whose_block_has_ended_while_kafka_named_it_does_not_join_and_leaves() -> None:
    kafka = Coordinator()
    found = anchor(kafka)
    join = kafka.join

    def ends(request: Any) -> Any:
        found._ends.set()
        return join(request)

    kafka.join = ends  # type: ignore[method-assign]
    with found:
        assert found.over.wait(10)
    assert kafka.did == ["DescribeGroups", "JoinGroup", "LeaveGroup"]
    assert found.said == "it left before it had joined"


def test_a_kafka_that_does_not_answer_leaves_the_group_cold() -> None:
    kafka = Coordinator()
    kafka.away = True
    assert held(kafka).said == "it could not go on: broker 2 did not answer"


@pytest.fixture
def two() -> Iterator[tuple[WarmGroups, Coordinator]]:
    came, silent = Coordinator(27), Coordinator()
    other = Anchor(SPEC, "h", ("range", "mine"), lambda _: "", connect=nodes_that(silent), look=0.001)
    yield WarmGroups([anchor(came), other]), silent


def test_groups_are_let_go_together_once_members_came_or_the_time_is_over(two: tuple[WarmGroups, Coordinator]) -> None:
    warm, silent = two
    assert silent.beaten.wait(10)
    assert warm.let_go(["g", "h", "cold"], 0.05) == {
        "g": "it left when the first member came",
        "h": "it left before a member came",
    }
    assert silent.did[-1] == "LeaveGroup"
    assert warm.let_go()["h"] == "it left before a member came", "once more, nothing is done"
    assert silent.did.count("LeaveGroup") == 1
