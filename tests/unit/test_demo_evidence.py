"""The demo files its run's evidence with the workload's account in it."""

from __future__ import annotations

from pathlib import Path

from observations import SPEC

from kraft_runbook.evidence.store import append_record, run_name
from lab import demo
from lab.airflow_standalone import Airflow


def test_the_page_holds_what_the_workload_read_back(tmp_path: Path) -> None:
    airflow = Airflow(tmp_path / "airflow", "127.0.0.1", 1)
    run = "manual__2026-01-02T03:04:05+00:00"
    first = {
        "cluster": "lab",
        "dag": demo.DAG,
        "run": run,
        "task": "preflight.checks",
        "outcome": "checked",
        "phase": "ZOOKEEPER",
    }
    append_record(airflow.home / "kraft-runbook" / "evidence", run_name(demo.DAG, run), first)
    account = {"acknowledged": 114188, "lost": 0, "duplicated": 0}
    page = demo.write_evidence(airflow, SPEC, run, account, page=tmp_path / "demo-evidence.html")
    text = page.read_text()
    assert "114,188" in text or "114188" in text
    assert run in text
