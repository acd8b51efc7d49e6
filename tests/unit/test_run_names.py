"""Each run's evidence has a name of its own, and is found by what a person knows of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.store import append_record, find_run, read_records, run_name, run_name_in

DAG = "zk_to_kraft_migration__prod"


def leave(directory: Path, name: str, dag: str, run: str) -> None:
    append_record(directory, name, {"dag": dag, "run": run, "outcome": "approved"})


def test_no_two_runs_share_a_file() -> None:
    runs = [(DAG, "go:1"), (DAG, "go+1"), (DAG, "go_1"), (DAG, "eu__x"), (f"{DAG}__eu", "x")]
    assert len({run_name(*each) for each in runs}) == len(runs)
    assert run_name(DAG, "go:1").startswith(f"{DAG}__go_1-") and run_name(DAG, "go:1") == run_name(DAG, "go:1")


def test_a_run_that_began_under_the_former_name_goes_on_with_it_and_no_other_run_does(tmp_path: Path) -> None:
    leave(tmp_path, f"{DAG}__go_1", DAG, "go:1")
    assert run_name_in(tmp_path, DAG, "go:1") == f"{DAG}__go_1"
    for other in ((DAG, "go+1"), (DAG, "go_1"), ("zk_to_kraft_migration", "prod__go_1")):
        assert run_name_in(tmp_path, *other) == run_name(*other)
        assert read_records(tmp_path, run_name_in(tmp_path, *other)) == ()


def test_a_former_file_that_two_runs_wrote_counts_for_neither(tmp_path: Path) -> None:
    for run in ("go:1", "go+1"):
        leave(tmp_path, f"{DAG}__go_1", DAG, run)
    assert all(run_name_in(tmp_path, DAG, run) == run_name(DAG, run) for run in ("go:1", "go+1"))


def test_an_altered_former_file_is_still_read_and_found_out(tmp_path: Path) -> None:
    for _ in range(2):
        leave(tmp_path, f"{DAG}__go_1", DAG, "go:1")
    file = tmp_path / f"{DAG}__go_1.jsonl"
    file.write_text(file.read_text().replace("approved", "refused", 1))
    with pytest.raises(RunbookError, match="can't be trusted"):
        read_records(tmp_path, run_name_in(tmp_path, DAG, "go:1"))


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


def test_the_former_file_of_another_run_is_not_taken_for_this_one(tmp_path: Path) -> None:
    leave(tmp_path, f"{DAG}__go_1", DAG, "go:1")
    leave(tmp_path, run_name(DAG, "go+1"), DAG, "go+1")
    assert find_run(tmp_path, f"{DAG}/go+1") == run_name(DAG, "go+1")
    assert find_run(tmp_path, f"{DAG}/go:1") == f"{DAG}__go_1"
