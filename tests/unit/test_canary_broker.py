"""The broker that a roll begins with: judged against the others, for its soak, before the second one is touched."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from observations import SPEC, WHY, a_controller, both, broker, observation, part, quorum, with_quorum
from pydantic import ValidationError
from recording import AT, RecordingCluster

from kraft_runbook.cluster.canary_broker import CanaryBroker
from kraft_runbook.cluster.observation import (
    BrokerMetrics,
    BrokerMode,
    ClusterObservation,
    Loading,
    Timed,
    Unread,
    ZkMigrationState,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.entries import make_entry
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import Reached
from kraft_runbook.evidence.record import make_record
from kraft_runbook.io.jolokia_answer import parse_jolokia
from kraft_runbook.io.node_metrics import broker_metrics
from kraft_runbook.io.prometheus_page import parse_prometheus
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.conditions import (
    BROKER_REGISTERED_AS_MIGRATING,
    BROKER_REGISTERED_IN_KRAFT,
    CANARY_HOLDS_AS_MIGRATING,
    CANARY_HOLDS_IN_KRAFT,
)
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.plan import make_plan
from kraft_runbook.restart import conditions as restart
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.runbook.canary import canary_holds, first_and_watched, missing_numbers
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.software import conditions as software
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.roll import Rolled
from kraft_runbook.software.stages import Gate
from kraft_runbook.steps.recorded_wait import RecordedWait
from kraft_runbook.steps.waiting import Wait

CANARY = SPEC.model_copy(update={"canary": CanaryBroker(broker=2, soak=60)})
GOOD = BrokerMetrics(0, 0, offline_replicas=0, failed_requests=7, produce=Timed(1000, 4.0))
LATER = BrokerMetrics(0, 0, offline_replicas=0, failed_requests=7, produce=Timed(1100, 4.0))


def seen(
    at: datetime = AT, modes: Mapping[int, BrokerMode] | None = None, **metrics: BrokerMetrics | Unread
) -> ClusterObservation:
    """Every broker healthy, but for what is given: ``b2=…``."""
    found = observation(Phase.PRE_MIGRATION, CANARY)
    brokers = {
        i: replace(each, metrics=metrics.get(f"b{i}", GOOD), mode=(modes or {}).get(i, each.mode))
        for i, each in found.brokers.items()
    }
    return replace(found, brokers=brokers, observed_at=at)


def judged(now: BrokerMetrics | Unread, **others: BrokerMetrics | Unread) -> str:
    """What is said of broker 2, ten seconds after a look at which all were good."""
    given = {"b1": LATER, "b2": now, "b3": LATER} | others
    return canary_holds(seen(AT + timedelta(seconds=10), **given), CANARY, 2, seen()).waiting_for


def test_one_that_is_like_the_others_holds() -> None:
    assert judged(LATER) == ""


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (replace(LATER, offline_replicas=1), "offline replicas: 1 at broker 2, 0 at the others (median)"),
        (replace(LATER, under_replicated_partitions=3), "under-replicated partitions: 3 at broker 2"),
        (replace(LATER, failed_requests=57), "failed requests a second: 5 at broker 2, 0 at"),
        (replace(LATER, produce=Timed(1100, 30.0)), "a Produce request: 290 ms at broker 2, 4 ms at"),
        (replace(LATER, produce=None), "lack Count and Mean of kafka.network:type=RequestMetrics,name=TotalTimeMs"),
        (replace(LATER, offline_replicas=None), "lack kafka.server:type=ReplicaManager,name=OfflineReplicaCount"),
        (replace(LATER, failed_requests=None), "lack Count of kafka.server:type=BrokerTopicMetrics"),
        (Unread("no answer"), "the metrics of broker 2: no answer"),
    ],
)
def test_one_that_is_worse_or_lacks_a_number_does_not(now: BrokerMetrics | Unread, why: str) -> None:
    assert why in judged(now)


@pytest.mark.parametrize(
    "now",
    [
        replace(LATER, failed_requests=16),  # 0.9 a second
        replace(LATER, produce=Timed(1100, 20.0)),  # 180 ms
        replace(LATER, produce=Timed(1000, 4.0)),  # nobody produced
        replace(LATER, failed_requests=2, produce=Timed(3, 900.0)),  # it was restarted in between
    ],
)
def test_what_is_within_bounds_or_can_t_be_compared_at_this_look_holds(now: BrokerMetrics) -> None:
    assert judged(now) == ""


def test_the_median_of_the_others_counts_not_the_worst() -> None:
    bad = replace(LATER, offline_replicas=9)
    assert "offline replicas: 9 at broker 2, 4.5 at" in judged(bad, b1=bad)
    assert judged(bad, b1=bad, b3=bad) == ""


def short(at: datetime, out_of_sync: Mapping[int, int], **partitions: int) -> ClusterObservation:
    """Brokers lead so many under-replicated partitions (``b2=…``), and these are out of so many ISRs."""
    metrics = {each: replace(GOOD, under_replicated_partitions=number) for each, number in partitions.items()}
    topics = replace(observation(Phase.PRE_MIGRATION).topics, out_of_sync_by_broker=out_of_sync)
    return part(topics=topics)(hybrid(at, **metrics))


@pytest.mark.parametrize(
    "catching_up",
    [
        lambda at: short(at, {3: 75}, b1=35, b2=40, b3=0),  # it leads nothing yet
        lambda at: short(at, {3: 1, 2: 0}, b1=0, b2=1, b3=0),  # its last one
    ],
)
def test_another_broker_that_catches_up_is_waited_for_and_not_the_canary_s_fault(
    catching_up: Callable[[datetime], ClusterObservation],
) -> None:
    cluster = waits(*[catching_up] * 10, hybrid)
    assert run_wait(cluster) == 105.0, "the soak counts from the last look at which that one was out"
    assert any("waiting for broker 3 to be in sync: under-replicated" in line for line in cluster.told)


def test_a_canary_whose_followers_stay_out_is_found_all_the_same() -> None:
    """At the deadline where they never come in; in 10 s where nobody is out any more, or it is out itself."""
    with pytest.raises(StepFailed, match=r"brokers 1, 3 to be in sync.*: 9 at broker 2.*deadline of 160 s has passed"):
        run_wait(waits(lambda at: short(at, {1: 6, 3: 3}, b2=9)))
    caught_up = [*[lambda at: short(at, {3: 9}, b2=9)] * 4, lambda at: short(at, {}, b2=9)]
    with pytest.raises(StepFailed, match=r"the canary is not .* 9 at broker 2, 0 at the others.*, 30 s: waiting can't"):
        run_wait(waits(*caught_up))
    with pytest.raises(StepFailed, match=r"broker 2 is out of 1 ISRs; under-replicated.*, 10 s: waiting can't help"):
        run_wait(waits(lambda at: short(at, {2: 1, 3: 9}, b2=9)))


def test_without_another_to_compare_with_it_does_not_hold() -> None:
    assert "no other broker's metrics were read" in judged(LATER, b1=Unread("x"), b3=Unread("x"))


def waits(*looks: Callable[[datetime], ClusterObservation]) -> RecordingCluster:
    shown = [look(AT + timedelta(seconds=5 * number)) for number, look in enumerate(looks)]
    return RecordingCluster(*shown, spec=CANARY)


TO_HYBRID = (CANARY_HOLDS_AS_MIGRATING, BROKER_REGISTERED_AS_MIGRATING)
TO_KRAFT = (CANARY_HOLDS_IN_KRAFT, BROKER_REGISTERED_IN_KRAFT)


def wait_on(cluster: RecordingCluster, roll: tuple[Condition, Condition] = TO_HYBRID) -> Wait:
    """As the task behind the canary's restart waits."""
    healthy, registered = roll
    return Wait(cluster, healthy, 100.0, 2, first=(registered, 0.0))


