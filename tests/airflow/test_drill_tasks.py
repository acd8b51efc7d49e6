"""The drill's tasks: nothing is stopped without its gate, and what a killed try stopped is started by whoever comes."""

from __future__ import annotations

import pytest
from acted import Acted
from airflow.sdk.exceptions import AirflowFailException
from dag_files import dags_of
from observations import SPEC, observation
from signed_run import DAG, RUN, told

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.zookeeper.depose import require_deposable
from kraft_runbook.quorum.faults import Fault, Form
from kraft_runbook.quorum.silences import CHANGES, Measured
from kraft_runbook.steps import drill
from kraft_runbook_airflow.base.journal import record_for
from lab import ROOT

DRILL = "quorum_drill__lab"
FORM = {"fault": Fault.FAILOVER.value, "broker": None, "repeats": 1, "stall_budget": 60, "seconds": 5}


@pytest.fixture
def acted(acted: Acted, monkeypatch: pytest.MonkeyPatch) -> Acted:
    acted.dags |= dags_of("quorum_drill.py", ROOT / "include" / "clusters", monkeypatch)
    acted.replace(drill._moving, lambda *_, **__: 0)
    acted.seen = observation(Phase.FINALIZED)
    acted.begin()
    return acted


def left(task: str, body: dict[str, object]) -> None:
    record_for(SPEC.name, DAG, RUN, task, told(body))


def drilled(what: str, node: int | None = None, **values: object) -> None:
    left("faults", {"outcome": "drilled", "what": what, "fault": FORM["fault"], "node_id": node, **values})


@pytest.mark.parametrize("task", ["baseline", "faults"])
def test_nothing_is_probed_or_stopped_without_the_gate(acted: Acted, task: str) -> None:
    drilled(drill.BASELINE, **Measured(5.0, {CHANGES: 0.5}, 10).to_dict())
    with pytest.raises(AirflowFailException, match="no proof is on record for gate drill"):
        acted.run(task, dag=DRILL, **FORM)
    assert acted.played == []


@pytest.mark.parametrize("task", ["mend", "faults"])
def test_what_a_killed_worker_stopped_is_started_by_the_teardown_and_by_a_cleared_task(acted: Acted, task: str) -> None:
    drilled(drill.STOPS, 102)
    if task == "faults":
        with pytest.raises(AirflowFailException, match="no baseline is on record"):
            acted.run(task, dag=DRILL, **FORM)
    else:
        assert acted.run(task, dag=DRILL, **FORM)["started"] == [102]
    assert acted.played == ["played start_node on controller-102"]
    acted.run("mend", dag=DRILL, **FORM)
    assert len(acted.played) == 1, "what runs again is left alone"


def test_a_run_that_stopped_nothing_mends_nothing(acted: Acted) -> None:
    assert acted.run("mend", dag=DRILL, **FORM) == {"started": [], "topics_deleted": 0}
    assert acted.played == []


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.FINALIZED])
def test_the_gate_s_proof_shows_what_is_stopped_and_what_clients_may_see(acted: Acted, phase: Phase) -> None:
    acted.seen = observation(phase)
    acted.replace(require_deposable, lambda *_, **__: None)
    acted.run("preflight.checks", dag=DRILL, **FORM)
    (proven,) = acted.run("gate_drill.prove", dag=DRILL, **FORM)
    (record,) = [each for each in acted.recorded() if each["outcome"] == "proven"]
    (exhibit,) = record["proof"]["exhibits"]
    assert proven["digest"] == record["digest"]
    assert exhibit["digest"] == Form.of(FORM).digest
    what = "Deletes /controller in ZooKeeper" if phase is Phase.ZOOKEEPER else "Stops node 101"
    assert what in exhibit["rendered"]
