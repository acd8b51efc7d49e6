"""Replicas between the disks of one broker: what is planned, what is refused, and where a plan stands."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import SPEC
from placements import MB, tp

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.log_dirs import BrokerLogs, FutureCopy, LogDir
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.procedures.move_between_disks import CopiedInPart, start_disk_moves
from kraft_runbook.reassignment.batches import Order
from kraft_runbook.reassignment.disk_goals import (
    EmptyDisk,
    EvenDisks,
    ExplicitDisks,
    directories_from_json,
    plan_disks,
    still_meant,
)
from kraft_runbook.reassignment.disk_way_back import BackToOldDisks, back_over
from kraft_runbook.reassignment.disks import (
    DiskMove,
    DiskPlan,
    DiskReading,
    next_moves,
    plan_from_json,
    read_disks,
    without_room,
    without_strays,
)
from kraft_runbook.reassignment.stages import PlanStage

A, B, C, D = (tp("t", number) for number in range(4))
ONE, TWO, THREE = "/d1", "/d2", "/d3"


def logs(
    placed: dict[TopicPartition, str],
    *,
    sizes: dict[TopicPartition, int] | None = None,
    usable: tuple[int | None, ...] = (400 * MB, 800 * MB),
    total: tuple[int | None, ...] = (1000 * MB, 1000 * MB),
    error: str = "",
    future: dict[TopicPartition, FutureCopy] | None = None,
) -> dict[int, BrokerLogs]:
    held = [sum(path == each for path in placed.values()) for each in (ONE, TWO)]
    made = tuple(
        LogDir(path, total[at], usable[at], error if path == TWO else "", held[at])
        for at, path in enumerate((ONE, TWO))
    )
    return {1: BrokerLogs(1, made, sizes or dict.fromkeys(placed, 10 * MB), placed, future or {})}


FULL = logs({A: ONE, B: ONE, C: ONE, D: TWO})


def cordon(now: dict[int, BrokerLogs], *paths: str) -> dict[int, BrokerLogs]:
    return {
        broker: replace(each, directories=tuple(replace(d, cordoned=d.path in paths) for d in each.directories))
        for broker, each in now.items()
    }


def broken(now: dict[int, BrokerLogs]) -> dict[int, BrokerLogs]:
    """With a third directory, which has failed."""
    failed = LogDir(THREE, None, None, "error 56")
    return {broker: replace(each, directories=(*each.directories, failed)) for broker, each in now.items()}


def test_a_disk_is_emptied_onto_the_others_the_largest_first() -> None:
    plan = plan_disks(EmptyDisk(1, ONE), FULL)
    assert [(m.partition, m.source, m.target) for m in plan.moves] == [(p, ONE, TWO) for p in (A, B, C)]
    directories = (*FULL[1].directories, LogDir(THREE, 1000 * MB, 900 * MB, "", 0))
    three = {1: replace(FULL[1], directories=directories)}
    assert {m.target for m in plan_disks(EmptyDisk(1, ONE), three).moves} == {TWO, THREE}
    assert plan_disks(EmptyDisk(1, ONE), logs({A: TWO})).moves == ()


def test_disks_become_even_by_their_size_and_no_replica_moves_twice() -> None:
    plan = plan_disks(EvenDisks(1), FULL)
    assert len(plan.moves) == 1 and plan.moves[0].source == ONE
    larger = logs({A: ONE, B: ONE, C: ONE, D: ONE}, total=(1000 * MB, 3000 * MB))
    assert len(plan_disks(EvenDisks(1), larger).moves) == 3  # a quarter and three quarters
    assert plan_disks(EvenDisks(1), logs({A: ONE, B: TWO})).moves == ()
    sizes = {A: 18 * MB, B: 42 * MB, C: 42 * MB}
    same = logs({A: ONE, B: ONE, C: TWO}, sizes=sizes, usable=(10**12, 10**12), total=(10**12, 10**12))
    assert plan_disks(EvenDisks(1), same).moves == (), "the other disk would be as full then"


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 90)), min_size=1, max_size=30))
def test_evening_makes_the_fullest_disk_less_full_or_leaves_it(replicas: list[tuple[int, int]]) -> None:
    placed = {tp("t", n): (ONE, TWO)[at] for n, (at, _) in enumerate(replicas)}
    sizes = {tp("t", n): size * MB for n, (_, size) in enumerate(replicas)}
    now = logs(placed, sizes=sizes, usable=(10**12, 10**12 + 10**11), total=(10**12, 10**12))
    plan = plan_disks(EvenDisks(1), now)
    after = placed | {m.partition: m.target for m in plan.moves}
    assert len({m.partition for m in plan.moves}) == len(plan.moves)

    def load(of: dict[TopicPartition, str]) -> int:
        return max(sum(sizes[p] for p, path in of.items() if path == each) for each in (ONE, TWO))

    assert load(after) < load(placed) if plan.moves else after == placed
    largest, whole = max(sizes.values()), sum(sizes.values())
    assert load(after) <= whole / 2 + max(largest, 0.05 * whole)


@pytest.mark.parametrize(
    ("goal", "now", "said"),
    [
        (EmptyDisk(7, ONE), FULL, "broker 7 did not describe"),
        (EmptyDisk(1, "/other"), FULL, "/other is none of broker 1's: /d1, /d2"),
        (EmptyDisk(1, ONE), logs({A: ONE}, error="error 56"), "0 log directories that replicas may go to, and this ta"),
        (EmptyDisk(1, ONE), cordon(FULL, TWO), "0 log directories that replicas .* takes 1; cordoned: /d2"),
        (EvenDisks(1), cordon(FULL, TWO), "has 1 log directories that replicas .* takes 2; cordoned: /d2"),
        (ExplicitDisks({(1, A): TWO}), cordon(FULL, TWO), "/d2 is cordoned"),
        (EmptyDisk(1, ONE), logs({A: ONE}, usable=(400 * MB, 11 * MB)), "to take 10,000,000 bytes in /d2 and has 11,"),
        (ExplicitDisks({(1, A): TWO}), logs({A: ONE}, error="error 56"), "/d2 has failed"),
        (ExplicitDisks({(1, A): TWO}), broken(FULL), "begins no copy between .* while one is offline: /d3 has failed"),
        (EmptyDisk(1, ONE), broken(FULL), "begins no copy between .* while one is offline: /d3 has failed"),
        (EmptyDisk(1, ONE), logs({tp(213 * "x", 10): ONE}), "names of 1 partitions are too long: .*KAFKA-4893.*: xxx"),
        (ExplicitDisks({(1, D): TWO}), logs({A: ONE}), "1 replicas are not there: t-3 on broker 1"),
        (EvenDisks(1), logs({A: ONE, B: TWO}, future={A: FutureCopy(TWO, 1, 5)}), "being copied between disks already"),
    ],
)
def test_what_must_not_be_planned_is_refused_by_name(goal: object, now: dict[int, BrokerLogs], said: str) -> None:
    if "11," in said:  # nine tenths of what is free
        now = logs({A: ONE}, usable=(400 * MB, 11 * MB - 1))
        said = "to take 10,000,000 bytes in /d2"
    with pytest.raises(Refused, match=said):
        plan_disks(goal, now)  # type: ignore[arg-type]


def test_a_cordoned_disk_gives_replicas_and_takes_none() -> None:
    now = cordon(FULL, ONE)
    plan = plan_disks(EmptyDisk(1, ONE), now)
    assert {(m.partition, m.target) for m in plan.moves} == {(p, TWO) for p in (A, B, C)}
    assert "broker 1: nothing goes to /d1 (cordoned)" in plan.notes
    three = {1: replace(FULL[1], directories=(*FULL[1].directories, LogDir(THREE, 1000 * MB, 900 * MB)))}
    assert {m.target for m in plan_disks(EvenDisks(1), three).moves} == {THREE}
    assert plan_disks(EvenDisks(1), cordon(three, THREE)).moves == plan_disks(EvenDisks(1), FULL).moves
    named = ExplicitDisks({(1, A): ONE, (1, B): TWO})
    assert [m.partition for m in plan_disks(named, now).moves] == [B], "A lies there, so nothing comes"


def test_the_way_back_leaves_what_a_cordoned_disk_would_have_to_take() -> None:
    """Kafka refuses also to end the copy of a replica that lies there (39, before it looks at the copy)."""
    goal = BackToOldDisks(tuple(DiskMove(1, p, ONE, TWO) for p in (A, B)))
    now = logs({A: TWO, B: ONE}, future={B: FutureCopy(TWO, 4 * MB, 9)})
    with pytest.raises(
        Refused, match=r"/d1 is cordoned \(t-0 .*/d1 is cordoned, so their copies are not ended"
    ) as refused:
        plan_disks(goal, cordon(now, ONE))
    assert refused.value.way_out == "uncordon it; then do this again"
    assert [m.partition for m in plan_disks(goal, cordon(now, TWO)).moves] == [A, B]


def test_the_way_back_copies_nothing_on_a_broker_of_which_another_disk_has_failed() -> None:
    """It ends copies still: no log is made for that."""
    goal = BackToOldDisks(tuple(DiskMove(1, p, ONE, TWO) for p in (A, B)))
    plan = plan_disks(goal, broken(logs({A: TWO, B: ONE}, future={B: FutureCopy(TWO, 4 * MB, 9)})))
    assert [m.partition for m in plan.moves] == [B]
    assert "1 replicas stay where they lie (t-0 of broker 1): broker 1 begins no copy" in plan.notes[0]


def test_directories_that_may_share_a_volume_count_as_one() -> None:
    shared = logs({A: ONE}, usable=(10 * MB, 10 * MB))
    with pytest.raises(Refused, match="too little disk"):
        plan_disks(EmptyDisk(1, ONE), shared)
    roomy = logs({A: ONE}, usable=(900 * MB, 900 * MB))
    assert any("may be one volume" in each for each in plan_disks(EmptyDisk(1, ONE), roomy).notes)
    unknown = logs({A: ONE}, usable=(None, None), total=(None, None))
    assert any("does not say how much is free" in each for each in plan_disks(EmptyDisk(1, ONE), unknown).notes)


def test_a_copy_that_has_no_room_any_more_beside_what_goes_on_waits_and_a_smaller_one_starts() -> None:
    """Somebody else has written to the disk since it was planned: 30 MB are free, so 27 may be written."""
    plan = DiskPlan("g", tuple(DiskMove(1, p, ONE, TWO, 10 * MB) for p in (A, B, C)))
    sizes = {A: 10 * MB, B: 24 * MB, C: 5 * MB}
    placed, full = {A: ONE, B: ONE, C: ONE}, (400 * MB, 30 * MB)

    def read(copied: int | None = None, usable: tuple[int | None, ...] = full) -> DiskReading:
        future = {} if copied is None else {A: FutureCopy(TWO, copied * MB, 9)}
        return read_disks(plan, logs(placed, sizes=sizes, usable=usable, future=future))

    for reading, starts, waits in (
        (read(), [A, C], []),  # each has room by itself
        (read(copied=0), [C], [B]),
        (read(copied=7), [B], []),  # 3 MB are still to come
        (read(copied=0, usable=(400 * MB, 16 * MB)), [], [B, C]),
        (read(copied=0, usable=(400 * MB, None)), [B, C], []),
    ):
        for order in Order:
            assert bool(next_moves(reading, 20, order)) is bool(starts)
        assert [m.partition for m in next_moves(reading, 20)] == starts
        assert [m.partition for m in without_room(reading)] == waits
    ends = DiskPlan("g", (DiskMove(1, A, TWO, ONE),))
    cramped = read_disks(ends, logs(placed, usable=(0, 0), future={A: FutureCopy(TWO, 1, 9)}))
    assert next_moves(cramped, 1) == ends.moves, "to end a copy takes no room"
    mixed = DiskPlan("g", (DiskMove(1, A, ONE, TWO), DiskMove(1, B, ONE, TWO), DiskMove(1, C, TWO, ONE)))
    copied = logs(placed, future={A: FutureCopy(TWO, 1, 9), C: FutureCopy(TWO, 1, 9)})
    assert [m.partition for m in next_moves(read_disks(mixed, copied), 1)] == [C], "beside any, and before them"
    assert [m.partition for m in next_moves(read_disks(mixed, copied), 2)] == [C, B]


def test_kafkas_own_file_names_the_directories() -> None:
    entry = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": [TWO, "any"]}
    found = directories_from_json(json.dumps({"version": 1, "partitions": [entry]}), source="f")
    assert found == {(1, A): TWO}
    (move,) = plan_disks(ExplicitDisks(found), FULL).moves
    assert move == DiskMove(1, A, ONE, TWO, 10 * MB)
    for wrong, said in (
        ({**entry, "log_dirs": [TWO]}, "names 1 log_dirs for 2 replicas"),
        ({**entry, "log_dirs": ["any", "any"]}, "names no log directory"),
        ({"topic": "t"}, "no plan of kafka-reassign-partitions"),
        ({**entry, "replicas": "12"}, "replicas '12' of t-0"),
        ({**entry, "replicas": [1.9, 2]}, "replicas"),
        ({**entry, "replicas": [True, 2]}, "replicas"),
        ({**entry, "replicas": {"1": 0, "2": 0}}, "replicas"),
        ({**entry, "partition": "0"}, "partition '0'"),
        ({**entry, "topic": 1}, "topic 1"),
        ({**entry, "log_dirs": "ab"}, "log_dirs 'ab' of t-0"),
    ):
        with pytest.raises(Refused, match=said):
            directories_from_json(json.dumps({"partitions": [wrong]}), source="f")
    for again in ({**entry, "log_dirs": [ONE, "any"]}, entry, {**entry, "replicas": [2], "log_dirs": ["any"]}):
        with pytest.raises(Refused, match="f: t-0 is named twice; Kafka would take the last"):
            directories_from_json(json.dumps({"partitions": [entry, again]}), source="f")


def test_where_a_plan_stands_is_read_from_the_brokers() -> None:
    plan = DiskPlan("g", tuple(DiskMove(1, p, ONE, TWO, 10 * MB) for p in (A, B, C, D)), topic_ids={"t": "x"})
    now = logs({A: ONE, B: ONE, C: TWO}, future={B: FutureCopy(TWO, 4 * MB, 9)})
    reading = read_disks(plan, now)
    kinds = (reading.left, reading.moving, reading.there, reading.gone)
    assert [[m.partition for m in each] for each in kinds] == [[A], [B], [C], [D]]
    assert reading.bytes_left == 6 * MB and reading.stage is PlanStage.MOVING
    assert next_moves(reading, 1) == () and [m.partition for m in next_moves(reading, 2)] == [A]
    assert read_disks(plan, now, {"t": "y"}).stage is PlanStage.AS_PLANNED  # made anew: nobody's
    foreign = read_disks(plan, logs({A: THREE}))
    assert foreign.stage is PlanStage.UNKNOWN and "t-0 of broker 1" in str(foreign)
    assert read_disks(plan, {}).lost == (1,) and read_disks(plan, {}).stage is PlanStage.AS_BEFORE


def test_a_log_that_is_no_replica_any_more_is_nobodys_and_is_not_planned() -> None:
    """A broker shows it and does not move it: in ZooKeeper mode it stays, where its replica left while it was down."""
    held = {A: (1, 2), B: (2, 3), C: (3, 1)}
    kept, notes = without_strays(FULL, held)
    plan = plan_disks(EmptyDisk(1, ONE), kept)
    assert [m.partition for m in plan.moves] == [A, C]
    assert notes == {1: "broker 1 has 2 logs that are no replicas of it any more, and stay where they lie: t-1, t-3"}
    later = read_disks(plan, FULL, held=held | {A: (2, 3)})
    assert [m.partition for m in later.gone] == [A]
    assert [m.partition for m in later.left] == [C]
    assert read_disks(plan, FULL, without=later.gone).gone == later.gone, "without asking anew"


def test_a_replica_whose_directory_has_failed_is_not_gone() -> None:
    """The broker shows no log of it, and the controller still counts it as the broker's."""
    plan = DiskPlan("g", (DiskMove(1, A, ONE, TWO, 10 * MB),))
    assert read_disks(plan, logs({}), held={A: (1, 2)}).stage is PlanStage.AS_BEFORE
    assert read_disks(plan, logs({}), held={A: (2, 3)}).stage is PlanStage.AS_PLANNED