def run_wait(cluster: RecordingCluster, roll: tuple[Condition, Condition] = TO_HYBRID) -> float:
    wait = wait_on(cluster, roll)
    while not wait.look():
        cluster.pause(5.0)
    return cluster.paused


def in_modes(at: datetime, modes: Mapping[int, BrokerMode], **metrics: BrokerMetrics | Unread) -> ClusterObservation:
    """These brokers run and are registered so; the others are in ZooKeeper mode."""
    registrations = {
        node: each
        for mode in (BrokerMode.HYBRID, BrokerMode.KRAFT)
        for node, each in quorum(CANARY, mode, ZkMigrationState.PRE_MIGRATION).registrations.items()
        if modes.get(node) is mode
    }
    return with_quorum(registrations=registrations)(seen(at, modes, **metrics))


def hybrid(at: datetime, **metrics: BrokerMetrics | Unread) -> ClusterObservation:
    return in_modes(at, {2: BrokerMode.HYBRID}, **metrics)


def test_it_must_hold_for_the_whole_soak() -> None:
    cluster = waits(hybrid)
    assert run_wait(cluster) == 60.0
    assert any("it did for 10 of 60 s" in line for line in cluster.told)


PRODUCE = "the mean time of a Produce request"


def busy(at: datetime) -> ClusterObservation:
    """Somebody has produced at every broker since the looks of ``hybrid``."""
    return hybrid(at, b1=LATER, b2=LATER, b3=LATER)


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        ([hybrid], True),
        ([hybrid, lambda at: hybrid(at, b2=LATER)], True),  # nobody produced at the others
        ([*[hybrid] * 5, busy], False),
        ([hybrid, busy, lambda at: seen(at, b1=LATER, b2=LATER, b3=LATER), busy], True),  # before it began anew
    ],
)
def test_a_number_that_no_look_of_the_soak_could_compare_is_told_and_on_record(
    looks: list[Callable[[datetime], ClusterObservation]], told: bool, tmp_path: Path
) -> None:
    """No time of requests that nobody sends, so no verdict on it: who reads that it held must know."""
    cluster, kept = waits(*looks), list[Kind]()
    healthy, registered = TO_HYBRID
    waiter = SimpleNamespace(file=tmp_path / "waits" / "1", record=kept.append, require_shared=lambda: None)
    wait = RecordedWait(
        MIGRATION.name,
        healthy.name,
        2,
        1e10,
        (registered.name, 1e10),
        hand=lambda: cluster,
        waiter=waiter,
        log=logging.getLogger(),
    )
    wait.begin()
    while not wait.look():
        cluster.pause(5.0)
    (reached,) = (each for each in kept if isinstance(each, Reached) and each.condition == healthy.name)
    assert reached.body().get("not_compared") == ([PRODUCE] if told else None)
    assert any(line == f"{PRODUCE}: not compared, since no look could" for line in cluster.told) is told
    entry = make_entry(make_record(None, {"task": "t", **reached.body()}, at=AT), trusted=True)
    assert entry.summary.endswith(f"node 2; {PRODUCE}: not compared" if told else "node 2")


