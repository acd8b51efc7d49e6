"""A topic that was made anew under its name is another topic: it is told by its id, and is not moved."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from observations import SPEC
from placements import one_volume_each

from kraft_runbook.cluster.assignment import Answer, PartitionResult, PartitionSeen, TopicPartition
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.kafka.topic_ids import NONE, TopicNow, topic_ids, topics_now
from kraft_runbook.procedures.move_replicas import start_next_batch
from kraft_runbook.reassignment.batches import Limits
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan, plan_from_dict, plan_to_dict
from kraft_runbook.reassignment.saved_state import SavedState, from_json
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.throttles import Former

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
PLAN = ReassignmentPlan(
    "two", {A: (1, 2), B: (1, 2)}, {A: (3, 2), B: (3, 2)}, copies=2, bound=2, topic_ids={"a": "first", "b": "second"}
)


def placement(**ids: str) -> Placement:
    return Placement(
        {1: "x", 2: "y", 3: "x"},
        {A: (1, 2), B: (1, 2)},
        directories=one_volume_each(dict.fromkeys((1, 2, 3), 10**12)),
        topic_ids=ids,
    )


def test_what_was_made_anew_is_gone_and_the_rest_is_moved() -> None:
    reading = read_plan(PLAN, placement(a="another", b="second"))
    assert reading.gone == {A} and [move.partition for move in reading.left] == [B]
    both = read_plan(PLAN, placement(a="another", b="yet another"))
    assert both.stage is PlanStage.AS_PLANNED and both.gone == {A, B}


def test_an_id_that_is_not_known_proves_nothing() -> None:
    """In ZooKeeper mode a topic from before 2.8 has none, and one that is gone is told by its absence."""
    assert read_plan(PLAN, placement()).gone == frozenset()
    without = ReassignmentPlan("two", PLAN.present, PLAN.target, copies=2, bound=2)
    assert read_plan(without, placement(a="another")).gone == frozenset()


def test_a_plan_keeps_its_ids_and_its_digest_covers_them() -> None:
    assert plan_from_dict(plan_to_dict(PLAN)).topic_ids == PLAN.topic_ids
    with pytest.raises(ValueError, match="the plan was changed since it was made"):
        plan_from_dict(plan_to_dict(PLAN) | {"topic_ids": {"a": "another", "b": "second"}})


def test_a_plan_and_a_saved_state_of_before_have_none() -> None:
    without = ReassignmentPlan("two", PLAN.present, PLAN.target, copies=2, bound=2)
    former = {key: value for key, value in plan_to_dict(without).items() if key != "topic_ids"}
    assert plan_from_dict(former).topic_ids == {}
    saved = SavedState("id", PLAN.present, Former({}, {}, {}))
    assert "topic_ids" not in saved.to_json() and from_json(saved.to_json(), source="x") == saved
    with_ids = SavedState("id", PLAN.present, Former({}, {}, {}), {"a": "first"})
    assert from_json(with_ids.to_json(), source="x") == with_ids


def test_right_before_the_request_the_ids_are_asked_once_more() -> None:
    sent: list[Any] = []

    class Sends:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def alter(self, moves: Any, **_: Any) -> Any:
            sent.extend(move.partition for move in moves)
            return {}

    now = placement(a="first", b="second")
    look = ReplicasLook("id", now, {p: PartitionSeen(r, r[0], r) for p, r in now.present.items()}, {}, 0.0)
    given: dict[str, Any] = {"secrets": lambda _: "", "client": Sends, "looks": lambda *_, **__: look}
    asked = start_next_batch(
        SPEC, PLAN, look, Limits(5), ids_of=lambda *_, **__: {"a": "another", "b": "second"}, **given
    )
    assert [move.partition for move in asked] == [B] == sent


def test_what_kafka_does_not_know_any_more_was_not_started() -> None:
    class Knows(Reassignments):
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def alter(self, moves: Any, **_: Any) -> Any:
            known = {A: Answer.ACCEPTED, B: Answer.UNKNOWN_TOPIC_OR_PARTITION}
            return {move.partition: PartitionResult(move.partition, known[move.partition], "") for move in moves}

    now = placement()
    look = ReplicasLook("id", now, {}, {}, 0.0)
    started = start_next_batch(
        SPEC,
        replace(PLAN, topic_ids={}),
        look,
        Limits(5),
        secrets=lambda _: "",
        client=Knows,
        looks=lambda *_, **__: look,
    )
    assert [move.partition for move in started] == [A]


class Describes:
    """An admin client that knows some topics."""

    def __init__(self, known: dict[str, str], broken: bool = False) -> None:
        self.known, self.broken = known, broken

    def __call__(self, *_: Any, **__: Any) -> Describes:
        return self

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future[Any]]:
        return {name: self._answer(name) for name in wanted.topic_names}

    def _answer(self, name: str) -> Future[Any]:
        found: Future[Any] = Future()
        if self.broken:
            found.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        elif name in self.known:
            replicas = [SimpleNamespace(id=2), SimpleNamespace(id=1)]
            partitions = [SimpleNamespace(id=0, replicas=replicas)]
            found.set_result(SimpleNamespace(topic_id=self.known[name], partitions=partitions))
        else:
            found.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        return found


def test_what_does_not_exist_or_has_none_has_no_id() -> None:
    def here(*_: object, **__: object) -> tuple[str, str]:
        return "here:1", "broker 1"

    def ask(client: Describes) -> dict[str, str]:
        return topic_ids(SPEC, ["a", "b", "c"], secrets=lambda _: "", client=client, controller=here)

    assert ask(Describes({"a": "first", "b": NONE})) == {"a": "first"}
    with pytest.raises(Unreachable, match="broker 1 at here:1 did not describe topics"):
        ask(Describes({}, broken=True))
    assert topic_ids(SPEC, [], secrets=lambda _: "") == {}
    two = Describes({"a": "first", "b": NONE})
    found = topics_now(SPEC, ["a", "b", "c"], secrets=lambda _: "", client=two, controller=here)
    assert found == {"a": TopicNow("first", {0: (2, 1)}), "b": TopicNow("", {0: (2, 1)})}
