"""One look at brokers and replicas, of what the controller and the brokers answer."""

from __future__ import annotations

from typing import Any

from observations import SPEC
from placements import tp

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen
from kraft_runbook.cluster.log_dirs import BrokerLogs
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.reassignment.look import ReplicasLook

A, B = tp("a"), tp("b")
TO_3 = Ongoing((3, 2, 1), (3,), (1,))


def look(*ongoing: dict[Any, Ongoing], **seen: PartitionSeen) -> ReplicasLook:
    """``ongoing``: what the controller lists, one answer after the other, the last again and again. ``seen``: what
    Metadata shows of partition 0 of each topic.
    """
    answers = list(ongoing)

    class Lists:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def ongoing(self) -> dict[Any, Ongoing]:
            return answers.pop(0) if len(answers) > 1 else answers[0]

    shown = AssignmentSeen("id", dict.fromkeys((1, 2, 3)), {tp(topic): each for topic, each in seen.items()})
    given: Any = {"client": Lists, "sees": lambda *_, **__: shown}
    return look_at_replicas(
        SPEC,
        secrets=lambda _: "",
        settings=False,
        describe=lambda _, broker, **__: BrokerLogs(broker.id, (), {}, {}, {}),
        **given,
    )


def test_a_copy_that_has_joined_the_isr_counts_as_in_sync() -> None:
    """Else it would keep its place among the copies at once while the move waits for another replica."""
    found = look({A: TO_3}, a=PartitionSeen((3, 2, 1), 1, (1, 3)), b=PartitionSeen((1, 2), 1, (2, 1)))
    assert found.placement.in_sync == {A: (1, 3), B: (2, 1)}
    assert found.placement.present == {A: (2, 1, 3), B: (1, 2)}


def test_what_moves_and_is_not_shown_is_kept_apart_and_counts_as_moving() -> None:
    """The controller lists what this tool's user may not describe, and Metadata leaves it out."""
    shown = PartitionSeen((3, 2, 1), 1, (1, 2))
    found = look({A: TO_3, B: TO_3}, a=shown)
    assert (found.hidden, found.placement.ongoing, found.moving) == ({B: TO_3}, {A: TO_3}, {A: TO_3, B: TO_3})
    assert B not in found.placement.present
    deleted = look({A: TO_3, B: TO_3}, {A: TO_3}, a=shown)
    assert not deleted.hidden, "its topic was deleted in between"
