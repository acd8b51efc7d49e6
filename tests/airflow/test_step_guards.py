"""What a step refuses though its phase would allow it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from feature_looks import all_registered
from observations import (
    SPEC,
    WHY,
    a_controller,
    both,
    broker,
    later,
    observation,
    part,
    with_quorum,
    zookeeper,
)
from recording import Ports, RecordingCluster, run_on

from kraft_runbook.cluster.consumer_groups import ConsumerGroups, GroupClass, SomeGroups
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    MigrationZnode,
    Unread,
    Voter,
    was_read,
)
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import AlreadyDone
from kraft_runbook.migration import plays
from kraft_runbook.parity.dual_write import await_movement
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.procedures.see_groups import look_for_live_groups
from kraft_runbook.procedures.short_together import short_together
from kraft_runbook.runbook.plays import Guard
from kraft_runbook.steps import forward
from kraft_runbook.steps.back import BACK_TO_HYBRID, TO_ZOOKEEPER
from kraft_runbook.steps.finalization import finalize_active_controller
from kraft_runbook.steps.forward import PROVISION, TO_HYBRID, TO_KRAFT
from kraft_runbook.steps.node_step import Look, NodeStep

NO_QUORUM = Unread("no controller runs")


def look(node: int, seen: ClusterObservation, cluster: RecordingCluster | None = None) -> Look:
    return Look(cluster or RecordingCluster(seen), node, seen, detect_phase(seen))


def test_a_stale_migration_znode_is_refused_before_a_controller_is_formatted() -> None:
    """New controllers that find one erase every topic from ZooKeeper within two seconds (measured)."""
    seen = replace(observation(Phase.ZOOKEEPER), quorum=NO_QUORUM)
    assert was_read(seen.zookeeper)
    stale = replace(seen, zookeeper=replace(seen.zookeeper, migration=MigrationZnode(207, 102, 3, 5)))
    with pytest.raises(Refused, match="erase every topic") as refused:
        PROVISION.guard(look(101, stale))
    assert "zk_to_kraft_rollback__lab" in refused.value.way_out


def test_no_controller_is_provisioned_beside_a_quorum_that_a_rollback_has_left() -> None:
    """Two that run again have a leader, so that the quorum is read; ZooKeeper's controller leads the cluster."""
    copied, before = observation(Phase.HYBRID), observation(Phase.ZOOKEEPER)
    assert was_read(before.zookeeper)
    left = replace(copied, zookeeper=before.zookeeper)
    with pytest.raises(
        Refused, match="controllers 101, 102, 103 run with the log of a migration that was left"
    ) as told:
        PROVISION.guard(look(101, left))
    assert "zk_to_kraft_rollback__lab" in told.value.way_out
    PROVISION.guard(look(101, observation(Phase.PRE_MIGRATION)))


def test_a_broker_left_in_migration_mode_is_refused_before_a_controller_is_formatted() -> None:
    """It would shut itself down when new controllers start at the former quorum's addresses (measured)."""
    seen = replace(broker(2, mode=BrokerMode.HYBRID)(observation(Phase.ZOOKEEPER)), quorum=NO_QUORUM)
    with pytest.raises(Refused, match="broker 2 is still in migration mode"):
        PROVISION.guard(look(101, seen))


@pytest.mark.parametrize(
    ("step", "phase"),
    [(TO_HYBRID, Phase.PRE_MIGRATION), (BACK_TO_HYBRID, Phase.HYBRID), (TO_ZOOKEEPER, Phase.ZOOKEEPER)],
    ids=["to hybrid", "back to hybrid", "to ZooKeeper"],
)
def test_a_broker_that_was_killed_is_started_once_its_session_has_ended(step: NodeStep, phase: Phase) -> None:
    """Its id is taken until then: it would end again at once."""
    killed = broker(2, running=False, mode=WHY)(observation(phase))
    assert was_read(killed.zookeeper) and 2 in killed.zookeeper.brokers
    others = {i: each for i, each in killed.zookeeper.brokers.items() if i != 2}
    unread, ended = part(zookeeper=WHY)(killed), zookeeper(brokers=others)(killed)
    cluster = RecordingCluster(killed, unread, ended, answers={observe_features: all_registered()})
    step.guard(look(2, killed, cluster))
    assert len([each for each in cluster.looks if "with_hosts" not in each]) == 3
    assert cluster.paused == SPEC.deadlines.poll * 3
    step.guard(look(2, ended, cluster))
    assert cluster.paused == SPEC.deadlines.poll * 3, "nothing to wait for"


def test_a_session_that_does_not_end_is_not_waited_for_for_ever() -> None:
    """Someone may have started the broker by hand, and it hangs; its start then says why it ends."""
    killed = broker(2, running=False, mode=WHY)(observation(Phase.ZOOKEEPER))
    cluster = RecordingCluster(killed)
    forward.require_safe_start(look(2, killed, cluster))
    assert cluster.paused == SPEC.deadlines.registration