def test_a_broker_that_is_lost_for_good_is_waited_for_only_while_it_has_a_replica() -> None:
    plan = DiskPlan("g", (DiskMove(1, A, ONE, TWO, 10 * MB), DiskMove(1, B, ONE, TWO, 10 * MB)))
    assert read_disks(plan, {}, held={A: (2, 3), B: (1, 2)}).lost == (1,)
    reading = read_disks(plan, {}, held={A: (2, 3), B: (2, 3)})
    assert reading.stage is PlanStage.AS_PLANNED and reading.gone == plan.moves and reading.lost == ()
    assert read_disks(plan, {}, without=reading.gone).stage is PlanStage.AS_PLANNED, "without asking anew"


def test_the_way_back_leaves_topics_that_were_made_anew() -> None:
    told: list[str] = []
    goal = BackToOldDisks((DiskMove(1, A, ONE, TWO), DiskMove(1, tp("u", 0), ONE, TWO)), {"t": "x", "u": "y"})
    found = still_meant(goal, {"t": "another", "u": "y"}, told.append)
    assert isinstance(found, BackToOldDisks) and [m.partition for m in found.moves] == [tp("u", 0)]
    assert told == ["1 topics were made anew since, and are left: t"]
    assert still_meant(goal, {"u": "y"}, told.append) == goal, "an id that is not known proves nothing"


