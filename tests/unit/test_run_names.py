"""Each run's evidence has a name of its own, and is found by what a person knows of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.store import append_record, find_run, run_name

DAG = "zk_to_kraft_migration__prod"


def leave(directory: Path, name: str, dag: str, run: str) -> None:
    append_record(directory, name, {"dag": dag, "run": run, "outcome": "approved"})


def test_no_two_runs_share_a_file() -> None:
    runs = [(DAG, "go:1"), (DAG, "go+1"), (DAG, "go_1"), (DAG, "eu__x"), (f"{DAG}__eu", "x")]
    assert len({run_name(*each) for each in runs}) == len(runs)
    assert run_name(DAG, "go:1").startswith(f"{DAG}__go_1-") and run_name(DAG, "go:1") == run_name(DAG, "go:1")


@pytest.mark.parametrize("run", ["go:1", "go+1"])
def test_a_run_is_found_by_its_name_its_id_and_its_dag_with_its_id(run: str, tmp_path: Path) -> None:
    for each in ("go:1", "go+1"):
        leave(tmp_path, run_name(DAG, each), DAG, each)
    for wanted in (run_name(DAG, run), run, f"{DAG}/{run}"):
        assert find_run(tmp_path, wanted) == run_name(DAG, run)
    with pytest.raises(RunbookError, match="is the id of 2 runs"):
        find_run(tmp_path, "go_1")


def test_a_run_is_found_by_its_id_as_the_list_writes_it(tmp_path: Path) -> None:
    leave(tmp_path, run_name(DAG, "go:1"), DAG, "go:1")
    assert find_run(tmp_path, "go_1") == find_run(tmp_path, f"{DAG}__go_1") == run_name(DAG, "go:1")
