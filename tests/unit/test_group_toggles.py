"""Whether a group may be toggled, whether it has settled, and what is alarming."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from groups_seen_as import OLD_ID, kafka, look, member, new, zookeeper
from observations import observation
from toggled_group import LOGS, SAME, T0, T1, A, B, by_kafka, migrating

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Refused
from kraft_runbook.groups.classify import classify
from kraft_runbook.groups.look import Kind, LogBounds, Mode, Owner
from kraft_runbook.groups.old_assignors import by_range, by_round_robin
from kraft_runbook.groups.planned_offsets import Direction, Obstacle
from kraft_runbook.groups.toggles.alarms import AlarmKind, alarms, lasting
from kraft_runbook.groups.toggles.operation import page, require_zookeeper_is_kept
from kraft_runbook.groups.toggles.settled import SLACK_SECONDS, Sides, follow, late, told, unsettled
from kraft_runbook.groups.toggles.toggle import Toggle, plan_toggle
from kraft_runbook_consumer.assignors import ROUND_ROBIN, assign
from kraft_runbook_consumer.znodes import Registration

TO_KAFKA, BACK = Direction.TO_KAFKA, Direction.BACK


def planned(*looks: Any, direction: Direction = TO_KAFKA) -> Toggle:
    found = plan_toggle(looks[0], looks[-1], direction)
    assert isinstance(found, Toggle), found
    return found


def refused(*looks: Any, direction: Direction = TO_KAFKA) -> str:
    found = plan_toggle(looks[0], looks[-1], direction)
    assert not isinstance(found, Toggle), found
    assert all(each.way_out for each in found)
    return "; ".join(f"{each.obstacle}: {each.why}" for each in found)


def test_a_toggle_says_what_changes() -> None:
    there = planned(migrating())
    assert there == Toggle("g", TO_KAFKA, Mode.ZOOKEEPER, False, (A, B), 2, (2,))
    assert there.line() == "g to Kafka: mode zookeeper -> kafka, 2 members, 2 partitions, 2 move"
    assert Toggle.from_dict(there.to_dict()) == there
    back = planned(by_kafka(), direction=BACK)
    assert back.line() == "g back to ZooKeeper: mode kafka -> zookeeper, 2 members, 2 partitions, 2 move"
    assert planned(migrating(mode=Mode.ABSENT)).line().startswith("g to Kafka: mode absent -> kafka")


def test_how_many_move_is_told_by_each_assignor_that_there_may_be() -> None:
    """Of four partitions range gives the first two to one member; by their hashes roundrobin deals them in turn."""
    numbers = {("t", n): A if n < 2 else B for n in range(4)}
    logs = {"t": {n: LOGS["t"][0] for n in range(4)}}
    given = {who: tuple(p for p, has in numbers.items() if has == who) for who in (A, B)}
    seen = replace(by_kafka(owners=numbers, given=given), logs=logs)
    back = planned(seen, direction=BACK)
    assert back.moving == (0, 2) and back.line().endswith("4 partitions, 0 or 2 move")
    assert Toggle.from_dict(back.to_dict()) == back
    unread = planned(replace(seen, logs={"t": Unread("silent")}), direction=BACK)
    assert unread.moving == () and unread.line().endswith("4 partitions, an unknown number of them move")


def test_what_is_signed_is_the_group_its_members_and_the_direction() -> None:
    there, later = planned(migrating()), planned(migrating(given={A: (T0,), B: (T1,)}))
    assert later.moving == (0,) and later.digest == there.digest
    assert planned(migrating(), direction=BACK).digest != there.digest
    other = replace(there, members=(A,))
    assert other.digest != there.digest


@pytest.mark.parametrize(
    ("mode", "direction", "so"),
    [
        (Mode.KAFKA, TO_KAFKA, True),
        (Mode.ABSENT, TO_KAFKA, False),
        (Mode.KAFKA, BACK, False),
        *((mode, BACK, True) for mode in (Mode.ABSENT, Mode.OTHER, Mode.ZOOKEEPER)),
    ],
)
def test_what_is_so_is_not_written(mode: Mode, direction: Direction, so: bool) -> None:
    seen = by_kafka() if mode is Mode.KAFKA else migrating(mode=mode)
    assert planned(seen, direction=direction).is_so is so


def test_the_page_says_what_happens_what_it_costs_and_the_way_back() -> None:
    text = page(planned(migrating()), "lab")
    assert "`/consumers/g/migration/mode` changes from zookeeper to kafka" in text
    assert f"- `{A}`" in text and "2 partitions; 2 get another owner" in text
    assert "nothing is stopped or restarted" in text
    assert "toggle_consumer_group__lab for g with the direction 'back to ZooKeeper'" in text
    assert "Nothing is written" in page(planned(by_kafka()), "lab")


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (look(zookeeper(member(Kind.OLD))), "its class: it is ALL_OLD (1 old member), not ALL_MIGRATING"),
        (migrating(registered=(member(Kind.OLD, "g_old"),)), "it is MIXED_OLD"),
        (migrating(more=(new("app"),)), "it is CONTRADICTORY"),
        (by_kafka(more=(new("app"),)), "it is MIXED_NEW"),
        (migrating(state="PreparingRebalance"), "it is UNKNOWN (Kafka's group is PreparingRebalance"),
        (replace(migrating(), kafka=Unread("silent")), "it is UNKNOWN (silent)"),
        (replace(migrating(), kafka=None), "Kafka's group of this name is not Stable: there is none"),
        (migrating(given={A: (T0, T1)}), f"{B} is registered in ZooKeeper and not in Kafka's group"),
        (migrating(more=(new(B),)), f"{B} is in Kafka's group more than once"),
        (migrating(given={A: (T1,), B: ()}), "Kafka assigns t-0 to nobody"),
        (migrating(owners={T0: A}), "nobody owns t-1 in ZooKeeper"),
        (migrating(offsets={T0: 7, T1: None}), "a fault: offset unusable: t-1: no number"),
    ],
)
def test_a_group_that_must_not_be_toggled_is_refused_with_the_reason(seen: Any, why: str) -> None:
    assert why in refused(seen)
    assert refused(seen, direction=BACK)


def test_a_live_new_member_refuses_the_way_back() -> None:
    """Measured: 4 of 12 partitions were handed out by two."""
    assert "MIXED_NEW" in refused(by_kafka(more=(new("app", T0),)), direction=BACK)


def test_what_kafka_assigned_must_be_readable() -> None:
    seen = migrating()
    first, second = seen.kafka.members
    unread = replace(seen.kafka, members=(replace(first, partitions=Unread("not Kafka's format")), second))
    assert "unread: what Kafka has assigned: not Kafka's format" in refused(replace(seen, kafka=unread))


def test_a_fence_refuses_the_toggle() -> None:
    seen = migrating()
    fenced = replace(seen.zookeeper, owners={T0: Owner("fence", True), T1: Owner(f"{B}-0", False)})
    assert "a fault: fenced beside migrating members: t-0: no member can" in refused(replace(seen, zookeeper=fenced))


def test_equal_hashes_matter_beside_old_members_alone() -> None:
    """java_hash of Aa-0 and BB-0 is the same. The owners are not those of range."""
    collide = (("Aa", 0), ("BB", 0))
    side = zookeeper(
        *(member(Kind.MIGRATING, each, topics={"Aa": 1, "BB": 1}) for each in (A, B)),
        owners={p: Owner(f"{B}-0", False) for p in collide},
        offsets=dict.fromkeys(collide, 1),
    )
    of_kafka = kafka(new(A, collide[0]), new(B, collide[1]), offsets=dict.fromkeys(collide, 1))
    seen = look(side, of_kafka, logs={"Aa": LOGS["t"], "BB": LOGS["t"]})
    assert planned(seen).moving == (1,)


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (migrating(mode=Mode.OTHER), "migration/mode changed between two looks"),
        (migrating(given={A: (T1,), B: (T0,)}, state="CompletingRebalance"), "a moment ago it was UNKNOWN"),
        (migrating(owners={T1: B}), "a moment ago nobody owns t-0"),
        (migrating(registered=(member(Kind.OLD, "g_old"),)), "a moment ago it was MIXED_OLD"),
    ],
)
def test_a_group_must_be_the_same_at_two_looks(before: Any, why: str) -> None:
    assert why in refused(before, migrating())


def test_a_member_that_joined_anew_between_two_looks_is_seen() -> None:
    before = migrating()
    again = tuple(replace(each, id=f"{each.id}-again") for each in before.kafka.members)
    later = replace(before, kafka=replace(before.kafka, members=again))
    assert "the members of Kafka's group changed between two looks" in refused(before, later)


# -- settled -----------------------------------------------------------------------------------------------------------


def test_settled_means_owned_as_assigned() -> None:
    assert unsettled(by_kafka(), TO_KAFKA) == ()
    assert unsettled(migrating(), BACK) == ()
    assert unsettled(by_kafka(owners={T0: A, T1: A}), TO_KAFKA) == (
        f"owned by another one than Kafka assigns: t-0 ({A})",
    )
    assert unsettled(by_kafka(owners={T0: B}), TO_KAFKA) == ("nobody owns t-1",)
    assert unsettled(migrating(owners={T0: B, T1: A}), BACK) == (
        f"owned by another one than ZooKeeper's assignment names: t-0 ({B}), t-1 ({A})",
    )
    assert unsettled(migrating(owners={T0: A, T1: "g_gone-1-a"}), BACK) == (
        "owned by nobody who is registered: t-1 (g_gone-1-a)",
    )
    assert unsettled(migrating(), TO_KAFKA) == ("its mode is zookeeper and not kafka: somebody has toggled it",)
    assert "PreparingRebalance" in unsettled(by_kafka(state="PreparingRebalance"), TO_KAFKA)[0]


def test_a_group_whose_owner_goes_on_to_kafka_is_settled() -> None:
    """Who waits for all of its members to be migrating ones again waits for as long as an owner replaces them."""
    mixed = by_kafka(given={A: (), B: (T0,)}, more=(new("app", T1),), owners={T0: B}, in_kafka={T0: 7, T1: 900})
    assert classify(mixed).group_class is GroupClass.MIXED_NEW
    assert told(mixed, TO_KAFKA, follow(Sides(), mixed, 0), 99, 60) == ()
    late_one = by_kafka(given={A: (), B: (T0,)}, more=(new("app", T1),), owners={T0: B, T1: A})
    assert unsettled(late_one, TO_KAFKA) == (f"owned by another one than Kafka assigns: t-1 ({A})",)
    nobody = by_kafka(given={A: (), B: (T0,)}, more=(new("app", T1),), owners={})
    assert unsettled(nobody, TO_KAFKA) == ("nobody owns t-0",)
    all_new = look(zookeeper(mode=Mode.KAFKA, offsets=SAME), kafka(new("app", T0, T1), offsets={T0: 900, T1: 900}))
    assert told(all_new, TO_KAFKA, follow(Sides(), all_new, 0), 99, 60) == ()
    assert unsettled(mixed, BACK)[0].startswith("it is MIXED_NEW")


def test_a_group_whose_owner_goes_on_to_old_members_is_settled() -> None:
    """An old member commits to ZooKeeper alone, so Kafka stays behind."""
    c, t2 = "g_z-1699999999999-0a1b2c3d", ("t", 2)
    old, owners = (member(Kind.OLD, c),), {T0: A, T1: B, t2: c}
    logs = {"t": {n: LogBounds(0, 1000) for n in range(3)}}
    given, moved = {A: (T0, t2), B: (T1,)}, {T0: 7, T1: 8, t2: 900}
    mixed = replace(migrating(registered=old, owners=owners, given=given, offsets=moved), logs=logs)
    assert classify(mixed).group_class is GroupClass.MIXED_OLD
    assert told(mixed, BACK, follow(Sides(), mixed, 0), 99, 60) == ()
    wrong = replace(migrating(registered=old, owners={**owners, t2: A}, given=given), logs=logs)
    assert unsettled(wrong, BACK) == (f"owned by another one than ZooKeeper's assignment names: t-2 ({A})",)
    for gone in (None, kafka(offsets=SAME)):
        all_old = look(zookeeper(*old, owners={T0: Owner(f"{c}-0", False)}, offsets={T0: 900}), gone)
        assert told(all_old, BACK, follow(Sides(), all_old, 0), 99, 60) == ()
    assert unsettled(mixed, TO_KAFKA)[0].startswith("it is MIXED_OLD")


def test_roundrobin_is_settled_too() -> None:
    side = migrating().zookeeper
    names = by_round_robin(side.members, {"t": [0, 1]})
    assert names is not None and set(names.values()) == {f"{A}-0", f"{B}-0"}
    assert unsettled(migrating(owners={p: who.removesuffix("-0") for p, who in names.items()}), BACK) == ()


@pytest.mark.parametrize("partitions", [{"t": 5}, {"t": 7, "u": 3}, {"t": 1, "u": 12, "v": 4}])
def test_roundrobin_is_as_the_migrating_consumer_has_it(partitions: dict[str, int]) -> None:
    """That one equals the jar in a thousand random cases."""
    numbers = {topic: tuple(range(count)) for topic, count in partitions.items()}
    asked = {A: {"t": 2, "u": 1}, B: {"t": 1, "v": 3}}
    ours = by_round_robin([member(Kind.OLD, each, topics=topics) for each, topics in asked.items()], numbers)
    theirs = assign(ROUND_ROBIN, {each: Registration(topics) for each, topics in asked.items()}, numbers)
    assert ours == {partition: thread.name for partition, thread in theirs.items()}
    pattern = member(Kind.OLD, A, topics={"t.*": 1}, pattern="white_list")
    assert by_round_robin([pattern], numbers) is by_range([pattern], numbers) is None


def test_sides_that_are_read_one_after_the_other_need_not_be_equal_but_must_follow() -> None:
    sides = follow(Sides(), by_kafka(in_kafka={T0: 7, T1: 9}), 0)
    assert sides.proven == {T0} and sides.behind[T1].goal == 9
    assert told(by_kafka(), TO_KAFKA, sides, 0, 60) == ("both sides of t-1 have not been seen together yet",)
    # Kafka is ahead again, and ZooKeeper has reached what Kafka had
    sides = follow(sides, by_kafka(offsets={T0: 7, T1: 9}, in_kafka={T0: 7, T1: 12}), 5)
    assert sides.proven == {T0, T1} and sides.behind[T1].goal == 12
    assert told(by_kafka(), TO_KAFKA, sides, 5, 60) == ()


def test_a_side_that_stands_still_is_told_after_a_commit_interval() -> None:
    stuck = by_kafka(in_kafka={T0: 7, T1: 90})
    sides = follow(follow(Sides(), stuck, 0), stuck, 60)
    assert late(sides, 60, 60) == ()
    assert late(sides, 60 + SLACK_SECONDS + 1, 60) == (T1,)
    assert told(stuck, TO_KAFKA, sides, 80, 60) == (
        "t-1: ZooKeeper has 8, Kafka 90, and one has not followed the other for 80 s",
    )


def test_a_partition_without_offsets_on_both_sides_is_no_difference() -> None:
    assert follow(Sides(), by_kafka(offsets={T0: 7}, in_kafka={T0: 7}), 0).proven == {T0, T1}
    assert follow(Sides(), by_kafka(offsets={T0: 7}), 0).behind[T1].goal == 8


# -- alarms ------------------------------------------------------------------------------------------------------------


def kinds(*looks: Any) -> list[tuple[str, AlarmKind]]:
    return [(each.group, each.kind) for each in lasting(looks[0], looks[-1])]


def test_new_members_while_the_mode_is_not_kafka_are_alarming() -> None:
    seen = migrating(more=(new("app", T0),))
    (found,) = alarms(seen)
    assert found.kind is AlarmKind.NEW_BESIDE_ZOOKEEPER
    assert found.line() == (
        "g: new members while the mode is not kafka: app in Kafka's group, and the mode is zookeeper: partitions may be"
        " consumed by two. What to do: toggle the group to Kafka (toggle_consumer_group), or stop the new members"
    )
    rebalancing = migrating(more=(new("app"),), state="PreparingRebalance")
    assert [each.kind for each in alarms(rebalancing)] == [AlarmKind.NEW_BESIDE_ZOOKEEPER]


def test_new_members_beside_old_ones_are_alarming() -> None:
    old = look(zookeeper(member(Kind.OLD)), kafka(new("app")))
    assert [each.kind for each in alarms(old)] == [AlarmKind.CONTRADICTORY]
    mixed = by_kafka(more=(new("app"),), registered=(member(Kind.OLD, "g_old"),))
    (found,) = alarms(mixed)
    assert found.kind is AlarmKind.NEW_BESIDE_ZOOKEEPER and "g_old is no migrating member" in found.why


@pytest.mark.parametrize(
    "seen",
    [
        migrating(),
        by_kafka(),
        by_kafka(more=(new("app"),)),
        look(zookeeper(), kafka(new("app"))),
        look(zookeeper(member(Kind.OLD))),
        look(Unread("no right")),
        migrating(more=(new("g_host-1699999999997-0a1b2c3f"),)),
        look(zookeeper(member(Kind.MIGRATING), embedded=("g_app-7-uuid",)), kafka(new(OLD_ID), new("g_app-7"))),
    ],
)
def test_what_is_in_order_alarms_nobody(seen: Any) -> None:
    """The last two have lost their sessions, and hand out nothing; one has a consumer.id of its own."""
    assert list(alarms(seen)) == []


def test_a_new_member_of_a_name_that_a_migrating_one_had_is_alarming() -> None:
    """Kafka calls the process that has the name now otherwise."""
    seen = look(zookeeper(member(Kind.MIGRATING), embedded=("g_app-7-former",)), kafka(new(OLD_ID), new("g_app-7")))
    assert [each.kind for each in alarms(seen)] == [AlarmKind.NEW_BESIDE_ZOOKEEPER]


@pytest.mark.parametrize("seen", [migrating(), by_kafka(more=(new("app", T1),))])
def test_a_fence_beside_migrating_members_is_alarming(seen: Any) -> None:
    """A group that was moved with its clients stopped, and to which somebody adds migrating members."""
    owners = {T0: Owner("fence; committed", True), T1: Owner(f"{B}-0", False)}
    (found,) = alarms(replace(seen, zookeeper=replace(seen.zookeeper, owners=owners)))
    assert found.kind is AlarmKind.FENCED and found.why.startswith("t-0: no member can own these partitions")
    assert list(alarms(look(zookeeper(owners=owners), kafka(new("app", T0))))) == []


def test_an_alarm_must_last_for_two_looks() -> None:
    wrong, well = migrating(more=(new("app"),)), migrating()
    assert kinds([wrong], [well]) == kinds([well], [wrong]) == []
    assert kinds([wrong], [wrong]) == [("g", AlarmKind.NEW_BESIDE_ZOOKEEPER)]
    assert kinds([wrong], [replace(wrong, name="other")]) == []


@pytest.mark.parametrize("phase", [Phase.FINALIZED, Phase.KRAFT])
def test_the_way_back_needs_a_zookeeper_that_is_written(phase: Phase) -> None:
    with pytest.raises(Refused, match="members that follow ZooKeeper see no topic"):
        require_zookeeper_is_kept(observation(phase))
    require_zookeeper_is_kept(observation(Phase.DUAL_WRITE))


def test_the_class_tells_which_kind_of_obstacle_it_is() -> None:
    found = plan_toggle(look(zookeeper(member(Kind.OLD, OLD_ID))), look(zookeeper(member(Kind.OLD, OLD_ID))), TO_KAFKA)
    assert not isinstance(found, Toggle)
    assert [each.obstacle for each in found] == [Obstacle.CLASS]
