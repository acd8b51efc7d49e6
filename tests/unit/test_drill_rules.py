"""The rules of a drill that look at nothing: what is a silence, what is an effect, and whom a fault hits."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from observations import SPEC, WHY, Spoil, a_controller, both, broker, gauges, later, observation, part

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.processor_time import Used
from kraft_runbook.errors import Refused
from kraft_runbook.io.hosts.ansible_reports import Fold
from kraft_runbook.quorum.drill import QUORUM_DRILL, WHOLE, account, operation_for
from kraft_runbook.quorum.faults import KILL, STOP, Fault, Form, aim, page, partitions_to_probe
from kraft_runbook.quorum.handover import Handover, handover
from kraft_runbook.quorum.silences import CHANGES, Effect, Measured, effects, longest_silence
from kraft_runbook.runbook.check_results import Verdict

KILLS = SPEC.model_copy(update={"quorum_drill": SPEC.quorum_drill.model_copy(update={"sigkill": True})})


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([1.0, 2.0, 3.0], 7.0),  # still open at the end
        ([6.0, 7.0, 9.5], 6.0),  # open from the beginning
        ([1.0, 2.0, 8.0, 9.0], 6.0),
        ([], 10.0),
        ([-5.0, 20.0], 10.0),  # outside
    ],
)
def test_the_longest_silence_counts_one_that_is_open_at_either_end(answers: list[float], expected: float) -> None:
    assert longest_silence(answers, 0.0, 10.0) == expected


def measured(changes: float, *partitions: float) -> Measured:
    return Measured(60.0, {CHANGES: changes, **{f"t-{n}": each for n, each in enumerate(partitions)}}, 100)


def test_only_what_exceeds_the_baseline_s_maximum_is_an_effect() -> None:
    assert effects(measured(0.7, 0.4, 2.3), measured(0.7, 2.3, 2.0)) == ()
    assert effects(measured(0.7, 0.4, 2.3), measured(4.0, 2.4, 1.0)) == (
        Effect(CHANGES, 4.0, 0.7),
        Effect("partitions", 2.4, 2.3, 1, 2),
    )


def test_what_has_no_baseline_has_no_effect() -> None:
    assert effects(Measured(60.0), measured(4.0, 9.0)) == ()


def test_a_measurement_survives_its_record() -> None:
    found = replace(
        measured(0.71, 0.4, 2.3),
        handover=Handover(12, 0.25),
        processors=Used(61.0, {"controller 101": 1.25}, {"ZooKeeper z:2181": "nothing listens there"}),
        control=("controller 101",),
    )
    assert Measured.from_dict(found.to_dict()) == found


def form(fault: Fault, broker: int | None = None) -> Form:
    return Form(fault, broker, 1, 60.0, 60.0)


@pytest.mark.parametrize(
    ("phase", "fault", "node", "ends_by"),
    [
        (Phase.ZOOKEEPER, Fault.FAILOVER, None, ""),
        (Phase.KRAFT, Fault.FAILOVER, 101, STOP),
        (Phase.FINALIZED, Fault.FAILOVER, 101, STOP),
        (Phase.FINALIZED, Fault.SHUTDOWN, 1, STOP),
        (Phase.FINALIZED, Fault.KILL, 101, KILL),
    ],
)
def test_each_fault_hits_this_node(phase: Phase, fault: Fault, node: int | None, ends_by: str) -> None:
    found = aim(form(fault), observation(phase), KILLS)
    assert (found.node, found.ends_by) == (node, ends_by)
    play = found.stop()
    assert (play is None) == (node is None)
    assert play is None or (play.playbook, play.node_id, play.variables) == ("stop_node", node, {"ends_by": ends_by})


def test_a_controlled_shutdown_spares_the_controller_unless_it_is_named() -> None:
    seen = observation(Phase.ZOOKEEPER)
    holder = seen.zookeeper.controller.broker_id  # type: ignore[union-attr]
    assert aim(form(Fault.SHUTDOWN), seen, SPEC).node == next(i for i in SPEC.broker_ids if i != holder)
    assert aim(form(Fault.SHUTDOWN, holder), seen, SPEC).node == holder


@pytest.mark.parametrize(
    ("phase", "wanted", "spoil", "why"),
    [
        (Phase.KRAFT, form(Fault.KILL), None, "does not allow SIGKILL"),
        (Phase.DUAL_WRITE, form(Fault.FAILOVER), None, "the cluster is in DUAL_WRITE"),
        (Phase.PRE_MIGRATION, form(Fault.FAILOVER), None, "the cluster is in PRE_MIGRATION"),
        (Phase.KRAFT, form(Fault.SHUTDOWN, 9), None, "broker 9 is not in the cluster file"),
        (Phase.KRAFT, form(Fault.FAILOVER), part(quorum=WHY), "the cluster is in|who is the controller"),
    ],
)
def test_a_fault_that_may_not_be_is_refused(phase: Phase, wanted: Form, spoil: Spoil | None, why: str) -> None:
    seen = observation(phase)
    with pytest.raises(Refused, match=why):
        aim(wanted, spoil(seen) if spoil else seen, SPEC)


def test_the_gate_shows_what_is_stopped_and_what_clients_may_see() -> None:
    wanted = form(Fault.FAILOVER)
    shown = page(wanted, aim(wanted, observation(Phase.KRAFT), SPEC), SPEC)
    assert "Stops node 101" in shown
    assert "No metadata changes until another controller serves" in shown
    assert "more than 60 s ends the run" in shown
    assert "No process is stopped" in page(wanted, aim(wanted, observation(Phase.ZOOKEEPER), SPEC), SPEC)


def test_every_part_of_the_form_is_signed() -> None:
    forms = [
        form(Fault.FAILOVER),
        form(Fault.SHUTDOWN),
        form(Fault.SHUTDOWN, 2),
        Form(Fault.FAILOVER, None, 2, 60.0, 60.0),
        Form(Fault.FAILOVER, None, 1, 61.0, 60.0),
        Form(Fault.FAILOVER, None, 1, 60.0, 61.0),
        Form(Fault.FAILOVER, None, 1, 60.0, 60.0, partitions_to_probe("orders-0")),
        Form(Fault.FAILOVER, None, 1, 60.0, 60.0, partitions_to_probe("orders-1")),
    ]
    assert len({each.digest for each in forms}) == len(forms)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("orders", "'orders' names no partition"),
        ("orders-0; orders-1", "'orders-0;' names no partition"),
        ("-1", "'-1' names no partition"),
        ("__consumer_offsets-3", "belongs to a topic of Kafka's own"),
        (",".join(f"t-{n}" for n in range(201)), "201 partitions are named"),
    ],
)
def test_what_are_no_partitions_is_refused(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        partitions_to_probe(text)


def test_the_gate_says_whose_partitions_keep_the_probes_records() -> None:
    wanted = Form(Fault.FAILOVER, None, 1, 60.0, 60.0, partitions_to_probe("a-b-10, a-b-9"))
    shown = page(wanted, aim(wanted, observation(Phase.KRAFT), SPEC), SPEC)
    assert "stay in your partitions** a-b-9, a-b-10:" in shown
    assert "They create a topic of their own" not in shown


@pytest.mark.parametrize(
    ("led", "told_at", "looks", "expected"),
    [
        (None, 1.0, [(2.0, 0)], None),
        (3, None, [(2.0, 0)], Handover(3, None)),
        (3, 1.0, [(2.0, 3), (3.5, 0), (4.0, 0)], Handover(3, 2.5)),
        (3, 1.0, [(2.0, 3), (9.0, 1)], Handover(3, None)),
        (0, 1.0, [(2.0, 0)], Handover(0, None)),
        (3, 4.0, [(3.9, 0)], Handover(3, 0.0)),
        (3, 4.0, [(1.0, 0)], Handover(3, None)),  # the host's answer was on its way for three seconds
    ],
)
def test_the_last_leader_has_moved_at_the_first_look_that_shows_none_left(
    led: int | None, told_at: float | None, looks: list[tuple[float, int]], expected: Handover | None
) -> None:
    assert handover(led, told_at, looks) == expected


def verdicts(spoil: Spoil, phase: Phase = Phase.KRAFT) -> dict[str, Verdict]:
    seen = spoil(observation(phase))
    report = QUORUM_DRILL.checks.run(later(seen, 1), SPEC, "RUNNING", earlier=seen)
    return {each.code: each.verdict for each in report.results if each.code.startswith("KRB-DRL")}


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.FINALIZED, Phase.KRAFT])
def test_a_whole_cluster_may_be_drilled(phase: Phase) -> None:
    assert set(verdicts(lambda seen: seen, phase).values()) == {Verdict.PASS}


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (gauges(103, last_applied_offset=100, last_applied_lag_ms=70_661), Verdict.FAIL),
        (gauges(103, last_applied_offset=None, last_applied_lag_ms=None), Verdict.UNKNOWN),
        (a_controller(103, running=False), Verdict.FAIL),
        (broker(2, running=False), Verdict.FAIL),
        (part(topics=WHY), Verdict.FAIL),
        (part(quorum=WHY), Verdict.UNKNOWN),
    ],
)
def test_no_fault_is_caused_while_anything_is_short_or_cold_or_unknown(spoil: Spoil, expected: Verdict) -> None:
    assert verdicts(spoil)["KRB-DRL-002"] is expected


@pytest.mark.parametrize("phase", [Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE])
def test_no_fault_is_caused_in_the_middle_of_a_migration(phase: Phase) -> None:
    assert verdicts(lambda seen: seen, phase)["KRB-DRL-001"] is Verdict.FAIL


def test_a_failover_asks_nothing_of_producers_and_a_fault_that_stops_a_broker_does() -> None:
    assert "KRB-PRE-065" not in operation_for(Fault.FAILOVER).checks
    assert all("KRB-PRE-065" in operation_for(each).checks for each in (Fault.SHUTDOWN, Fault.KILL))


def test_after_a_fault_a_cold_controller_and_a_short_isr_are_waited_for() -> None:
    seen = observation(Phase.KRAFT)
    assert WHOLE.progress(later(seen, 1), SPEC, earlier=seen).done
    cold = both(gauges(103, last_applied_offset=100, last_applied_lag_ms=70_661))(seen)
    told = WHOLE.progress(later(cold, 1), SPEC, earlier=cold)
    assert "apply the metadata log" in told.waiting_for
    assert told.far == ("records that controller 103 lacks", -900)


def test_the_report_names_effects_alone_and_says_so_where_there_is_none() -> None:
    def body(what: str, found: Measured) -> dict[str, object]:
        return {"outcome": "drilled", "what": what, "fault": "controller failover", "node_id": 101, **found.to_dict()}

    told = account([body("baseline", measured(0.7, 1.0)), body("fault", measured(4.0, 0.9))])
    assert told is not None
    assert "metadata changes: silent for 4.0 s, 0.7 s without a fault" in told
    assert "partitions" not in told
    none = account([body("baseline", measured(0.7, 1.0)), body("fault", measured(0.6, 0.9))])
    assert none is not None and "no effect" in none
    assert account([body("baseline", measured(0.7, 1.0))]) is None
    assert account([{"outcome": "drilled", "what": "fault"}]) is None


def test_when_a_process_was_told_to_end_does_not_depend_on_its_host_s_clock() -> None:
    """The host tells how long ago it was, and this machine when that answer came."""
    fold = Fold({"kafka-1": "broker 1"}, lambda line: None, lambda text: text)
    end = "2026-03-04T10:00:05+00:00"
    result = {"changed": True, "told_to_end_ago": 2.5}
    there = {"host": "kafka-1", "task": "End", "start": "2026-03-04T10:00:00+00:00", "end": end}
    fold.add({"event": "runner_on_ok", "event_data": {**there, "res": result}})
    fold.add({"event": "runner_on_ok", "event_data": {**there, "res": {}}})
    ended_at = fold.reports()["kafka-1"].ended_at
    assert ended_at == datetime.fromisoformat(end).timestamp() - 2.5
