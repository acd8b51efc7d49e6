"""Scheduled rehearsals by their DAG: a real Airflow, nobody who signs, and a verdict on record."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import by_hand
import pytest
import yaml
from labs import Lab
from stage import ENDED, Stage, a_stage, process_of_task

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.evidence.rehearsal_record import OnRecord
from kraft_runbook.evidence.rehearsals import last_rehearsal
from kraft_runbook.evidence.store import evidence_directory, run_name
from kraft_runbook.io.local.remains import remains
from kraft_runbook.procedures.throwaway_place import own_directory
from kraft_runbook.rehearsal.verdict import WHOLE
from lab import ROOT
from lab.trial import free_network

CANARY = "canary_migration__lab"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Where the throwaway lives: a short path, outside what pytest keeps."""
    made = Path(tempfile.mkdtemp(prefix="krb-c"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def stage(quiet_lab: Lab, place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """An Airflow whose cluster file says: every day at this minute. A rehearsal reads ZooKeeper alone."""
    clusters = tmp_path_factory.mktemp("clusters")
    document = yaml.safe_load((ROOT / "include" / "clusters" / "lab.yaml").read_text())
    document["rehearsal"] = {
        "schedule": f"{datetime.now(UTC):%M %H} * * *",
        "directory": str(place),
        "network": free_network(),
    }
    text = yaml.safe_dump(document, sort_keys=False).replace("${PROJECT_ROOT}", str(ROOT))
    (clusters / "lab.yaml").write_text(text)
    with a_stage(quiet_lab, tmp_path_factory.mktemp("airflow"), clusters=clusters) as opened:
        yield opened


def throwaway(place: Path) -> Path:
    return own_directory(Rehearsal(directory=str(place)), "lab")


@pytest.mark.long
def test_the_schedule_performs_the_whole_ladder_and_the_verdict_is_on_record(stage: Stage, place: Path) -> None:
    stage.client.wait_for_dag(CANARY)  # and takes its pause away: Airflow begins a slot that was missed lately
    by_hand.wait_until("the scheduler made a run", lambda: bool(stage.client.runs(CANARY)), within=120)
    (run,) = stage.client.runs(CANARY)
    assert run.startswith("scheduled__")
    ended = stage.wait(CANARY, run, "rehearse", ENDED, deadline=1500)
    assert ended == "success", stage.failures(CANARY, run)
    assert stage.wait(CANARY, run, "remove_throwaway", {"success", "failed"}) == "success"
    home = evidence_directory({"KRAFT_RUNBOOK_STATE": str(stage.airflow.home / "kraft-runbook")})
    last = last_rehearsal(home, "lab", now=datetime.now(UTC))
    assert isinstance(last, OnRecord) and last.run == run_name(CANARY, run)
    assert (last.told.verdict, last.told.reasons, last.told.rungs) == ("PASSED", (), tuple(e.value for e in WHOLE))
    assert not remains(throwaway(place)) and not throwaway(place).exists()


@pytest.mark.long
def test_a_rehearsal_whose_worker_was_killed_is_cleaned_up_and_its_run_failed(stage: Stage, place: Path) -> None:
    run = stage.start(CANARY, short=True)
    stage.wait(CANARY, run, "rehearse", {"running"})
    by_hand.wait_until(
        "ZooKeeper and both seats run",
        lambda: sum("/kafka/" in each.command for each in remains(throwaway(place))) >= 3,
        within=240,
    )
    os.kill(process_of_task(stage, stage.task(CANARY, run, "rehearse")["id"]), signal.SIGKILL)
    assert stage.wait(CANARY, run, "rehearse", {"failed"}) == "failed"
    assert stage.wait(CANARY, run, "remove_throwaway", {"success", "failed"}) == "success"
    assert not remains(throwaway(place)) and not throwaway(place).exists()
    by_hand.wait_until("the run failed", lambda: stage.client.run_state(CANARY, run) == "failed", within=60)
