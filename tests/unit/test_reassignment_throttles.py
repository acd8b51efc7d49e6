"""Throttles: ours are set beside what is there, and afterwards nothing of ours is left and all else is as it was."""

from __future__ import annotations

from itertools import combinations

import pytest
from config_table import changed
from hypothesis import given
from hypothesis import strategies as st
from placements import tp

from kraft_runbook.cluster.assignment import Move, PartitionSeen
from kraft_runbook.cluster.config_changes import Append, Subtract
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.throttles import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    Former,
    OfMove,
    Speeds,
    at_once,
    cannot_end,
    entries_of,
    gap_grows,
    least_rate,
    leftovers,
    most_at_once,
    own_rates_that_cannot_end,
    produced_into,
    put_back,
    rate_that_keeps_up,
    rates_put_back,
    read_from_leaders,
    throttled_lists,
    with_ours,
)

OURS = throttled_lists([Move(tp("a", 0), (1, 2), (3, 2)), Move(tp("a", 1), (2, 1), (1, 2))])["a"]


def test_leaders_are_those_present_and_followers_those_that_come() -> None:
    assert {LEADER_LIST: {"0:1", "0:2"}, FOLLOWER_LIST: {"0:3"}} == OURS
    assert not throttled_lists([Move(tp("a", 1), (2, 1), (1, 2))])  # a new order copies nothing


def test_ours_alone_are_appended_to_what_is_there_and_a_star_stays() -> None:
    assert with_ours({}, OURS) == {LEADER_LIST: Append("0:1,0:2"), FOLLOWER_LIST: Append("0:3")}
    assert with_ours({LEADER_LIST: "10:1,0:2", FOLLOWER_LIST: "0:3"}, OURS) == {LEADER_LIST: Append("0:1")}
    assert with_ours({LEADER_LIST: "*", FOLLOWER_LIST: "*"}, OURS) == {}


def test_put_back_is_what_was_there_and_what_somebody_added_meanwhile() -> None:
    now = {LEADER_LIST: "0:1,0:2,5:1", FOLLOWER_LIST: "0:3"}
    assert put_back(now, OURS, {LEADER_LIST: "0:1"}) == {LEADER_LIST: Subtract("0:2"), FOLLOWER_LIST: None}
    assert put_back({}, OURS, {}) == {}
    star = {LEADER_LIST: "*", FOLLOWER_LIST: "*"}
    assert put_back(star, OURS, star) == {}


lists = st.sets(st.sampled_from(["0:1", "0:2", "0:3", "1:1", "2:7"])).map(lambda entries: ",".join(sorted(entries)))


def fast(*speeds: float) -> list[OfMove]:
    return [OfMove(each) for each in speeds]


@given(lists, lists)
def test_whatever_was_there_is_there_again(leaders: str, followers: str) -> None:
    former = {key: value for key, value in ((LEADER_LIST, leaders), (FOLLOWER_LIST, followers)) if value}
    during = changed(former, with_ours(former, OURS))
    assert all(OURS[key] <= entries_of(during[key]) for key in OURS)
    again = changed(during, put_back(during, OURS, former))
    assert {key: entries_of(value) for key, value in again.items()} == {k: entries_of(v) for k, v in former.items()}


def test_a_rate_that_somebody_set_meanwhile_stays() -> None:
    now = {LEADER_RATE: "5000", FOLLOWER_RATE: "7"}
    assert rates_put_back(now, [5000], {}) == {LEADER_RATE: None}
    assert rates_put_back(now, [4000, 5000], {LEADER_RATE: "9"}) == {LEADER_RATE: "9"}
    assert rates_put_back({LEADER_RATE: "9"}, [9], {LEADER_RATE: "9"}) == {}


def test_a_brokers_own_rate_that_another_tool_left_is_judged_too() -> None:
    produced, read = {3: fast(600_000.0)}, {1: fast(1_000_000.0)}
    own = {1: {LEADER_RATE: "1000000", FOLLOWER_RATE: "1"}, 3: {FOLLOWER_RATE: "1000000"}, 4: {LEADER_RATE: "1"}}
    assert own_rates_that_cannot_end(own, produced, read, 20) == (
        f"broker 1: its own {LEADER_RATE}=1,000,000 counts there, and 1,000,000 bytes/s must pass besides the copies",
        f"broker 3: its own {FOLLOWER_RATE}=1,000,000 counts there, and 600,000 bytes/s must pass besides the copies",
    )
    fine = {1: {LEADER_RATE: "1000001"}, 3: {FOLLOWER_RATE: "1000001"}}
    assert own_rates_that_cannot_end(fine, produced, read, 20) == ()