def test_a_bad_look_alone_stops_nothing_and_one_that_stays_bad_stops_the_roll() -> None:
    def sick(at: datetime) -> ClusterObservation:
        return hybrid(at, b2=replace(GOOD, offline_replicas=1))

    assert run_wait(waits(hybrid, sick, hybrid)) == 65.0, "the soak counts from the last bad look"
    with pytest.raises(StepFailed, match="offline replicas: 1 at broker 2"):
        run_wait(waits(hybrid, hybrid, sick))


ROLLED = CANARY.model_copy(
    update={"kafka": SPEC.kafka.model_copy(update={"upgrade_to": Software(version="4.1.1", home="/lab/kafka-4.1.1")})}
)


def upgraded_and_sick(at: datetime) -> ClusterObservation:
    on_new = [a_controller(each, software_version="4.1.1") for each in SPEC.controller_ids]
    return both(broker(2, metrics=replace(GOOD, offline_replicas=1), software_version="4.1.1"), *on_new)(in_kraft(at))


def migrating_and_sick(at: datetime) -> ClusterObservation:
    return hybrid(at, b2=replace(GOOD, offline_replicas=1))


@pytest.mark.parametrize(
    ("operation", "condition", "look", "told"),
    [
        (
            MIGRATION,
            CANARY_HOLDS_AS_MIGRATING,
            migrating_and_sick,
            "To go back (trigger zk_to_kraft_rollback__lab): until finalization the cluster can leave PRE_MIGRATION for"
            " ZooKeeper. 1. ",
        ),
        (
            RESTARTS,
            restart.CANARY_HOLDS,
            migrating_and_sick,
            "There is nothing to undo: a restart changes nothing that could be undone",
        ),
        (SOFTWARE, software.CANARY_HOLDS, upgraded_and_sick, "If it can, trigger downgrade_software__lab: "),
    ],
    ids=["migration", "restart", "upgrade"],
)
def test_where_the_watch_is_in_vain_the_way_back_is_the_operation_s_own(
    operation: Operation, condition: Condition, look: Callable[[datetime], ClusterObservation], told: str
) -> None:
    cluster = waits(*[lambda at: look(at)] * 4)
    vars(cluster)["spec"] = ROLLED if operation is SOFTWARE else CANARY
    wait = RecordedWait(
        operation.name, condition.name, 2, 1e10, None, hand=lambda: cluster, waiter=None, log=logging.getLogger()
    )
    wait.begin()
    with pytest.raises(StepFailed, match="offline replicas: 1 at broker 2") as stopped:
        while not wait.look():
            cluster.pause(5.0)
    assert told in stopped.value.way_out and "rollback.md" not in stopped.value.way_out
    if operation is SOFTWARE:
        assert ": 1. Restart broker 2 on Kafka 3.9.2" in stopped.value.way_out


