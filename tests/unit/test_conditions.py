"""Each wait holds when it should, names who is missing when not, and gives up only where waiting can't help."""

from __future__ import annotations

import pytest
from kept_observations import end_untold
from observations import (
    SPEC,
    WHY,
    Spoil,
    a_controller,
    apart,
    both,
    broker,
    dual_writing,
    gauges,
    later,
    observation,
    part,
    registration,
    topics,
    with_quorum,
    zookeeper,
)

from kraft_runbook.cluster.observation import (
    BrokerMode,
    ControllerMode,
    ControllerZnode,
    MigrationZnode,
    Unread,
    Voter,
    ZkMigrationState,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import conditions
from kraft_runbook.migration.conditions import CONDITIONS
from kraft_runbook.runbook.conditions import Condition, Progress

P, H, D, F = Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED


def ask(
    condition: Condition,
    phase: Phase,
    spoil: Spoil = lambda s: s,
    *,
    node_id: int | None = None,
    spoilt_before: bool = False,
) -> Progress:
    seen = later(spoil(observation(phase)), 1)
    earlier = spoil(observation(phase)) if spoilt_before else observation(phase)
    return condition.progress(seen, SPEC, node_id=node_id, earlier=earlier)


@pytest.mark.parametrize(
    ("condition", "phase", "node_id"),
    [
        *((conditions.QUORUM_READY, p, None) for p in (P, H, D, F)),
        *((conditions.QUORUM_WHOLE, p, None) for p in (P, H, D, F)),
        *((conditions.CONTROLLER_CAUGHT_UP, p, 102) for p in (P, H, D, F)),
        *((conditions.BROKER_REGISTERED_AS_MIGRATING, p, 2) for p in (H, D, F)),
        *((conditions.BROKER_REGISTERED_IN_KRAFT, p, 2) for p in (D, F)),
        (conditions.BROKER_IN_ZOOKEEPER_MODE, P, 2),
        *((conditions.BROKER_IN_SYNC, p, 2) for p in (P, H, D, F)),
        *((conditions.METADATA_COPIED, p, None) for p in (H, D, F)),
        (conditions.FINALIZED, F, None),
    ],
)
def test_holds_where_the_cluster_is_there_or_beyond(condition: Condition, phase: Phase, node_id: int | None) -> None:
    """A cleared task must go on at once when its work is done."""
    assert ask(condition, phase, node_id=node_id) == Progress(True)


WAITING: list[tuple[Condition, int | None, Phase, Spoil, str]] = [
    (
        conditions.QUORUM_READY,
        None,
        P,
        a_controller(103, running=WHY),
        "waiting for controller 103 to answer: a test did not read it",
    ),
    (conditions.QUORUM_READY, None, P, part(quorum=WHY), "waiting for a quorum leader: a test did not read it"),
    (
        conditions.QUORUM_READY,
        None,
        P,
        with_quorum(voters=(Voter(101, 1000), Voter(102, 1000), Voter(103, 12))),
        "waiting for voter 103 to catch up with offset 1000 (103 at 12): 2 of 3 have",
    ),
    (
        conditions.QUORUM_READY,
        None,
        P,
        with_quorum(voters=(Voter(101, 1000),)),
        "controllers 102, 103 are not one of the quorum's voters (101)",
    ),
    (
        conditions.QUORUM_READY,
        None,
        P,
        gauges(102, zk_migration_state=ZkMigrationState.NOT_PUBLISHED),
        (
            "waiting for ZkMigrationState 1 (MIGRATION) or 2 (PRE_MIGRATION) or 3 (POST_MIGRATION): 2 of 3 show it;"
            " controller 102 shows -1 (NOT_PUBLISHED)"
        ),
    ),
    (
        conditions.CONTROLLER_CAUGHT_UP,
        102,
        D,
        gauges(102, zk_migration_state=ZkMigrationState.NOT_PUBLISHED),
        "waiting for controller 102 to publish its first image (ZkMigrationState is -1 (NOT_PUBLISHED))",
    ),
    (
        conditions.CONTROLLER_CAUGHT_UP,
        102,
        D,
        a_controller(102, metrics=WHY),
        "waiting for the metrics of controller 102: a test did not read it",
    ),
    (
        conditions.BROKER_REGISTERED_AS_MIGRATING,
        2,
        P,
        part(),
        "waiting for broker 2 to register as migrating: 0 of 3 seen; it is in zookeeper mode",
    ),
    (
        conditions.BROKER_REGISTERED_AS_MIGRATING,
        2,
        H,
        with_quorum(registrations={}),
        "waiting for broker 2 to register as migrating: 0 of 3 seen; it is in hybrid mode",
    ),
    (
        conditions.BROKER_REGISTERED_AS_MIGRATING,
        2,
        H,
        registration(2, fenced=True),
        (
            "waiting for broker 2 to register as migrating: 2 of 3 seen; it is in hybrid mode, its registration is"
            " fenced (if that lasts, restart this broker by hand: docs/reliability.md)"
        ),
    ),
    (
        conditions.BROKER_REGISTERED_AS_MIGRATING,
        2,
        H,
        part(quorum=WHY),
        (
            "waiting for broker 2 to register as migrating: 0 of 3 seen; it is in hybrid mode; the quorum: a test did"
            " not read it"
        ),
    ),
    (
        conditions.BROKER_REGISTERED_IN_KRAFT,
        2,
        H,
        broker(1, mode=BrokerMode.KRAFT),
        "waiting for broker 2 to register in KRaft mode: 0 of 3 seen; it is in hybrid mode",
    ),
    (
        conditions.BROKER_IN_ZOOKEEPER_MODE,
        2,
        H,
        part(),
        "waiting for broker 2 to run in ZooKeeper mode: 0 of 3 do; it is in hybrid mode",
    ),
    (
        conditions.BROKER_IN_SYNC,
        2,
        H,
        topics(out_of_sync_by_broker={2: 17}),
        "waiting for broker 2 to be in sync: out of the ISR of 17 partitions",
    ),
    (
        conditions.BROKER_IN_SYNC,
        2,
        H,
        topics(topics_unknown_to={1: frozenset(), 2: frozenset({"a", "b"}), 3: frozenset()}),
        "waiting for every broker to know all topics (broker 2 lacks 2 topics: a, b)",
    ),
    (
        conditions.BROKER_IN_SYNC,
        2,
        H,
        topics(topics_known_by_broker={1: 9, 2: 9}),
        "waiting for broker 3 to answer Metadata",
    ),
    (
        conditions.BROKER_IN_SYNC,
        2,
        H,
        topics(live_broker_ids=frozenset({1, 3})),
        "waiting for broker 2 to be known to all brokers, as 2 others are",
    ),
    (
        conditions.BROKER_IN_SYNC,
        2,
        H,
        topics(offline_count=1, offline=("a-0",)),
        "waiting for 1 offline partitions: a-0",
    ),
    (conditions.BROKER_IN_SYNC, 2, H, part(topics=WHY), "waiting for the partitions' state: a test did not read it"),
    (conditions.METADATA_COPIED, None, P, part(), "waiting for brokers 1, 2, 3 to run in migration mode: 0 of 3 do"),
    (
        conditions.METADATA_COPIED,
        None,
        H,
        gauges(103, zk_migration_state=ZkMigrationState.PRE_MIGRATION),
        "waiting for ZkMigrationState 1 (MIGRATION): 2 of 3 show it; controller 103 shows 2 (PRE_MIGRATION)",
    ),
    (
        conditions.METADATA_COPIED,
        None,
        H,
        gauges(101, migrating_zk_broker_count=2),
        "waiting for MigratingZkBrokerCount 3: active controller 101 shows 2",
    ),
    (
        conditions.METADATA_COPIED,
        None,
        H,
        part(topics_apart=apart(only_in_zookeeper=["a"])),
        "waiting for all topics: the quorum lacks topic a (the quorum has 8 topics, ZooKeeper 9)",
    ),
    (
        conditions.METADATA_COPIED,
        None,
        H,
        zookeeper(controller=ControllerZnode(1, -1)),
        "/controller names 1, the quorum's leader is 101",
    ),
    (
        conditions.METADATA_COPIED,
        None,
        H,
        zookeeper(migration=MigrationZnode(998, 102, 4, 4)),
        "/migration names 102, the quorum's leader is 101",
    ),
    (
        conditions.METADATA_COPIED,
        None,
        H,
        topics(under_replicated_count=3),
        "waiting for 3 under-replicated and 0 offline partitions",
    ),
    (
        conditions.METADATA_COPIED,
        None,
        H,
        zookeeper(migration=MigrationZnode(990, 101, 4, 4)),
        "waiting for ZooKeeper to be written: it was to be written up to offset 999, /migration is at 990",
    ),
    (
        conditions.METADATA_COPIED,
        None,
        H,
        zookeeper(migration=MigrationZnode(50_000, 101, 4, 4)),
        (
            "waiting for ZooKeeper to be written: /migration was at offset 50000, and the metadata log has reached only"
            " 999 since: it is of another log"
        ),
    ),
    (conditions.METADATA_COPIED, None, H, part(zookeeper=WHY), "waiting for ZooKeeper: a test did not read it"),
    (
        conditions.FINALIZED,
        None,
        D,
        part(),
        (
            "waiting for ZkMigrationState 3 (POST_MIGRATION): 0 of 3 show it; controller 101 shows 1 (MIGRATION);"
            " controller 102 shows 1 (MIGRATION); controller 103 shows 1 (MIGRATION)"
        ),
    ),
]


@pytest.mark.parametrize(("condition", "node_id", "phase", "spoil", "message"), WAITING)
def test_names_who_or_what_is_missing(
    condition: Condition, node_id: int | None, phase: Phase, spoil: Spoil, message: str
) -> None:
    progress = ask(
        condition,
        phase,
        spoil,
        node_id=node_id,
        spoilt_before=condition in (conditions.METADATA_COPIED, conditions.BROKER_IN_SYNC),
    )
    assert progress == Progress(False, message, unread=progress.unread, topics=progress.topics)
    assert progress.topics is ("under-replicated" in message and condition is conditions.METADATA_COPIED)


def test_the_copy_is_not_believed_at_first_sight() -> None:
    progress = conditions.METADATA_COPIED.progress(observation(H), SPEC, earlier=None)
    assert progress == Progress(False, "waiting for a second look, to check that /migration advances")


DOWN = broker(2, running=False, mode=WHY)


@pytest.mark.parametrize(
    "condition",
    [
        conditions.BROKER_REGISTERED_AS_MIGRATING,
        conditions.BROKER_REGISTERED_IN_KRAFT,
        conditions.BROKER_IN_SYNC,
        conditions.METADATA_COPIED,
    ],
)
def test_a_broker_whose_process_ended_is_named_and_not_waited_for(condition: Condition) -> None:
    once = ask(condition, H, DOWN, node_id=2)
    assert once == Progress(False, "waiting for broker 2: its port refuses connections")
    twice = ask(condition, H, DOWN, node_id=2, spoilt_before=True)
    assert twice == Progress(
        False, "broker 2's process has ended: its port refuses connections; its log says why", hopeless=True
    )


def test_a_controller_whose_process_ended_is_not_waited_for() -> None:
    gone = a_controller(103, running=False, metrics=WHY)
    assert ask(conditions.QUORUM_READY, P, gone, spoilt_before=True).hopeless
    assert not ask(conditions.CONTROLLER_CAUGHT_UP, D, gone, node_id=102, spoilt_before=True).hopeless


def test_another_broker_that_ended_does_not_end_the_wait_for_this_one() -> None:
    assert not ask(conditions.BROKER_REGISTERED_AS_MIGRATING, H, DOWN, node_id=3, spoilt_before=True).hopeless


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            with_quorum(migration_state_record=ZkMigrationState.NONE),
            "the metadata log's ZkMigrationState is 0 (NONE): the quorum was formed without the migration flag",
        ),
        (
            with_quorum(migration_state_record=None, metadata_version=7),
            "the metadata log's ZkMigrationState is 0 (NONE): the quorum was formed without the migration flag",
        ),
        (a_controller(102, mode=ControllerMode.KRAFT), "controller 102 runs without the migration flag"),
    ],
)
def test_a_quorum_that_can_never_migrate_is_not_waited_for(spoil: Spoil, message: str) -> None:
    assert ask(conditions.QUORUM_READY, P, spoil) == Progress(False, message, hopeless=True)


