"""Whatever DAG a task belongs to, and whatever phase the cluster shows: no host is changed without the gate's signature
or by a rehearsal, and none while another run has the cluster. A new operation's tasks join by themselves.
"""

from __future__ import annotations

import contextlib

import pytest
from acted import Acted
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from dag_files import dags_of
from observations import observation

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.hosts.ansible_runs import StepFailed
from kraft_runbook.steps import approvals
from kraft_runbook_airflow.base.node_steps import TakeStep
from lab import ROOT

PHASES = (Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED)
WHOLE_CLUSTER = (
    "leave_kraft",
    "restore_quorum",
    "restart_cut_off_brokers",
    ".active_controller_last.restart",
    "baseline",
    "faults",
)
"""The ends of the ids of tasks that change hosts and are not on one node."""
LOOKS = ("gather_host_facts", "read_metadata_logs", "read_feature_state")
"""Playbooks that change nothing."""


def every_dag(monkeypatch: pytest.MonkeyPatch) -> dict[str, DAG]:
    files = sorted(each.name for each in (ROOT / "dags").glob("*.py"))
    return {name: dag for file in files for name, dag in dags_of(file, ROOT / "include/clusters", monkeypatch).items()}


@pytest.fixture
def acted(acted: Acted, monkeypatch: pytest.MonkeyPatch) -> Acted:
    acted.dags |= every_dag(monkeypatch)
    acted.begin()
    return acted


def changing(acted: Acted) -> list[tuple[str, str]]:
    """The DAG and the id of each task that changes hosts."""
    return [
        (name, task.task_id)
        for name, dag in acted.dags.items()
        if name.endswith("__lab")
        for task in dag.tasks
        if isinstance(task, TakeStep) or task.task_id.endswith(WHOLE_CLUSTER)
    ]


def changed(acted: Acted) -> list[str]:
    return [each for each in acted.played if each.split()[1] not in LOOKS]


def test_these_are_looked_at(acted: Acted) -> None:
    dags = {dag for dag, _ in changing(acted)}
    assert {"zk_to_kraft_migration__lab", "zk_to_kraft_rollback__lab", "rolling_restart__lab"} <= dags
    assert len(changing(acted)) > 30


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("how", ["unsigned", "rehearsed", "claimed by another run"])
def test_nothing_is_changed(acted: Acted, phase: Phase, how: str) -> None:
    acted.seen = observation(phase)
    if how == "claimed by another run":
        acted.held_by = "run two"
        acted.replace(approvals.require_confirmation, lambda *_, **__: None)  # signed it is, everywhere
    for dag, task in changing(acted):
        with contextlib.suppress(AirflowFailException, StepFailed):
            acted.run(task, dag=dag, **{**acted.dags[dag].params.dump(), "dry_run": how == "rehearsed"})
        assert changed(acted) == [], f"{dag}.{task} in {phase}"
