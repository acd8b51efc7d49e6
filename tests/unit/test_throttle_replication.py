"""Throttles set, in force, put back and swept, against brokers that are a table: how late each shows what was written
can't be chosen in a real one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kraft_runbook.cluster.assignment import Move
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.dynamic_configs import ALL_BROKERS, Entity, EntityKind, Found
from kraft_runbook.procedures import throttle_replication
from kraft_runbook.procedures.throttle_replication import read_throttles, remove_throttles, require_swept, set_throttles
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.throttles import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    Former,
    leftovers,
)
from tests.unit.observations import SPEC
from tests.unit.placements import tp

MOVES = [Move(tp("a", 0), (1, 2), (3, 2))]
TOPIC = Entity(EntityKind.TOPIC, "a")
OURS = RunThrottles.of(MOVES, 5000)
NOTHING = Former({}, {}, {})


class Brokers:
    """``late``: brokers that never show the default; ``dead``: those that do not answer; ``deleted``: topics."""

    def __init__(self) -> None:
        self.values: dict[Entity, dict[str, str]] = {}
        self.late: set[str] = set()
        self.dead: set[str] = set()
        self.deleted: set[str] = set()
        self.writes: list[Mapping[Entity, Mapping[str, str | None]]] = []

    def read(self, spec: Any, entities: Any, keys: Any, *, secrets: Any) -> dict[Entity, Found]:
        found = {}
        for entity in entities:
            if entity.name in self.dead:
                raise Unreachable(f"broker {entity.name}", way_out="")
            own = {key: value for key, value in self.values.get(entity, {}).items() if key in keys}
            default = {} if entity.name in self.late else self.values.get(ALL_BROKERS, {})
            found[entity] = Found(own, default | own if entity.kind is EntityKind.BROKER else own)
        return found

    def alter(
        self, spec: Any, changes: Mapping[Entity, Mapping[str, str | None]], *, secrets: Any
    ) -> tuple[Entity, ...]:
        self.writes.append({entity: values for entity, values in changes.items() if values})
        gone = tuple(entity for entity in changes if entity.name in self.deleted)
        changes = {entity: values for entity, values in changes.items() if entity not in gone}
        for entity, values in changes.items():
            for key, value in values.items():
                self.values.setdefault(entity, {}).pop(key, None)
                if value is not None:
                    self.values[entity][key] = value
        return gone


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brokers]:
    made = Brokers()
    monkeypatch.setattr(throttle_replication, "read_configs", made.read)
    monkeypatch.setattr(throttle_replication, "alter_configs", made.alter)
    monkeypatch.setattr(throttle_replication, "SEEN_WITHIN", 0.05)
    yield made


def test_rates_are_set_on_the_default_alone_and_done_again_nothing_is_written(brokers: Brokers) -> None:
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    assert brokers.values == {
        ALL_BROKERS: {LEADER_RATE: "5000", FOLLOWER_RATE: "5000"},
        TOPIC: {LEADER_LIST: "0:1,0:2", FOLLOWER_LIST: "0:3"},
    }
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    assert brokers.writes[-1] == {}


def test_nothing_moves_before_every_broker_that_answers_shows_the_throttle(brokers: Brokers) -> None:
    brokers.dead = {"3"}
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    brokers.late = {"2"}
    with pytest.raises(StepFailed, match=f"not in force after .* broker 2: {LEADER_RATE}=None"):
        set_throttles(SPEC, MOVES, 5000, secrets=None)
    brokers.values[Entity(EntityKind.BROKER, "2")] = {LEADER_RATE: "7", FOLLOWER_RATE: "7"}  # its own counts more
    set_throttles(SPEC, MOVES, 5000, secrets=None)


def test_put_back_is_all_as_before_and_nothing_is_left(brokers: Brokers) -> None:
    brokers.values = {ALL_BROKERS: {LEADER_RATE: "1"}, TOPIC: {LEADER_LIST: "0:1"}}
    before = {entity: dict(values) for entity, values in brokers.values.items()}
    former = read_throttles(SPEC, ["a"], secrets=None)
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    assert remove_throttles(SPEC, OURS, former, secrets=None) == ()
    assert brokers.values == before


def test_what_somebody_set_meanwhile_is_named_and_stays(brokers: Brokers) -> None:
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    brokers.values[ALL_BROKERS][FOLLOWER_RATE] = "9"
    left = remove_throttles(SPEC, OURS, NOTHING, secrets=None)
    assert [str(each) for each in left] == [f"the brokers' default: {FOLLOWER_RATE}=9"]
    assert brokers.values[ALL_BROKERS] == {FOLLOWER_RATE: "9"}
    with pytest.raises(StepFailed, match="1 throttles are left: the brokers' default"):
        require_swept(left)
    require_swept(())


def test_a_dead_broker_is_left_out_unless_it_is_asked_for(brokers: Brokers) -> None:
    brokers.dead = {"2"}
    brokers.values[Entity(EntityKind.BROKER, "1")] = {LEADER_RATE: "3"}
    assert read_throttles(SPEC, [], secrets=None).of_brokers == {1: {LEADER_RATE: "3"}}
    with pytest.raises(Unreachable):
        read_throttles(SPEC, [], secrets=None, live=[1, 2])


def test_a_rate_that_was_noted_and_never_set_leaves_the_one_before_it_to_be_put_back(brokers: Brokers) -> None:
    """The worker was killed between the note and the change."""
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    noted = OURS.and_then(RunThrottles.of(MOVES, 9000))
    assert remove_throttles(SPEC, noted, NOTHING, secrets=None) == ()
    assert brokers.values == {ALL_BROKERS: {}, TOPIC: {}}


def test_what_an_earlier_plan_of_the_run_throttled_is_put_back_too(brokers: Brokers) -> None:
    later = [Move(tp("b", 0), (1, 2), (3, 2))]
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    set_throttles(SPEC, later, 5000, secrets=None)
    assert remove_throttles(SPEC, OURS.and_then(RunThrottles.of(later, 5000)), NOTHING, secrets=None) == ()
    assert not any(brokers.values.values())


def test_a_dead_brokers_topics_are_put_back_through_the_living_and_a_deleted_topic_has_nothing(
    brokers: Brokers,
) -> None:
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    brokers.dead = {"1", "2"}  # every broker that holds the topic
    assert remove_throttles(SPEC, OURS, NOTHING, secrets=None) == ()
    assert not any(brokers.values.values())
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    del brokers.values[TOPIC]
    assert remove_throttles(SPEC, OURS, NOTHING, secrets=None) == ()
    assert not any(brokers.values.values())


def test_a_topic_that_was_deleted_since_keeps_no_throttle_from_being_in_force(brokers: Brokers) -> None:
    brokers.deleted = {"a"}
    set_throttles(SPEC, [*MOVES, Move(tp("b", 0), (1, 2), (3, 2))], 5000, secrets=None)
    assert set(brokers.values) == {ALL_BROKERS, Entity(EntityKind.TOPIC, "b")}


def test_of_what_is_left_only_what_the_run_set_is_its_own(brokers: Brokers) -> None:
    """A broker that was dead when throttles were saved has a rate of its own; somebody throttled more meanwhile."""
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    brokers.values[Entity(EntityKind.BROKER, "2")] = {LEADER_RATE: "7"}
    brokers.values[ALL_BROKERS][FOLLOWER_RATE] = "9"
    brokers.values[TOPIC][LEADER_LIST] += ",1:1"
    left = remove_throttles(SPEC, OURS, NOTHING, secrets=None)
    assert {each.where for each in left} == {"the brokers' default", "broker 2", "topic a"}
    assert OURS.among(left, NOTHING) == ()
    set_throttles(SPEC, MOVES, 5000, secrets=None)
    now = leftovers(read_throttles(SPEC, ["a"], secrets=None))
    assert {(each.where, each.key) for each in OURS.among(now, NOTHING)} == {
        ("the brokers' default", LEADER_RATE),
        ("the brokers' default", FOLLOWER_RATE),
        ("topic a", LEADER_LIST),
        ("topic a", FOLLOWER_LIST),
    }
