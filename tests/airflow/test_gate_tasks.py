"""What a gate's own tasks do with what they see: nobody is asked on a proof that does not hold, and nothing that has
changed is confirmed. People, and Airflow's own part: test_in_airflow.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from acted import BACK, FORWARD, Acted
from airflow.sdk.exceptions import AirflowFailException
from observations import (
    SPEC,
    WHY,
    Spoil,
    a_controller,
    broker,
    observation,
    on_host,
    part,
    with_quorum,
)
from signed_run import DAG, RUN, Run, told

from kraft_runbook.cluster.approvals import Approvals
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.parity_report import ParityReport, Verdict
from kraft_runbook_airflow.base.journal import record_for

PARITY_OF = {Gate.DUAL_WRITE: "parity_in_hybrid", Gate.FINALIZE: "soak"}
STANDS = {
    Gate.START: Phase.ZOOKEEPER,
    Gate.DUAL_WRITE: Phase.HYBRID,
    Gate.FINALIZE: Phase.DUAL_WRITE,
    Gate.ROLLBACK: Phase.DUAL_WRITE,
}
each_gate = pytest.mark.parametrize("gate", list(Gate))


@pytest.fixture
def acted(acted: Acted) -> Acted:
    acted.begin()
    return acted


def dag_of(gate: Gate) -> str:
    return BACK if gate is Gate.ROLLBACK else FORWARD


def healthy(gate: Gate) -> ClusterObservation:
    return observation(STANDS[gate])


def compare(acted: Acted, gate: Gate, *, verdict: Verdict = Verdict.MATCH, ago: float = 0, final: bool = True) -> None:
    """Parity was proven for this gate, so many seconds ago."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    made = {name: () for name in ("counts", "samples", "obstacles")}
    ids = {"migration_offset": 640, "end_offset": 640, "migration_epoch": 3, "leader_id": 101, "leader_epoch": 3}
    report = ParityReport(
        cluster="lab", verdict=verdict, against="ZooKeeper", rounds=1, started_at=at, finished_at=at, **made, **ids
    )
    body = {"outcome": "compared", **report.to_dict(), "offset": 640, "final": final}
    record_for(SPEC.name, DAG, RUN, PARITY_OF[gate], told(body))
    acted.pulled[PARITY_OF[gate]] = {"verdict": "MATCH", "digest": report.digest}


def prove(acted: Acted, gate: Gate, seen: ClusterObservation | None = None, **params: Any) -> Any:
    acted.seen = seen or healthy(gate)
    return acted.run(f"gate_{gate.value}.prove", dag=dag_of(gate), **params)


def refused(acted: Acted, gate: Gate, why: str, seen: ClusterObservation | None = None) -> None:
    with pytest.raises(AirflowFailException, match=why):
        prove(acted, gate, seen)
    assert acted.outcomes(f"gate_{gate.value}.prove") == ["refused"]


@each_gate
def test_a_healthy_cluster_is_put_before_a_person(acted: Acted, gate: Gate) -> None:
    if gate in PARITY_OF:
        compare(acted, gate)
    (asking,) = prove(acted, gate)
    assert asking["digest"] and not asking["passed"]
    assert acted.outcomes(f"gate_{gate.value}.prove") == ["proven"]


BLOCKED: dict[Gate, dict[str, Spoil]] = {
    Gate.START: {
        "KRB-PRE-004": broker(2, running=False),
        "KRB-PRE-046": on_host(1, config=WHY),
    },
    Gate.DUAL_WRITE: {
        "KRB-GATE-009": with_quorum(voters=()),
        "KRB-PRE-047": on_host(102, config=WHY),
    },
    Gate.FINALIZE: {"KRB-GATE-011": broker(2, mode=BrokerMode.HYBRID), "KRB-PRE-047": on_host(102, config=WHY)},
}


@pytest.mark.parametrize(("gate", "code"), [(gate, code) for gate, codes in BLOCKED.items() for code in codes])
def test_nobody_is_asked_where_a_check_blocks(acted: Acted, gate: Gate, code: str) -> None:
    """Failed, or not answered; live, or on a host alone."""
    if gate in PARITY_OF:
        compare(acted, gate)
    refused(acted, gate, code, BLOCKED[gate][code](healthy(gate)))


@pytest.mark.parametrize("gate", PARITY_OF)
def test_nobody_is_asked_while_dual_write_stands_still(acted: Acted, gate: Gate) -> None:
    compare(acted, gate)
    acted.dual_write_died = True
    refused(acted, gate, "KRB-DW-001")


@pytest.mark.parametrize("gate", PARITY_OF)
@pytest.mark.parametrize("verdict", [Verdict.MISMATCH, Verdict.INCONCLUSIVE])
def test_nobody_is_asked_on_a_parity_that_is_no_match(acted: Acted, gate: Gate, verdict: Verdict) -> None:
    compare(acted, gate, verdict=verdict)
    refused(acted, gate, f"parity is {verdict}, not MATCH")


