"""Evidence is append-only: whatever was changed afterwards is found."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.record import FIRST, EvidenceRecord, find_break, make_record
from kraft_runbook.evidence.store import append_record, read_records

AT = datetime(2026, 1, 2, tzinfo=UTC)


def chain(*bodies: dict[str, object]) -> tuple[EvidenceRecord, ...]:
    records: list[EvidenceRecord] = []
    for body in bodies:
        records.append(make_record(records[-1] if records else None, body, at=AT))
    return tuple(records)


def test_records_are_chained_and_survive_their_line() -> None:
    first, second = chain({"a": 1}, {"b": {"c": [1, 2]}, "at": AT})
    assert (first.sequence, first.previous, second.sequence, second.previous) == (0, FIRST, 1, first.digest)
    assert EvidenceRecord.from_line(second.to_line()) == second
    assert second.body["at"] == str(AT)
    assert find_break((first, second)) is None


def test_an_altered_removed_or_reordered_record_is_found() -> None:
    a, b, c = chain({"n": 1}, {"n": 2}, {"n": 3})
    assert str(find_break((a, replace(b, body={"n": 9}), c))) == "record 1 was altered after it was written"
    for others, place in (((a, c), 1), ((b, a, c), 0), ((b, c), 0), ((a, b, b), 2)):
        found = find_break(others)
        assert found is not None and found.place == place
        assert "does not follow the one before it" in found.problem


def test_appending_keeps_what_is_there_and_reads_it_back(tmp_path: Path) -> None:
    directory = tmp_path / "evidence"
    written = [append_record(directory, "run-1", {"n": n}) for n in range(5)]
    assert read_records(directory, "run-1") == tuple(written)
    assert read_records(directory, "run-2") == ()


def test_two_writers_of_one_run_do_not_break_the_chain(tmp_path: Path) -> None:
    threads = [
        threading.Thread(target=lambda w=w: [append_record(tmp_path, "run", {"w": w, "n": n}) for n in range(20)])
        for w in range(4)
    ]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_records(tmp_path, "run")) == 80


def test_a_line_that_a_crash_cut_off_is_dropped_and_written_over(tmp_path: Path) -> None:
    append_record(tmp_path, "run", {"n": 0})
    with (tmp_path / "run.jsonl").open("a") as stream:
        stream.write('{"sequence": 1, "bo')
    assert len(read_records(tmp_path, "run")) == 1
    append_record(tmp_path, "run", {"n": 1})
    assert [r.body["n"] for r in read_records(tmp_path, "run")] == [0, 1]


def test_an_altered_file_is_not_trusted(tmp_path: Path) -> None:
    append_record(tmp_path, "run", {"verdict": "MISMATCH"})
    append_record(tmp_path, "run", {"n": 1})
    path = tmp_path / "run.jsonl"
    path.write_text(path.read_text().replace("MISMATCH", "MATCH"))
    with pytest.raises(RunbookError, match="record 0 was altered"):
        read_records(tmp_path, "run")


@pytest.mark.parametrize("line", ["[]", "{}", "nonsense", json.dumps({"sequence": 0})])
def test_a_line_that_is_no_record_is_an_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "run.jsonl").write_text(line + "\n")
    with pytest.raises(RunbookError, match="no evidence record"):
        read_records(tmp_path, "run")
    with pytest.raises(RunbookError, match="no evidence record"):
        append_record(tmp_path, "run", {})


@pytest.mark.parametrize("run", ["../escape", "", "a/b", ".hidden", f"x{os.sep}y"])
def test_a_run_can_not_name_a_file_elsewhere(tmp_path: Path, run: str) -> None:
    with pytest.raises(ValueError, match="evidence file"):
        append_record(tmp_path, run, {})
