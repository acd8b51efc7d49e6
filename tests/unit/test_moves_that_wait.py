"""Moves that wait: for a leader, for a broker, for a replica that stays. What is said of them, and what goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from placements import after, of, tp
from test_reassignment_course import begun

from kraft_runbook.cluster.assignment import Move, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.reassignment.batches import Limits, busiest, next_batch
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.stages import read_plan
from kraft_runbook.reassignment.stuck import Cause, why_not_done


def test_what_lost_its_leader_is_not_started_and_waits_for_the_brokers_that_had_it() -> None:
    """Nobody gives the copy, and it would keep its place among those that a broker takes at once."""
    names = [tp(topic, n) for topic in ("dead", "well") for n in range(9)]
    present = {p: (1, 2) if p.topic == "dead" else (3, 2) for p in names}
    plan = ReassignmentPlan("x", present, dict.fromkeys(names, (4, 2)), copies=18, bound=18, min_isr={"dead": 2})
    leaderless = frozenset(p for p in names if p.topic == "dead")
    now = Placement(
        dict.fromkeys((2, 3, 4)),
        present,
        leaderless=leaderless,
        leaders={p: 3 for p in names if p not in leaderless},
        in_sync={p: (1,) if p in leaderless else (3, 2) for p in names},
    )
    assert {move.partition.topic for move in next_batch(plan, now, Limits(50, moves=5))} == {"well"}
    reading = read_plan(plan, now)
    assert (reading.held, reading.lost, reading.leaderless) == ({1}, set(), leaderless)
    assert reading.because[-2:] == (
        "9 without a leader to copy from: dead-0, dead-1, dead-2, dead-3, dead-4 and 4 more",
        "broker 1 does not run: moves that need a replica there wait for it",
    )
    begun_before = {move.partition: begun(move) for move in plan.moves if move.partition in leaderless}
    assert read_plan(plan, replace(now, ongoing=begun_before)).held == {1}
    order = ReassignmentPlan("order", present, dict.fromkeys(leaderless, (2, 1)), copies=0, bound=0)
    assert len(next_batch(order, now, Limits(50))) == 9 and not read_plan(order, now).held, "an order copies nothing"


SEEN = PartitionSeen((3, 2, 1), 2, (1, 2))
MOVING = Ongoing((3, 2, 1), (3,), (1,))


def sizes(leader: int, copy: int) -> dict[int, dict[TopicPartition, int]]:
    return {2: {tp("a"): leader}, 3: {tp("a"): copy}}


@pytest.mark.parametrize(
    ("seen", "live", "earlier", "now", "throttled", "cause", "way_out"),
    [
        (PartitionSeen((3, 2, 1), None, (2,)), {1, 3}, {}, {}, True, Cause.LEADERLESS, "start broker 2"),
        (SEEN, {1, 2}, {}, {}, True, Cause.TARGET_DEAD, "start it"),
        (PartitionSeen((3, 2, 1), 1, (1, 3)), {1, 3}, {}, {}, True, Cause.TARGET_DEAD, "start it"),  # 2 was there
        (SEEN, {1, 2, 3}, sizes(9, 4), sizes(9, 4), True, Cause.STANDS_STILL, "raise the throttle"),
        (SEEN, {1, 2, 3}, sizes(9, 4), sizes(9, 4), False, Cause.STANDS_STILL, "read the logs of broker 3"),
        (SEEN, {1, 2, 3}, sizes(9, 4), sizes(9, 6), True, Cause.GROWS, "wait: 3 bytes are left"),
        (SEEN, {1, 2, 3}, sizes(9, 9), sizes(9, 9), True, Cause.NOT_IN_SYNC, "read the log of broker 3"),
        (SEEN, {1, 2, 3}, {}, {2: {}}, True, Cause.UNSEEN, "look again"),
        (PartitionSeen((3, 2, 1), 2, (1, 2, 3)), {1, 2, 3}, sizes(9, 8), sizes(9, 9), True, Cause.ENDS, "wait"),
    ],
)
def test_why_it_is_stuck_in_the_order_of_the_reasons(
    seen: PartitionSeen, live: set, earlier: dict, now: dict, throttled: bool, cause: Cause, way_out: str
) -> None:
    found = why_not_done(tp("a"), MOVING, seen, live, earlier=earlier, now=now, throttled=throttled)
    assert (found.cause, way_out in found.way_out) == (cause, True), found


@pytest.mark.parametrize("ongoing", [Ongoing((1, 2, 4, 3), (4,), (3,)), Ongoing((1, 2, 3), (), (3,))])
def test_what_waits_for_a_replica_that_stays_names_its_broker_and_none_that_is_in_sync(ongoing: Ongoing) -> None:
    """Kafka ends a move once its whole target is in sync, not what is added alone."""

    def asked(isr: tuple[int, ...], copied: int | None) -> str:
        whole: dict[int, dict[TopicPartition, int]] = {broker: {tp("a"): 9} for broker in (1, 3, 4)}
        logs = {**whole, 2: {} if copied is None else {tp("a"): copied}}
        seen = PartitionSeen(ongoing.replicas, 1, isr)
        found = why_not_done(tp("a"), ongoing, seen, {1, 2, 3, 4}, earlier=logs, now=logs, throttled=False)
        return f"{found} {'waits' if found.waits else ''}"

    assert (
        asked((1, 3, 4), 4) == "a-0: the copy stands still (broker 2): read the logs of broker 2 and of its leader 1 "
    )
    assert asked((1, 3, 4), 9).startswith("a-0: the copy is whole and not in sync (broker 2): read the log of broker 2")
    assert asked((1, 3, 4), None) == (
        "a-0: a replica that stays has no log on its broker (broker 2): mend the log directory of broker 2 that failed,"
        " and restart the broker; or cancel the move "
    )
    assert asked((1, 2, 3, 4), 9) == "a-0: all its replicas are in sync: wait: the controller ends the move waits"


@pytest.mark.parametrize("dies", [False, True])
def test_a_disk_that_failed_under_replicas_that_stay_holds_up_their_moves_and_no_other(dies: bool) -> None:
    """Broker 1 is drained, and broker 2 keeps replicas of some partitions on a disk that failed, or dies."""
    present = of(bad=[(1, 2, 3)] * 20, well=[(1, 3)] * 60)
    in_sync = {p: tuple(b for b in r if b != 2) for p, r in present.items()}
    target = {p: tuple(4 if b == 1 else b for b in r) for p, r in present.items()}
    plan = ReassignmentPlan("drain", present, target, copies=80, bound=80, min_isr={"bad": 3, "well": 1})
    now = Placement(dict.fromkeys((1, 2, 3, 4)), present, in_sync=in_sync, leaders=dict.fromkeys(present, 3))
    preview = make_preview(plan, now)
    said = "20 partitions keep a replica that is not in sync, on broker 2: a move ends once its whole target is in sync"
    assert said in preview.notes
    order = ReassignmentPlan("order", present, {tp("bad"): (2, 1, 3)}, copies=0, bound=0)
    assert said[3:] not in str(make_preview(order, now).notes), "another order waits for nobody"
    batch = next_batch(plan, now, Limits(500))
    assert {move.partition.topic for move in batch} == {"bad"}, "the most urgent first"
    now = replace(now, ongoing={move.partition: begun(move) for move in batch})
    assert next_batch(plan, now, Limits(500)) == () and read_plan(plan, now).whole == frozenset()
    now = replace(now, in_sync={p: (*each, 4) if p in now.ongoing else each for p, each in in_sync.items()})
    now = replace(now, racks={b: None for b in now.racks if b != 2 or not dies})
    reading = read_plan(plan, now)
    assert (reading.lost, reading.held) == (set(), {2} if dies else set())
    assert (len(reading.whole), reading.behind) == ((0, set()) if dies else (20, {2}))
    assert reading.holds_up(now.ongoing)
    assert reading.because[-1] == (
        "broker 2 does not run: moves that need a replica there wait for it"
        if dies
        else "20 have every copy and wait for the replicas that they keep on broker 2, which are not in sync: bad-0,"
        " bad-1, bad-2, bad-3, bad-4 and 15 more"
    )
    assert busiest(now) == 0, "a whole copy takes no disk and no network"
    sent: list[Move] = []
    while batch := next_batch(plan, now, Limits(500)):
        sent += batch
        now = replace(now, present=after(now, {move.partition: move.target for move in batch}))
    assert len(sent) == 60 and {move.partition.topic for move in sent} == {"well"}
    copying = {p: each for p, each in now.ongoing.items() if p == tp("bad")}
    slow = replace(now, ongoing=copying, in_sync={**now.in_sync, tp("bad"): (1, 3)})
    assert not read_plan(plan, slow).whole, "its own copy is not whole yet"
