"""Evidence on disk: one JSON-lines file a run, appended under a lock and synced before the call returns."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from io import BufferedRandom
from pathlib import Path
from typing import Any

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence import EvidenceRecord, broken_link, make_record


def append_record(directory: Path, run: str, body: Mapping[str, Any]) -> EvidenceRecord:
    """Append one record to ``<directory>/<run>.jsonl`` and return it. Two processes may append to one run at once.

    A last line that a crash cut off is removed first: its write never returned. Raises RunbookError where a whole record is unreadable.
    """
    path = _file(directory, run)
    directory.mkdir(parents=True, exist_ok=True)
    created = not path.exists()
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o640), "r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        last = _end_at_a_whole_line(stream, path)
        record = make_record(last, body, at=datetime.now(UTC))
        stream.write(record.to_line().encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    if created:
        _sync_directory(directory)
    return record


def read_records(directory: Path, run: str) -> tuple[EvidenceRecord, ...]:
    """The records of a run, in order; none where it has no file. Raises RunbookError when the chain is broken."""
    path = _file(directory, run)
    if not path.is_file():
        return ()
    whole = path.read_bytes().rpartition(b"\n")[0]
    records = tuple(_parse(line, path) for line in whole.splitlines())
    broken = broken_link(records)
    if broken:
        raise RunbookError(f"the evidence in {path} can't be trusted: {broken}", way_out="keep the file for an inquiry, and start the run anew")
    return records


def _file(directory: Path, run: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*", run):
        raise ValueError(f"{run!r} can't name an evidence file")
    return directory / f"{run}.jsonl"


def _end_at_a_whole_line(stream: BufferedRandom, path: Path) -> EvidenceRecord | None:
    """Cut an unfinished last line, leave the stream at its end, and give the last record."""
    content = stream.read()
    whole = content[: content.rfind(b"\n") + 1]
    stream.truncate(len(whole))
    stream.seek(len(whole))
    lines = whole.splitlines()
    return _parse(lines[-1], path) if lines else None


def _parse(line: bytes, path: Path) -> EvidenceRecord:
    try:
        return EvidenceRecord.from_line(line.decode())
    except ValueError as error:
        raise RunbookError(f"{path} holds a line that is no evidence record: {error}", way_out="keep the file for an inquiry, and start the run anew") from None


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
