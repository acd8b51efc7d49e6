"""The step that can't be undone: which controller is restarted when, and what comes off the hosts after it."""

from __future__ import annotations

import pytest
from acted import Acted
from airflow.sdk.exceptions import AirflowFailException
from observations import SPEC, WHY, Spoil, a_controller, both, broker, observation, part, with_quorum
from recording import RecordingCluster, run_on
from signed_run import Run

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.steps.finalization import forget_zookeeper_secrets

LAST = "finalize_controllers.active_controller_last.restart"
FORGET = "finalize_controllers.zookeeper_secrets"
"""Final, since one controller without the flag has led; this one still runs with it."""


@pytest.fixture
def acted(acted: Acted) -> Acted:
    Run(Gate.FINALIZE, seen=observation(Phase.DUAL_WRITE)).write()
    return acted


def led_by(leader: int, *finalized: int) -> ClusterObservation:
    """Dual write, every broker in KRaft mode; these controllers were restarted without the flag."""
    flagless = (a_controller(i, mode=ControllerMode.KRAFT) for i in finalized)
    return both(with_quorum(leader_id=leader), *flagless)(observation(Phase.DUAL_WRITE))


def test_the_active_controller_is_left_for_last_as_long_as_another_is_left(acted: Acted) -> None:
    acted.seen = led_by(102)
    told = acted.run("finalize_controllers.controller_102.restart")
    assert told["already_done"] == "left for last: controller 102 is the active one"
    assert acted.played == []
    acted.seen = led_by(102, 101, 103)
    assert "already_done" not in acted.run("finalize_controllers.controller_102.restart")
    assert acted.played == ["played finalize_controller on controller-102"]


def test_the_last_task_restarts_what_is_left_the_active_one_last_and_awaits_each(acted: Acted) -> None:
    """103 led while its turn came: it was left too, and leads no more."""
    finalized = [102]
    acted.seen = lambda: led_by(101, *finalized)
    acted.after_playing = lambda what: finalized.append(int(what.rpartition("-")[2]))
    acted.run(LAST)
    assert [each for each in acted.did if each != "claimed"] == [
        "awaited every controller to run, to have caught up and to be warm",
        "played finalize_controller on controller-103",
        "awaited controller 103 to have caught up and to be warm",
        "awaited every controller to run, to have caught up and to be warm",
        "played finalize_controller on controller-101",
        "awaited controller 101 to have caught up and to be warm",
    ]


def test_one_whose_own_restart_was_cut_short_is_started_without_waiting_for_the_whole_quorum(acted: Acted) -> None:
    """The worker died between stop and start: nobody else starts it, and the quorum is never whole without it."""
    ended = a_controller(103, running=False, mode=WHY)
    acted.seen = ended(led_by(101, 102))
    acted.run("finalize_controllers.controller_103.restart")
    assert [each for each in acted.did if each != "claimed"] == ["played finalize_controller on controller-103"]


def test_the_last_task_begins_with_one_that_has_ended(acted: Acted) -> None:
    finalized = [102]

    def seen() -> ClusterObservation:
        now = led_by(101, *finalized)
        return now if 103 in finalized else a_controller(103, running=False, mode=WHY)(now)

    acted.seen = seen
    acted.after_playing = lambda what: finalized.append(int(what.rpartition("-")[2]))
    acted.run(LAST)
    assert [each for each in acted.did if each != "claimed"][:3] == [
        "played finalize_controller on controller-103",
        "awaited controller 103 to have caught up and to be warm",
        "awaited every controller to run, to have caught up and to be warm",
    ]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (broker(2, mode=BrokerMode.HYBRID), "broker 2 is not proven to be in KRaft mode"),
        (a_controller(102, running=False), "controller 102 does not answer"),
        (part(quorum=WHY), "the quorum is not whole: it has no leader"),
    ],
)
def test_it_is_not_made_final_while_a_broker_or_the_quorum_is_not_ready(acted: Acted, spoil: Spoil, why: str) -> None:
    Run(Gate.FINALIZE, seen=spoil(led_by(101))).write()
    acted.seen = spoil(led_by(101))
    with pytest.raises(AirflowFailException, match=why):
        acted.run("finalize_controllers.controller_103.restart")
    assert acted.played == []


def test_a_rehearsal_of_the_last_task_rehearses_the_controller_that_leads_and_restarts_nothing(acted: Acted) -> None:
    acted.seen = led_by(101)
    acted.run(LAST, dry_run=True)
    assert acted.did == ["rehearsed finalize_controller on controller-101"]


def test_zookeeper_s_secrets_come_off_once_it_is_final(acted: Acted) -> None:
    acted.seen = observation(Phase.FINALIZED)
    acted.run(FORGET)
    assert acted.did[0] == "claimed" and acted.did[1].startswith("played forget_zookeeper_secrets on ")
    assert acted.outcomes(FORGET) == ["secrets_removed"]


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (led_by(101, 101, 102, 103), "the cluster is in DUAL_WRITE"),
        (
            a_controller(102, mode=ControllerMode.MIGRATION)(observation(Phase.FINALIZED)),
            "controller 102 is not proven",
        ),
        (a_controller(102, mode=WHY)(observation(Phase.FINALIZED)), "controller 102 is not proven"),
        (broker(3, mode=BrokerMode.HYBRID)(observation(Phase.FINALIZED)), "broker 3 is not proven to run in KRaft"),
        (broker(3, mode=WHY)(observation(Phase.FINALIZED)), "broker 3 is not proven to run in KRaft"),
    ],
)
def test_they_stay_as_long_as_a_process_may_need_them(acted: Acted, seen: ClusterObservation, why: str) -> None:
    acted.seen = seen
    with pytest.raises(AirflowFailException, match=why):
        acted.run(FORGET)
    assert acted.played == []


def test_a_look_that_got_no_answer_in_time_is_taken_again_before_they_come_off() -> None:
    whole = observation(Phase.FINALIZED)
    silent = both(*(a_controller(i, mode=WHY, metrics=WHY) for i in SPEC.controller_ids))(whole)
    cluster = RecordingCluster(silent, whole)
    forget_zookeeper_secrets(run_on(cluster))
    assert len(cluster.looks) == 2 and cluster.paused == SPEC.deadlines.poll
    assert cluster.did == ["removed ZooKeeper's secrets"]


def test_a_rehearsal_takes_no_secret_off(acted: Acted) -> None:
    acted.seen = observation(Phase.ZOOKEEPER)
    acted.run(FORGET, dry_run=True)
    assert len(acted.did) == 1 and acted.did[0].startswith("rehearsed forget_zookeeper_secrets on ")
