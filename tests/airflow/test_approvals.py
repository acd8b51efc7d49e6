"""What every step asks before it changes the cluster: a recorded signature and its confirmation. A task's state alone
is neither.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator
from in_run import run_in
from observations import SPEC, observation
from recording import RecordingCluster
from signed_run import DAG, RUN, Run, told

from kraft_runbook.cluster.approvals import Approvals
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.gates.people import require_enough_people, require_same
from kraft_runbook.gates.proof import make_proof
from kraft_runbook.gates.signatures import Signature
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.parity.parity_report import ParityReport, Verdict
from kraft_runbook.procedures.give_back import settle_in_zookeeper
from kraft_runbook.steps.leaving import leave
from kraft_runbook.steps.migration_gates import ShowsParity
from kraft_runbook_airflow.base.journal import record_for
from kraft_runbook_airflow.base.people import assigned_users, users_of_simple_auth_manager

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)


@pytest.fixture(params=list(Gate))
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return Run(request.param)


def test_a_signed_and_confirmed_gate_lets_its_steps_through(run: Run) -> None:
    run.write().ask()


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("approve", "0 of 1 approvals"),
        ("ask", "0 of 1 approvals"),
        ("confirm", "was not confirmed"),
        ("prove", "no proof is on record"),
    ],
)
def test_a_task_marked_successful_by_hand_stands_for_nothing_whatever_its_xcom_says(
    run: Run, task: str, why: str
) -> None:
    """Such a task left no record."""
    del run.left[task]
    with pytest.raises(Refused, match=why):
        run.write().ask()


def test_a_confirmation_of_another_proof_stands_for_nothing(run: Run) -> None:
    task, outcome, what = run.left["confirm"]
    run.left["confirm"] = (task, outcome, {**what, "digest": "0" * 64})
    with pytest.raises(Refused, match="was not confirmed on the proof that was signed"):
        run.write().ask()


def test_a_confirmation_to_which_airflow_repeated_no_answer_stands_for_nothing(run: Run) -> None:
    task, outcome, what = run.left["confirm"]
    run.left["confirm"] = (task, outcome, {**what, "signatures": []})
    with pytest.raises(Refused, match="was not confirmed"):
        run.write().ask()


@pytest.mark.parametrize("left", [None, {"verdict": "MISMATCH"}, {"verdict": "MATCH", "started_at": AT.isoformat()}])
def test_finalizing_demands_the_parity_that_was_proven_after_the_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: Any
) -> None:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    run = Run(Gate.FINALIZE, "parity_again")
    if left:
        run.left["parity_again"] = ("parity_again", "compared", left)
    with pytest.raises(Refused, match="parity was not proven again"):
        run.write().ask()


def test_a_chain_that_was_altered_lets_nothing_through(run: Run, tmp_path: Path) -> None:
    run.write()
    (file,) = (tmp_path / "evidence").glob("*.jsonl")
    file.write_text(file.read_text().replace('"by":"operator"', '"by":"someone"'))
    with pytest.raises(RunbookError, match="can't be trusted"):
        run.ask()


# -- what Airflow says -------------------------------------------------------------------------------------------------


def test_what_airflow_says_of_an_answer_must_be_what_the_evidence_says() -> None:
    signed = Signature("d", "ann", "3", AT, "approve", "id-1", 1)
    answer = {"chosen": [ApprovalOperator.APPROVE], "by": "ann", "by_id": "3", "at": AT.isoformat()}
    require_same([signed], {"id-1": answer})
    with pytest.raises(Refused, match="could not be read: it was not asked for"):
        require_same([signed], {})
    with pytest.raises(Refused, match="404"):
        require_same([signed], {"id-1": {"unread": "404 Not Found"}})
    for wrong in (
        {"by": "bob"},
        {"by_id": "4"},
        {"chosen": ["Reject"]},
        {"at": None, "chosen": []},
        {"at": (AT + timedelta(seconds=1)).isoformat()},
    ):
        with pytest.raises(Refused, match="Airflow has: "):
            require_same([signed], {"id-1": {**answer, **wrong}})


def report_at(offset: int) -> ParityReport:
    empty: dict[str, Any] = {
        "counts": (),
        "samples": (),
        "obstacles": (),
        "against": "ZooKeeper",
        "migration_epoch": 3,
        "leader_id": 102,
        "leader_epoch": 3,
    }
    times = {"started_at": AT, "finished_at": AT}
    return ParityReport(
        cluster="lab", verdict=Verdict.MATCH, migration_offset=offset, end_offset=offset, rounds=1, **empty, **times
    )


def test_a_gate_shows_the_report_in_the_evidence_and_not_what_an_xcom_points_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    pulled: dict[str, Any] = {}
    ti = SimpleNamespace(dag_id=DAG, run_id=RUN, xcom_pull=lambda task_ids: pulled)
    report, other = report_at(640), report_at(641)
    record_for(
        SPEC.name,
        DAG,
        RUN,
        "parity_in_hybrid",
        told({"outcome": "compared", **report.to_dict(), "offset": 640, "final": True}),
    )
    shows, run = ShowsParity("parity_in_hybrid"), run_in({"ti": ti, "params": {}}, RecordingCluster())
    assert shows(run).parity is None, "marked successful by hand, it left no value"
    pulled |= {"verdict": "MATCH", "digest": report.digest}
    summary = shows(run).parity
    assert summary is not None
    assert (summary.verdict, summary.digest, summary.offset, summary.task) == (
        "MATCH",
        report.digest,
        640,
        "parity_in_hybrid",
    )
    pulled["digest"] = other.digest
    with pytest.raises(Refused, match="is not the one that the task names"):
        shows(run)


SIMPLE = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
FAB = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"


def test_airflow_is_told_ids_where_they_are_known_and_the_gate_looks_itself_where_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = Approvals.model_validate({"users": ["ann", "bob"], "exclude_trigger": True})
    with_ids = Approvals.model_validate({"users": [{"name": "ann", "id": "3"}, {"name": "bob", "id": "7"}]})
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", SIMPLE)
    assert assigned_users(named, excluded="bob") == [{"id": "ann", "name": "ann"}]
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", FAB)
    assert assigned_users(named, excluded=None) is None
    assert assigned_users(with_ids, excluded=None) == [{"id": "3", "name": "ann"}, {"id": "7", "name": "bob"}]


def test_a_gate_that_too_few_could_sign_asks_nobody_and_names_whom_airflow_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", SIMPLE)
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "ann:admin,carl:user")
    seen = observation(Phase.ZOOKEEPER)

    def ask(**approvals: Any) -> None:
        spec = SPEC.model_copy(update={"approvals": Approvals.model_validate(approvals)})
        made = {"checks": (), "parity": None, "rollback": way_back(seen, spec), "made_at": AT, "triggered_by": "ann"}
        proof = make_proof(Gate.START, seen, spec, needed=spec.approvals.needed, **made)
        require_enough_people(spec.approvals, proof, users_of_simple_auth_manager())

    ask(users=["ann", "bob"])
    ask()
    with pytest.raises(Refused, match=r"of approvals\.users 1 can; Airflow has no user bob \(it has ann, carl\)"):
        ask(users=["ann", "bob"], needed=2)
    with pytest.raises(Refused, match=r"of approvals\.users 0 can"):
        ask(users=["ann"], exclude_trigger=True)


@pytest.mark.parametrize("signed", [True, False])
def test_what_is_left_in_zookeeper_is_not_deleted_without_a_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signed: bool
) -> None:
    """A cluster that is in ZOOKEEPER already, where leaving KRaft has only a /migration to delete."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    settled: list[str] = []

    def settle(**_: Any) -> Any:
        settled.append(SPEC.name)
        return SimpleNamespace(controller=1, deleted=(), election="")

    cluster = RecordingCluster(observation(Phase.ZOOKEEPER), answers={settle_in_zookeeper: settle})
    run = Run(Gate.ROLLBACK, *([] if signed else ["approve"])).write()
    context = {"ti": run, "params": {"approvals_needed": 1, "goal": "ZOOKEEPER"}}
    if signed:
        leave(run_in(context, cluster), parity_task="parity")
        assert settled == [SPEC.name]
    else:
        with pytest.raises(Refused, match="0 of 1 approvals"):
            leave(run_in(context, cluster), parity_task="parity")
        assert settled == []