def test_one_that_is_restarted_again_and_again_never_passes() -> None:
    looks = [hybrid, hybrid, lambda at: hybrid(at, b2=Unread("no answer"))] * 20
    with pytest.raises(StepFailed, match=r"the metrics of broker 2: no answer.*the deadline of 160 s has passed"):
        run_wait(waits(*looks))


def test_time_without_looks_is_no_soak_and_no_failure() -> None:
    """The triggerer was away for an hour."""
    cluster = waits(hybrid)
    wait = wait_on(cluster)
    assert not wait.look()
    cluster.pause(3600.0)
    assert not wait.look()
    looks = 0
    while not wait.look():
        cluster.pause(5.0)
        looks += 1
    assert looks == 10, "10 s of the hour count, and then 50 s"


def test_one_that_is_out_of_an_isr_does_not_hold() -> None:
    """UnderReplicatedPartitions counts at the leaders: a canary that leads nothing shows none."""
    behind = part(topics=replace(observation(Phase.PRE_MIGRATION).topics, out_of_sync_by_broker={2: 3}))(seen())
    assert "broker 2" in canary_holds(behind, CANARY, 2, seen()).waiting_for


def test_a_canary_that_loads_is_waited_for_and_is_no_worse_than_the_others() -> None:
    told = canary_holds(broker(2, loading=Loading(groups=True, transactions=False))(seen()), CANARY, 2, seen())
    assert told.waiting_for.startswith("waiting for broker 2 to load its groups") and not told.hopeless
    others = broker(3, loading=Loading(groups=True, transactions=True))(seen())
    assert canary_holds(others, CANARY, 2, seen()).done, "what others load for a moment would begin the watch anew"
    told = canary_holds(broker(2, loading=Loading(groups=False))(seen()), CANARY, 2, seen())
    assert told.done and "whether broker 2 still loads transactions" in told.untold