def test_the_way_back_over_several_plans_is_to_where_the_first_found_a_replica() -> None:
    first = DiskPlan("g", (DiskMove(1, A, ONE, TWO), DiskMove(1, tp("u"), ONE, TWO)), topic_ids={"t": "x", "u": "old"})
    later = DiskPlan("g", (DiskMove(1, A, TWO, THREE), DiskMove(1, B, ONE, TWO)), topic_ids={"t": "x", "u": "new"})
    goal = back_over((first, later))
    assert goal.topic_ids == {"t": "x", "u": "new"} and tp("u") not in [m.partition for m in goal.moves]

    def back(at: str, future: str = "") -> list[tuple[TopicPartition, str, str]]:
        copy = {A: FutureCopy(future, 1, 9)} if future else {}
        now = logs({A: at, B: ONE, tp("u"): TWO}, future=copy)
        three = {1: replace(now[1], directories=(*now[1].directories, LogDir(THREE, 10**15, 10**12)))}
        return [(m.partition, m.source, m.target) for m in plan_disks(goal, three).moves]

    assert back(THREE) == [(A, THREE, ONE)] and back(TWO) == [(A, TWO, ONE)] and back(ONE) == []
    assert back(ONE, TWO) == [(A, TWO, ONE)] and back(TWO, THREE) == [(A, THREE, TWO)], "copies are ended"
    assert back(TWO, "/d9") == [], "somebody else's"


