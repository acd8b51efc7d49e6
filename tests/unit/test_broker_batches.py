"""Which brokers a roll restarts together, and whether it may: what stays in sync without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC, broker, observation
from pydantic import ValidationError
from recording import RecordingCluster

from benchmarks.by_rack import turns_of
from kraft_runbook.cluster.assignment import PartitionSeen, TopicPartition
from kraft_runbook.cluster.broker_batches import Roll
from kraft_runbook.cluster.cluster_file import parse_cluster
from kraft_runbook.cluster.observation import Found, Unread
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind
from kraft_runbook.io.kafka.dynamic_configs import Found as Configured
from kraft_runbook.migration.ahead import what_happens_next
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.procedures.short_together import short_together
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.runbook.broker_batches import CODE, in_turn, left_without, short_of, turns
from kraft_runbook.runbook.changes import By, state_of
from kraft_runbook.runbook.check_results import Verdict
from kraft_runbook.runbook.health import out_of_sync
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.steps.guards import require_other_brokers
from kraft_runbook.steps.node_step import Look
from kraft_runbook.steps.restart import BROKER

MIN_ISR = "min.insync.replicas"
DOCS = Path(__file__).resolve().parents[2] / "docs"


def with_brokers(racks: Mapping[int, str | None], **given: Any) -> ClusterSpec:
    """The lab's file with these brokers, each on a host of its own."""
    one = SPEC.brokers[0]
    brokers = tuple(one.model_copy(update={"id": i, "host": f"10.0.0.{i}", "rack": rack}) for i, rack in racks.items())
    return ClusterSpec.model_validate({**SPEC.model_dump(), "brokers": [b.model_dump() for b in brokers], **given})


RACKS = {1: "a", 2: "b", 3: "a", 4: "b", 5: "a", 6: "a"}
BY_TWO = {"by": "rack", "at_once": 2}


def ids(spec: ClusterSpec) -> list[list[int]]:
    return [[b.id for b in batch] for batch in spec.batches]


def test_without_roll_each_broker_has_a_turn_of_its_own() -> None:
    assert ids(with_brokers(RACKS)) == [[1], [2], [3], [4], [5], [6]]
    assert ids(with_brokers(RACKS, canary={"broker": 4})) == [[4], [1], [2], [3], [5], [6]]


def test_by_rack_no_batch_is_greater_than_it_may_be_nor_in_two_racks() -> None:
    """The first one goes alone: what breaks every broker breaks one."""
    assert ids(with_brokers(RACKS, roll=BY_TWO)) == [[1], [2, 4], [3, 5], [6]]
    assert ids(with_brokers(RACKS, roll={"by": "rack", "at_once": 9})) == [[1], [2, 4], [3, 5, 6]]


def test_the_canary_goes_alone_and_before_all() -> None:
    spec = with_brokers(RACKS, roll=BY_TWO, canary={"broker": 3})
    assert ids(spec) == [[3], [1, 5], [6], [2, 4]]
    assert [b.id for b in spec.rolled] == [3, 1, 5, 6, 2, 4]
    assert spec.batch_of(3) == {3} and spec.batch_of(5) == {1, 5} and spec.batch_of(101) == {101}


def test_the_forty_brokers_of_the_docs_take_as_many_turns_as_their_page_says() -> None:
    spec = parse_cluster((DOCS / "forty-brokers.yaml").read_text(), source="forty.yaml", environment={})
    faster = spec.model_copy(update={"roll": Roll(by="rack", at_once=4)})
    page = (DOCS / "by-rack.md").read_text()
    assert len(spec.batches) == 21 and "take 21 turns, not 40" in page
    assert f"With\n`at_once: 4` they take {len(faster.batches)};" in page


def test_the_page_has_the_turns_that_the_benchmark_counts() -> None:
    spec = parse_cluster((DOCS / "forty-brokers.yaml").read_text(), source="forty.yaml", environment={})
    counted = [line for line in turns_of(spec).splitlines() if line.startswith("| ") and line[-3].isdigit()]
    assert len(counted) == 3 and "\n".join(counted) in (DOCS / "by-rack.md").read_text()


def test_the_forty_brokers_of_the_docs_are_rolled_with_care() -> None:
    spec = parse_cluster((DOCS / "forty-brokers.yaml").read_text(), source="forty.yaml", environment={})
    assert spec.canary is not None and spec.canary.soak >= 3600
    assert spec.approvals.needed == 2 and spec.approvals.exclude_trigger and len(spec.approvals.users) > 2
    assert spec.reach.known_hosts is not None


