"""The wait for the copy keeps its span in the evidence, the closing report tells it from there, and provisioning
renders the size that was settled.

What is seen of the cluster is given; waits, records and reports are the project's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from in_run import run_in
from observations import SPEC, dual_writing, host, observation, tree, zookeeper
from recording import RecordingCluster

from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import (
    ClusterObservation,
    ControllerMode,
    ControllerZnode,
    CopySpan,
    HostState,
    Unread,
    was_read,
)
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.evidence.store import append_record, read_records
from kraft_runbook.migration import conditions
from kraft_runbook.migration.copy_tuning import LARGE, SMALL, Size
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.procedures.copy_size import provisioning_size
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.plays import Guard
from kraft_runbook.steps.forward import PROVISION
from kraft_runbook.steps.node_step import Look
from kraft_runbook_airflow.base import task_waits
from kraft_runbook_airflow.base.journal import run_file_name
from kraft_runbook_airflow.base.report import ClosingReport
from kraft_runbook_airflow.base.triggers import ClusterConditionTrigger

BEGAN = datetime(2026, 3, 4, 10, 0, 0, tzinfo=UTC)
SPAN = CopySpan(BEGAN, BEGAN + timedelta(seconds=36.9), 260_000)
DAG, RUN = "d", "r"


def copied(span: CopySpan | None) -> ClusterObservation:
    seen = observation(Phase.HYBRID)
    assert was_read(seen.quorum)
    return replace(seen, quorum=replace(seen.quorum, copy=span))


class Evidence:
    """One run's, in a state directory of its own."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.patch = monkeypatch
        monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(directory))
        monkeypatch.delenv("KRAFT_RUNBOOK_EVIDENCE", raising=False)
        append_record(directory / "evidence", run_file_name(DAG, RUN), {"outcome": "began"})

    def last(self) -> dict[str, Any]:
        return dict(read_records(self.directory / "evidence", run_file_name(DAG, RUN))[-1].body)

    def wait(self, condition: Condition, seen: ClusterObservation) -> dict[str, Any]:
        """The record of a wait that the triggerer makes on a cluster which looks so, and goes on."""
        spec = SPEC.model_copy(update={"deadlines": SPEC.deadlines.model_copy(update={"poll": 0.0})})
        looks = (dual_writing(seen, 4 * number) for number in range(100))
        self.patch.setattr(task_waits, "hand", lambda *_, **__: RecordingCluster(*looks, spec=spec))
        trigger = ClusterConditionTrigger("lab", condition.name, None, 60.0, "false", None, "", "migration")
        trigger.task_instance = SimpleNamespace(id="1", dag_id=DAG, run_id=RUN, task_id="t")  # type: ignore[assignment]

        async def run() -> None:
            async for _ in trigger.run():
                pass

        asyncio.run(run())
        assert self.last()["outcome"] == "reached"
        return self.last()

    def close(self) -> tuple[dict[str, Any], str]:
        """What the closing report of a run that stopped in HYBRID records and says."""
        said: list[str] = []
        task = ClosingReport(task_id="closing_report", cluster="lab", operation=MIGRATION, goal=Phase.FINALIZED)
        say = lambda *given: said.append(str(given[-1]))  # noqa: E731 - one word for both
        self.patch.setattr(type(task), "log", SimpleNamespace(info=say, warning=say))
        ti = SimpleNamespace(
            dag_id=DAG, run_id=RUN, task_id="closing_report", get_task_states=lambda *_, **__: {RUN: {}}
        )
        with pytest.raises(AirflowFailException):
            context = {"ti": ti, "params": {}}
            task.act(context, run_in(context, RecordingCluster(observation(Phase.HYBRID))))
        return self.last(), "\n".join(said)


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evidence:
    return Evidence(tmp_path, monkeypatch)