@pytest.mark.parametrize(
    "log",
    [part(quorum=WHY), with_quorum(migration_state_record=None, metadata_version=None), part()],
    ids=["unread", "empty", "2"],
)
def test_a_gauge_of_0_alone_is_waited_for(log: Spoil) -> None:
    """A controller shows it until the quorum's first records are committed."""
    progress = ask(conditions.QUORUM_READY, P, both(gauges(101, zk_migration_state=ZkMigrationState.NONE), log))
    assert not progress.done and not progress.hopeless


def test_a_replica_is_not_waited_for_while_the_copy_is_under_way_since_nobody_can_take_it_back() -> None:
    """On the way back from a copy that hangs it would be waited for until the deadline; on the way forward the wait for
    the copy asks again.
    """
    behind = both(broker(2, mode=BrokerMode.HYBRID), topics(out_of_sync_by_broker={2: 17}, under_replicated_count=17))
    copying = both(behind, zookeeper(controller=ControllerZnode(101, 4)))
    assert not ask(conditions.BROKER_IN_SYNC, P, behind, node_id=2, spoilt_before=True).done
    assert ask(conditions.BROKER_IN_SYNC, P, copying, node_id=2, spoilt_before=True).done
    assert "17 under-replicated" in ask(conditions.METADATA_COPIED, H, behind, spoilt_before=True).waiting_for
    assert not ask(conditions.BROKER_IN_SYNC, H, behind, node_id=2, spoilt_before=True).done


