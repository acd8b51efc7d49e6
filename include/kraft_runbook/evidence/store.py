"""Evidence on disk: one JSON-lines file a run, appended under a lock and synced before the call returns."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedRandom
from pathlib import Path
from typing import Any

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.record import Break, EvidenceRecord, find_break, make_record
from kraft_runbook.io.private_file import sync_directory

log = logging.getLogger(__name__)
DIGEST_LENGTH = 16
"""Hexadecimal digits of the digest in a run's name."""
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.\-]*"
WAY_OUT = "keep the file for an inquiry, and trigger a new run"


def evidence_directory(environment: Mapping[str, str]) -> Path:
    """The directory of the runs' files: ``KRAFT_RUNBOOK_EVIDENCE`` if that is a directory, else ``evidence`` in the
    state directory.

    If it is a URL, an object store gets a copy of each record (the plugin does that), and the files stay in the state
    directory.
    """
    chosen = environment.get("KRAFT_RUNBOOK_EVIDENCE", "")
    if chosen and "://" not in chosen:
        return Path(chosen)
    return state_directory(environment) / "evidence"


def state_directory(environment: Mapping[str, str]) -> Path:
    """``KRAFT_RUNBOOK_STATE``, or ``kraft-runbook`` in AIRFLOW_HOME. It need not exist."""
    state = environment.get("KRAFT_RUNBOOK_STATE")
    home = Path(environment.get("AIRFLOW_HOME") or Path.home() / "airflow")
    return Path(state) if state else home / "kraft-runbook"


def file_name(text: str) -> str:
    """``text`` as a file name: characters that a file system may not accept become underscores."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", text)


def run_name(dag_id: str, run_id: str) -> str:
    """The name of a run's evidence: its ids as far as a file name can hold them, and a digest of both, since ``go:1``
    and ``go+1`` are two runs.
    """
    digest = hashlib.sha256(json.dumps([dag_id, run_id]).encode()).hexdigest()
    return f"{file_name(f'{dag_id}__{run_id}')}-{digest[:DIGEST_LENGTH]}"


def may_be_a_run(path: Path, name: str, *, digest: bool = False) -> bool:
    """Whether the evidence of a run may have this name; else it is told that ``path`` is passed over, as a copy is that
    somebody keeps beside the original: "… (1).jsonl". ``digest``: it must end as ``run_name`` makes it.
    """
    if re.fullmatch(_NAME + (rf"-[0-9a-f]{{{DIGEST_LENGTH}}}" if digest else ""), name):
        return True
    log.warning("%s is passed over: no run's evidence has such a name. Keep copies in another directory", path)
    return False


def append_record(
    directory: Path, run: str, body: Mapping[str, Any], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> EvidenceRecord:
    """Append one record to ``<directory>/<run>.jsonl`` and return it. Two processes may append to one run at once.

    A last line that a crash cut off is removed first: its write never returned. Raises RunbookError where a whole
    record is unreadable.
    """
    path = _file(directory, run)
    directory.mkdir(parents=True, exist_ok=True)
    created = not path.exists()
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o640), "r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        last = _end_at_a_whole_line(stream, path)
        record = make_record(last, body, at=now())
        stream.write(record.to_line().encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    if created:
        sync_directory(directory)
    return record


def read_records(directory: Path, run: str) -> tuple[EvidenceRecord, ...]:
    """The records of a run, in order; none where it has no file. Raises RunbookError when the chain is broken."""
    path = _file(directory, run)
    if not path.is_file():
        return ()
    records = tuple(_parse(line, path) for line in _whole_lines(path))
    broken = find_break(records)
    if broken:
        raise RunbookError(f"the evidence in {path} can't be trusted: {broken}", way_out=WAY_OUT)
    return records


@dataclass(frozen=True, slots=True)
class FoundRun:
    """All readable records of a run, also after a break. ``broken``: where the chain is broken; None if it is not."""

    run: str
    records: tuple[EvidenceRecord, ...]
    broken: Break | None


def inspect_run(directory: Path, run: str) -> FoundRun:
    """All readable records of a run, from its file or from a copy of its objects (``<run>/000000-<digest>.json``).
    Reads as far as lines are records.

    Raises RunbookError if the run has neither.
    """
    path, objects = _file(directory, run), directory / run
    if path.is_file():
        lines: Iterable[bytes] = _whole_lines(path)
    elif objects.is_dir():
        lines = (each.read_bytes() for each in sorted(objects.glob("*.json")))
    else:
        raise RunbookError(
            f"{directory} holds no evidence of run {run}",
            way_out="kraft-runbook evidence lists the runs; --directory names where they lie, if elsewhere",
        )
    records: list[EvidenceRecord] = []
    unreadable = None
    for place, line in enumerate(lines):
        try:
            records.append(EvidenceRecord.from_line(line.decode()))
        except ValueError as error:
            unreadable = Break(place, f"can't be read: {error}")
            break
    return FoundRun(run, tuple(records), find_break(records) or unreadable)


def runs_in(directory: Path) -> tuple[str, ...]:
    """The runs that have evidence there. Raises RunbookError where there is no such directory."""
    if not directory.is_dir():
        raise RunbookError(
            f"there is no evidence directory {directory}",
            way_out="name it by --directory, KRAFT_RUNBOOK_EVIDENCE, KRAFT_RUNBOOK_STATE or AIRFLOW_HOME",
        )
    found = {each: each.stem for each in directory.glob("*.jsonl")}
    found |= {each.parent: each.parent.name for each in directory.glob("*/000000-*.json")}
    return tuple(sorted({name for path, name in found.items() if may_be_a_run(path, name)}))


def has_runs(directory: Path, dag_id: str) -> bool:
    """Whether a run of this DAG has left evidence there."""
    return next(directory.glob(f"{dag_id}__*"), None) is not None


def find_run(directory: Path, wanted: str) -> str:
    """The run named ``wanted``: its name here, or Airflow's run id. Raises RunbookError if no run or several match."""
    dag_id, slash, run_id = wanted.partition("/")
    name = file_name(wanted.replace("/", "__", 1))
    known = runs_in(directory)
    found = [
        each
        for run in known
        if (each := re.fullmatch(rf"(?:(.+)__)?{re.escape(name)}(-[0-9a-f]{{{DIGEST_LENGTH}}})?", run))
    ]
    matching = (
        [run for run in known if slash and run == run_name(dag_id, run_id)]
        or [run for run in known if run == name]
        or [each[0] for each in found if each[2] is None or each[0] == run_name(each[1] or "", wanted)]
        or [each[0] for each in found]
    )
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise RunbookError(
            f"{wanted} is the id of {len(matching)} runs: {', '.join(matching)}", way_out="name one of them"
        )
    raise RunbookError(
        f"{directory} holds no evidence of run {wanted}",
        way_out="kraft-runbook evidence lists the runs; --directory names where they lie, if elsewhere",
    )


def _file(directory: Path, run: str) -> Path:
    if not re.fullmatch(_NAME, run):
        raise ValueError(f"{run!r} can't name an evidence file")
    return directory / f"{run}.jsonl"


def _whole_lines(path: Path) -> list[bytes]:
    """Every complete line."""
    return path.read_bytes().rpartition(b"\n")[0].splitlines()


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
        raise RunbookError(f"{path} holds a line that is no evidence record: {error}", way_out=WAY_OUT) from None
