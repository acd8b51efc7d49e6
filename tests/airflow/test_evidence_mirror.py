"""A copy of the evidence in an object store, through Airflow's own ObjectStoragePath."""

from __future__ import annotations

import logging
import uuid
from types import SimpleNamespace

import pytest
from airflow.sdk import ObjectStoragePath
from airflow.sdk.io import attach
from fsspec.implementations.memory import MemoryFileSystem

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.kinds import Began, TaskFailed
from kraft_runbook.evidence.mirror import NotMirrored
from kraft_runbook.evidence.store import inspect_run, read_records, run_name
from kraft_runbook_airflow.base.evidence_mirror import mirror
from kraft_runbook_airflow.base.journal import record, record_for, records_of, require_mirrored

RUN = run_name("dag", "run:1")
CONTEXT = {"ti": SimpleNamespace(dag_id="dag", run_id="run:1", task_id="group.task")}


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path, monkeypatch):
    """A store that is set, with nothing in it."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path / "state"))
    url = f"file://{tmp_path}/store" if request.param == "file" else f"memory://{uuid.uuid4().hex}/prefix"
    monkeypatch.setenv("KRAFT_RUNBOOK_EVIDENCE", url)
    attach("memory", fs=MemoryFileSystem())
    return ObjectStoragePath(url)


@pytest.fixture
def here(tmp_path):
    return tmp_path / "state" / "evidence"


def write(count: int) -> None:
    for n in range(count):
        record(CONTEXT, "lab", Began(dry_run=False, host=f"worker-{n}"))


def held(store) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in (store / RUN).iterdir()}


def no_route(self, path, data):
    raise ConnectionError("no route to the store")


def test_each_record_becomes_one_object_named_by_its_place_and_digest(store, here):
    write(3)
    records = read_records(here, RUN)
    assert held(store) == {f"{r.sequence:06d}-{r.digest}.json": r.to_line().encode() + b"\n" for r in records}
    assert records[0].body == {
        "cluster": "lab",
        "dag": "dag",
        "run": "run:1",
        "task": "group.task",
        "outcome": "began",
        "dry_run": False,
        "host": "worker-0",
    }


def test_what_is_there_is_not_written_again(store, here, monkeypatch):
    write(3)
    written = []
    files = type(store.fs)
    put = files.pipe_file
    monkeypatch.setattr(
        files, "pipe_file", lambda self, path, data: (written.append(path.rpartition("/")[2]), put(self, path, data))[1]
    )
    write(1)
    assert written == [f"000003-{read_records(here, RUN)[3].digest}.json"]
    assert mirror(here, RUN) == 0


def test_a_store_that_failed_gets_later_what_it_lacks(store, here, monkeypatch, caplog):
    write(1)
    with monkeypatch.context() as broken:
        broken.setattr(type(store.fs), "pipe_file", no_route)
        with caplog.at_level(logging.ERROR):
            write(2)
        with pytest.raises(NotMirrored, match="no route to the store"):
            require_mirrored(CONTEXT)
    assert "no route to the store" in caplog.text and "safe in the run's file" in caplog.text
    assert len(read_records(here, RUN)) == 3
    assert len(held(store)) == 1
    write(1)
    assert sorted(name[:6] for name in held(store)) == ["000000", "000001", "000002", "000003"]
    require_mirrored(CONTEXT)


def test_a_write_that_was_cut_off_is_completed(store, here):
    write(2)
    name = f"000001-{read_records(here, RUN)[1].digest}.json"
    whole = held(store)[name]
    (store / RUN / name).write_bytes(whole[:20])
    assert mirror(here, RUN) == 1
    assert held(store)[name] == whole


def test_a_tail_cut_off_here_is_found_by_the_next_record(store, here, caplog):
    write(3)
    file = here / f"{RUN}.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:1]))
    with caplog.at_level(logging.ERROR):
        write(1)
    assert "cut off or altered after they were copied" in caplog.text
    assert len(held(store)) == 3
    with pytest.raises(NotMirrored, match="000001-"):
        require_mirrored(CONTEXT)


def test_a_file_written_anew_with_a_chain_that_fits_is_found(store, here):
    write(2)
    (here / f"{RUN}.jsonl").unlink()
    write(2)
    assert inspect_run(here, RUN).broken is None
    with pytest.raises(NotMirrored, match="cut off or altered"):
        require_mirrored(CONTEXT)


def test_the_copy_alone_is_evidence(store, here, tmp_path):
    write(3)
    copy = tmp_path / "copy" / RUN
    copy.mkdir(parents=True)
    for name, content in held(store).items():
        (copy / name).write_bytes(content)
    found = inspect_run(copy.parent, RUN)
    assert (found.records, found.broken) == (read_records(here, RUN), None)


def test_each_digest_stands_in_the_tasks_log(store, here, caplog):
    with caplog.at_level(logging.INFO):
        written = record(CONTEXT, "lab", TaskFailed(error="it broke"))
    assert f"Evidence record 0 (failed), digest {written.digest}" in caplog.text


@pytest.mark.parametrize("url", ["nosuch://bucket/x", "s3://conn@bucket/x"])
def test_a_store_that_can_not_be_used_loses_no_record_and_says_so(tmp_path, monkeypatch, caplog, url):
    """s3fs is not installed here: an operator who forgot it sees this."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    monkeypatch.setenv("KRAFT_RUNBOOK_EVIDENCE", url)
    with caplog.at_level(logging.ERROR):
        write(1)
    assert "could not be copied" in caplog.text
    assert len(records_of(CONTEXT)) == 1
    with pytest.raises(NotMirrored):
        require_mirrored(CONTEXT)


def test_a_password_in_the_url_is_refused_and_not_repeated(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    monkeypatch.setenv("KRAFT_RUNBOOK_EVIDENCE", "s3://key:planted-secret@bucket/x")
    with caplog.at_level(logging.DEBUG):
        write(1)
    with pytest.raises(NotMirrored, match="name an Airflow connection"):
        require_mirrored(CONTEXT)
    assert "holds a password" in caplog.text
    assert "planted-secret" not in caplog.text


def test_a_directory_is_written_directly_and_needs_no_store(tmp_path, monkeypatch):
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KRAFT_RUNBOOK_EVIDENCE", str(tmp_path / "kept"))
    write(2)
    require_mirrored(CONTEXT)
    assert [each.name for each in (tmp_path / "kept").iterdir()] == [f"{RUN}.jsonl"]
    assert not (tmp_path / "state" / "evidence").exists()


def test_an_altered_file_stops_no_step_but_every_reader(store, here, caplog):
    write(2)
    file = here / f"{RUN}.jsonl"
    file.write_text(file.read_text().replace("worker-0", "worker-7"))
    with caplog.at_level(logging.ERROR):
        record_for("lab", "dag", "run:1", "t", TaskFailed(error="it broke"))
    assert "record 0 was altered" in caplog.text
    with pytest.raises(RunbookError, match="record 0 was altered"):
        records_of(CONTEXT)
