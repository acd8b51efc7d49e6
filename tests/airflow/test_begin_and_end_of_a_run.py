"""The first tasks of a run, and its last: who has the cluster, what stops a run before it begins, what its end says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from acted import BACK, FORWARD, Acted
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.comms import DagRunResult
from observations import WHY, Spoil, broker, observation, on_host, part

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.cluster_claim import Claim, RunState
from kraft_runbook_airflow.base.claims import run_state, tasks_are_over

CLAIM = {FORWARD: "preflight.claim_cluster", BACK: "plan.claim_cluster"}
CHECKS = "preflight.checks"
HELD = Claim(
    "zk_to_kraft_migration__lab", "one", "2026-03-04T09:00:00+00:00", "host-a", datetime(2026, 3, 4, 12, tzinfo=UTC)
)
each_dag = pytest.mark.parametrize("dag", [FORWARD, BACK])


@pytest.fixture
def begun(acted: Acted) -> Acted:
    acted.begin()
    return acted


@each_dag
def test_a_run_begins_with_the_claim(acted: Acted, dag: str) -> None:
    acted.run(CLAIM[dag], dag=dag)
    assert acted.did == ["claimed"]
    assert acted.acting == [CLAIM[dag], ""], "the claim says which task acts, and after it that the run waits"
    assert acted.outcomes(CLAIM[dag]) == ["began"]


@each_dag
def test_a_rehearsal_claims_nothing_and_goes_on_beside_a_run(acted: Acted, dag: str) -> None:
    acted.held_by = "run two"
    acted.run(CLAIM[dag], dag=dag, dry_run=True)
    assert acted.did == []


@each_dag
def test_a_run_that_can_t_have_the_cluster_ends_there(acted: Acted, dag: str) -> None:
    acted.held_by = "run two"
    with pytest.raises(AirflowFailException, match="is being changed by run two"):
        acted.run(CLAIM[dag], dag=dag)
    assert acted.outcomes(CLAIM[dag]) == ["began", "refused"]


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED])
def test_no_claim_no_step_where_zookeeper_can_t_be_asked(acted: Acted, phase: Phase) -> None:
    acted.seen, acted.held_by = observation(phase), Unreachable("no answer in 10 s", way_out="start ZooKeeper")
    with pytest.raises(AirflowFailException, match="no answer in 10 s"):
        acted.run(CLAIM[FORWARD])


def test_a_healthy_cluster_passes_the_preflight(begun: Acted) -> None:
    begun.seen = observation(Phase.ZOOKEEPER)
    assert begun.run(CHECKS)["phase"] == "ZOOKEEPER"
    assert begun.outcomes(CHECKS) == ["checked"]


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (broker(2, running=False), "KRB-PRE-004"),
        (broker(2, running=WHY), "KRB-PRE-004"),
        (on_host(1, config=WHY), "046"),
    ],
)
def test_what_blocks_or_can_t_be_answered_stops_the_run(begun: Acted, spoil: Spoil, code: str) -> None:
    begun.seen = spoil(observation(Phase.ZOOKEEPER))
    with pytest.raises(AirflowFailException, match=code):
        begun.run(CHECKS)
    assert begun.outcomes(CHECKS) == ["checked", "refused"]


@pytest.mark.parametrize("task", [CHECKS, "closing_report"])
def test_a_run_does_not_begin_or_end_well_without_its_evidence_store(
    begun: Acted, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun.seen = observation(Phase.ZOOKEEPER if task == CHECKS else Phase.FINALIZED)
    (tmp_path / "a_file").touch()
    monkeypatch.setenv("KRAFT_RUNBOOK_EVIDENCE", f"file://{tmp_path}/a_file/store")
    with pytest.raises(AirflowFailException, match="a_file/store"):
        begun.run(task)


@pytest.mark.parametrize(
    ("known", "state", "run_after", "expected"),
    [
        (1, "running", HELD.run_after, RunState.ACTIVE),
        (1, "queued", HELD.run_after, RunState.ACTIVE),
        (1, "failed", HELD.run_after, RunState.ENDED),
        (1, "success", HELD.run_after, RunState.ENDED),
        (1, "failed", "2026-03-04T09:00:01+00:00", RunState.UNKNOWN),
        (0, "failed", HELD.run_after, RunState.UNKNOWN),
    ],
)
def test_what_airflow_knows_of_the_run_that_has_the_cluster(
    known: int, state: str, run_after: str, expected: RunState
) -> None:
    """A run of the same name that was made at another time is another Airflow's; one that it does not know, too."""
    at = datetime.fromisoformat(run_after)
    answer = DagRunResult.model_construct(dag_id=HELD.dag_id, run_id=HELD.run_id, run_after=at, state=state)
    assert run_state(SimpleNamespace(get_dr_count=lambda **_: known), HELD, ask=lambda _: answer) is expected


