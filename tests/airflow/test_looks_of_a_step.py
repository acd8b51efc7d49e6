"""What a step on a node looks at again before it believes it: an answer that did not come, and a closed port."""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import (
    SPEC as LAB,
)
from observations import (
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    ended,
    gauges,
    observation,
    quorum,
    topics,
    with_quorum,
    zookeeper,
)
from recording import RecordingCluster, run_on
from test_software_steps import SPEC
from test_upgrade_checks import cluster

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread, ZkMigrationState
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.require_readable import require_readable
from kraft_runbook.runbook.changes import By, state_of
from kraft_runbook.runbook.health import serves_unreached, unreached_unread
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.stages import Gate
from kraft_runbook.steps.node_step import ENDED_WITHIN, ended_within, passes_over_none, take_step
from kraft_runbook.steps.restart import ACTIVE_CONTROLLER, BROKER, CONTROLLER
from kraft_runbook.steps.software import BROKER_UP, CONTROLLER_BACK

LATE = Unread("did not answer in 4 s", timed_out=True)


@pytest.mark.parametrize(
    "late", [broker(3, software_version=LATE, metrics=LATE), broker(3, running=LATE), broker(3, mode=LATE)]
)
def test_what_one_look_did_not_read_of_another_node_is_looked_at_again_and_believed_once_it_has_lasted(
    late: Spoil,
) -> None:
    fine = cluster((101, 102, 103, 1))
    at = RecordingCluster(late(fine), late(fine), fine, spec=SPEC, answers={require_readable: None})
    assert take_step(run_on(at), BROKER_UP, 2)["changed"]
    assert (len(at.looks), at.paused) == (3, 2 * SPEC.deadlines.poll)
    assert "broker 3" in at.told[0]


def test_a_node_that_never_tells_its_version_keeps_the_roll_from_going_on() -> None:
    at = RecordingCluster(broker(3, software_version=LATE)(cluster((101, 102, 103, 1))), spec=SPEC)
    with pytest.raises(Refused, match="the cluster is in UNKNOWN"):
        take_step(run_on(at), BROKER_UP, 2)
    assert len(at.looks) == SPEC.deadlines.healthy_in_a_row and at.did == []


def test_a_node_that_does_not_run_is_no_reason_to_look_again() -> None:
    at = RecordingCluster(
        ended(2, mode=WHY, metrics=WHY)(cluster((101, 102, 103, 1))),
        spec=SPEC,
        answers={require_readable: None},
    )
    take_step(run_on(at), BROKER_UP, 2)
    assert len(at.looks) == 1


@pytest.mark.parametrize(
    ("now", "by"),
    [
        (broker(3, running=LATE), By.UNREAD),
        (broker(3, running=False), By.OTHERS),
        (broker(3, running=False, mode=LATE), By.OTHERS),
        (broker(3, mode=LATE), By.UNREAD),
    ],
)
def test_a_port_that_was_not_looked_at_since_the_proof_is_nobody_s_change(now: Spoil, by: By) -> None:
    fine = cluster((101, 102, 103, 1))
    (change,) = SOFTWARE.changes(Gate.UP, state_of(fine), state_of(now(fine)), {2})
    assert change.by is by


# -- a port that refuses this machine alone ----------------------------------------------------------------------------


def fetched(node: int, seconds: float) -> Spoil:
    """The leader saw this controller fetch so long ago."""

    def spoil(seen: ClusterObservation) -> ClusterObservation:
        assert not isinstance(seen.quorum, Unread)
        at = int((seen.observed_at.timestamp() - seconds) * 1000)
        voters = tuple(replace(v, last_fetch_ms=at) if v.id == node else v for v in seen.quorum.voters)
        return with_quorum(voters=voters)(seen)

    return spoil


def with_no_quorum(seen: ClusterObservation) -> ClusterObservation:
    return replace(seen, quorum=WHY)


ROLLED = cluster((101, 102, 103, 1))
OTHERS_SHORT = topics(out_of_sync_by_broker={3: 40})
SERVES = {
    "the controller has not fenced it": (2, BROKER_UP, BROKER, both(broker(2, running=False), OTHERS_SHORT)(ROLLED)),
    "it fetches from the quorum's leader": (
        102,
        CONTROLLER_BACK,
        CONTROLLER,
        both(a_controller(102, running=False), a_controller(103, running=False), fetched(102, 0.5))(ROLLED),
    ),
    "it leads the quorum": (
        101,
        replace(CONTROLLER_BACK, passed_over=passes_over_none),
        ACTIVE_CONTROLLER,
        a_controller(101, running=False)(ROLLED),
    ),
}


@pytest.mark.parametrize("shown", SERVES)
def test_a_node_that_serves_behind_a_port_that_refuses_this_machine_is_not_taken_for_one_that_has_ended(
    shown: str,
) -> None:
    """Without a word about the others, that are short of replicas or of voters, it was stopped."""
    node, of_software, of_restart, seen = SERVES[shown]
    for step in (of_software, of_restart):
        at = RecordingCluster(seen, spec=SPEC, answers={require_readable: None})
        with pytest.raises(Refused, match=f"node {node} refuses connections from here, and serves: .*{shown}"):
            take_step(run_on(at, nodes="both"), step, node)
        assert at.did == [] and at.paused == ENDED_WITHIN
    assert serves_unreached(replace(seen, quorum=WHY), SPEC, node) is None, "nothing tells it"


