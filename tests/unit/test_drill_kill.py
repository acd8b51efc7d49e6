"""A controller killed in ZooKeeper mode: what must hold before, and how long its loss went unnoticed."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SECRETS, SPEC, observation
from recording import RecordingCluster
from test_drill_course import ANSWERS, FORM, Telling, made, opening, whats, with_baseline
from test_drill_rules import KILLS, form, measured

from kraft_runbook.cluster.assignment import PartitionSeen, TopicPartition
from kraft_runbook.cluster.observation import Found
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen
from kraft_runbook.io.kafka.drill_probes import PREFIX
from kraft_runbook.io.kafka.dynamic_configs import Found as Configured
from kraft_runbook.io.zookeeper.holder_gone import HolderGone
from kraft_runbook.procedures.short_together import short_without
from kraft_runbook.quorum.before_after import KeptFault, told, told_alone
from kraft_runbook.quorum.drill import account
from kraft_runbook.quorum.faults import KILL, Aim, Fault, Form, aim, page, session_timeout_ms
from kraft_runbook.quorum.handover import Loss, loss
from kraft_runbook.quorum.silences import Measured
from kraft_runbook.runbook.producers import MIN_ISR
from kraft_runbook.steps import drill, drill_window

KILLED = {"fault": Fault.KILL.value}


def test_the_broker_that_holds_controller_is_killed_and_the_gate_says_when_that_is_noticed() -> None:
    seen = observation(Phase.ZOOKEEPER)
    wanted = form(Fault.KILL)
    found = aim(wanted, seen, KILLS)
    assert found == Aim(seen.zookeeper.controller.broker_id, KILL)  # type: ignore[union-attr]
    assert "ZooKeeper ends its session after 18 s (zookeeper.session.timeout.ms)" in page(wanted, found, KILLS)
    assert "session" not in page(wanted, Aim(101, KILL), KILLS).replace("until its session ends", "")


@pytest.mark.parametrize(("budget", "refused"), [(18.0, True), (18.5, False)])
def test_a_budget_that_ends_before_the_loss_is_noticed_is_refused_in_zookeeper_mode_alone(
    budget: float, refused: bool
) -> None:
    wanted = Form(Fault.KILL, None, 1, budget, 10.0)
    if refused:
        with pytest.raises(Refused, match=r"ZooKeeper notices the loss of broker \d only after 18 s"):
            aim(wanted, observation(Phase.ZOOKEEPER), KILLS)
    else:
        aim(wanted, observation(Phase.ZOOKEEPER), KILLS)
    assert aim(wanted, observation(Phase.KRAFT), KILLS).node == 101


def test_the_session_timeout_is_the_broker_s_own_then_that_of_all_brokers() -> None:
    key = "zookeeper.session.timeout.ms"
    of_all = SPEC.model_copy(update={"broker_properties": {key: "6000"}})
    own = (of_all.brokers[0].model_copy(update={"properties": {key: "9000"}}), *of_all.brokers[1:])
    spec = of_all.model_copy(update={"brokers": own})
    assert [session_timeout_ms(spec, each) for each in (own[0].id, own[1].id, -1)] == [9000, 6000, 6000]
    assert session_timeout_ms(SPEC, own[0].id) == 18000


def killing(**answers: Any) -> RecordingCluster:
    asked = {**ANSWERS, short_without: None, **answers}
    return Telling(observation(Phase.ZOOKEEPER), spec=KILLS, answers=asked)


def noticing(run: Any, found: Aim) -> Any:
    """Four seconds after the kill."""
    return nullcontext(SimpleNamespace(gone_at=run.cluster.now() + 5.0))


def nobody_follows(run: Any, found: Aim) -> Any:
    return nullcontext()


def test_the_loss_is_kept_apart_from_what_follows_it() -> None:
    run, kept = made(cluster=killing(), seconds=10.0, **KILLED)
    with_baseline(kept)
    drill.cause_faults(run, opening(silent=(1.0, 6.2)), nobody_follows, noticing)
    found = Measured.from_dict(kept.bodies[-1])
    assert found is not None and found.loss is not None
    assert found.loss.noticed == pytest.approx(4.0, abs=0.01)
    assert found.loss.served == pytest.approx(1.1, abs=0.2)
    report = account(kept.bodies)
    assert report is not None and "  - ZooKeeper noticed the loss 4.0 s after the kill; the first metadata" in report


def test_a_partition_that_would_be_short_is_refused_before_anything_is_killed() -> None:
    cluster = killing()
    vars(cluster)["answers"][short_without] = Found(2, ("orders-0 (1 left, min.insync.replicas 2)",))
    run, kept = made(cluster=cluster, **KILLED)
    with_baseline(kept)
    with pytest.raises(Refused, match=r"too few replicas in sync: 2: orders-0 \(1 left, min.insync.replicas 2\)"):
        drill.cause_faults(run, opening(), nobody_follows, noticing)
    assert "stops" not in whats(kept) and cluster.did == [cluster.did[0]]


def test_a_controller_of_a_quorum_and_a_clean_stop_have_no_loss_to_notice() -> None:
    run, _ = made(Phase.KRAFT, **FORM)
    for each in (Aim(101, KILL), Aim(1, "stop"), Aim(None)):
        with drill_window.notice_loss(run, each) as noticed:
            assert noticed is None


@pytest.mark.parametrize(
    ("told_at", "gone_at", "changes", "expected"),
    [
        (10.0, 28.2, [9.0, 28.0, 29.7, 30.0], Loss(28.2 - 10.0, 29.7 - 28.2)),
        (10.0, 28.2, [9.0], Loss(28.2 - 10.0, None)),
        (10.0, None, [9.0, 29.0], None),
        (None, 28.2, [29.0], None),
    ],
)
def test_what_was_not_seen_is_no_loss_of_zero_seconds(
    told_at: float | None, gone_at: float | None, changes: list[float], expected: Loss | None
) -> None:
    assert loss(told_at, gone_at, changes) == expected


def test_a_loss_survives_its_record_and_both_reports_of_the_migration_say_it() -> None:
    found = replace(measured(21.2, 21.8), loss=Loss(18.3, 1.4))
    assert Measured.from_dict(found.to_dict()) == found
    before = KeptFault("r 1", "2026-03-04", Phase.ZOOKEEPER, Fault.KILL.value, measured(0.7, 0.9), found)
    after = KeptFault("r 2", "2026-03-05", Phase.KRAFT, Fault.KILL.value, measured(0.7, 0.9), measured(4.0, 1.0))
    for text in (told(before, after), told_alone(before)):
        assert text.count("ZooKeeper noticed the loss 18.3 s after the kill") == 1


class Reader:
    """/controller of one server: each answer once, the last one again and again."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.ended = list(answers), False

    def __call__(self, *_: Any, **__: Any) -> Reader:
        return self

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True

    def get(self, path: str) -> Any:
        assert path == "/controller"
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def held_by(broker: int) -> SimpleNamespace:
    return SimpleNamespace(data=b'{"version":2,"brokerid":%d,"timestamp":"1","kraftControllerEpoch":-1}' % broker)


