"""What each task saw and did, appended to the run's evidence file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kraft_runbook.clients.evidence_store import append_record
from kraft_runbook_airflow.environment import state_directory


def run_file_name(dag_id: str, run_id: str) -> str:
    """A file name for one run: characters that a file system may not like become underscores."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", f"{dag_id}__{run_id}")


def record_for(cluster: str, dag_id: str, run_id: str, task_id: str, outcome: str, what: Mapping[str, Any]) -> None:
    """Append one record for a task of a run."""
    body = {"cluster": cluster, "task": task_id, "outcome": outcome, **what}
    append_record(state_directory() / "evidence", run_file_name(dag_id, run_id), body)


def record(context: Any, cluster: str, outcome: str, what: Mapping[str, Any]) -> None:
    """Append one record for the task that runs now."""
    ti = context["ti"]
    record_for(cluster, ti.dag_id, ti.run_id, ti.task_id, outcome, what)
