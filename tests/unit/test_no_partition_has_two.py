"""Whatever happens to a group, in whatever order, no partition is handed out by two; and then all are handed out."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from migrating_group import Rule, World

from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.step import Lock, Phase, Start, State, Step, View, step

EVENTS = (
    *("look", "act", "act", "act") * 4,
    *("finish", "join", "leave", "toggle to kafka", "toggle to zookeeper", "no mode", "nonsense"),
    *("stall", "end a session", "wake", "new joins", "new leaves", "old joins", "old leaves", "old acts"),
    *("old acts", "more partitions", "rebalance", "join without Kafka", "join Kafka", "wait for Kafka in vain"),
)
SEEDS = st.integers(0, 2**63)
History = tuple[str, int, list[tuple[str, int]]]


def history_of(seed: int) -> History:
    """Drawn by chance alone: hypothesis prefers small and equal events, and then finds hardly anything."""
    draw = random.Random(seed)
    events = [(draw.choice(EVENTS), draw.randrange(6)) for _ in range(draw.randrange(20, 150))]
    return draw.choice(("range", "roundrobin")), seed, events


def happen(world: World, event: str, which: int) -> None:
    """One event, unless it is none of those that KIP-125 supports: old and new members never meet, and a new one comes
    only once every migrating member follows Kafka.
    """
    names = sorted(world.migrating)
    one = names[which % len(names)] if names else None
    old = sorted(world.old)[which % len(world.old)] if world.old else None
    match event:
        case "join" if len(names) < 4:
            world.join(threads=1 + which % 2)
        case "join without Kafka" if len(names) < 4:
            world.join(in_kafka=False)
        case "toggle to kafka":
            world.mode = "kafka"
        case "toggle to zookeeper":
            world.mode = "zookeeper"
        case "no mode":
            world.mode = None
        case "nonsense":
            world.mode = "Kafka "
        case "new joins" if len(world.new) < 2 and names and not world.old:
            follow = all(m.state.mode is Mode.KAFKA and m.joined and not m.stalled for m in world.migrating.values())
            if follow and world.ids.keys() == world.migrating.keys():
                world.join_new()
        case "new leaves" if world.new:
            world.leave_new(sorted(world.new)[which % len(world.new)])
        case "old joins" if len(world.old) < 2 and not world.new:
            world.join_old()
        case "old leaves" if old:
            world.leave_old(old)
        case "old acts" if old:
            world.rebalance_old(old)
        case "more partitions" if len(world.topics["t"]) < 9:
            world.topics["t"] = tuple(range(len(world.topics["t"]) + 1))
        case "rebalance":
            world.rebalance_kafka()
        case _ if one:
            happen_to(world, event, one)


def happen_to(world: World, event: str, one: str) -> None:
    member = world.migrating[one]
    match event:
        case "look" if not member.stalled:
            world.look(one)
        case "act":
            world.act(one)
        case "finish":
            world.finish(one)
        case "leave" if not member.stalled:
            world.leave(one)
        case "stall":
            world.stall(one)
        case "end a session" if member.stalled and one in world.ids:
            world.end_session(one)
        case "wake" if member.stalled:
            world.wake(one)
        case "join Kafka" if not member.joined and not member.stalled:
            world.join_kafka(one)
        case "wait for Kafka in vain" if not member.joined:
            member.waited = True


def twice(history: History, *, rule: Rule = step, locks_hold: bool = True) -> World:
    """The world after the history; AssertionError as soon as two hand out one partition."""
    strategy, seed, events = history
    world = World({"t": (0, 1, 2, 3), "u": (0, 1)}, rule, locks_hold, strategy, random.Random(seed))
    for _ in range(2):
        world.join()
    for event, which in events:
        happen(world, event, which)
        for partition, who in world.holders().items():
            assert len(who) == 1, f"{partition} is handed out by {who} after {event}"
    return world


@given(SEEDS)
@settings(max_examples=500)
def test_no_partition_is_handed_out_by_two(seed: int) -> None:
    settle_and_judge(twice(history_of(seed)))


@pytest.mark.long
@given(SEEDS)
@settings(max_examples=10_000, suppress_health_check=list(HealthCheck))
def test_no_partition_is_handed_out_by_two_in_ten_thousand_histories(seed: int) -> None:
    settle_and_judge(twice(history_of(seed)))


@pytest.mark.parametrize("seed", range(50))
def test_no_partition_is_silent_longer_than_its_move(seed: int) -> None:
    """At a toggle, in whatever order members look and act: one that stays with its member is handed out all the time,
    and one that moves is silent once, from its member's stop to the next one's start.
    """
    draw = random.Random(seed)
    world = World({"t": tuple(range(6))}, draw=draw)
    for _ in range(3):
        world.join()
    world.settle()
    for mode in ("kafka", "zookeeper"):
        before, moments = world.holders(), [set(world.holders())]
        world.mode = mode
        for _ in range(600):
            happen_to(world, draw.choice(("look", "act", "finish")), draw.choice(sorted(world.migrating)))
            moments.append(set(world.holders()))
        after = world.holders()
        assert {len(who) for who in after.values()} == {1} and after.keys() == world.every()
        moved = {each for each in after if after[each] != before[each]}
        assert 0 < len(moved) < len(after)
        for each in after:
            silences = sum(each in one and each not in other for one, other in pairwise(moments))
            assert silences == (each in moved), each


LEFT_KAFKA_WHILE_A_NEW_ONE_JOINED = [
    *(("toggle to kafka", 0), ("look", 0), ("look", 1), ("act", 0), ("act", 1), ("toggle to zookeeper", 0)),
    *(("look", 0), ("look", 1), ("new joins", 0)),
]
WOKE_AFTER_KAFKA_HAD_GIVEN_IT_UP = [
    *(("toggle to kafka", 0), ("look", 0), ("look", 1), ("act", 0), ("act", 1), ("new joins", 0)),
    *(("stall", 0), ("join", 0), ("wake", 0)),
]


@pytest.mark.parametrize("events", [LEFT_KAFKA_WHILE_A_NEW_ONE_JOINED, WOKE_AFTER_KAFKA_HAD_GIVEN_IT_UP])
def test_histories_in_which_two_handed_out_one(events: list[tuple[str, int]]) -> None:
    settle_and_judge(twice(("range", 0, events)))


def test_what_a_member_holds_that_kafka_does_not_let_in_goes_to_the_others() -> None:
    world = World({"t": (0, 1, 2, 3)})
    world.join()
    late = world.join(in_kafka=False)
    world.settle()
    assert len(world.migrating[late].state.held) == 2
    world.mode = "kafka"
    with pytest.raises(AssertionError, match="does not settle"):
        world.settle()
    settle_and_judge(world)
    assert not world.migrating[late].state.held


def settle_and_judge(world: World) -> None:
    """Once all that stalled is back, each partition is handed out by exactly one; also where some are not let into
    Kafka's group for as long as they wait for it.
    """
    for name in [n for n, member in world.migrating.items() if member.stalled]:
        world.wake(name)
    for name, member in world.migrating.items():
        member.waited = not member.joined
        if not world.kafka:
            world.join_kafka(name)
    if not world.migrating and not world.new and not world.old:
        return
    world.rebalance_kafka()  # as its members ask for once they see that a topic has grown
    world.settle()
    for partition, who in world.holders().items():
        assert len(who) == 1, partition


# the check itself can fail


def leaves_kafka_while_it_revokes(state: State, view: View) -> Step:
    return step(state, replace(view, revoking=False, new={}))


def without_leaving_rule(state: State, view: View) -> Step:
    return step(state, replace(view, new={}))


def without_waiting_for_quiet(state: State, view: View) -> Step:
    return step(state, replace(view, quiet=frozenset((t, n) for t, ns in view.partitions.items() for n in ns)))


def keeps_what_kafka_takes(state: State, view: View) -> Step:
    """Follows Kafka, but lets nothing go."""
    found = step(state, view)
    if found.mode is not Mode.KAFKA:
        return found
    return Step(found.mode, tuple(a for a in found.actions if isinstance(a, Lock | Start)))


@pytest.mark.parametrize(
    ("rule", "locks_hold"),
    [
        (step, False),
        (without_leaving_rule, True),
        (leaves_kafka_while_it_revokes, True),
        (without_waiting_for_quiet, True),
        (keeps_what_kafka_takes, True),
    ],
)
def test_a_planted_fault_is_found(rule: Rule, locks_hold: bool) -> None:
    for seed in range(3000):
        try:
            twice(history_of(seed), rule=rule, locks_hold=locks_hold)
        except AssertionError:
            return
    pytest.fail(f"nothing was found wrong with {rule.__name__}")


@pytest.mark.parametrize("threads", [1, 3])
def test_a_group_that_nothing_happens_to_does_nothing(threads: int) -> None:
    world = World({"t": (0, 1, 2, 3)})
    for _ in range(2):
        world.join(threads=threads)
    world.settle()
    for member in world.migrating.values():
        assert step(member.state, member.view).actions == ()
        assert {held.phase for held in member.state.held.values()} == {Phase.RUNNING}