@pytest.mark.parametrize(
    ("states", "over"),
    [
        ({"commit": "failed"}, True),
        ({"commit": "success", "fence": None}, True),
        ({"commit": "deferred", "fence": "up_for_retry"}, True),
        ({"commit": "running"}, False),
        ({"commit": "failed", "fence": "restarting"}, False),
        ({"fence": "failed"}, False),
        ({}, False),
    ],
)
def test_a_task_that_a_claim_names_is_over_only_where_airflow_says_so_of_each(
    states: dict[str, str | None], over: bool
) -> None:
    asked = replace(HELD, acting="commit fence" if "fence" in states else "commit")
    ti = SimpleNamespace(get_task_states=lambda **_: {HELD.run_id: states} if states else {})
    assert tasks_are_over(ti, asked) is over


# -- the end -----------------------------------------------------------------------------------------------------------


def test_a_run_that_came_to_its_goal_says_so_and_gives_the_claim_back(begun: Acted) -> None:
    begun.seen = observation(Phase.FINALIZED)
    assert begun.run("closing_report")["phase"] == "FINALIZED"
    assert begun.did == ["gave the claim back"]


@pytest.mark.parametrize(
    ("phase", "states"),
    [
        (Phase.FINALIZED, {"soak": "failed"}),
        (Phase.FINALIZED, {"soak": "upstream_failed"}),
        (Phase.DUAL_WRITE, {}),
    ],
    ids=["a task failed", "a task did not run", "it is elsewhere"],
)
def test_a_run_that_stopped_fails_and_gives_the_claim_back(begun: Acted, phase: Phase, states: dict[str, str]) -> None:
    begun.seen, begun.states = observation(phase), states
    with pytest.raises(AirflowFailException, match=f"the run stopped in {phase}"):
        begun.run("closing_report")
    assert begun.did == ["gave the claim back"]
    (closed,) = (each for each in begun.recorded() if each["outcome"] == "closed")
    assert closed["succeeded"] is False


@pytest.mark.parametrize("state", ["running", "queued", "deferred", "awaiting_input"])
def test_the_claim_is_kept_while_a_task_of_the_run_goes_on(begun: Acted, state: str) -> None:
    """Marked as failed by hand, a later task brings the report while an earlier one still restarts a broker: another
    run could begin beside it.
    """
    begun.seen = observation(Phase.PRE_MIGRATION)
    begun.states = {
        "roll_brokers_to_hybrid.broker_1.restart": state,
        "roll_brokers_to_hybrid.broker_3.restart": "failed",
    }
    with pytest.raises(AirflowFailException, match="the run stopped in PRE_MIGRATION"):
        begun.run("closing_report")
    assert begun.did == []


def test_a_rehearsal_gives_back_nothing(begun: Acted) -> None:
    begun.seen = part(zookeeper=WHY)(observation(Phase.ZOOKEEPER))
    begun.run("closing_report", dry_run=True)
    assert begun.did == []


def test_a_rehearsal_s_last_task_lists_each_task_once_though_it_was_cleared(
    begun: Acted, capsys: pytest.CaptureFixture[str]
) -> None:
    begun.seen = observation(Phase.ZOOKEEPER)
    for controller in (101, 102, 101):
        begun.run(f"provision_controllers.controller_{controller}.provision", dry_run=True)
    begun.run("closing_report", dry_run=True)
    said = capsys.readouterr().out
    assert (
        "1. play provision_controller on node 101\n2. play provision_controller on node 102" in said
        and "3. play" not in said
    )


def test_what_a_host_that_does_not_share_the_state_lists_of_a_rehearsal_is_not_nothing(
    acted: Acted, capsys: pytest.CaptureFixture[str]
) -> None:
    acted.run("closing_report", dry_run=True)
    assert "not known: this host holds nothing of the run" in capsys.readouterr().out


def test_a_task_on_a_host_that_does_not_share_the_state_refuses_before_it_looks(acted: Acted) -> None:
    acted.seen = lambda: pytest.fail("it looked")
    for task in (CHECKS, "gate_start.prove", "provision_controllers.controller_101.provision", "parity_in_hybrid"):
        with pytest.raises(AirflowFailException, match="the state directory is not shared"):
            acted.run(task)
    assert acted.did == []


def test_so_does_the_soak(acted: Acted) -> None:
    acted.seen = lambda: pytest.fail("it looked")
    with pytest.raises(AirflowFailException, match="the state directory is not shared"):
        acted.run("soak", soak_minutes=1)
