"""One writer for the project's own files: whole or not at all, each writer with a draft of its own."""

from __future__ import annotations

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kraft_runbook.io.private_file import ABANDONED_SECONDS, private_file, write_private


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_two_writers_at_once_never_publish_a_half_written_file(tmp_path: Path) -> None:
    file = tmp_path / "state"
    with private_file(file) as first:
        first.write(b"first, its first half; ")
        first.flush()
        with private_file(file) as second:
            second.write(b"second, whole")
        assert file.read_bytes() == b"second, whole"
        first.write(b"and its second")
    assert file.read_bytes() == b"first, its first half; and its second"
    assert names(tmp_path) == ["state"]


def test_many_writers_leave_one_whole_text(tmp_path: Path) -> None:
    file = tmp_path / "state"
    texts = [str(i) * 5000 for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_private(file, text, durable=False), texts * 20))
    assert file.read_text() in texts
    assert names(tmp_path) == ["state"]


def test_an_error_while_writing_leaves_what_was_there_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "state"
    write_private(file, "before")
    with pytest.raises(ValueError, match="broken"), private_file(file) as stream:
        stream.write(b"half")
        raise ValueError("broken")
    assert file.read_text() == "before"
    assert names(tmp_path) == ["state"]


def test_only_its_owner_reads_it_and_the_directories_made_for_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = tmp_path / "state" / "proofs" / "one.json"
        write_private(file, "{}")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]


def test_the_draft_of_a_killed_writer_goes_with_the_next_writing_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    file = tmp_path / "state"
    killed, living = tmp_path / ".state.a1b2.new", tmp_path / ".state.c3d4.new"
    other = tmp_path / ".state-of-another.e5f6.new"
    for draft in (killed, living, other):
        draft.write_text("half")
    long_ago = time.time() - ABANDONED_SECONDS - 60
    os.utime(killed, (long_ago, long_ago))
    write_private(file, "whole")
    assert names(tmp_path) == [".state-of-another.e5f6.new", ".state.c3d4.new", "state"]
