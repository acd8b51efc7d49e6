"""The requests of KIP-455 and their answers. The connection is a fake that records what was sent: elections, lost
answers and newer servers can't be provoked at will in a real one.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace as Values
from typing import Any

import pytest
from observations import SPEC
from placements import tp

from kraft_runbook.cluster.assignment import Answer, Move, Ongoing
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.io.kafka.reassignments import NEEDS, Reassignments

MOVE = Move(tp("a"), (1, 2), (3, 2))


class Server:
    """Answers Alter with these, one after the other; keeps a list of ongoing reassignments and replicas."""

    def __init__(self, *alter: Any, newest: int = 0, listed: tuple[Any, ...] = ()) -> None:
        self.alter, self.newest, self.listed = list(alter), newest, list(listed)
        self.sent: list[Any] = []
        self.ongoing: dict[Any, Ongoing] = {}
        self.replicas: dict[Any, tuple[int, ...]] = {tp("a"): (1, 2)}

    def send(self, request: Any) -> Any:
        name = type(request).__name__
        if name == "ApiVersionsRequest":
            return Values(api_keys=[Values(api_key=45, max_version=self.newest)])
        if name == "MetadataRequest":
            return Values(
                topics=[
                    Values(name=t, partitions=[Values(partition_index=n, replica_nodes=r)])
                    for (t, n), r in self.replicas.items()
                ]
            )
        self.sent.append(request)
        if name == "ListPartitionReassignmentsRequest":
            if self.listed:
                return self.listed.pop(0)
            return Values(
                error_code=0,
                error_message=None,
                topics=[
                    Values(
                        name=t,
                        partitions=[
                            Values(
                                partition_index=n,
                                replicas=o.replicas,
                                adding_replicas=o.adding,
                                removing_replicas=o.removing,
                            )
                        ],
                    )
                    for (t, n), o in self.ongoing.items()
                ],
            )
        answer = self.alter.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def unreachable(self, why: str) -> Unreachable:
        return Unreachable(f"broker 1 did not answer: {why}", way_out="")


def answer(code: int = 0, text: str | None = None, *, whole: int = 0) -> Any:
    partition = Values(partition_index=0, error_code=code, error_message=text)
    return Values(error_code=whole, error_message=None, responses=[Values(name="a", partitions=[partition])])


def client(server: Any, *, patience: float = 0.2) -> Reassignments:
    def connected() -> Any:
        return nullcontext(server)

    return Reassignments(SPEC, secrets=lambda ref: "", patience=patience, pause=0.01, connected=connected)


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (0, None, Answer.ACCEPTED),
        (39, "includes broker 99", Answer.INVALID_REPLICA_ASSIGNMENT),
        (38, "would change", Answer.INVALID_REPLICATION_FACTOR),
        (85, None, Answer.NO_REASSIGNMENT_IN_PROGRESS),
        (3, "Unable to find a topic named a.", Answer.UNKNOWN_TOPIC_OR_PARTITION),
        (77, "odd", Answer.OTHER),
    ],
)
def test_each_partition_has_kafkas_answer_and_text(code: int, text: str | None, expected: Answer) -> None:
    found = client(Server(answer(code, text))).alter([MOVE])[tp("a")]
    assert (found.answer, (text or "") in found.text) == (expected, True)
    assert ("error 77" in found.text) == (expected is Answer.OTHER)


def test_a_refusal_of_the_whole_is_each_partitions_and_its_java_dump_is_hidden() -> None:
    refused = Values(error_code=31, error_message="Request(…)@1f", responses=[])
    found = client(Server(refused)).alter([MOVE])
    assert [(r.answer, r.text) for r in found.values()] == [(Answer.CLUSTER_AUTHORIZATION_FAILED, NEEDS)]


def test_a_partition_that_the_answer_leaves_out_is_no_success() -> None:
    empty = Values(error_code=0, error_message=None, responses=[])
    assert not client(Server(empty)).alter([MOVE])[tp("a")].accepted


def test_another_controller_is_looked_for_when_this_is_none() -> None:
    server = Server(answer(whole=41), answer())
    assert client(server).alter([MOVE])[tp("a")].accepted
    assert len(server.sent) == 2
    with pytest.raises(Unreachable, match="not the controller"):
        client(Server(*[answer(whole=41)] * 50)).alter([MOVE])


@pytest.mark.parametrize("lost", [Unreachable("no answer", way_out=""), answer(whole=7)])
def test_what_was_not_answered_is_looked_up_and_not_sent_again(lost: Any) -> None:
    for ongoing, replicas, expected in (
        ({tp("a"): Ongoing((3, 2, 1), (3,), (1,))}, (3, 2, 1), Answer.ACCEPTED),
        ({}, (3, 2), Answer.ACCEPTED),
        ({}, (1, 2), Answer.NOT_APPLIED),
        ({tp("a"): Ongoing((4, 2, 1), (4,), (1,))}, (4, 2, 1), Answer.NOT_APPLIED),
    ):
        server = Server(lost)
        server.ongoing, server.replicas = ongoing, {tp("a"): replicas}
        assert client(server, patience=0.05).alter([MOVE])[tp("a")].answer is expected
        assert sum(type(each).__name__.startswith("Alter") for each in server.sent) == 1


def test_a_cancel_that_was_not_answered_is_done_once_nothing_moves() -> None:
    lost = Unreachable("no answer", way_out="")
    server = Server(lost, lost)
    assert client(server).cancel([tp("a")])[tp("a")].accepted
    server.ongoing = {tp("a"): Ongoing((3, 2, 1), (3,), (1,))}
    assert client(server, patience=0.05).cancel([tp("a")])[tp("a")].answer is Answer.NOT_APPLIED


def test_a_cancel_is_not_sent_again_to_another_controller() -> None:
    server = Server(answer(whole=41), answer())
    with pytest.raises(Unreachable, match="not the controller"):
        client(server, patience=30.0).cancel([tp("a")])
    assert len(server.sent) == 1  # whoever asks looks again first: the replicas may be others by now


def test_a_changed_replication_factor_is_not_sent_unless_asked_for() -> None:
    more = Move(tp("a"), (1, 2), (1, 2, 3))
    server = Server(answer(), answer(), newest=1)
    with pytest.raises(Refused, match="1 of 2 moves change the replication factor, such as a-0 from 2 to 3"):
        client(server).alter([more, Move(tp("b"), (1,), (2,))])
    assert not server.sent
    client(server).alter([more], allow_replication_factor_change=True)
    client(server).alter([MOVE])
    assert [each.allow_replication_factor_change for each in server.sent] == [True, False]  # KIP-860's flag
    assert [each.version for each in server.sent] == [1, 1]


def test_a_partition_named_twice_is_not_sent() -> None:
    for ask in ("alter", "cancel"):
        with pytest.raises(Refused, match="a-0 is named twice"):
            getattr(client(Server()), ask)([MOVE, MOVE] if ask == "alter" else [tp("a"), tp("a")])


def test_a_cancel_names_each_partition_without_a_target_and_nothing_is_sent_for_nothing() -> None:
    server = Server(answer())
    assert client(server).cancel([]) == {} and server.sent == []
    assert list(client(server).cancel([tp("a"), tp("b")])) == [tp("a"), tp("b")]
    assert [[t.name for t in each.topics] for each in server.sent] == [["a", "b"]]
    assert all(p.replicas is None for each in server.sent for t in each.topics for p in t.partitions)


def test_what_moves_is_listed_with_its_target_in_order_and_its_original() -> None:
    server = Server()
    server.ongoing = {tp("a"): Ongoing((4, 3, 1, 2), (4, 3), (1, 2))}
    found = client(server).ongoing()[tp("a")]
    assert (found.target, found.original) == ((4, 3), (1, 2))
    assert client(server).ongoing([]) == {}
    assert len(server.sent) == 1


def test_a_list_that_is_not_allowed_is_refused_and_not_taken_for_empty() -> None:
    server = Server(listed=(Values(error_code=31, error_message=None, topics=[]),))
    with pytest.raises(Refused, match="ListPartitionReassignments is not allowed"):
        client(server).ongoing()