def test_another_broker_that_does_not_answer_is_waited_for_and_not_the_canary_s_fault() -> None:
    topics = replace(observation(Phase.PRE_MIGRATION).topics, topics_known_by_broker={1: 4, 2: 4})
    told = canary_holds(part(topics=topics)(seen()), CANARY, 2, seen())
    assert not told.done and not told.hopeless and "the canary" not in told.waiting_for


def test_a_page_names_the_canary_while_it_is_still_to_come() -> None:
    assert first_and_watched(CANARY, [1, 2]) == " Broker 2 goes first, and is watched for 1 min before the next one."
    assert first_and_watched(CANARY, [1, 3]) == first_and_watched(SPEC, [1, 2]) == ""


def test_a_number_that_most_others_lack_is_no_pass() -> None:
    lacks = replace(LATER, produce=None)
    assert "0 of 2 other brokers show Count and Mean" in judged(LATER, b1=lacks, b3=lacks)
    assert judged(LATER, b1=lacks) == ""


def test_partitions_that_a_broker_which_is_down_leaves_short_are_not_the_canary_s() -> None:
    short, more = replace(LATER, under_replicated_partitions=250), replace(LATER, under_replicated_partitions=260)
    assert judged(more, b1=short, b3=short) == ""


def test_a_task_that_is_cleared_once_the_roll_has_gone_on_waits_for_nothing() -> None:
    cluster = waits(lambda at: in_modes(at, {2: BrokerMode.HYBRID, 1: BrokerMode.HYBRID}))
    assert run_wait(cluster) == 5.0 * (CANARY.deadlines.healthy_in_a_row - 1)


def test_one_that_is_put_back_by_hand_is_not_taken_for_a_roll_that_has_gone_on() -> None:
    """It is as healthy as the others then, and in the mode of them all."""
    before, here = {1: BrokerMode.HYBRID, 3: BrokerMode.HYBRID}, {2: BrokerMode.KRAFT}
    with pytest.raises(StepFailed, match=r"broker 2 to register as migrating.* it is in zookeeper mode"):
        run_wait(waits(hybrid, hybrid, hybrid, seen))
    with pytest.raises(StepFailed, match=r"broker 2 to register in KRaft mode.* it is in hybrid mode"):
        run_wait(
            waits(lambda at: in_modes(at, before | here), lambda at: in_modes(at, before | {2: BrokerMode.HYBRID})),
            TO_KRAFT,
        )
    assert run_wait(waits(hybrid, seen, hybrid)) == 65.0, "the soak counts from the last look at which it was not"


def in_kraft(at: datetime) -> ClusterObservation:
    """Every broker, on the Kafka that the cluster file names."""
    whole = part(observed_at=at)(observation(Phase.KRAFT, CANARY))
    return both(*(broker(i, metrics=GOOD, software_version=CANARY.kafka.version) for i in CANARY.broker_ids))(whole)


@pytest.mark.parametrize(
    ("roll", "good", "untold"),
    [
        (TO_HYBRID, hybrid, part(quorum=WHY)),
        (TO_HYBRID, hybrid, broker(2, mode=WHY)),
        (TO_HYBRID, hybrid, both(part(quorum=WHY), broker(2, mode=WHY))),
        ((restart.CANARY_HOLDS, restart.BROKER_BACK), seen, part(zookeeper=WHY)),
        ((restart.CANARY_HOLDS, restart.BROKER_BACK), hybrid, broker(2, mode=WHY)),
        ((software.CANARY_HOLDS, software.BROKER_ON_FORMER), in_kraft, part(quorum=WHY)),
        ((software.CANARY_HOLDS, software.BROKER_ON_FORMER), in_kraft, broker(2, software_version=WHY)),
    ],
    ids=["quorum", "mode", "quorum and mode", "ZooKeeper", "mode in a restart", "quorum in an upgrade", "version"],
)
def test_a_look_that_can_t_tell_of_the_registration_neither_adds_to_the_soak_nor_begins_it_again(
    roll: tuple[Condition, Condition],
    good: Callable[[datetime], ClusterObservation],
    untold: Callable[[ClusterObservation], ClusterObservation],
) -> None:
    def hidden(at: datetime) -> ClusterObservation:
        return untold(good(at))

    assert run_wait(waits(*[good] * 8, hidden, good), roll) == 65.0
    assert run_wait(waits(*[good] * 5, *[hidden] * 4, good), roll) == 80.0
    with pytest.raises(StepFailed, match="the deadline of 160 s has passed"):
        run_wait(waits(*[good] * 11, hidden), roll)


