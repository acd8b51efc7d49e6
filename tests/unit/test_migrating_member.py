"""One member of a group, step by step: the mode it follows, what it takes, keeps and gives up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_runbook_consumer.errors import ConsumerError
from kraft_runbook_consumer.lease import Lease, holds
from kraft_runbook_consumer.mode import Mode, called_for, decide
from kraft_runbook_consumer.step import Held, Lock, Phase, Release, Start, State, Stop, View, step
from kraft_runbook_consumer.znodes import Registration

ME, OTHER = "g_a", "g_b"
BOTH = {ME: Registration({"t": 1}), OTHER: Registration({"t": 1})}
VIEW = View(BOTH, frozenset(BOTH), None, {"t": (0, 1, 2, 3)}, new={})
P0, P1, P2, P3 = (("t", n) for n in range(4))


def running(*partitions: tuple[str, int]) -> dict[tuple[str, int], Held]:
    return {each: Held(0, Phase.RUNNING) for each in partitions}


@pytest.mark.parametrize(
    ("znode", "expected"),
    [
        (None, Mode.ZOOKEEPER),
        ("zookeeper", Mode.ZOOKEEPER),
        ("kafka", Mode.KAFKA),
        ("Kafka", Mode.ZOOKEEPER),
        ("kafka\n", Mode.ZOOKEEPER),
        ("", Mode.ZOOKEEPER),
    ],
)
def test_mode_znode_values(znode: str | None, expected: Mode) -> None:
    """Only the word kafka lets Kafka assign."""
    assert called_for(znode, {ME, OTHER}, {ME, OTHER}) is expected
    assert called_for(znode, {ME, OTHER}, {ME}) is Mode.ZOOKEEPER, "an old member is there"


def test_nobody_follows_zookeeper_beside_a_new_member() -> None:
    for now in (None, Mode.KAFKA):
        assert decide(now, Mode.ZOOKEEPER, {"kc"})[0] is Mode.KAFKA
        assert decide(now, Mode.ZOOKEEPER, None)[0] is now
        assert decide(now, Mode.ZOOKEEPER, set()) == (Mode.ZOOKEEPER, "")
    assert "kc in Kafka's group" in decide(Mode.KAFKA, Mode.ZOOKEEPER, {"kc"})[1]
    assert "a, b, c and 1 more" in decide(Mode.KAFKA, Mode.ZOOKEEPER, set("abcd"))[1]
    assert decide(Mode.ZOOKEEPER, Mode.KAFKA, None) == (Mode.KAFKA, "")
    assert decide(None, Mode.ZOOKEEPER, None, migrates=False) == (Mode.ZOOKEEPER, "")


def test_a_member_that_starts_locks_what_zookeeper_assigns() -> None:
    found = step(State(ME), VIEW)
    assert (found.mode, found.actions) == (Mode.ZOOKEEPER, (Lock(P0, 0), Lock(P1, 0)))
    assert step(State(ME), replace(VIEW, taken=frozenset({P0}))).actions == (Lock(P1, 0),)
    assert step(State(ME), replace(VIEW, new=None)).actions == ()
    assert step(State(ME), replace(VIEW, new={"kc": frozenset({P0})})).actions == ()


def test_only_what_moves_is_given_up() -> None:
    state = State(ME, mode=Mode.ZOOKEEPER, held=running(P0, P1, P2))
    assert step(state, VIEW).actions == (Stop(P2),)
    stopping = replace(state, held={**running(P0, P1), P2: Held(0, Phase.STOPPING)})
    assert step(stopping, VIEW).actions == (), "a record of it is in the application's hands"
    assert step(stopping, replace(VIEW, quiet=frozenset({P2}))).actions == (Release(P2, linger=False),)
    beside_old = replace(VIEW, quiet=frozenset({P2}), migrating=frozenset({ME}))
    assert step(stopping, beside_old).actions == (Release(P2, linger=True),)


def test_what_is_locked_starts_and_what_stopped_is_given_up_before_it_is_taken_again() -> None:
    state = State(ME, mode=Mode.ZOOKEEPER, held={P0: Held(0, Phase.LOCKED), P1: Held(0, Phase.STOPPING)})
    assert step(state, replace(VIEW, quiet=frozenset({P1}))).actions == (Start(P0, 0), Release(P1, linger=False))
    moved = replace(state, held={P0: Held(1, Phase.RUNNING), P3: Held(0, Phase.LOCKED)})
    assert step(moved, VIEW).actions == (Stop(P0), Release(P3, linger=False), Lock(P1, 0)), "another thread gets P0"


def test_in_kafka_mode_kafka_assigns() -> None:
    kafka = replace(VIEW, mode="kafka", assigned=frozenset({P1, P3}))
    state = State(ME, mode=Mode.ZOOKEEPER, held=running(P0, P1))
    assert step(state, kafka).mode is Mode.KAFKA
    assert step(state, kafka).actions == (Stop(P0), Lock(P3, 0))
    not_joined = step(state, replace(kafka, assigned=None))
    assert (not_joined.mode, not_joined.actions) == (Mode.KAFKA, ()), "it keeps what it has until Kafka has assigned"
    back = replace(kafka, mode="zookeeper", new={"kc": frozenset({P2})})
    assert step(replace(state, mode=Mode.KAFKA), back).mode is Mode.KAFKA
    assert step(replace(state, mode=Mode.KAFKA), replace(back, new={})).mode is Mode.ZOOKEEPER


def test_a_new_member_that_comes_in_zookeeper_mode_gets_its_partitions_alone() -> None:
    state = State(ME, mode=Mode.ZOOKEEPER, held=running(P0, P1))
    assert step(state, replace(VIEW, new={"kc": frozenset({P1, P3})})).actions == (Stop(P1),)


def test_roundrobin_with_equal_hashes_is_refused_beside_old_members() -> None:
    members = {ME: Registration({"Aa": 1, "BB": 1}), OTHER: Registration({"Aa": 1})}
    view = View(members, frozenset(members), None, {"Aa": (0,), "BB": (0,)}, new={})
    state = State(ME, strategy="roundrobin", mode=Mode.ZOOKEEPER)
    assert step(state, view).actions
    with pytest.raises(ConsumerError, match=r"Aa-0 and BB-0 have the same hash.*partition.assignment.strategy=range"):
        step(state, replace(view, migrating=frozenset({ME})))


def test_a_lease_counts_from_the_sending_of_its_last_sign() -> None:
    now = [100.0]
    lease = Lease(6.0, clock=lambda: now[0])
    assert not lease.holds()
    lease.begin("session 1")
    lease.renew("session 1", 100.0)
    now[0] = 103.9
    assert lease.holds()
    lease.renew("session 1", 99.0)
    now[0] = 104.0
    assert not lease.holds(), "an older sign takes nothing away and adds nothing"
    lease.renew("session 0", 104.0)
    assert not lease.holds(), "that of another session does not count"
    lease.renew("session 1", 104.0)
    assert lease.holds()
    lease.end()
    lease.renew(None, 105.0)
    assert not lease.holds() and lease.age == float("inf")
    assert [holds(10.0, 6.0, 13.9), holds(10.0, 6.0, 14.0), holds(None, 6.0, 0.0)] == [True, False, False]
