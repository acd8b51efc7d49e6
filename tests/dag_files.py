"""The DAGs of this project's DAG files, as Airflow makes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from lab import ROOT


def dags_of(file: str, clusters: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, DAG]:
    """The DAGs that a file defines, by their ids, for the cluster files in that directory."""
    monkeypatch.setenv("KRAFT_RUNBOOK_CLUSTERS", str(clusters))
    bag = DagBag(dag_folder=str(ROOT / "dags" / file), collect_dags=True)
    assert not bag.import_errors, bag.import_errors
    return bag.dags