def test_a_look_that_can_t_tell_excuses_nothing_that_was_read() -> None:
    """At the looks without the quorum: another mode, a port that is closed, another broker that is out of ISRs."""
    unread, back = part(quorum=WHY), [hybrid] * 11
    for other in (seen, lambda at: broker(2, running=False)(hybrid(at)), lambda at: short(at, {3: 1}, b2=1)):
        assert run_wait(waits(*back, lambda at, other=other: unread(other(at)), hybrid)) == 115.0
    assert run_wait(waits(*back, lambda at: unread(hybrid(at)), seen, hybrid)) == 120.0, "it was put back meanwhile"


def test_a_registration_that_is_away_at_one_look_late_in_the_soak_stops_nothing() -> None:
    """The wait for the registration alone would be over by then."""
    cluster = waits(*[hybrid] * 30, seen, hybrid)
    vars(cluster)["spec"] = CANARY.model_copy(update={"canary": CanaryBroker(broker=2, soak=200)})
    assert run_wait(cluster) == 350.0


def test_a_canary_that_another_roll_has_taken_on_is_watched_by_the_mode_that_this_one_wants() -> None:
    cluster = waits(lambda at: in_modes(at, {2: BrokerMode.KRAFT, 1: BrokerMode.HYBRID}))
    assert run_wait(cluster) < CANARY.canary.soak, "a broker behind it has this roll's mode"  # type: ignore[union-attr]


def test_registered_but_silent_ends_the_watch_as_before() -> None:
    """The registration of one that hangs goes, and is waited for; that no number of its comes is what counts."""
    looks = [hybrid, hybrid, lambda at: seen(at, b2=Unread("no answer"))]
    with pytest.raises(StepFailed, match=r"the metrics of broker 2: no answer.*waiting can't help"):
        run_wait(waits(*looks))


def test_the_canary_is_rolled_first() -> None:
    assert [each.id for each in CANARY.rolled] == [2, 1, 3] and SPEC.rolled == SPEC.brokers
    plan = make_plan(observation(Phase.ZOOKEEPER, CANARY), CANARY).steps
    rolled = [action.node_id for step in plan for action in step.actions if action.node_id in CANARY.broker_ids]
    assert rolled == [2, 1, 3, 2, 1, 3]


@pytest.mark.parametrize(
    ("brokers", "canary", "why"),
    [(3, 9, "canary.broker: 9 is no broker of this file"), (1, 1, "there is no other broker to compare it with")],
)
def test_a_canary_that_can_t_be_one_is_refused(brokers: int, canary: int, why: str) -> None:
    document = SPEC.model_dump() | {"canary": {"broker": canary}}
    document["brokers"] = document["brokers"][:brokers]
    with pytest.raises(ValidationError, match=why):
        ClusterSpec.model_validate(document)