def test_what_is_left_is_named_by_where_it_lies() -> None:
    now = Former(
        {LEADER_RATE: "5"}, {3: {FOLLOWER_RATE: "6"}}, {"a": {LEADER_LIST: "0:1,0:2"}, "b": {LEADER_LIST: "*"}}
    )
    assert [str(each) for each in leftovers(now)] == [
        f"the brokers' default: {LEADER_RATE}=5",
        f"broker 3: {FOLLOWER_RATE}=6",
        f"topic a: {LEADER_LIST}=0:1,0:2",
        f"topic b: {LEADER_LIST}=*",
    ]
    was = Former({LEADER_RATE: "5"}, {}, {"a": {LEADER_LIST: "0:2,0:1"}, "b": {LEADER_LIST: "*"}})
    assert [each.where for each in leftovers(now, was)] == ["broker 3"]


def test_what_is_produced_falls_on_each_broker_that_takes_copies() -> None:
    moves = [Move(tp("a", 0), (1, 2), (3, 4)), Move(tp("a", 1), (2, 1), (3, 1)), Move(tp("a", 2), (1, 2), (2, 1))]
    before = {tp("a", 0): 100, tp("a", 1): 50, tp("a", 2): 10}
    after = {tp("a", 0): 120, tp("a", 1): 40, tp("a", 2): 99}
    assert produced_into(moves, before, after, 10) == {3: [(2.0, 120), (0.0, 40)], 4: [(2.0, 120)]}


def test_a_throttle_under_the_produce_rate_is_said_to_have_no_end() -> None:
    assert cannot_end(1_000_000, {3: fast(2_000_000), 4: fast(100_000)}, {}, 20) == (
        "broker 3: 2,000,000 bytes/s are produced into the partitions that it takes, and a throttle of 1,000,000 lets"
        " 600,000 through",
    )
    assert cannot_end(10_000_000, {3: fast(2_000_000)}, {}, 20) == ()


def test_a_leaders_throttle_must_do_for_its_followers_in_sync_and_the_copies() -> None:
    """1.0 MB/s produced and 1.8 allowed never ended with three replicas (measured)."""
    before, after = {tp("a", 0): 0, tp("a", 1): 0}, {tp("a", 0): 10_000_000, tp("a", 1): 99_000_000}
    for isr, copies, least in (
        ((1, 2, 5), (3,), 3_000_000),
        ((1, 2), (3,), 2_000_000),
        ((1,), (3,), 1_000_000),  # 2 lags behind: it is not in the ISR
        ((1, 2), (3, 4), 3_000_000),  # two copies are read from the same leader
        ((1, 2, 3), (3,), 2_000_000),  # a copy that has joined reads once
    ):
        moves = [Move(tp("a", 0), (1, 2, 5), copies), Move(tp("a", 1), (1, 2), (2, 1))]
        seen = {tp("a", 0): PartitionSeen((1, 2, 5), 1, isr), tp("a", 1): PartitionSeen((1, 2), 2, (1, 2))}
        read = read_from_leaders(moves, before, after, 10, seen)
        assert read == {1: [(least, 10_000_000 * len(set(copies) - {1, 2, 5}))]} and least_rate({}, read, 20) == least
        assert cannot_end(least, {}, read, 20)[0].startswith(
            f"broker 1: its followers in sync and the copies read {least:,} bytes/s of the partitions that it leads"
        )
        assert cannot_end(least + 1, {}, read, 20) == ()