@pytest.mark.parametrize("gate", PARITY_OF)
def test_nobody_is_asked_where_parity_was_not_measured_or_not_to_its_end(acted: Acted, gate: Gate) -> None:
    refused(acted, gate, "parity was not measured")


def test_a_soak_that_has_not_ended_proves_nothing(acted: Acted) -> None:
    compare(acted, Gate.FINALIZE, final=False)
    refused(acted, Gate.FINALIZE, "the latest parity report of soak in this run's evidence is not the one")


@pytest.mark.parametrize("gate", PARITY_OF)
def test_nobody_is_asked_on_a_parity_that_is_too_old(acted: Acted, gate: Gate) -> None:
    compare(acted, gate, ago=SPEC.approvals.valid_for + 60)
    refused(acted, gate, "can't be put before a person: the parity report that was signed is")


@each_gate
def test_nobody_is_asked_where_too_few_could_sign(acted: Acted, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    if gate in PARITY_OF:
        compare(acted, gate)
    apart = Approvals.model_validate({"users": ["operator"], "exclude_trigger": True})
    acted.spec = SPEC.model_copy(update={"approvals": apart})
    refused(acted, gate, "1 must sign gate")


def test_nobody_is_asked_for_a_way_back_that_is_closed(acted: Acted) -> None:
    refused(acted, Gate.ROLLBACK, "no rollback is possible", part(zookeeper=WHY)(healthy(Gate.ROLLBACK)))


def test_nobody_is_asked_for_a_way_back_on_which_this_tool_may_not_delete(acted: Acted) -> None:
    acted.not_deletable = "this tool may not delete /controller and /migration"
    refused(acted, Gate.ROLLBACK, "may not delete /controller")


def test_nobody_is_asked_for_a_way_back_while_a_host_that_is_down_says_nothing(acted: Acted) -> None:
    down = Unread("it does not run")
    seen = a_controller(103, running=False, mode=down, metrics=down)(healthy(Gate.ROLLBACK))
    refused(acted, Gate.ROLLBACK, "its host can't be asked to keep it stopped", seen)


@each_gate
def test_a_rehearsal_seals_nothing(acted: Acted, gate: Gate) -> None:
    (asking,) = prove(acted, gate, dry_run=True)
    assert acted.outcomes(f"gate_{gate.value}.prove") == [] and not asking["passed"]


# -- the confirmation --------------------------------------------------------------------------------------------------


def confirm(acted: Acted, gate: Gate, seen: ClusterObservation, *, by: str = "operator") -> Any:
    """The gate was signed on a healthy cluster; Airflow says by whom."""
    run = Run(gate, "confirm", seen=healthy(gate))
    run.write()
    signed = run.left["approve"][2]
    answer = {"chosen": ["Approve"], "by": by, "by_id": by, "at": signed["answered_at"]}
    acted.seen = seen
    return acted.resume(f"gate_{gate.value}.confirm", {"id-1": answer}, dag=dag_of(gate))


@each_gate
def test_an_approval_that_still_fits_is_confirmed(acted: Acted, gate: Gate) -> None:
    confirm(acted, gate, healthy(gate))
    assert acted.outcomes(f"gate_{gate.value}.confirm") == ["confirmed"]


@each_gate
def test_an_answer_that_airflow_has_otherwise_is_none(acted: Acted, gate: Gate) -> None:
    with pytest.raises(AirflowFailException, match="the evidence has an approval by operator"):
        confirm(acted, gate, healthy(gate), by="someone")
    assert acted.outcomes(f"gate_{gate.value}.confirm") == ["refused"]


@pytest.mark.parametrize(("gate", "code"), [(gate, code) for gate, codes in BLOCKED.items() for code in codes])
def test_a_check_that_blocks_meanwhile_stops_it(acted: Acted, gate: Gate, code: str) -> None:
    with pytest.raises(AirflowFailException, match=code):
        confirm(acted, gate, BLOCKED[gate][code](healthy(gate)))
    assert acted.outcomes(f"gate_{gate.value}.confirm") == ["refused"]


def test_nothing_may_differ_there_not_even_what_the_steps_would_do(acted: Acted) -> None:
    """Nobody of this run did it."""
    with pytest.raises(AirflowFailException, match="the cluster changed since the proof: broker 1"):
        confirm(acted, Gate.ROLLBACK, broker(1, mode=BrokerMode.HYBRID)(healthy(Gate.ROLLBACK)))


def test_a_confirmation_on_a_host_that_does_not_share_the_state_is_refused(acted: Acted, tmp_path: Path) -> None:
    """Before it looks at the cluster."""
    for file in (tmp_path / "evidence").glob("*"):
        file.unlink()
    acted.seen = lambda: pytest.fail("it looked")
    with pytest.raises(AirflowFailException, match="the state directory is not shared"):
        acted.resume("gate_start.confirm", {})
