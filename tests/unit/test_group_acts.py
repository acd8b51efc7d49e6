"""The acts of a move, one after the other: killed anywhere and done again they go on from what is true, and whoever is
there, or commits meanwhile, stops them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from group_world import OLD, T0, T1, World
from groups_seen_as import GROUP, kafka, member, new, zookeeper
from observations import SPEC

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.groups.look import COMMITTED, Kind, LogBounds, Owner, StoredOffset
from kraft_runbook.groups.move_plan import MovePlan, plan_move
from kraft_runbook.groups.planned_offsets import Beginning, Direction, Origin
from kraft_runbook.groups.quiet import quiet_at
from kraft_runbook.procedures.move_group import (
    Committed,
    commit_group,
    fence_group,
    lift_group,
    remove_static_group,
    require_in_place,
    see_group,
    stop_read,
    write_back_group,
)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("killed_after", [0, 1])
def test_killed_in_any_act_the_next_try_ends_with_the_same(world: World, killed_after: int) -> None:
    plan = world.plan()
    for act in (fence_group, commit_group):
        world.killed_after = killed_after
        with pytest.raises(KeyboardInterrupt):
            act(SPEC, plan, **world.given)
        world.killed_after = 99
        left = 2 - killed_after
        assert act(SPEC, plan, **world.given) in (left, Committed(left, kept=False))
        assert act(SPEC, plan, **world.given) in (0, Committed(0, kept=False))
    assert world.kafka.offsets == {T0: 7, T1: 8} and world.zookeeper.fenced == {T0, T1}
    world.kafka = kafka(offsets={T0: 20, T1: 30})
    back = world.plan(Direction.BACK)
    for act in (write_back_group, lift_group):
        world.killed_after = killed_after
        with pytest.raises(KeyboardInterrupt):
            act(SPEC, back, **world.given)
        world.killed_after = 99
        left = 2 - killed_after
        assert act(SPEC, back, **world.given) in (left, Committed(left, kept=False))
        assert act(SPEC, back, **world.given) in (0, Committed(0, kept=False))
    assert {p: each.value for p, each in world.zookeeper.offsets.items()} == {T0: 20, T1: 30}
    assert world.zookeeper.fenced == frozenset()


@pytest.mark.parametrize("act", [fence_group, commit_group])
def test_whoever_is_there_stops_an_act(world: World, act: Any) -> None:
    plan = world.plan()
    for changed in ({"members": (OLD,)}, {"migrating_ids": frozenset({"m"})}):
        before = world.zookeeper
        world.zookeeper = replace(world.zookeeper, **changed)
        with pytest.raises(Refused, match="group g is not silent: registered in ZooKeeper"):
            act(SPEC, plan, **world.given)
        world.zookeeper = before
    world.kafka = kafka(new("app"))
    with pytest.raises(Refused, match="is Stable: app"):
        act(SPEC, plan, **world.given)


def test_an_unfenced_partition_takes_no_commit_and_an_unwritten_one_no_lifting(world: World) -> None:
    plan = world.plan()
    world.own([T0])
    with pytest.raises(Refused, match="t-1 of group g are not fenced"):
        commit_group(SPEC, plan, **world.given)
    assert world.kafka is None
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={T0: 20, T1: 8})
    back = world.plan(Direction.BACK)
    with pytest.raises(Refused, match="t-0 of group g have not the offsets of the plan in ZooKeeper"):
        lift_group(SPEC, back, **world.given)
    assert world.zookeeper.fenced == {T0, T1}


def test_a_commit_to_the_side_that_was_left_stops_the_move(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    world.zookeeper = replace(world.zookeeper, offsets={**world.zookeeper.offsets, T1: StoredOffset(9, 2)})
    with pytest.raises(Refused, match="somebody still commits for group g: t-1 changed"):
        commit_group(SPEC, plan, **world.given)
    assert world.kafka is None
    again = stop_read(SPEC, plan, None, kept=plan, **world.given)
    assert [each.offset for each in again.offsets] == [7, 9]


def test_a_group_that_has_read_on_where_it_was_moved_to_is_not_sent_back_to_the_offsets_of_the_stop(
    world: World,
) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={T0: 90})
    with pytest.raises(Refused, match="t-0 of group g have another offset in Kafka than at the stop"):
        commit_group(SPEC, plan, **world.given)
    world.kafka = None
    commit_group(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={T0: 90, T1: 8})
    with pytest.raises(Refused, match="t-0 is at 7 in ZooKeeper and at 90 in Kafka, and a part of the group is fenced"):
        stop_read(SPEC, plan, None, **world.given)
    with pytest.raises(Refused, match="t-0 of group g have another offset in Kafka than at the stop"):
        commit_group(SPEC, plan, **world.given)
    assert world.kafka.offsets == {T0: 90, T1: 8}


def test_an_offset_that_somebody_sets_back_after_the_commit_is_not_overwritten(world: World) -> None:
    world.kafka = kafka(offsets={T0: 3})
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={T0: 3, T1: 8})
    with pytest.raises(Refused, match=r"were committed before, and Kafka has others now \(t-0\)"):
        commit_group(SPEC, plan, **world.given)


def test_old_members_that_have_read_on_after_the_way_back_are_not_sent_back(world: World) -> None:
    fence = dict.fromkeys((T0, T1), Owner(f"fence{COMMITTED}", True))
    world.zookeeper, world.kafka = zookeeper(owners=fence, offsets={T0: 7, T1: 8}), kafka(offsets={T0: 50, T1: 60})
    plan = world.plan(Direction.BACK)
    write_back_group(SPEC, plan, **world.given)
    again = stop_read(SPEC, plan, None, kept=plan, **world.given)
    assert again == plan, "what this run has written is nobody's reading"
    lift_group(SPEC, plan, **world.given)
    world.zookeeper = replace(world.zookeeper, offsets={T0: StoredOffset(90, 2), T1: StoredOffset(60, 2)})
    with pytest.raises(Refused, match="t-0 is at 90 in ZooKeeper, which this run has neither planned with nor written"):
        stop_read(SPEC, plan, None, kept=plan, **world.given)
    named = stop_read(SPEC, plan, {"t-0": 90}, kept=plan, **world.given)
    assert [each.offset for each in named.offsets] == [90, 60]


def test_no_fence_is_lifted_while_kafkas_members_have_read_on(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    back = world.plan(Direction.BACK)
    write_back_group(SPEC, back, **world.given)
    world.kafka = kafka(offsets={T0: 70, T1: 8})
    with pytest.raises(Refused, match="somebody still commits for group g: t-0 changed"):
        lift_group(SPEC, back, **world.given)
    assert world.zookeeper.fenced == {T0, T1}


def test_what_is_not_there_after_a_write_is_named(world: World) -> None:
    plan = world.plan()
    world.deaf = True
    with pytest.raises(StepFailed, match="2 partitions of group g are not fenced: t-0, t-1"):
        fence_group(SPEC, plan, **world.given)
    world.own([T0, T1])
    world.kafka = kafka(kind="", offsets={T0: 7})
    with pytest.raises(StepFailed, match="1 partitions of group g have another offset in Kafka"):
        commit_group(SPEC, plan, **world.given)


def test_the_end_at_the_stop_stays_where_it_was_at_the_first_reading(world: World) -> None:
    world.zookeeper = zookeeper(OLD, offsets={T0: 7})
    (seen,) = world.look(SPEC, secrets=None, names=[GROUP])
    plan = plan_move(seen, Direction.TO_KAFKA, without=Beginning.END_AT_THE_STOP)
    assert isinstance(plan, MovePlan)
    world.zookeeper = zookeeper(offsets={T0: 7})
    first = stop_read(SPEC, plan, Beginning.END_AT_THE_STOP, **world.given)
    world.end = 110
    quiet = quiet_at(world.look(SPEC, secrets=None, names=[GROUP])[0], Direction.TO_KAFKA, None)
    world.end = 150
    assert stop_read(SPEC, plan, Beginning.END_AT_THE_STOP, quiet=quiet, **world.given).offsets[1].offset == 110
    world.partitions = 3
    came = stop_read(SPEC, plan, Beginning.END_AT_THE_STOP, quiet=quiet, **world.given)
    assert [each.offset for each in came.offsets] == [7, 110, 0], "of one that came since, all is read"
    world.partitions = 2
    assert stop_read(SPEC, plan, Beginning.END_AT_THE_STOP, kept=first, **world.given).offsets[1].offset == 100
    assert stop_read(SPEC, plan, Beginning.END_AT_THE_STOP, **world.given).offsets[1].offset == 150


def test_a_plan_without_numbers_commits_nothing(world: World) -> None:
    world.zookeeper = zookeeper(OLD, offsets={T0: 7})
    (seen,) = world.look(SPEC, secrets=None, names=[GROUP])
    plan = plan_move(seen, Direction.TO_KAFKA, without=Beginning.END_AT_THE_STOP)
    assert isinstance(plan, MovePlan)
    world.zookeeper = zookeeper(offsets={T0: 7}, owners=dict.fromkeys((T0, T1), Owner("fence", True)))
    with pytest.raises(Refused, match="t-1 have no offset yet"):
        commit_group(SPEC, plan, **world.given)


@pytest.mark.parametrize("committed", [0, 1])
def test_a_move_that_ended_before_its_commit_goes_back_to_what_zookeeper_has(world: World, committed: int) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    if committed:
        world.killed_after = committed
        with pytest.raises(KeyboardInterrupt):
            commit_group(SPEC, plan, **world.given)
        world.killed_after = 99
    back = world.plan(Direction.BACK)
    assert [each.offset for each in back.offsets] == [7, 8]
    assert write_back_group(SPEC, back, **world.given).changed == 0
    assert lift_group(SPEC, back, **world.given) == 2


def test_the_fence_says_that_the_offsets_were_committed_once_they_were_read_back(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    assert world.zookeeper.committed == frozenset()
    commit_group(SPEC, plan, **world.given)
    assert world.zookeeper.committed == {T0, T1}


def test_offsets_that_have_expired_are_committed_again_and_read_on_ones_are_not(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    require_in_place(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={T0: 7})
    with pytest.raises(Refused, match="group g: no offset in Kafka any more: expired, or deleted: t-1"):
        require_in_place(SPEC, plan, **world.given)
    assert commit_group(SPEC, plan, **world.given).changed == 1 and world.kafka.offsets == {T0: 7, T1: 8}
    world.kafka = None
    assert commit_group(SPEC, plan, **world.given).changed == 2 and world.kafka.offsets == {T0: 7, T1: 8}
    world.kafka = kafka(offsets={T0: 90})
    with pytest.raises(Refused, match="somebody has read on there"):
        commit_group(SPEC, plan, **world.given)


def test_offsets_that_are_gone_after_members_have_started_are_not_those_of_the_stop_again(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={T0: 7})
    with pytest.raises(
        Refused, match=r"t-1 of group g have no offset in Kafka any more, and this run has seen"
    ) as told:
        commit_group(SPEC, plan, begun=True, **world.given)
    assert "another run, whose form names where they begin: t-1=OFFSET" in told.value.way_out
    assert world.kafka.offsets == {T0: 7}


def test_offsets_are_read_anew_where_the_side_that_is_written_to_has_others_since(world: World) -> None:
    plan = world.plan()
    world.kafka = kafka(offsets={T0: 90})
    fence_group(SPEC, plan, **world.given)
    with pytest.raises(Refused, match="another offset in Kafka than at the stop") as told:
        commit_group(SPEC, plan, **world.given)
    assert "clear 'preflight.plan' with its downstream tasks, which plans anew" in told.value.way_out
    with pytest.raises(Refused, match="t-0 is at 7 in ZooKeeper and at 90 in Kafka, and a part of the group is fenced"):
        stop_read(SPEC, plan, None, kept=plan, **world.given)
    named = stop_read(SPEC, plan, {"t-0": 90}, kept=plan, **world.given)
    assert [(each.offset, each.replaces) for each in named.offsets] == [(90, 90), (8, None)]
    world.zookeeper = replace(world.zookeeper, owners={})
    with pytest.raises(Refused, match="t-0 is at 90 in Kafka, which this run has neither planned with nor written"):
        stop_read(SPEC, plan, None, kept=plan, **world.given)
    anew = world.plan()
    assert [(each.offset, each.replaces) for each in anew.offsets] == [(7, 90), (8, None)], "a person is shown both"
    assert stop_read(SPEC, plan, None, kept=anew, **world.given) == anew
    world.kafka = None
    assert stop_read(SPEC, plan, None, kept=anew, **world.given) == anew, "what has expired is nobody's"


def test_each_try_commits_anew_what_is_there_so_that_it_expires_later(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    assert commit_group(SPEC, plan, **world.given).changed == 2
    taken = list(world.commits)
    assert commit_group(SPEC, plan, **world.given).changed == 0
    assert world.commits == taken * 2


def test_offsets_of_a_group_that_had_members_are_committed_with_a_time_of_their_own(world: World) -> None:
    """They would expire by the time at which those members left, however young the commit is. Nothing is deleted."""
    world.kafka = kafka(offsets={T0: 3})
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    assert commit_group(SPEC, plan, **world.given) == Committed(2, kept=True)
    assert world.kept == [True] and world.kafka.offsets == {T0: 7, T1: 8}


def test_offsets_of_a_group_that_never_had_members_expire_by_the_brokers_time(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    world.kafka = kafka(kind="", offsets=world.kafka.offsets)
    commit_group(SPEC, plan, **world.given)
    assert world.kept == [False, False]


def test_nothing_is_committed_where_kafka_has_an_offset_that_the_plan_does_not_hold(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={("u", 0): 3})
    with pytest.raises(Refused, match="u-0 came to the topics of group g"):
        commit_group(SPEC, plan, **world.given)
    assert world.kafka.offsets == {("u", 0): 3}


def test_before_the_start_the_offsets_are_the_written_ones_and_then_no_lower(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={T0: 7, T1: 30})
    with pytest.raises(Refused, match="t-1 of group g have another offset in Kafka than was written, and nobody"):
        require_in_place(SPEC, plan, **world.given)
    require_in_place(SPEC, plan, begun=True, **world.given)
    world.kafka = kafka(new("app", T0), offsets={T0: 7, T1: 30})
    require_in_place(SPEC, plan, **world.given)
    world.kafka = kafka(offsets={T0: 7, T1: 3})
    with pytest.raises(Refused, match=r"behind what was written to Kafka: t-1 \(3, written was 8"):
        require_in_place(SPEC, plan, begun=True, **world.given)
    world.kafka = Unread("denied")
    with pytest.raises(Refused, match="could not be read: Kafka's group was not read: denied"):
        require_in_place(SPEC, plan, begun=True, **world.given)


def test_no_start_is_asked_for_while_the_side_that_was_left_may_consume(world: World) -> None:
    """Another run may have moved the group back since."""
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    moved = world.zookeeper
    for there, says in (
        (replace(moved, members=(OLD,)), "registered in ZooKeeper"),
        (replace(moved, owners={**moved.owners, T0: Owner("x-0", False)}), "not fenced: t-0; owns partitions"),
        (replace(moved, owners={}), "not fenced: t-0, t-1"),
    ):
        world.zookeeper = there
        for begun in (False, True):
            with pytest.raises(Refused, match=f"not where this run moved it to: {says}"):
                require_in_place(SPEC, plan, begun=begun, **world.given)
    world.zookeeper = moved
    back = world.plan(Direction.BACK)
    write_back_group(SPEC, back, **world.given)
    lift_group(SPEC, back, **world.given)
    world.zookeeper = replace(world.zookeeper, members=(OLD,))
    require_in_place(SPEC, back, **world.given)
    world.kafka = kafka(new("app", T0), offsets={T0: 7, T1: 8})
    with pytest.raises(Refused, match=r"not where this run moved it to: in Kafka's group: app \(10"):
        require_in_place(SPEC, back, **world.given)


def test_a_partition_that_comes_to_a_topic_during_the_run_gets_an_offset_or_stops_it(world: World) -> None:
    plan = world.plan()
    world.partitions = 3
    with pytest.raises(Refused, match="t-2 has no offset in ZooKeeper"):
        stop_read(SPEC, plan, None, kept=plan, **world.given)
    fence_group(SPEC, plan, **world.given)
    with pytest.raises(Refused, match="t-2 came to the topics of group g since the offsets were read"):
        commit_group(SPEC, plan, **world.given)
    grown = stop_read(SPEC, plan, Beginning.EARLIEST, kept=plan, **world.given)
    assert [each.offset for each in grown.offsets] == [7, 8, 0] and grown.fences[2] == ("t", 2)
    fence_group(SPEC, grown, **world.given)
    assert commit_group(SPEC, grown, **world.given).changed == 3
    world.partitions = 4
    with pytest.raises(Refused, match="t-3 came to the topics of group g"):
        require_in_place(SPEC, grown, **world.given)


def test_a_partition_that_is_deleted_after_the_reading_stops_no_move_in_either_direction(world: World) -> None:
    plan = world.plan()
    world.own([T0, T1])
    world.partitions = 1
    deleted = ("deleted since, and given no offset: t-1",)
    assert commit_group(SPEC, plan, **world.given) == Committed(1, kept=False, since=deleted)
    assert world.commits == [{T0: 7}] and T0 in world.zookeeper.committed
    require_in_place(SPEC, plan, **world.given)
    world.partitions = 2
    world.kafka = kafka(offsets={T0: 20, T1: 30})
    back = world.plan(Direction.BACK)
    world.partitions, world.kafka = 1, kafka(offsets={T0: 20})
    assert write_back_group(SPEC, back, **world.given) == Committed(1, kept=False, since=deleted)
    assert world.zookeeper.offsets[T1].value == 8
    assert lift_group(SPEC, back, **world.given) == 2 and world.zookeeper.fenced == frozenset()


def test_no_partition_is_fenced_that_was_deleted_since(world: World) -> None:
    plan = world.plan()
    world.partitions = 1
    assert fence_group(SPEC, plan, **world.given) == 1 and world.zookeeper.fenced == {T0}


def test_offsets_of_a_topic_that_nobody_reads_are_committed_and_may_expire(world: World) -> None:
    world.more = {"left": {0: LogBounds(0, 9)}}
    left = ("left", 0)
    world.zookeeper, world.kafka = zookeeper(OLD, offsets={T0: 7, T1: 8, left: 5}), kafka(kind="", offsets={left: 2})
    (seen,) = world.look(SPEC, secrets=None, names=[GROUP])
    signed = plan_move(seen, Direction.TO_KAFKA)
    assert isinstance(signed, MovePlan)
    world.zookeeper = zookeeper(offsets={T0: 7, T1: 8, left: 5})
    plan = stop_read(SPEC, signed, None, **world.given)
    world.kafka = kafka(kind="", offsets={left: 4})
    assert [each.partition for each in stop_read(SPEC, signed, None, **world.given).left_out] == [left], "it is read on"
    world.kafka = kafka(kind="", offsets={left: 2})
    assert fence_group(SPEC, plan, **world.given) == 2
    assert commit_group(SPEC, plan, **world.given).changed == 3 and world.kafka.offsets[left] == 5
    world.kafka = kafka(offsets={T0: 7, T1: 8})
    require_in_place(SPEC, plan, **world.given)
    assert commit_group(SPEC, plan, begun=True, **world.given).changed == 1


def test_a_topic_that_is_made_while_the_group_stands_still_is_in_the_move_if_its_pattern_fits(world: World) -> None:
    world.zookeeper = zookeeper(member(Kind.OLD, topics={"t.*": 1}, pattern="white_list"), offsets={T0: 7, T1: 8})
    (seen,) = world.look(SPEC, secrets=None, names=[GROUP])
    signed = plan_move(seen, Direction.TO_KAFKA)
    assert isinstance(signed, MovePlan)
    world.zookeeper = zookeeper(offsets={T0: 7, T1: 8})
    plan = stop_read(SPEC, signed, None, **world.given)
    fence_group(SPEC, plan, **world.given)
    world.more = {"u": {0: LogBounds(0, 9)}, "t2": {0: LogBounds(0, 500)}}
    with pytest.raises(Refused, match="t2-0 came to the topics of group g since the offsets were read"):
        commit_group(SPEC, plan, **world.given)
    plan = stop_read(SPEC, signed, None, kept=plan, **world.given)
    fence_group(SPEC, plan, **world.given)
    commit_group(SPEC, plan, **world.given)
    assert world.kafka.offsets == {T0: 7, T1: 8, ("t2", 0): 0}
    require_in_place(SPEC, plan, **world.given)
    world.more["t3"] = {0: LogBounds(0, 1)}
    with pytest.raises(Refused, match="t3-0 came to the topics of group g"):
        require_in_place(SPEC, plan, **world.given)


# -- what becomes of the logs meanwhile --------------------------------------------------------------------------------


def test_no_member_begins_below_its_log_where_retention_has_deleted_on_between_the_stop_and_the_start(
    world: World,
) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    world.start = 8
    found = commit_group(SPEC, plan, **world.given)
    assert world.commits == [{T0: 8, T1: 8}] and found.changed == 2
    assert found.since == ("moved up to the start of the log, since what lay before it was deleted: t-0 (7 -> 8)",)
    require_in_place(SPEC, plan, **world.given)
    world.start = 50
    for begun in (False, True):
        with pytest.raises(Refused, match=r"not in the log: t-0 \(8, the log goes from 50 to 100\), t-1") as told:
            require_in_place(SPEC, plan, begun=begun, **world.given)
        assert "clear the task 'commit' of its wave" in told.value.way_out
    assert commit_group(SPEC, plan, begun=True, **world.given).changed == 2
    assert world.kafka.offsets == {T0: 50, T1: 50}
    require_in_place(SPEC, plan, **world.given)
    assert stop_read(SPEC, plan, None, kept=plan, **world.given) == plan, "read again, nobody has read on"
    assert commit_group(SPEC, plan, **world.given).changed == 0


def test_on_the_way_back_too_no_member_begins_below_its_log(world: World) -> None:
    world.kafka = kafka(offsets={T0: 7, T1: 60})
    world.mark([T0, T1])
    plan = world.plan(Direction.BACK)
    world.start = 50
    assert write_back_group(SPEC, plan, **world.given).changed == 2
    assert {p: each.value for p, each in world.zookeeper.offsets.items()} == {T0: 50, T1: 60}
    assert write_back_group(SPEC, plan, **world.given).changed == 0
    world.start = 55
    assert lift_group(SPEC, plan, **world.given) == 2
    with pytest.raises(Refused, match=r"not in the log: t-0 \(50, the log goes from 55 to 100\)"):
        require_in_place(SPEC, plan, **world.given)


def test_offsets_of_a_topic_that_was_made_anew_are_no_more_and_all_of_it_is_read(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    world.topic_id, world.end = "another", 8
    with pytest.raises(Refused, match="topics of group g were made anew since the offsets were read: t"):
        commit_group(SPEC, plan, **world.given)
    anew = stop_read(SPEC, plan, None, kept=plan, **world.given)
    assert [(each.offset, each.origin, each.left) for each in anew.offsets] == [
        (0, Origin.LOG_START, 7),
        (0, Origin.LOG_START, 8),
    ]
    assert anew.render_text().splitlines()[2] == "t-0 · 0 · the log's start, not 7 · nothing"
    world.end = 20
    assert stop_read(SPEC, plan, None, kept=anew, **world.given) == anew
    assert commit_group(SPEC, anew, **world.given).changed == 2 and world.kafka.offsets == {T0: 0, T1: 0}
    require_in_place(SPEC, anew, **world.given)
    world.topic_id = "a third one"
    with pytest.raises(Refused, match="made anew since the offsets were read: t") as told:
        require_in_place(SPEC, anew, begun=True, **world.given)
    assert "clear the task 'silent' of its wave" in told.value.way_out


def test_offsets_behind_the_end_of_a_log_are_not_carried_over(world: World) -> None:
    plan = world.plan()
    fence_group(SPEC, plan, **world.given)
    world.end = 7
    with pytest.raises(Refused, match=r"lie behind the end of the log: t-1 \(8, the log ends at 7\)"):
        commit_group(SPEC, plan, **world.given)
    with pytest.raises(Refused, match="the offset of t-1 at the stop is 8, and its log goes from 0 to 7"):
        stop_read(SPEC, plan, None, kept=plan, **world.given)


def test_a_half_made_fence_is_moved_to_kafka_by_another_run(world: World) -> None:
    plan = world.plan()
    world.own([T0])
    again = world.plan()
    assert again == plan
    assert fence_group(SPEC, again, **world.given) == 1
    world.killed_after = 1
    with pytest.raises(KeyboardInterrupt):
        commit_group(SPEC, again, **world.given)
    world.killed_after = 99
    assert commit_group(SPEC, world.plan(), **world.given).changed == 1
    assert world.zookeeper.committed == {T0, T1}


def test_an_act_of_the_other_direction_is_a_programming_error(world: World) -> None:
    for act in (write_back_group, lift_group):
        with pytest.raises(ValueError, match="a plan to Kafka has no such step"):
            act(SPEC, world.plan(), **world.given)


def test_a_group_that_is_not_there_is_named(world: World) -> None:
    world.there = False
    with pytest.raises(Refused, match="there is no group g below /consumers"):
        see_group(SPEC, GROUP, **world.given)


# -- static members ----------------------------------------------------------------------------------------------------

STATIC = kafka(new("app", T0, instance="a1"), new("app", T1, instance="a2"), offsets={T0: 9, T1: 9})


def going_back(world: World) -> MovePlan:
    """The plan of the way back, of a group that was read in Kafka."""
    world.kafka = kafka(offsets={T0: 9, T1: 9})
    world.mark([T0, T1])
    return world.plan(Direction.BACK)


def test_static_members_left_alone_are_removed_by_name_on_the_way_back(world: World) -> None:
    plan = going_back(world)
    assert remove_static_group(SPEC, plan, **world.given) == 0
    world.kafka = kafka(new("app", T0, instance="a1"), new("app", T1))
    assert remove_static_group(SPEC, plan, **world.given) == 0, "one that is not static runs"
    world.kafka = STATIC
    assert remove_static_group(SPEC, plan, **world.given) == 2
    assert world.removed == ["a1", "a2"]


@pytest.mark.parametrize(
    ("changed", "who"),
    [
        ({"members": (OLD,)}, "registered in ZooKeeper"),
        ({"owners": {T0: Owner("x-0", False)}}, "owns partitions in ZooKeeper: x-0"),
        (None, "its znodes were not read: NoAuth"),
    ],
)
def test_static_members_beside_members_in_zookeeper_are_named_and_not_removed(
    world: World, changed: Any, who: str
) -> None:
    plan = going_back(world)
    world.kafka = STATIC
    world.zookeeper = replace(world.zookeeper, **changed) if changed else Unread("NoAuth")  # type: ignore[assignment]
    with pytest.raises(Refused, match=rf"of group g \(a1, a2\) are not removed from Kafka's group: {who}") as refused:
        remove_static_group(SPEC, plan, **world.given)
    assert "session.timeout.ms" in refused.value.way_out and world.removed == []


def test_static_members_of_the_consumer_protocol_are_not_called_removed(world: World) -> None:
    plan = going_back(world)
    world.kafka = replace(STATIC, group_type="consumer")
    with pytest.raises(Refused, match=r"\(a1, a2\) are of the consumer protocol \(KIP-848\)") as refused:
        remove_static_group(SPEC, plan, **world.given)
    assert "group.consumer.session.timeout.ms" in refused.value.way_out and world.removed == []


def test_on_the_way_to_kafka_no_static_member_is_removed(world: World) -> None:
    plan = world.plan()
    world.kafka = STATIC
    with pytest.raises(ValueError, match="a plan to Kafka has no such step"):
        remove_static_group(SPEC, plan, **world.given)
    assert world.removed == []