def test_only_what_moves_at_once_counts_and_how_many_may_is_told() -> None:
    """8 partitions with 0.1 MB/s each and a throttle of 0.6 MB/s (measured: one at a time they end)."""
    produced = {3: fast(*[100_000.0] * 8)}
    assert cannot_end(600_000, produced, {}, 8) and not cannot_end(600_000, produced, {}, 3)
    assert least_rate(produced, {}, 3) == 500_000

    def most(rate: int, moves: int, read: Speeds | None = None) -> int:
        return most_at_once(lambda count: cannot_end(rate, produced, read or {}, count), moves)

    assert most(600_000, 8) == most(600_000, 20) == 3
    assert most(600_000, 20, {1: fast(*[200_000.0] * 8)}) == 2, "the leader sends what is read"
    assert most(600_000, 2) == 2 and most(6_000_000, 20) == 20, "no more than may go on"
    assert most(150_000, 20) == 0
    assert at_once({1: fast(3, 2, 1)}, 2) == {1: 5}


MOVES = st.lists(st.builds(OfMove, st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6)


@given(MOVES, st.integers(1, 4), st.integers(1, 20))
def test_the_bytes_at_once_count_and_no_choice_of_moves_is_faster_than_what_is_said(
    each: list[OfMove], moves: int, most: int
) -> None:
    said = at_once({1: sorted(each, reverse=True)}, moves, most)[1]
    for count in range(1, moves + 1):
        for chosen in combinations(each, count):
            if count == 1 or sum(move.size for move in chosen) <= most:
                assert said >= sum(move.speed for move in chosen) - 1e-9
    assert said <= at_once({1: sorted(each, reverse=True)}, moves)[1] + 1e-9


def test_a_rate_that_ends_for_the_bytes_that_go_at_once_is_not_refused() -> None:
    """Eight partitions of 10 MB with 0.1 MB/s each: 20 may go at once, and 25 MB of them."""
    produced = {3: [OfMove(100_000.0, 10_000_000)] * 8}
    assert at_once(produced, 20, 25_000_000) == {3: 250_000}
    assert cannot_end(600_000, produced, {}, 20) and not cannot_end(600_000, produced, {}, 20, 25_000_000)
    assert at_once({3: [OfMove(5.0, 100), OfMove(1.0, 10)]}, 20, 50) == {3: 5.0}, "the larger one goes alone"
    assert least_rate(produced, {}, 20, 25_000_000) == pytest.approx(250_000 / 0.6)


def test_a_partition_that_nobody_leads_or_nobody_saw_is_not_read_from() -> None:
    moves = [Move(tp("a", 0), (1,), (3,)), Move(tp("a", 1), (1,), (3,))]
    seen = {tp("a", 0): PartitionSeen((1,), None, ())}
    assert read_from_leaders(moves, {}, dict.fromkeys([tp("a", 0), tp("a", 1)], 9), 1, seen) == {}


def test_the_rate_that_is_offered_makes_up_for_what_the_gap_grew() -> None:
    assert rate_that_keeps_up(1_000_000, [5_000_000, 20_000_000, 35_000_000], 60.0) == 1_833_333  # 0.5 MB/s by 0.6
    assert rate_that_keeps_up(1_000_000, [5_000_000, 35_000_000], 60.0, 2_100_000) == 3_000_000  # 2.1 MB/s by 0.7


def test_a_gap_that_grew_over_three_samples_is_said() -> None:
    assert gap_grows([5, 63, 66, 69, 72])
    assert not gap_grows([63, 66, 72]) and not gap_grows([1, 2, 3, 3]) and not gap_grows([])


def test_what_a_run_has_set_is_written_down_whole() -> None:
    first = RunThrottles.of([Move(tp("a", 0), (1, 2), (3, 2))], 5000)
    later = RunThrottles.of([Move(tp("a", 1), (1, 2), (3, 2)), Move(tp("b", 0), (1,), (2,))], 4000)
    both = first.and_then(later)
    assert both.rates == (5000, 4000) and both.rate == 4000
    assert both.lists["a"][FOLLOWER_LIST] == {"0:3", "1:3"} and both.lists["b"][LEADER_LIST] == {"0:1"}
    assert both.and_then(first).rates == (4000, 5000)
    assert RunThrottles.from_json(both.to_json(), source="f") == both
    assert RunThrottles().rate is None
    for text in ("", "5000", "{}"):
        with pytest.raises(Refused, match="f does not say which throttles were set"):
            RunThrottles.from_json(text, source="f")