def test_the_wait_for_the_copy_keeps_its_span_and_no_other_wait_does(evidence: Evidence) -> None:
    kept = evidence.wait(conditions.METADATA_COPIED, copied(SPAN))["copy"]
    assert (kept["seconds"], kept["records"], kept["began_at"], kept["ended_at"]) == (
        36.9,
        260_000,
        str(SPAN.began_at),
        str(SPAN.ended_at),
    )
    assert "copy" not in evidence.wait(conditions.METADATA_COPIED, copied(None))
    assert "copy" not in evidence.wait(conditions.QUORUM_READY, copied(SPAN))


def test_the_closing_report_says_how_long_the_copy_took(evidence: Evidence) -> None:
    evidence.wait(conditions.METADATA_COPIED, copied(SPAN))
    closed, said = evidence.close()
    assert "The metadata copy took 36.9 s (260,000 records, 7,046 a second, 2026-03-04 10:00:00 to 10:00:36 UTC" in said
    assert closed["copy"] in said


def test_a_run_that_copied_nothing_does_not_speak_of_it(evidence: Evidence) -> None:
    evidence.wait(conditions.QUORUM_READY, copied(SPAN))
    closed, said = evidence.close()
    assert "copy" not in closed and "The metadata's copy" not in said


def files_of(size: Size, controllers: Iterable[int]) -> dict[int, HostState]:
    """The hosts of these controllers hold a file of this size; the others none."""
    files = {
        i: controller_properties(SPEC, SPEC.controller(i), ControllerMode.MIGRATION, also=size.properties)
        if i in controllers
        else None
        for i in SPEC.controller_ids
    }
    return {i: replace(host(SPEC, i, None), config=files[i]) for i in SPEC.controller_ids}


@pytest.mark.parametrize(
    ("settled", "partitions", "size"),
    [
        ((LARGE, (101,)), 44, LARGE),
        ((SMALL, (101, 103)), 200_000, SMALL),
        ((SMALL, ()), 200_000, LARGE),
        ((SMALL, ()), 44, SMALL),
    ],
)
def test_provisioning_renders_the_size_that_was_settled_or_else_is_counted(
    settled: tuple[Size, tuple[int, ...]], partitions: int, size: Size
) -> None:
    """Down to the file that ansible is told to write."""
    hosts, seen = files_of(*settled), observation(Phase.ZOOKEEPER)
    sized = partial(
        provisioning_size,
        SPEC,
        secrets=lambda _: "",
        gather=lambda *_, **__: hosts,
        look=lambda *_, **__: tree(partitions=partitions)(seen),
    )
    cluster = RecordingCluster(answers={provisioning_size: sized})
    told = PROVISION.play(Look(cluster, 102, seen, detect_phase(seen)))
    rendered = controller_properties(SPEC, SPEC.controller(102), ControllerMode.MIGRATION, also=size.properties)
    assert (told.playbook, told.node_id, told.variables["properties"]) == ("provision_controller", 102, rendered)


NO_QUORUM = Unread("no controller runs")


@pytest.mark.parametrize(
    ("quorum", "kraft_epoch", "guard"),
    [
        (NO_QUORUM, -1, Guard.ANEW),
        (NO_QUORUM, 3, Guard.PROVISIONING),
        (None, -1, Guard.PROVISIONING),
    ],
)
def test_without_a_quorum_under_a_zookeeper_controller_no_log_of_a_former_migration_is_started(
    quorum: Unread | None, kraft_epoch: int, guard: Guard
) -> None:
    """Whatever approval the run has: somebody may have cleared this task after another run's rollback."""
    seen = zookeeper(controller=ControllerZnode(1, kraft_epoch))(observation(Phase.PRE_MIGRATION))
    seen = replace(seen, quorum=quorum) if quorum else seen
    cluster = RecordingCluster(answers={provisioning_size: lambda *_, **__: SMALL})
    told = PROVISION.play(Look(cluster, 102, seen, detect_phase(seen)))
    assert (told.guard, "refuses_former_copy" in told.variables) == (guard, guard is Guard.ANEW)