@pytest.mark.parametrize(
    ("racks", "given", "why"),
    [
        ({1: "a", 2: None, 3: "b"}, {}, "roll.by: broker 2 has no 'rack'"),
        ({1: "a", 2: "a", 3: "a"}, {}, "roll.by: all brokers are in one rack"),
        (RACKS, {"rolling_restart": {"demote": True}}, "rolling_restart.demote: leaders would go"),
        (RACKS, {"upgrade_software": {"demote": True}}, "upgrade_software.demote: leaders would go"),
        (RACKS, {"roll": {"by": "rack", "at_once": 1}}, "greater than or equal to 2"),
        (RACKS, {"roll": {"by": "host", "at_once": 2}}, "Input should be 'rack'"),
    ],
)
def test_a_file_whose_roll_can_t_be_is_refused(racks: dict[int, str | None], given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        with_brokers(racks, **{"roll": BY_TWO, **given})


# -- what stays in sync ------------------------------------------------------------------------------------------------


def partition(*replicas: int, isr: Sequence[int] | None = None) -> PartitionSeen:
    return PartitionSeen(replicas, replicas[0], tuple(replicas if isr is None else isr))


SEEN = {
    TopicPartition("spread", 0): partition(1, 2, 4),
    TopicPartition("crowded", 0): partition(1, 3, 2),
    TopicPartition("crowded", 1): partition(1, 3, 2, isr=(1, 3)),
    TopicPartition("both", 0): partition(3, 1),
    TopicPartition("one", 0): partition(1),
}


def test_only_partitions_with_two_replicas_in_the_batch_are_counted() -> None:
    """One with one replica there, or one in all, loses no more than in a roll one by one."""
    assert left_without(SEEN, {1, 3}) == {
        TopicPartition("crowded", 0): 1,
        TopicPartition("crowded", 1): 0,
        TopicPartition("both", 0): 0,
    }


def test_what_is_short_is_named_with_what_is_left_and_a_topic_that_is_gone_is_not() -> None:
    left = left_without(SEEN, {1, 3})
    assert list(short_of(left, {"crowded": 1, "both": 1})) == [
        "both-0 (0 left, min.insync.replicas 1)",
        "crowded-1 (0 left, min.insync.replicas 1)",
    ]
    assert list(short_of(left, {"crowded": 2})) == [
        "crowded-0 (1 left, min.insync.replicas 2)",
        "crowded-1 (0 left, min.insync.replicas 2)",
    ]


class Kafka:
    """What brokers answer: the partitions, a topic's own min.insync.replicas, and each broker's."""

    def __init__(self, topics: Mapping[str, str | None], brokers: Mapping[int, str]) -> None:
        self.topics, self.brokers = topics, brokers
        self.asked: list[str] = []

    def look(self, spec: ClusterSpec, **_: Any) -> AssignmentSeen:
        return AssignmentSeen("id", {}, SEEN)

    def configs(
        self, spec: ClusterSpec, entities: Collection[Entity], keys: Sequence[str], **_: Any
    ) -> dict[Entity, Configured]:
        assert list(keys) == [MIN_ISR]
        found = {}
        for each in entities:
            self.asked.append(str(each))
            if each.kind is EntityKind.BROKER:
                found[each] = Configured({}, {MIN_ISR: self.brokers[int(each.name)]})
            elif each.name in self.topics:
                own = self.topics[each.name]
                found[each] = Configured({MIN_ISR: own} if own else {}, {MIN_ISR: own or "1"})
        return found

    def short(self, spec: ClusterSpec, **given: Any) -> Mapping[int, Found]:
        return short_together(spec, secrets=lambda ref: "", look=self.look, configs=self.configs, **given)


SPREAD = with_brokers(RACKS, roll=BY_TWO)


def test_kafka_is_asked_for_the_crowded_topics_alone() -> None:
    kafka = Kafka({"crowded": "1", "both": "1", "spread": "1"}, {})
    assert kafka.short(SPREAD, batches=[{1, 3}, {2, 4}, {6}]) == {
        1: Found(2, ("both-0 (0 left, min.insync.replicas 1)", "crowded-1 (0 left, min.insync.replicas 1)"))
    }
    assert kafka.asked == ["topic both", "topic crowded", "topic spread"], "no broker"


def test_where_a_topic_has_none_of_its_own_the_greatest_of_the_brokers_that_stay_counts() -> None:
    kafka = Kafka({"crowded": None}, {2: "1", 4: "2", 5: "1", 6: "1"})
    (found,) = kafka.short(SPREAD, batches=[{1, 3}]).values()
    assert found.samples[0] == "crowded-0 (1 left, min.insync.replicas 2)"
    assert "broker 1" not in kafka.asked and "broker 3" not in kafka.asked


def test_nothing_is_asked_where_no_brokers_go_together() -> None:
    assert Kafka({}, {}).short(with_brokers(RACKS)) == {}


# -- the check, and what is asked before each stop ---------------------------------------------------------------------

TOGETHER = SPEC.model_copy(
    update={
        "roll": Roll(by="rack", at_once=2),
        "brokers": tuple(b.model_copy(update={"rack": r}) for b, r in zip(SPEC.brokers, "abb", strict=True)),
    }
)


@pytest.mark.parametrize(
    ("found", "spec", "verdict", "told"),
    [
        ({}, TOGETHER, Verdict.PASS, "2 batches of up to 2 brokers, each in one rack"),
        ({2: Found(7, ("a-0", "a-1"))}, TOGETHER, Verdict.FAIL, "without brokers 2, 3: 7 partitions, a-0, a-1"),
        (Unread("no broker answered"), TOGETHER, Verdict.UNKNOWN, "no broker answered"),
        (Unread("not asked for"), SPEC, Verdict.PASS, "brokers are restarted one by one"),
    ],
)
def test_it_is_checked_before_the_roll(
    found: Mapping[int, Found] | Unread, spec: ClusterSpec, verdict: Verdict, told: str
) -> None:
    seen = replace(observation(Phase.HYBRID), short_together=found)
    (result,) = [r for r in CHECKS.run(seen, spec, Phase.HYBRID, gate=None, earlier=seen).results if r.code == CODE]
    assert (result.verdict, told in result.evidence) == (verdict, True), result.evidence


def guarded(
    *, down: Collection[int] = (), lagging: Collection[int] = (), short: Mapping[int, Found] | None = None
) -> RecordingCluster:
    """The guard of broker 2, which goes together with broker 3."""
    seen = observation(Phase.HYBRID)
    assert not isinstance(seen.topics, Unread)
    seen = replace(
        seen,
        brokers={i: replace(b, running=i not in down) for i, b in seen.brokers.items()},
        topics=replace(seen.topics, out_of_sync_by_broker={i: 5 for i in lagging}),
    )
    cluster = RecordingCluster(seen, spec=TOGETHER, answers={short_together: short or {}})
    require_other_brokers(Look(cluster, 2, seen, detect_phase(seen), companions=frozenset({3})))
    return cluster


def test_those_that_go_together_may_be_down_or_behind_meanwhile() -> None:
    guarded()
    guarded(down=[3], lagging=[2, 3])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"down": [1]}, "broker 1 does not answer"),
        ({"lagging": [1]}, "replicas on other brokers are out of sync"),
        (
            {"short": {1: Found(1, ("a-0 (0 left, min.insync.replicas 1)",))}},
            "without brokers 2, 3, which are restarted together",
        ),
    ],
)
def test_whoever_stays_must_run_and_be_in_sync_and_be_enough(given: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        guarded(**given)


def test_what_was_signed_holds_while_those_that_go_together_are_down() -> None:
    """Any other broker that is down since the proof is somebody else's doing."""
    was = state_of(observation(Phase.HYBRID))
    now = state_of(broker(2, running=False)(observation(Phase.HYBRID)))
    for changes in (RESTARTS.changes, SOFTWARE.changes):
        assert {each.by for each in changes("restart", was, now, {1, 2})} == {By.THE_STEPS}
    assert {each.by for each in RESTARTS.changes("restart", was, now, {1})} == {By.OTHERS}


@pytest.mark.parametrize(
    ("phase", "verdict"),
    [(Phase.ZOOKEEPER, "FAIL"), (Phase.PRE_MIGRATION, "FAIL"), (Phase.HYBRID, "PASS"), (Phase.FINALIZED, "PASS")],
)
def test_none_go_together_while_a_broker_may_be_the_controller(phase: Phase, verdict: str) -> None:
    """The others would ask it for new leaders while it stops."""
    seen = observation(phase)
    assert RESTARTS.checks["KRB-ROLL-004"].run(seen, TOGETHER).verdict == verdict
    assert RESTARTS.checks["KRB-ROLL-004"].run(seen, SPEC).verdict is Verdict.PASS
    cluster = RecordingCluster(seen, spec=TOGETHER, answers={short_together: {}})
    look = Look(cluster, 2, seen, detect_phase(seen), companions=frozenset({3}))
    if verdict == "FAIL":
        with pytest.raises(Refused, match="while one of them may be the controller"):
            BROKER.guard(look)
    else:
        BROKER.guard(look)
    BROKER.guard(replace(look, companions=frozenset()))


def test_the_wait_for_one_does_not_ask_for_those_beside_it() -> None:
    """Broker 3 is down: the wait for broker 2, which it goes with, ends; that for broker 1 does not."""
    seen = observation(Phase.FINALIZED, TOGETHER)
    assert not isinstance(seen.topics, Unread)
    known = {i: 9 for i in (1, 2)}
    seen = replace(
        broker(3, running=False)(seen), topics=replace(seen.topics, topics_known_by_broker=known, offline_count=1)
    )
    assert list(out_of_sync(seen, seen, TOGETHER, 2)) == []
    assert [each for each in out_of_sync(seen, seen, TOGETHER, 1) if "broker 3 to answer" in each]


# -- what a person reads -----------------------------------------------------------------------------------------------


def test_a_person_reads_how_many_go_together_and_the_time_of_the_batches() -> None:
    assert in_turn(None) == "one by one. Each waits until the one before is in every ISR"
    assert in_turn(TOGETHER.roll).startswith("the first alone, then up to 2 of one rack together. Each batch waits")
    assert turns(SPEC, [1, 2, 3]) == 3 and turns(TOGETHER, [1, 2, 3]) == 2 and turns(TOGETHER, [3]) == 1
    seen = observation(Phase.HYBRID)
    told = " ".join(what_happens_next("dual_write", seen, TOGETHER, ()))
    assert "Restart brokers 1, 2, 3 in KRaft mode, the first alone, then up to 2 of one rack together" in told