def test_a_broker_that_has_just_died_is_started_once_the_controller_has_fenced_it() -> None:
    died, fenced = broker(2, running=False)(ROLLED), ended(2)(ROLLED)
    at = RecordingCluster(died, *[died] * 9, fenced, spec=SPEC, answers={require_readable: None})
    assert take_step(run_on(at), BROKER_UP, 2)["changed"]
    assert at.paused == 10 * SPEC.deadlines.poll


@pytest.mark.parametrize("late_at", [(9,), (2, 5, 8, 9)])
def test_what_the_last_look_behind_a_closed_port_did_not_read_is_looked_at_again(late_at: tuple[int, ...]) -> None:
    died, fenced = broker(2, running=False)(ROLLED), ended(2)(ROLLED)
    late = broker(3, software_version=LATE, metrics=LATE)
    looks = [late(died) if each in late_at else died for each in range(9)]
    at = RecordingCluster(*looks, late(fenced), fenced, spec=SPEC, answers={require_readable: None})
    assert take_step(run_on(at), BROKER_UP, 2)["changed"]
    assert len(at.looks) == 11


def test_a_quorum_that_is_not_read_does_not_prove_that_a_node_has_ended_which_just_served() -> None:
    serves, hidden = broker(2, running=False)(ROLLED), both(broker(2, running=False), with_no_quorum)(ROLLED)
    at = RecordingCluster(serves, *[hidden] * 5, serves, spec=SPEC)
    with pytest.raises(Refused, match="refuses connections from here, and serves"):
        take_step(run_on(at, nodes="both"), replace(BROKER, guard=lambda _: None), 2)
    assert at.did == [] and at.paused == ENDED_WITHIN
    before = waiting_for_the_copy(1, 2, 3)
    for seen, unread in (
        (before, False),
        (replace(before, quorum=WHY), False),
        (replace(before, zookeeper=WHY), True),
        (hidden, True),
        (with_no_quorum(ROLLED), False),
    ):
        assert unreached_unread(seen, 2) is unread


def test_a_controller_that_has_not_fetched_for_long_has_ended() -> None:
    seen = both(a_controller(102, running=False), fetched(102, 6))(ROLLED)
    at = RecordingCluster(seen, spec=SPEC, answers={require_readable: None})
    assert take_step(run_on(at), CONTROLLER_BACK, 102)["changed"] and at.paused == 0


# -- before the copy, where the quorum fences nobody -------------------------------------------------------------------


def waiting_for_the_copy(*live: int) -> ClusterObservation:
    """Broker 2's port refuses, the quorum has it registered unfenced, and these brokers are in ZooKeeper."""
    seen = observation(Phase.PRE_MIGRATION)
    registered = quorum(LAB, BrokerMode.HYBRID, ZkMigrationState.PRE_MIGRATION).registrations
    znodes = {i: each for i, each in seen.zookeeper.brokers.items() if i in live}  # type: ignore[union-attr]
    return both(broker(2, running=False), zookeeper(brokers=znodes), with_quorum(registrations=registered))(seen)


@pytest.mark.parametrize("unclear", [False, True])
def test_before_the_copy_a_broker_has_ended_once_its_session_with_zookeeper_has(unclear: bool) -> None:
    mute = both(a_controller(102, metrics=WHY), with_quorum(migration_state_record=None))
    crashed, lasting = waiting_for_the_copy(1, 3), waiting_for_the_copy(1, 2, 3)
    if unclear:
        crashed, lasting = mute(crashed), mute(lasting)
    assert serves_unreached(crashed, LAB, 2) is None
    assert serves_unreached(lasting, LAB, 2) == "its session with ZooKeeper lasts"
    assert serves_unreached(replace(lasting, zookeeper=WHY), LAB, 2) is None, "nothing tells it"
    copied = both(gauges(101, zk_migration_state=ZkMigrationState.MIGRATION))(crashed)
    assert serves_unreached(copied, LAB, 2) == "it is registered as a broker, and the controller has not fenced it"


def test_a_broker_that_crashed_before_the_copy_is_restarted() -> None:
    lasting, crashed = waiting_for_the_copy(1, 2, 3), waiting_for_the_copy(1, 3)
    at = RecordingCluster(*[lasting] * 4, crashed, spec=LAB)
    step = replace(BROKER, guard=lambda _: None)
    assert take_step(run_on(at, nodes="both"), step, 2)["changed"] and at.paused == 4 * LAB.deadlines.poll


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, ENDED_WITHIN),
        ({"controller_properties": {"broker.session.timeout.ms": "60000"}}, 65),
        ({"broker_properties": {"zookeeper.session.timeout.ms": "40000"}}, 45),
        ({"quorum_health": LAB.quorum_health.model_copy(update={"silent": 50_000})}, 55),
        ({"deadlines": LAB.deadlines.model_copy(update={"poll": 70.0})}, ENDED_WITHIN),
    ],
)
def test_a_closed_port_is_waited_for_as_long_as_a_session_lasts_and_looked_at_again(
    changes: dict[str, object], seconds: float
) -> None:
    spec = LAB.model_copy(update=changes)
    assert ended_within(spec, 2) == seconds
    at = RecordingCluster(waiting_for_the_copy(1, 2, 3), spec=spec)
    with pytest.raises(Refused, match="serves: its session with ZooKeeper lasts") as refused:
        take_step(run_on(at, nodes="both"), replace(BROKER, guard=lambda _: None), 2)
    assert at.paused == max(seconds, spec.deadlines.poll) and "start its service by hand" in refused.value.way_out