def test_a_broker_that_a_finalization_by_hand_left_behind_is_still_taken_to_kraft_mode() -> None:
    seen = broker(3, mode=BrokerMode.HYBRID)(observation(Phase.FINALIZED))
    reading = detect_phase(seen)
    assert reading.phase is Phase.FINALIZED
    assert TO_KRAFT.why_done(look(3, seen)) is None
    TO_KRAFT.require_stage(look(3, seen))
    TO_KRAFT.guard(look(3, seen))


@pytest.fixture
def looks() -> RecordingCluster:
    """What the guard sees, look by look, three seconds apart; the last one again and again."""
    cluster = RecordingCluster()
    cluster.answers[await_movement] = lambda _, within: cluster.pause(within)
    return cluster


def standing(seen: ClusterObservation, seconds: float, *, at: int = 990) -> ClusterObservation:
    """``seconds`` later the log has gone on and /migration is at this offset."""
    return later(
        zookeeper(migration=MigrationZnode(at, 101, 4, 4))(with_quorum(high_watermark=1000 + 2 * int(seconds))(seen)),
        seconds,
    )


@pytest.mark.parametrize("in_kraft", [(), (1, 2)], ids=["the first broker", "in the middle of the roll"])
def test_no_broker_leaves_zookeeper_once_dual_write_has_died(
    looks: RecordingCluster, in_kraft: tuple[int, ...]
) -> None:
    """The way back closes there: each restart is refused, and the broker is left as it is."""
    seen = both(*(broker(i, mode=BrokerMode.KRAFT) for i in in_kraft))(observation(Phase.HYBRID))
    looks.shown[:] = [standing(seen, 3), standing(seen, 6), standing(seen, 9)]
    with pytest.raises(
        Refused, match=r"KRB-DW-001.*FAIL.*stood at offset 990 for 9\.0 s.*could not go back"
    ) as refused:
        TO_KRAFT.guard(look(3, standing(seen, 0), looks))
    assert (
        "Create the missing znodes" in refused.value.way_out
        and "This broker was not restarted" in refused.value.way_out
    )


def test_where_zookeeper_can_t_be_read_no_broker_leaves_it(looks: RecordingCluster) -> None:
    seen = observation(Phase.HYBRID)
    looks.shown[:] = [later(part(zookeeper=NO_QUORUM)(seen), 3)]
    with pytest.raises(Refused, match=r"KRB-DW-001.*UNKNOWN"):
        TO_KRAFT.guard(look(3, seen, looks))
    looks.answers[look_for_live_groups] = ConsumerGroups({})
    looks.shown[:] = [*[later(part(zookeeper=NO_QUORUM)(seen), 3)] * 9, standing(seen, 30, at=1050)]
    TO_KRAFT.guard(look(3, seen, looks))


def test_an_election_stops_the_roll_for_a_moment_only(looks: RecordingCluster) -> None:
    seen = observation(Phase.HYBRID)
    looks.shown[:] = [standing(seen, 3), standing(seen, 6, at=1005)]
    looks.answers[look_for_live_groups] = ConsumerGroups({})
    TO_KRAFT.guard(look(3, standing(seen, 0), looks))
    assert len(looks.shown) == 1


def test_once_final_no_other_broker_is_touched() -> None:
    seen = observation(Phase.FINALIZED)
    assert "is in kraft mode" in (TO_KRAFT.why_done(look(3, seen)) or "")
    assert TO_HYBRID.why_done(look(3, broker(3, mode=BrokerMode.HYBRID)(seen)))


def test_a_clean_start_is_not_refused() -> None:
    PROVISION.guard(look(101, replace(observation(Phase.ZOOKEEPER), quorum=NO_QUORUM)))


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_a_controller_that_came_down_after_the_copy_is_provisioned_anew_only_beside_a_majority_that_holds_everything(
    phase: Phase,
) -> None:
    """Formatted anew it has forgotten what it acknowledged: its vote could elect one that lacks it."""
    down = Unread("it does not run")
    seen = a_controller(101, running=False, mode=down, metrics=down)(with_quorum(leader_id=102)(observation(phase)))
    assert PROVISION.why_done(look(101, seen)) is None
    PROVISION.require_stage(look(101, seen))
    PROVISION.guard(look(101, seen))
    lagging = with_quorum(voters=(Voter(101, 0), Voter(102, 1000), Voter(103, 999)))(seen)
    with pytest.raises(Refused, match=r"1 \(102\) run and hold everything committed, and 2 must"):
        PROVISION.guard(look(101, lagging))
    with pytest.raises(Refused, match=r"1 \(102\) run"):
        PROVISION.guard(look(101, a_controller(103, running=False)(seen)))
    assert "beyond" in (PROVISION.why_done(look(101, a_controller(101, running=down)(seen))) or "")


@pytest.mark.parametrize("mode", [BrokerMode.HYBRID, BrokerMode.ZOOKEEPER])
def test_on_the_way_back_a_controller_that_lost_its_file_and_does_not_run_stops_no_restart(
    mode: BrokerMode,
) -> None:
    """Its host was made anew: it can't start, so it can't lead. The plan says yes to it, and so must each restart
    behind the plan.
    """
    back = BACK_TO_HYBRID if mode is BrokerMode.HYBRID else TO_ZOOKEEPER
    played = back.play(look(1, observation(Phase.DUAL_WRITE)))
    assert played.guard is (Guard.PROVISIONING if mode is BrokerMode.HYBRID else Guard.NONE)
    forward = plays.restart_broker(SPEC, 1, BrokerMode.HYBRID)
    assert forward.guard is Guard.PROVISIONED, "on the way forward each must be there"