def test_a_condition_about_one_node_needs_its_id() -> None:
    with pytest.raises(ValueError, match="give its id"):
        conditions.BROKER_IN_SYNC.progress(observation(H), SPEC)


def test_every_condition_can_be_described() -> None:
    assert {c.describe(2) for c in CONDITIONS.values()} and conditions.BROKER_IN_SYNC.describe(
        2
    ) == "broker 2 to be in every ISR"


# -- leaving KRaft -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "missing"),
    [
        (with_quorum(migration_state_record=ZkMigrationState.PRE_MIGRATION), "waiting for ZkMigrationState 1"),
        (with_quorum(migration_state_record=None), "waiting for ZkMigrationState 1"),
        (zookeeper(controller=ControllerZnode(2, -1)), "/controller names 2, the quorum's leader is 101"),
        (zookeeper(controller=ControllerZnode(101, -1)), "/controller names 101, the quorum's leader is 101"),
        (zookeeper(controller=None), "/controller names nobody"),
        (zookeeper(migration=MigrationZnode(999, 102, 4, 4)), "/migration names 102"),
        (zookeeper(migration=None), "/migration does not exist"),
        (zookeeper(controller=ControllerZnode(101, 3)), "/controller names 101 in epoch 3, the quorum is in epoch 4"),
        (zookeeper(migration=MigrationZnode(1005, 101, 4, 9)), "/migration names 101 in epoch 9"),
        (part(quorum=WHY), "waiting for a quorum leader"),
        (part(zookeeper=WHY), "waiting for ZooKeeper"),
    ],
)
def test_kraft_is_not_left_before_its_leader_is_the_one_controller_of_both_sides(spoil: Spoil, missing: str) -> None:
    seen = observation(Phase.HYBRID)
    fine = conditions.READY_TO_LEAVE.progress(dual_writing(seen, 3), SPEC, node_id=None, earlier=seen)
    assert fine.done
    spoilt = conditions.READY_TO_LEAVE.progress(spoil(dual_writing(seen, 3)), SPEC, node_id=None, earlier=seen)
    assert not spoilt.done and missing in spoilt.waiting_for