@pytest.mark.parametrize(
    ("spec", "metrics", "verdict"),
    [
        (SPEC, BrokerMetrics(0, 0), Verdict.PASS),
        (CANARY, GOOD, Verdict.PASS),
        (CANARY, BrokerMetrics(0, 0), Verdict.FAIL),
        (CANARY, Unread("no answer"), Verdict.UNKNOWN),
    ],
)
def test_the_start_gate_asks_whether_it_can_be_judged(
    spec: ClusterSpec, metrics: BrokerMetrics | Unread, verdict: Verdict
) -> None:
    found = CHECKS.run(seen(b3=metrics), spec, Phase.PRE_MIGRATION).results
    assert [each.verdict for each in found if each.code == "KRB-PRE-112"] == [verdict]


PAGE = """
kafka_server_replicamanager_underreplicatedpartitions 0
kafka_server_replicamanager_offlinereplicacount 2
kafka_server_brokertopicmetrics_failedproducerequestspersec_count 3
kafka_server_brokertopicmetrics_failedproducerequestspersec_count{topic="t"} 100
kafka_server_brokertopicmetrics_failedfetchrequestspersec_count 4
kafka_network_requestmetrics_totaltimems_count{request="Produce"} 10
kafka_network_requestmetrics_totaltimems_mean{request="Produce"} 2.5
kafka_network_requestmetrics_totaltimems_mean{request="Fetch"} 500
"""


def test_the_exporter_s_page_has_the_numbers() -> None:
    found = broker_metrics(parse_prometheus(PAGE))
    assert (found.offline_replicas, found.failed_requests, found.produce) == (2, 7, Timed(10, 2.5))
    assert missing_numbers(found) == ()


def test_the_usual_rules_leave_persec_out_of_the_name() -> None:
    page = PAGE.replace("requestspersec_count", "requests_total")
    assert broker_metrics(parse_prometheus(page)).failed_requests == 7


def test_it_keeps_nobody_from_going_back_to_the_software_before() -> None:
    down = replace(seen(b2=BrokerMetrics(0, 0)), brokers=seen(b2=BrokerMetrics(0, 0)).brokers)
    codes = {each.code for each in SOFTWARE.checks.run(down, CANARY, Rolled.MIXED, gate=Gate.BACK).results}
    assert "KRB-PRE-112" not in codes and codes


@pytest.mark.parametrize("line", [line.partition(" ")[0] for line in PAGE.splitlines()[2:] if "topic=" not in line][:5])
def test_a_page_that_lacks_one_says_so(line: str) -> None:
    left = "\n".join(each for each in PAGE.splitlines() if not each.startswith(f"{line} "))
    assert len(missing_numbers(broker_metrics(parse_prometheus(left)))) == 1


def canonical(mbean: str) -> str:
    """As Jolokia names it in its answer (ObjectName.getCanonicalName): the keys in their order."""
    domain, _, keys = mbean.partition(":")
    return f"{domain}:{','.join(sorted(keys.split(','), key=lambda each: (each == '*', each)))}"


def test_jolokia_has_them_too() -> None:
    failed, timed = "kafka.server:type=BrokerTopicMetrics,name=", "kafka.network:type=RequestMetrics,name=TotalTimeMs"
    answer = [
        {"status": 200, "request": {"mbean": canonical(mbean)}, "value": value}
        for mbean, value in (
            (
                "kafka.server:type=ReplicaManager,name=*",
                {
                    "kafka.server:name=UnderReplicatedPartitions,type=ReplicaManager": {"Value": 0},
                    "kafka.server:name=OfflineReplicaCount,type=ReplicaManager": {"Value": 2},
                },
            ),
            (f"{failed}FailedProduceRequestsPerSec", {"Count": 3, "MeanRate": 0.1}),
            (f"{failed}FailedFetchRequestsPerSec", {"Count": 4, "MeanRate": 0.1}),
            (f"{timed},request=Produce", {"Count": 10, "Mean": 2.5}),
        )
    ]
    found = broker_metrics(parse_jolokia(answer))
    assert (found.offline_replicas, found.failed_requests, found.produce) == (2, 7, Timed(10, 2.5))