def test_where_no_controller_is_left_for_last_the_evidence_says_so() -> None:
    """Another one was elected in the meantime, so that each had its turn before."""
    ports = Ports()
    assert finalize_active_controller(run_on(RecordingCluster(observation(Phase.FINALIZED)), ports)) == {
        "restarted": []
    }
    what = AlreadyDone(
        phase="FINALIZED", step="finalize_controllers", why="every controller runs without the migration flag"
    )
    assert ports.kept == [what]


ALL_BUT_3 = both(*(broker(i, mode=BrokerMode.KRAFT) for i in (1, 2)))
LIVE = ConsumerGroups({GroupClass.ALL_OLD: 1}, live=SomeGroups(1, ("orders (ALL_OLD)",)))
NOT_READ = ConsumerGroups({GroupClass.UNKNOWN: 1}, unread=SomeGroups(1, ("orders (NoAuth)",)))


@pytest.mark.parametrize(
    ("seen_groups", "says", "way_out"),
    [
        (
            LIVE,
            r"broker 3 is the last in migration mode, .*: 1: orders \(ALL_OLD\); kraft-runbook groups scan",
            "move these groups",
        ),
        (NOT_READ, r"not read: 1: orders \(NoAuth\)", "make readable"),
        (Unread("ZooKeeper did not answer"), "ZooKeeper did not answer", "make readable"),
    ],
)
def test_the_last_broker_stays_in_migration_mode_while_a_group_needs_zookeeper(
    looks: RecordingCluster, seen_groups: ConsumerGroups | Unread, says: str, way_out: str
) -> None:
    """/brokers/ids is empty after it: old consumers stop, without an error (measured)."""
    seen = ALL_BUT_3(observation(Phase.HYBRID))
    looks.shown[:], looks.answers[look_for_live_groups] = [standing(seen, 3, at=1050)], seen_groups
    with pytest.raises(Refused, match=says) as refused:
        TO_KRAFT.guard(look(3, standing(seen, 0), looks))
    assert refused.value.way_out.startswith(way_out) and "broker 3 was not restarted" in refused.value.way_out


def test_brokers_that_leave_together_are_all_the_last_ones(looks: RecordingCluster) -> None:
    """Each sees the other in migration mode still: neither alone would be the last."""
    seen = broker(1, mode=BrokerMode.KRAFT)(observation(Phase.HYBRID))
    looks.shown[:] = [standing(seen, 3, at=1050)]
    looks.answers |= {look_for_live_groups: LIVE, short_together: {}}
    together = replace(look(3, standing(seen, 0), looks), companions=frozenset({2}))
    with pytest.raises(Refused, match=r"brokers 2, 3 are the last in migration mode, .*orders \(ALL_OLD\)"):
        TO_KRAFT.guard(together)


def test_the_last_broker_leaves_once_no_group_needs_zookeeper(looks: RecordingCluster) -> None:
    seen = ALL_BUT_3(observation(Phase.HYBRID))
    looks.shown[:] = [standing(seen, 3, at=1050)]
    looks.answers[look_for_live_groups] = ConsumerGroups({GroupClass.LEFT_BEHIND: 2})
    TO_KRAFT.guard(look(3, standing(seen, 0), looks))
    assert looks.told[-1] == "KRB-PRE-033 before the last broker leaves migration mode: PASS, none of 2"


@pytest.mark.parametrize("seen", [observation(Phase.HYBRID), ALL_BUT_3(observation(Phase.HYBRID))])
def test_who_commits_by_version_0_is_named_before_the_first_broker_refuses_it_and_before_the_last(
    looks: RecordingCluster, seen: ClusterObservation
) -> None:
    looks.shown[:] = [standing(seen, 3, at=1050)]
    looks.answers[look_for_live_groups] = ConsumerGroups({}, offsets_only=SomeGroups(1, ("storm",)))
    TO_KRAFT.guard(look(3, standing(seen, 0), looks))
    (told,) = [each for each in looks.told if each.startswith("KRB-PRE-099 before broker 3 leaves migration mode: ")]
    assert "groups 1: storm (OFFSETS_ONLY)" in told and "a broker in KRaft mode refuses that" in told


def test_between_the_first_broker_and_the_last_no_group_is_looked_at_nor_where_it_is_down(
    looks: RecordingCluster,
) -> None:
    """One that is down serves nobody in any mode. The cluster in hand fails where it is asked for groups."""
    first = broker(1, mode=BrokerMode.KRAFT)(observation(Phase.HYBRID))
    ended = both(ALL_BUT_3, broker(3, running=False))(observation(Phase.HYBRID))
    for seen in (first, ended):
        looks.shown[:] = [standing(seen, 3, at=1050)]
        TO_KRAFT.guard(look(3, standing(seen, 0), looks))