def test_nor_before_what_was_committed_at_the_look_before_is_in_zookeeper() -> None:
    seen = observation(Phase.HYBRID)
    once = conditions.READY_TO_LEAVE.progress(seen, SPEC, node_id=None, earlier=None)
    assert not once.done and "a second look" in once.waiting_for
    dead = conditions.READY_TO_LEAVE.progress(
        dual_writing(seen, 6, dead=True), SPEC, node_id=None, earlier=dual_writing(seen, 3, dead=True)
    )
    assert not dead.done and "waiting for ZooKeeper to be written" in dead.waiting_for


@pytest.mark.parametrize("condition", [conditions.METADATA_COPIED, conditions.READY_TO_LEAVE])
def test_a_copy_whose_end_nothing_tells_zookeeper_is_waited_for_in_vain(condition: Condition) -> None:
    seen = end_untold()
    progress = condition.progress(seen, SPEC, earlier=seen)
    assert progress.hopeless and "the metadata copy was committed, and /migration has no offset" in progress.waiting_for
    telling = zookeeper(controller=ControllerZnode(101, 4), migration=MigrationZnode(-1, 101, -1, 4))(seen)
    assert not condition.progress(telling, SPEC, earlier=telling).hopeless, "who copied leads, and is about to write it"


def test_nor_where_migration_is_of_another_log() -> None:
    """It stands far beyond the log, as with controllers that came back with older disks."""
    seen = zookeeper(migration=MigrationZnode(50_000, 101, 4, 4))(observation(Phase.HYBRID))
    stale = conditions.READY_TO_LEAVE.progress(dual_writing(seen, 3, dead=True), SPEC, node_id=None, earlier=seen)
    assert not stale.done and "it is of another log" in stale.waiting_for


def test_a_broker_that_is_registered_and_not_seen_to_run_is_waited_for() -> None:
    """Its registration outlives it by a session."""
    seen = broker(1, running=Unread("no answer in 2 s"))(observation(Phase.DUAL_WRITE))
    assert not conditions.BROKER_REGISTERED_IN_KRAFT.progress(seen, SPEC, node_id=1).done