def test_a_broker_that_does_not_answer_hinders_no_other() -> None:
    moves = [DiskMove(broker, A, ONE, TWO) for broker in (1, 2)]

    def alter(spec: object, broker: Broker, *_: object, **__: object) -> dict[TopicPartition, str]:
        if broker.id == 1:
            raise Unreachable("broker 1 does not answer", way_out="start it")
        return {}

    assert start_disk_moves(SPEC, moves, secrets=lambda _: "", alter=alter) == (moves[1],)
    with pytest.raises(Unreachable, match="broker 1 does not answer"):
        start_disk_moves(SPEC, moves[:1], secrets=lambda _: "", alter=alter)


def test_what_a_broker_refuses_hinders_no_other_and_hides_none_that_was_taken() -> None:
    moves = [DiskMove(broker, A, ONE, TWO) for broker in (1, 2)]

    def alter(spec: object, broker: Broker, *_: object, **__: object) -> dict[TopicPartition, str]:
        return {A: "the directory has failed"} if broker.id == 1 else {}

    with pytest.raises(CopiedInPart, match="1 copies were refused: t-0 on broker 1: the directory has fail") as in_part:
        start_disk_moves(SPEC, moves, secrets=lambda _: "", alter=alter)
    assert in_part.value.done == (moves[1],)


