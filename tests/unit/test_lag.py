"""Two looks: what comes and goes is no lag, and what stays missing is one, under any churn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import SPEC, WHY, Spoil, apart, gauges, observation, part, topics, with_quorum, zookeeper

from kraft_runbook.cluster.observation import ClusterObservation, MigrationZnode, Voter
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration import conditions
from kraft_runbook.migration.checks import CHECKS, Verdict

H, D = Phase.HYBRID, Phase.DUAL_WRITE
NAMES = st.frozensets(st.integers(0, 400).map("churn-{}".format), max_size=20)


def at(seen: ClusterObservation, offset: int, committed: int, lag: int) -> ClusterObservation:
    return gauges(101, zk_write_behind_lag=lag)(
        zookeeper(migration=MigrationZnode(offset, 101, 4, 4))(with_quorum(high_watermark=committed + 1)(seen))
    )


def verdict(code: str, earlier: ClusterObservation, seen: ClusterObservation) -> Verdict:
    return CHECKS[code].run(seen, SPEC, earlier).verdict


@given(NAMES, NAMES, NAMES, NAMES)
def test_topics_that_come_and_go_are_no_difference(
    a: frozenset[str], b: frozenset[str], c: frozenset[str], d: frozenset[str]
) -> None:
    earlier, seen = (part(topics_apart=apart(q, z))(observation(H)) for q, z in ((a, b), (c - a, d - b)))
    assert verdict("KRB-GATE-004", earlier, seen) is Verdict.PASS


@given(NAMES, NAMES, st.booleans())
def test_one_topic_that_stays_on_one_side_is_found_under_any_churn(
    now: frozenset[str], then: frozenset[str], in_quorum: bool
) -> None:
    sides = [
        (names | {"lost"}, frozenset[str]()) if in_quorum else (frozenset[str](), names | {"lost"})
        for names in (then, now)
    ]
    earlier, seen = (part(topics_apart=apart(q, z))(observation(H)) for q, z in sides)
    assert verdict("KRB-GATE-004", earlier, seen) is Verdict.FAIL
    progress = conditions.METADATA_COPIED.progress(seen, SPEC, earlier=earlier)
    assert progress.waiting_for.startswith("waiting for all topics: ")


@pytest.mark.parametrize("code", ["KRB-GATE-003", "KRB-GATE-004"])
def test_one_look_is_not_enough_where_something_is_apart(code: str) -> None:
    seen = part(topics_apart=apart(["new"]))(at(observation(H), 990, 999, 9))
    assert CHECKS[code].run(seen, SPEC).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(1200, Verdict.PASS), (999, Verdict.PASS), (998, Verdict.FAIL), (500, Verdict.FAIL)],
    ids=["lags", "just", "behind", "stands"],
)
def test_a_lag_is_fine_once_what_was_committed_before_is_written(offset: int, expected: Verdict) -> None:
    earlier, seen = at(observation(D), 500, 999, 499), at(observation(D), offset, 1600, 1600 - offset)
    assert verdict("KRB-GATE-003", earlier, seen) is expected
    copied = conditions.METADATA_COPIED.progress(
        at(observation(H), offset, 1600, 1600 - offset), SPEC, earlier=at(observation(H), 500, 999, 499)
    )
    assert copied.done == (expected is Verdict.PASS)


def voters(*offsets: int) -> tuple[Voter, ...]:
    return tuple(Voter(i, offset) for i, offset in zip((101, 102, 103), offsets, strict=True))


@pytest.mark.parametrize(("third", "whole"), [(1700, True), (1000, True), (999, False), (12, False)])
def test_a_voter_may_lag_by_what_was_written_since_the_look_before(third: int, whole: bool) -> None:
    earlier, seen = observation(D), with_quorum(high_watermark=1700, voters=voters(1700, 1700, third))(observation(D))
    assert conditions.QUORUM_WHOLE.progress(seen, SPEC, earlier=earlier).done is whole
    assert (verdict("KRB-GATE-009", earlier, seen) is Verdict.PASS) is whole


def unknown_to(**brokers: str) -> Spoil:
    return topics(topics_unknown_to={i: frozenset(brokers.get(f"b{i}", "").split()) for i in (1, 2, 3)})


@pytest.mark.parametrize(
    ("then", "now", "waits"),
    [
        (unknown_to(b1="x y", b3="z"), unknown_to(b1="u", b2="x", b3="v"), False),
        (unknown_to(), unknown_to(b2="new"), False),
        (unknown_to(b2="a b c"), unknown_to(b2="a b c new"), True),
        (unknown_to(b1="gone", b3="gone"), unknown_to(b1="gone", b3="gone"), True),
        (part(topics=WHY), unknown_to(b2="a"), True),
        (topics(topics_unknown_to={1: frozenset(), 3: frozenset()}), unknown_to(b2="a"), True),
    ],
    ids=[
        "all under churn",
        "one is a moment late",
        "one that has just started",
        "one is deaf for deletions",
        "no look before",
        "it did not answer before",
    ],
)
def test_a_broker_is_behind_when_it_lacks_the_same_topic_twice(then: Spoil, now: Spoil, waits: bool) -> None:
    progress = conditions.BROKER_IN_SYNC.progress(now(observation(H)), SPEC, node_id=2, earlier=then(observation(H)))
    assert progress.done is not waits


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [((), ("a",), Verdict.PASS), (("a", "b"), ("c",), Verdict.PASS), (("a", "b"), ("b", "c"), Verdict.FAIL)],
)
def test_a_deletion_is_pending_when_it_is_at_two_looks(
    then: tuple[str, ...], now: tuple[str, ...], expected: Verdict
) -> None:
    earlier, seen = (zookeeper(pending_topic_deletions=each)(observation(Phase.ZOOKEEPER)) for each in (then, now))
    assert verdict("KRB-PRE-023", earlier, seen) is expected
    assert CHECKS["KRB-PRE-023"].run(seen, SPEC).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        ((1, 2, 3), (1, 2, 3), ""),
        ((1, 2, 3), (1, 2), ""),
        ((1, 2), (1, 2, 3), ""),
        ((1, 2), (1, 2), "broker 3"),
    ],
)
def test_a_broker_follows_that_the_leader_knew_at_one_of_two_looks(
    then: tuple[int, ...], now: tuple[int, ...], told: str
) -> None:
    looks = (with_quorum(observers=tuple(Voter(i, 1000) for i in each))(observation(D)) for each in (then, now))
    found = CHECKS["KRB-GATE-014"].run(*_seen_then(*looks))
    assert found.verdict is (Verdict.FAIL if told else Verdict.PASS) and told in found.evidence


def test_what_the_leader_before_knew_says_nothing_of_a_fetch() -> None:
    then = with_quorum(leader_epoch=3)(observation(D))
    now = with_quorum(leader_epoch=4, observers=())(observation(D))
    assert CHECKS["KRB-GATE-014"].run(*_seen_then(then, now)).verdict is Verdict.FAIL


def test_a_broker_may_lag_by_what_was_written_since_the_look_before() -> None:
    then = with_quorum(high_watermark=1000)(observation(D))
    for at_offset, expected in ((1000, Verdict.PASS), (999, Verdict.FAIL)):
        now = with_quorum(high_watermark=5000, observers=tuple(Voter(i, at_offset) for i in (1, 2, 3)))(observation(D))
        assert CHECKS["KRB-GATE-014"].run(*_seen_then(then, now)).verdict is expected


def test_of_a_broker_that_is_listed_twice_the_newer_entry_counts() -> None:
    observers = (Voter(1, 1000), Voter(2, 1000), Voter(3, 1000), Voter(2, 400, 5))
    seen = with_quorum(observers=observers)(observation(D))
    assert CHECKS["KRB-GATE-014"].run(seen, SPEC, seen).verdict is Verdict.PASS


@pytest.mark.parametrize(("ago", "expected"), [(19_000, Verdict.PASS), (21_000, Verdict.FAIL)])
def test_in_a_log_that_stands_still_the_time_of_the_last_fetch_tells(ago: int, expected: Verdict) -> None:
    now = 1_800_000_000_000
    voters = (Voter(101, 1000, now), Voter(102, 1000, now - 100), Voter(103, 1000, now - 100))
    observers = (Voter(1, 1000, now - 300), Voter(2, 1000, now - ago), Voter(3, 1000, now - 300))
    seen = with_quorum(voters=voters, observers=observers)(observation(D))
    found = CHECKS["KRB-GATE-014"].run(seen, SPEC, seen)
    assert found.verdict is expected
    assert expected is Verdict.PASS or "broker 2 has not fetched for 21 s" in found.evidence


def test_brokers_in_migration_mode_are_not_judged_by_their_fetches() -> None:
    seen = with_quorum(observers=())(observation(H))
    assert CHECKS["KRB-GATE-014"].run(seen, SPEC, seen).verdict is Verdict.PASS


def _seen_then(
    then: ClusterObservation, now: ClusterObservation
) -> tuple[ClusterObservation, ClusterSpec, ClusterObservation]:
    return now, SPEC, then
