"""A controller whose registration in the metadata log is not its own: what is refused, and what is mended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from feature_looks import all_registered, in_log, kafka3, kafka4, look, registered
from observations import SPEC, observation
from recording import RecordingCluster, run_on
from test_upgrade_checks import PLAIN
from test_upgrade_checks import cluster as cluster_on

from kraft_runbook.cluster.feature_levels import FeatureObservation, LevelsInLog
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.procedures.require_readable import require_readable
from kraft_runbook.runbook.registrations import not_their_own
from kraft_runbook.software.conditions import CONTROLLER_ON_TARGET
from kraft_runbook.steps.forward import TO_HYBRID
from kraft_runbook.steps.node_step import Look
from kraft_runbook.steps.registrations import SECONDS, register_anew
from kraft_runbook.steps.software import CONTROLLER_UP

ROLLED = PLAIN.model_copy(
    update={
        "controllers": tuple(each.model_copy(update={"home_link": f"/srv/{each.id}"}) for each in PLAIN.controllers)
    }
)


def of_before(*nodes: int) -> FeatureObservation:
    """Every node runs Kafka 4, and these controllers are registered as they ran before."""
    seen = look(kafka4())
    assert isinstance(seen.log, LevelsInLog)
    stale = {i: registered(i, kafka3()) for i in nodes}
    return in_log(seen, controllers={**seen.log.controllers, **stale})


def unflagged(node: int) -> FeatureObservation:
    seen = all_registered()
    assert isinstance(seen.log, LevelsInLog)
    return in_log(seen, controllers={**seen.log.controllers, node: registered(node, kafka3())})


def missing(node: int) -> FeatureObservation:
    seen = all_registered()
    assert isinstance(seen.log, LevelsInLog)
    return in_log(seen, controllers={i: each for i, each in seen.log.controllers.items() if i != node})


class Looks:
    """What each look at the levels finds, the last one again and again."""

    def __init__(self, *found: FeatureObservation) -> None:
        self.found = list(found)

    def __call__(self, **_: object) -> FeatureObservation:
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]


@pytest.mark.parametrize(
    ("seen", "migrating", "wrong"),
    [
        (all_registered(), True, {}),
        (of_before(), False, {}),
        (missing(102), False, {102: "has not registered"}),
        (
            of_before(101, 103),
            False,
            dict.fromkeys((101, 103), "runs software with metadata.version 7-27 and is registered with 1-21"),
        ),
        (unflagged(103), False, {}),
        (unflagged(103), True, {103: "is registered without zookeeper.metadata.migration.enable"}),
        (in_log(look(kafka3(), 14), controllers={}), True, {}),
    ],
    ids=["as they run", "on Kafka 4", "none", "of before", "no migration", "without the flag", "below 15"],
)
def test_what_is_wrong_with_a_registration(seen: FeatureObservation, migrating: bool, wrong: dict[int, str]) -> None:
    assert isinstance(seen.log, LevelsInLog)
    assert not_their_own(seen, seen.log, migrating=migrating) == wrong


def test_nothing_is_said_of_a_controller_that_does_not_run() -> None:
    seen = missing(102)
    assert isinstance(seen.log, LevelsInLog)
    down = replace(seen, controllers={**seen.controllers, 102: Unread("it refuses connections")})
    assert not_their_own(down, seen.log) == {}


def silent(node: int, seen: FeatureObservation) -> FeatureObservation:
    return replace(seen, controllers={**seen.controllers, node: Unread("it timed out")})


# -- before the copy ---------------------------------------------------------------------------------------------------


def to_hybrid(*found: FeatureObservation, phase: Phase = Phase.PRE_MIGRATION) -> RecordingCluster:
    seen = observation(phase)
    cluster = RecordingCluster(seen, answers={observe_features: Looks(*found)})
    TO_HYBRID.guard(Look(cluster, 1, seen, detect_phase(seen)))
    return cluster


@pytest.mark.parametrize("wrong", [missing(102), unflagged(102)], ids=["none", "without the flag"])
def test_no_broker_enters_migration_mode_while_a_controller_is_not_registered(wrong: FeatureObservation) -> None:
    with pytest.raises(Refused, match="the metadata copy could not begin: controller 102") as refused:
        to_hybrid(wrong)
    assert refused.value.way_out.startswith("restart controller 102")
    assert refused.value.way_out.endswith("Broker 1 was not restarted: then clear this task")


@pytest.mark.parametrize("wrong", [missing(102), unflagged(102)], ids=["none", "without the flag"])
def test_one_that_does_not_answer_is_judged_by_the_log_as_kafka_does(wrong: FeatureObservation) -> None:
    with pytest.raises(Refused, match="the metadata copy could not begin: controller 102"):
        to_hybrid(silent(102, wrong))
    assert to_hybrid(silent(102, all_registered())).paused == 0


def test_a_registration_that_is_on_its_way_is_waited_for() -> None:
    assert to_hybrid(missing(102), missing(102), all_registered()).paused == 2 * SPEC.deadlines.poll


def test_after_the_copy_nobody_asks() -> None:
    assert to_hybrid(missing(102), phase=Phase.HYBRID).paused == 0


def test_a_log_that_can_t_be_read_is_never_a_yes() -> None:
    unread = replace(all_registered(), log=Unread("no leader", way_out="let one be elected"))
    with pytest.raises(Refused, match="could not be read: no leader") as refused:
        to_hybrid(unread)
    assert "let one be elected" in refused.value.way_out


# -- after a roll of software ------------------------------------------------------------------------------------------


def after_the_roll(*found: FeatureObservation) -> tuple[RecordingCluster, list[int]]:
    cluster = RecordingCluster(
        cluster_on((101, 102, 103)), spec=ROLLED, answers={observe_features: Looks(*found), require_readable: None}
    )
    run = run_on(cluster)

    def back(node: int) -> None:
        run.cluster.wait_for(CONTROLLER_ON_TARGET, deadline=SPEC.deadlines.quorum, node_id=node)

    return cluster, register_anew(run, lambda _: CONTROLLER_UP, after=back)


def test_controllers_whose_registration_was_lost_are_restarted_once_more_the_active_one_last() -> None:
    lost = of_before(101, 103)
    waits = int(SECONDS / SPEC.deadlines.poll) + 1
    cluster, again = after_the_roll(*([lost] * waits), of_before())
    assert cluster.shown[0].active_controller is not None and cluster.shown[0].active_controller.id == 101
    assert again == [101, 103]
    assert [each for each in cluster.did if "whole" not in each and "caught up and warm" not in each] == [
        "played restart_node on 103",
        "played restart_node on 101",
    ]
    awaited = [each for each in cluster.did if "to run the target" in each]
    assert awaited == [f"awaited {CONTROLLER_ON_TARGET.describe(i)}" for i in (103, 101)]


def test_where_each_registered_nothing_is_restarted() -> None:
    cluster, again = after_the_roll(of_before(102), of_before())
    assert (again, cluster.did) == ([], [])


def test_one_that_does_not_answer_after_the_roll_is_asked_again_and_is_never_a_yes() -> None:
    cluster, again = after_the_roll(silent(102, of_before()), of_before())
    assert (again, cluster.did) == ([], [])
    assert cluster.told == ["waiting for the registrations, not read yet: controller 102: it timed out"]
    with pytest.raises(Refused, match="could not be read: controller 102: it timed out"):
        after_the_roll(silent(102, of_before()))


def test_a_restart_that_does_not_help_is_no_success() -> None:
    with pytest.raises(Refused, match="a restart did not help: controller 102 runs software"):
        after_the_roll(of_before(102))