@pytest.mark.parametrize("after", [None, held_by(3)], ids=["nobody holds it", "another broker holds it"])
def test_it_is_noticed_once_controller_names_the_broker_no_more(after: Any) -> None:
    reader: Any = Reader(held_by(2), Unreachable("it hangs", way_out=""), held_by(2), after)
    began = time.monotonic()
    with HolderGone(SPEC, 2, secrets=SECRETS, reader=reader, rest=0.01) as seen:
        while seen.gone_at is None and time.monotonic() < began + 10:
            time.sleep(0.005)
    assert seen.gone_at is not None and seen.gone_at >= began + 0.04
    assert reader.ended
    reader = Reader(held_by(2))
    with HolderGone(SPEC, 2, secrets=SECRETS, reader=reader, rest=0.01) as seen:
        time.sleep(0.05)
    assert seen.gone_at is None


def test_partitions_short_without_a_broker_are_named_but_for_the_drill_s_own() -> None:
    partitions = {
        TopicPartition("a", 0): PartitionSeen((1, 2, 3), 1, (1, 2, 3)),
        TopicPartition("a", 1): PartitionSeen((3, 2), 3, (3, 2)),
        TopicPartition("b", 0): PartitionSeen((2,), 2, (2,)),
        TopicPartition("c", 0): PartitionSeen((1, 3), 1, (1, 3)),
        TopicPartition(f"{PREFIX}x", 0): PartitionSeen((2,), 2, (2,)),
    }

    def configs(_: Any, entities: Any, keys: Any, **__: Any) -> Any:
        assert list(keys) == [MIN_ISR]
        assert not [each for each in entities if each.name in ("c", f"{PREFIX}x")]
        own = {"a": {MIN_ISR: "2"}, "b": {}}
        return {each: Configured(own.get(each.name, {}), {MIN_ISR: "1"}) for each in entities}

    def without(broker: int) -> Found | None:
        seen = AssignmentSeen("id", {}, partitions)
        return short_without(SPEC, broker, secrets=SECRETS, look=lambda *_, **__: seen, configs=configs)

    assert without(2) == Found(2, ("a-1 (1 left, min.insync.replicas 2)", "b-0 (0 left, min.insync.replicas 1)"))
    assert without(9) is None