def test_the_way_back_ends_copies_and_moves_back_what_has_moved() -> None:
    moves = tuple(DiskMove(1, p, ONE, TWO) for p in (A, B, C))
    now = logs({A: TWO, B: ONE, C: THREE}, future={B: FutureCopy(TWO, 4 * MB, 9)})
    back = plan_disks(BackToOldDisks(moves), now)
    assert [(m.partition, m.source, m.target) for m in back.moves] == [(A, TWO, ONE), (B, TWO, ONE)]
    assert [m.partition for m in read_disks(back, now).left] == [A, B]
    (told,) = (each for each in back.notes if "KAFKA-19458" in each)
    ended = [f"{p} of broker 1" for p in (A, B) if p in now[1].future]
    assert told.startswith(f"copies that are ended: {', '.join(ended)}. ") and "restart broker 1 afterwards" in told
    done = logs({A: ONE, B: ONE})
    assert not any("KAFKA-19458" in each for each in plan_disks(BackToOldDisks(moves), done).notes)
    assert read_disks(back, done).stage is PlanStage.AS_PLANNED
    assert plan_disks(BackToOldDisks(moves), done).moves == ()


def test_what_can_go_back_does_and_what_can_not_is_named() -> None:
    """A person ends copies when a disk fills up or fails, or a broker hangs: none of that may hinder it."""
    moves = (*(DiskMove(1, p, ONE, TWO) for p in (A, B, C)), DiskMove(2, D, ONE, TWO), DiskMove(1, tp("u"), "/d0", TWO))
    sizes = {A: 30 * MB, B: 10 * MB, C: 20 * MB, tp("u"): MB}
    placed, copied = {A: TWO, B: ONE, C: TWO, tp("u"): TWO}, {B: FutureCopy(TWO, 4 * MB, 9)}

    def back(free: int, future: dict[TopicPartition, FutureCopy] = copied, error: str = "") -> DiskPlan:
        found = logs(placed, sizes=sizes, usable=(free * MB, 400 * MB), future=future)
        one, two = found[1].directories
        return plan_disks(BackToOldDisks(moves), {1: replace(found[1], directories=(replace(one, error=error), two))})

    def ways(plan: DiskPlan) -> list[tuple[TopicPartition, str]]:
        return [(m.partition, m.target) for m in plan.moves]

    plan = back(23)  # nine tenths of it are for copies
    assert ways(plan) == [(B, ONE), (C, ONE)]
    assert [each.removeprefix("1 replicas stay where they lie ") for each in plan.notes[:3]] == [
        "(t-3 of broker 2): broker 2 did not describe its log directories. For them start it, then do this again",
        "(u-0 of broker 1): /d0 is none of broker 1's: /d1, /d2. For them mend it, then do this again",
        "(t-0 of broker 1): /d1 of broker 1 has no room. For them free disk there, then do this again",
    ]
    assert ways(back(56)) == [(A, ONE), (B, ONE), (C, ONE)]
    failed = back(400, error="error 56")
    assert ways(failed) == [(B, ONE)]
    assert (
        "2 replicas stay where they lie (t-0 of broker 1, t-2 of broker 1): /d1 has failed (error 56)"
        in failed.notes[0]
    )
    lost = logs({C: ONE}, sizes=sizes, error="error 56")
    gone = {C: (1,), A: (1,), B: (1,), D: (3,), tp("u"): ()}
    with pytest.raises(Refused, match="no log of them, and /d2 has failed") as refused:
        plan_disks(BackToOldDisks(moves), lost, gone)
    assert str(refused.value).count(" of broker") == 2, "what is home, deleted or another broker's is not named"
    nothing = r"nothing can go back: .*/d1 of broker 1 has no room \(t-2 of broker 1"
    with pytest.raises(Refused, match=nothing) as refused:
        back(1, future={B: FutureCopy("/d9", 1, 1)})
    assert refused.value.way_out == "start it, mend it, free disk there; then do this again"


def test_a_plan_is_kept_with_its_digest() -> None:
    plan = plan_disks(EmptyDisk(1, ONE), FULL)
    text = plan.to_json()
    assert plan_from_json(text, source="f") == plan
    with pytest.raises(Refused, match="was changed since"):
        plan_from_json(text.replace(TWO, THREE), source="f")
    with pytest.raises(Refused, match="no plan of disks"):
        plan_from_json("{}", source="f")
    assert "| 1 | /d1 | 3 → 0 | 30.0 → 0.0 | 0.4 |" in plan.preview(FULL, throttle=10 * MB).render_markdown()
