"""Throttles set, in force, put back and swept, against brokers that are a table: how late each shows what was written
can't be chosen in a real one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from config_table import changed
from observations import SPEC
from placements import tp
from test_missing_rights import Node

from kraft_runbook.cluster.assignment import Move
from kraft_runbook.cluster.config_changes import LONGEST_TEXT, ConfigChange, Subtract
from kraft_runbook.errors import StepFailed, Unreachable
from kraft_runbook.io.kafka.dynamic_configs import ALL_BROKERS, Entity, EntityKind, Found, NotDescribed, read_configs
from kraft_runbook.procedures.move_between_disks import LAG, copy_settings, lag_seconds, set_disk_rate
from kraft_runbook.procedures.throttle_replication import (
    Configs,
    list_moves,
    read_throttles,
    remove_throttles,
    require_swept,
    set_rate,
    unlist,
)
from kraft_runbook.reassignment.disk_rates import COPY_THREADS, CopySettings
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.throttles import (
    DISK_RATE,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    UNREADABLE,
    Former,
    leftovers,
)

MOVES = [Move(tp("a", 0), (1, 2), (3, 2))]
TOPIC = Entity(EntityKind.TOPIC, "a")
OURS = RunThrottles.of(MOVES, 5000)
NOTHING = Former({}, {}, {})


class Brokers:
    """Their configurations, and this tool's calls to them.

    ``late``: brokers that never show the default; ``dead``: those that do not answer; ``deleted``: topics.
    """

    def __init__(self) -> None:
        self.values: dict[Entity, dict[str, str]] = {}
        self.late: set[str] = set()
        self.dead: set[str] = set()
        self.deleted: set[str] = set()
        self.reads = 0
        self.writes: list[Mapping[Entity, Mapping[str, ConfigChange]]] = []
        self._given: Any = {"secrets": None, "configs": Configs(self.read, self.alter, within=0.05)}
        self.put_back = partial(remove_throttles, SPEC, **self._given)
        self.throttles = partial(read_throttles, SPEC, **self._given)

    def throttle(self, moves: Sequence[Move], rate: int) -> None:
        set_rate(SPEC, rate, **self._given)
        list_moves(SPEC, moves, **self._given)

    def read(self, spec: Any, entities: Any, keys: Any, *, secrets: Any) -> dict[Entity, Found]:
        found = {}
        self.reads += 1
        if any(len(self.values.get(each, {}).get(key, "")) > LONGEST_TEXT for each in entities for key in keys):
            raise NotDescribed(f"{len(entities)} were asked for", way_out="")
        for entity in entities:
            if entity.name in self.dead:
                raise Unreachable(f"broker {entity.name}", way_out="")
            own = {key: value for key, value in self.values.get(entity, {}).items() if key in keys}
            default = {} if entity.name in self.late else self.values.get(ALL_BROKERS, {})
            found[entity] = Found(own, default | own if entity.kind is EntityKind.BROKER else own)
        return found

    def alter(
        self, spec: Any, changes: Mapping[Entity, Mapping[str, ConfigChange]], *, secrets: Any
    ) -> tuple[Entity, ...]:
        self.writes.append({entity: values for entity, values in changes.items() if values})
        gone = tuple(entity for entity in changes if entity.name in self.deleted)
        changes = {entity: values for entity, values in changes.items() if entity not in gone}
        for entity, values in changes.items():
            if values:
                self.values[entity] = changed(self.values.get(entity, {}), values)
        return gone


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def test_rates_are_set_on_the_default_alone_and_done_again_nothing_is_written(brokers: Brokers) -> None:
    brokers.throttle(MOVES, 5000)
    assert brokers.values == {
        ALL_BROKERS: {LEADER_RATE: "5000", FOLLOWER_RATE: "5000"},
        TOPIC: {LEADER_LIST: "0:1,0:2", FOLLOWER_LIST: "0:3"},
    }
    brokers.throttle(MOVES, 5000)
    assert brokers.writes[-1] == {}


def test_nothing_moves_before_every_broker_that_answers_shows_the_throttle(brokers: Brokers) -> None:
    brokers.dead = {"3"}
    brokers.throttle(MOVES, 5000)
    brokers.late = {"2"}
    with pytest.raises(StepFailed, match=f"not in force after .* broker 2: {LEADER_RATE}=None"):
        brokers.throttle(MOVES, 5000)
    brokers.values[Entity(EntityKind.BROKER, "2")] = {LEADER_RATE: "7", FOLLOWER_RATE: "7"}  # its own counts more
    brokers.throttle(MOVES, 5000)


def test_put_back_is_all_as_before_and_nothing_is_left(brokers: Brokers) -> None:
    brokers.values = {ALL_BROKERS: {LEADER_RATE: "1"}, TOPIC: {LEADER_LIST: "0:1"}}
    before = {entity: dict(values) for entity, values in brokers.values.items()}
    former = brokers.throttles(["a"])
    brokers.throttle(MOVES, 5000)
    assert brokers.put_back(OURS, former) == ()
    assert brokers.values == before


def test_what_somebody_set_meanwhile_is_named_and_stays(brokers: Brokers) -> None:
    brokers.throttle(MOVES, 5000)
    brokers.values[ALL_BROKERS][FOLLOWER_RATE] = "9"
    left = brokers.put_back(OURS, NOTHING)
    assert [str(each) for each in left] == [f"the brokers' default: {FOLLOWER_RATE}=9"]
    assert brokers.values[ALL_BROKERS] == {FOLLOWER_RATE: "9"}
    with pytest.raises(StepFailed, match="1 throttles are left: the brokers' default"):
        require_swept(left)
    require_swept(())


def test_a_dead_broker_is_left_out_unless_it_is_asked_for(brokers: Brokers) -> None:
    brokers.dead = {"2"}
    brokers.values[Entity(EntityKind.BROKER, "1")] = {LEADER_RATE: "3"}
    assert brokers.throttles([]).of_brokers == {1: {LEADER_RATE: "3"}}
    with pytest.raises(Unreachable):
        brokers.throttles([], live=[1, 2])


def test_a_rate_that_was_noted_and_never_set_leaves_the_one_before_it_to_be_put_back(brokers: Brokers) -> None:
    """The worker was killed between the note and the change."""
    brokers.throttle(MOVES, 5000)
    noted = OURS.and_then(RunThrottles.of(MOVES, 9000))
    assert brokers.put_back(noted, NOTHING) == ()
    assert brokers.values == {ALL_BROKERS: {}, TOPIC: {}}


def test_what_another_tool_adds_between_the_look_and_the_change_is_not_lost(brokers: Brokers) -> None:
    read, seen = brokers.read, []

    def raced(spec: Any, entities: Any, keys: Any, *, secrets: Any) -> dict[Entity, Found]:
        found = read(spec, entities, keys, secrets=secrets)
        if TOPIC in entities and not seen:
            seen.append(brokers.values.setdefault(TOPIC, {}).update({LEADER_LIST: "9:9"}))
        return found

    list_moves(SPEC, MOVES, secrets=None, configs=Configs(raced, brokers.alter, within=0.05))
    assert brokers.values[TOPIC] == {LEADER_LIST: "9:9,0:1,0:2", FOLLOWER_LIST: "0:3"}
    brokers.put_back(OURS, NOTHING)
    assert brokers.values[TOPIC] == {LEADER_LIST: "9:9"}


def test_what_an_earlier_plan_of_the_run_throttled_is_put_back_too(brokers: Brokers) -> None:
    later = [Move(tp("b", 0), (1, 2), (3, 2))]
    brokers.throttle(MOVES, 5000)
    brokers.throttle(later, 5000)
    assert brokers.put_back(OURS.and_then(RunThrottles.of(later, 5000)), NOTHING) == ()
    assert not any(brokers.values.values())


def test_what_has_ended_is_taken_off_and_what_somebody_listed_stays(brokers: Brokers) -> None:
    brokers.values = {TOPIC: {LEADER_LIST: "0:1"}}
    former = brokers.throttles(["a"])
    later = [Move(tp("a", 1), (1, 2), (3, 2))]
    brokers.throttle([*MOVES, *later], 5000)
    brokers.values[TOPIC][FOLLOWER_LIST] += ",9:9"
    both = RunThrottles.of([*MOVES, *later], 5000)
    unlist(SPEC, both.beyond(RunThrottles.of(later, 5000)), former, **brokers._given)
    assert brokers.values[TOPIC] == {LEADER_LIST: "0:1,1:1,1:2", FOLLOWER_LIST: "1:3,9:9"}
    assert brokers.values[ALL_BROKERS] == {LEADER_RATE: "5000", FOLLOWER_RATE: "5000"}
    unlist(SPEC, both.lists, former, **brokers._given)
    assert brokers.values[TOPIC] == {LEADER_LIST: "0:1", FOLLOWER_LIST: "9:9"}
    assert both.beyond(both) == {}


MANY = [Move(tp("a", number), (1, 2), (3, 2)) for number in range(4_000)]


@pytest.mark.parametrize("others", ["", "9:9"])
def test_a_list_that_nobody_can_read_is_put_back_by_what_the_run_has_written_down(
    brokers: Brokers, others: str
) -> None:
    """An earlier version of this tool made such ones."""
    ours = RunThrottles.of(MANY, 5000)
    brokers.values = {
        ALL_BROKERS: {LEADER_RATE: "5000", FOLLOWER_RATE: "5000"},
        TOPIC: {key: ",".join([*filter(None, [others]), *sorted(each)]) for key, each in ours.lists["a"].items()},
    }
    assert len(brokers.values[TOPIC][LEADER_LIST]) > LONGEST_TEXT > len(brokers.values[TOPIC][FOLLOWER_LIST])
    shown = brokers.throttles(["b", "a", "c"], live=()).lists
    assert shown == {"a": {LEADER_LIST: UNREADABLE, FOLLOWER_LIST: brokers.values[TOPIC][FOLLOWER_LIST]}}
    assert f"topic a: {LEADER_LIST}={UNREADABLE}" in map(str, leftovers(Former({}, {}, shown)))
    left = brokers.put_back(ours, NOTHING)
    assert [str(each) for each in left] == [f"topic a: {key}={others}" for key in brokers.values[TOPIC] if others]
    assert {key: value for key, value in brokers.values[TOPIC].items() if value} == (
        {LEADER_LIST: others, FOLLOWER_LIST: others} if others else {}
    )
    sent = [change for each in brokers.writes for values in each.values() for change in values.values()]
    assert all(len(each.entries) < LONGEST_TEXT for each in sent if isinstance(each, Subtract))


def test_a_broker_that_answers_without_a_configuration_is_told_from_one_that_is_silent() -> None:
    answer = SimpleNamespace(resource_type=2, resource_name="a", error_code=-1, error_message="")
    node: Any = Node(SimpleNamespace(results=[answer]))
    node.who = "broker 1"
    with pytest.raises(NotDescribed, match="broker 1 can't show the configuration of topic a: error -1"):
        read_configs(SPEC, [TOPIC], [LEADER_LIST], secrets=lambda _: "", connect=lambda *_, **__: node)


def test_a_list_is_never_made_longer_than_anybody_can_read(brokers: Brokers) -> None:
    with pytest.raises(StepFailed, match=f"more than 32,767 bytes, .*: {LEADER_LIST} of topic a"):
        brokers.throttle(MANY, 5000)
    assert TOPIC not in brokers.values
    brokers.values[TOPIC] = {LEADER_LIST: "x" * 40_000}
    with pytest.raises(StepFailed, match=f": {LEADER_LIST} of topic a"):
        brokers.throttle(MOVES, 5000)
    assert set(brokers.values[TOPIC]) == {LEADER_LIST}


def test_where_no_list_can_be_read_that_is_an_error_and_not_asked_of_each(brokers: Brokers) -> None:
    for number in range(1_000):
        brokers.values[Entity(EntityKind.TOPIC, f"t-{number}")] = {LEADER_LIST: "x" * 40_000}
    with pytest.raises(NotDescribed):
        brokers.throttles([f"t-{number}" for number in range(1_000)], live=())
    assert brokers.reads < 150


def test_a_dead_brokers_topics_are_put_back_through_the_living_and_a_deleted_topic_has_nothing(
    brokers: Brokers,
) -> None:
    brokers.throttle(MOVES, 5000)
    brokers.dead = {"1", "2"}  # every broker that holds the topic
    assert brokers.put_back(OURS, NOTHING) == ()
    assert not any(brokers.values.values())
    brokers.throttle(MOVES, 5000)
    del brokers.values[TOPIC]
    assert brokers.put_back(OURS, NOTHING) == ()
    assert not any(brokers.values.values())


def test_a_topic_that_was_deleted_since_keeps_no_throttle_from_being_in_force(brokers: Brokers) -> None:
    brokers.deleted = {"a"}
    brokers.throttle([*MOVES, Move(tp("b", 0), (1, 2), (3, 2))], 5000)
    assert set(brokers.values) == {ALL_BROKERS, Entity(EntityKind.TOPIC, "b")}


def test_of_what_is_left_only_what_the_run_set_is_its_own(brokers: Brokers) -> None:
    """A broker that was dead when throttles were saved has a rate of its own; somebody throttled more meanwhile."""
    brokers.throttle(MOVES, 5000)
    brokers.values[Entity(EntityKind.BROKER, "2")] = {LEADER_RATE: "7"}
    brokers.values[ALL_BROKERS][FOLLOWER_RATE] = "9"
    brokers.values[TOPIC][LEADER_LIST] += ",1:1"
    left = brokers.put_back(OURS, NOTHING)
    assert {each.where for each in left} == {"the brokers' default", "broker 2", "topic a"}
    assert OURS.among(left, NOTHING) == ()
    brokers.throttle(MOVES, 5000)
    now = leftovers(brokers.throttles(["a"]))
    assert {(each.where, each.key) for each in OURS.among(now, NOTHING)} == {
        ("the brokers' default", LEADER_RATE),
        ("the brokers' default", FOLLOWER_RATE),
        ("topic a", LEADER_LIST),
        ("topic a", FOLLOWER_LIST),
    }


def test_what_brokers_say_of_copies_between_disks_is_read_of_those_that_answer(brokers: Brokers) -> None:
    brokers.dead = {"3"}
    brokers.values = {
        ALL_BROKERS: {DISK_RATE: "9"},
        Entity(EntityKind.BROKER, "2"): {COPY_THREADS: "4", DISK_RATE: "7"},
    }
    assert copy_settings(SPEC, (1, 2, 3), **brokers._given) == {1: CopySettings(None, None), 2: CopySettings(4, 7)}


def test_how_long_a_follower_may_lag_is_that_of_the_slowest_leader_and_kafkas_default_where_none_says(
    brokers: Brokers,
) -> None:
    brokers.dead = {"3"}
    brokers.values = {Entity(EntityKind.BROKER, "1"): {LAG: "4000"}, Entity(EntityKind.BROKER, "2"): {LAG: "9000"}}
    lag = [lag_seconds(SPEC, each, **brokers._given) for each in ((1,), (1, 2), (1, 3))]
    assert lag == [4.0, 9.0, 30.0]


def test_no_copy_between_disks_begins_before_its_broker_shows_the_throttle(brokers: Brokers) -> None:
    brokers.dead, brokers.late = {"3"}, {"2"}
    set_disk_rate(SPEC, "5000", (1, 3), **brokers._given)
    with pytest.raises(StepFailed, match=r"was to be 5000, and after .* broker 2 None"):
        set_disk_rate(SPEC, "5000", (1, 2, 3), **brokers._given)
    brokers.values[Entity(EntityKind.BROKER, "2")] = {DISK_RATE: "7"}  # its own counts more
    set_disk_rate(SPEC, "5000", (1, 2, 3), **brokers._given)
    set_disk_rate(SPEC, None, **brokers._given)
    assert DISK_RATE not in brokers.values[ALL_BROKERS]
