"""Waiting for a group that stops, and for one that starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from group_world import OLD, T0, T1, World
from groups_seen_as import GROUP, OLD_ID, kafka, new, zookeeper
from observations import SPEC

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Unreachable
from kraft_runbook.groups.look import COMMITTED, GroupLook, LogBounds, Owner
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.planned_offsets import Direction, Origin, PlannedOffset
from kraft_runbook.groups.quiet import Quiet, quiet_at
from kraft_runbook.groups.stopped import started
from kraft_runbook.procedures import see_groups
from kraft_runbook.procedures.move_group import (
    commit_group,
    fence_group,
)
from kraft_runbook.procedures.watch_groups import Listening, Starting
from kraft_runbook.steps.groups.acts import not_started
from kraft_runbook.steps.groups.waiting import WhileWaiting


@pytest.fixture
def world() -> World:
    return World()


def test_silence_is_told_and_begins_anew_after_a_look_that_failed(world: World) -> None:
    now = [0.0]
    plan = world.plan()
    heard: list[Quiet] = []

    def stopped(plan: MovePlan, seen: GroupLook) -> None:
        found = quiet_at(seen, plan.direction, None)
        assert found is not None
        heard.append(found)

    listening = Listening(SPEC, [plan], 10.0, clock=lambda: now[0], stopped=stopped, **world.watched)
    world.zookeeper = zookeeper(OLD, offsets={T0: 7, T1: 8})
    assert listening() == (f"g: registered in ZooKeeper: {OLD_ID}",)
    world.zookeeper = zookeeper(offsets={T0: 7, T1: 8})
    assert listening() == ("g: silent for 0 of 20 s",)
    now[0] = 19.0
    assert listening() == ("g: silent for 19 of 20 s",)
    world.unread = True
    with pytest.raises(Unreachable):
        listening()
    world.unread = False
    now[0] = 20.0
    assert listening() == ("g: silent for 0 of 20 s",), "nobody looked meanwhile"
    now[0] = 40.0
    assert listening() == ()
    assert [each.left for each in heard] == [{T0: 7, T1: 8}] * 4, "each look that shows nobody, from the first on"
    world.there = False
    assert listening() == ("g: it is not below /consumers any more",)


def test_a_topic_of_another_group_of_the_wave_that_can_not_be_read_hides_no_end_of_a_log(world: World) -> None:
    """Else "the end at the stop" of all of them would be where the logs end once the silence is over."""
    ours, theirs = world.plan(), replace(world.plan(), group="other")
    theirs = replace(theirs, offsets=(replace(theirs.offsets[0], partition=("denied", 0)),), fences=(("denied", 0),))
    logs: dict[str, Any] = {"t": {0: LogBounds(0, 90), 1: LogBounds(0, 95)}, "denied": Unread("denied")}
    sides = {GROUP: zookeeper(offsets={T0: 7, T1: 8}), "other": zookeeper(offsets={("denied", 0): 1})}
    asks = see_groups.Asks(
        groups=lambda _, names: [[(each, sides[each]) for each in names]],
        kafka=lambda _, names, **__: dict.fromkeys(names),
        clock=lambda _: 1,
        logs=lambda _, topics, **__: {each: logs[each] for each in topics},
    )

    def looks(_: Any, *, secrets: Any, names: Any, plans: Any) -> Iterator[GroupLook]:
        reader: Any = None
        clock = see_groups._Clock(reader, asks)
        return see_groups._looks(reader, SPEC, clock, secrets, names, logs=True, plans=plans, asks=asks)

    quiet: dict[str, Quiet | None] = {}
    seen: dict[str, GroupLook] = {}

    def stopped(plan: MovePlan, look: GroupLook) -> None:
        seen[plan.group] = look
        quiet[plan.group] = quiet_at(look, plan.direction, None)

    Listening(SPEC, [ours, theirs], 10.0, secrets=lambda _: "", stopped=stopped, looks=looks)()
    assert quiet_at(seen["other"], theirs.direction, None, ["denied"]) == Quiet({("denied", 0): 1}, {}), (
        "nobody reads it"
    )
    assert quiet == {GROUP: Quiet({T0: 7, T1: 8}, {T0: 90, T1: 95}), "other": None}


def test_an_offset_is_judged_by_ends_that_were_read_after_it_also_of_groups_behind_the_first_250() -> None:
    """Their members read and commit while the groups before them are looked at."""
    end = [100]
    owners = {T0: Owner(f"fence{COMMITTED}", True)}

    def groups(_: Any, names: Any) -> Iterator[list[tuple[str, Any]]]:
        for name in names:
            yield [(name, zookeeper(owners=owners))]
            end[0] += 30

    asks = see_groups.Asks(
        groups=groups,
        kafka=lambda _, names, **__: {each: kafka(new("a", T0), offsets={T0: end[0]}) for each in names},
        clock=lambda _: 1,
        logs=lambda _, topics, **__: {each: {0: LogBounds(0, end[0])} for each in topics},
    )
    reader: Any = None
    clock = see_groups._Clock(reader, asks)
    offsets = (PlannedOffset(T0, 50, Origin.ZOOKEEPER, None),)
    plans = [MovePlan(name, Direction.TO_KAFKA, offsets, (T0,)) for name in ("g1", "g2")]
    looks = see_groups._looks(reader, SPEC, clock, str, ["g1", "g2"], logs=True, plans=plans, asks=asks)
    assert [started(*each).missing for each in zip(plans, looks, strict=True)] == [(), ()]


def test_logs_that_can_not_be_read_are_told_apart_from_what_members_have_not_done(world: World) -> None:
    plan = world.plan()
    world.more = {"t": {0: LogBounds(0, 100, "id"), 1: Unread("it has no leader")}}
    taken = kafka(new("app", T0, T1), offsets={T0: 9, T1: 9})
    starting = Starting(SPEC, [plan], **world.watched)
    for seen in (
        kafka(new("app", T0), offsets={T0: 9, T1: 9}),
        kafka(new("app", T0, T1), offsets={T0: 7, T1: 9}),
        kafka(new("app", T0, T1), offsets={T0: 9, T1: Unread("denied")}),
        kafka(new("app", T0, T1), offsets={T0: 9}),
    ):
        world.kafka = seen
        assert starting() and starting.unread == {}
    world.kafka = taken
    wait = WhileWaiting([GROUP], stops=False, tell=lambda _: None)
    assert not wait.look(starting)
    assert wait.found["missing"] and wait.found["unread"] == {GROUP: "t-1 (it has no leader)"}
    assert list(not_started(SPEC, [plan], **world.watched)) == [GROUP]
    assert not_started(SPEC, [plan], begun=True, **world.watched) == {}, "one that was seen to start stays so"
    world.more = {}
    assert wait.look(starting) and "unread" not in wait.found


def test_the_start_is_awaited_until_nothing_is_missing(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    starting = Starting(SPEC, [plan], **world.watched)
    assert starting() == ("g: Kafka's group is Empty, not Stable; nothing committed yet: t-0, t-1",)
    world.kafka = kafka(new("app", T0, T1), offsets={T0: 9, T1: 9})
    assert starting() == ()
    assert starting.seen[GROUP].lag == 182
