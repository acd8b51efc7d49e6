"""A copy of each evidence record in an object store: one object a record, never rewritten.

``KRAFT_RUNBOOK_EVIDENCE`` names the store where it is a URL. The objects are ``<run>/<sequence>-<digest>.json``.
Whoever can change the files on the workers can't change what the store keeps (retention lock), so each mirroring also
shows whether the file here is still what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.evidence.store import read_records


class NotMirrored(RunbookError):
    """Records of a run that the object store does not hold. They are in the run's file; the next record's mirroring
    tries again.
    """


class Objects(Protocol):
    """One run's objects in the store. Each raises whatever the store's own library raises."""

    def held(self) -> Mapping[str, int]:
        """Names and sizes in bytes."""

    def write(self, name: str, content: bytes) -> None: ...


def mirror_run(directory: Path, run: str, environment: Mapping[str, str], objects: Callable[[str], Objects]) -> int:
    """Copy what the store lacks of a run, earlier failures' records included, in their order. ``objects``: of this run,
    by the store's URL. Returns how many; 0 where no store is set.

    Raises NotMirrored where the store can't be written, or holds what the file here does not.
    """
    url = environment.get("KRAFT_RUNBOOK_EVIDENCE", "")
    if "://" not in url:
        return 0
    if urlsplit(url).password is not None:
        raise NotMirrored(
            "KRAFT_RUNBOOK_EVIDENCE holds a password",
            way_out="name an Airflow connection instead: s3://<connection>@<bucket>/<prefix>",
        )
    try:
        place = objects(url)
        held = place.held()
    except Exception as error:
        raise _failed(url, run, error) from error
    records = read_records(directory, run)  # after the listing: what is in the store was in the file before
    _refuse_another_past(held, records, url, run)
    missing = [r for r in records if held.get(_name(r)) != len(_content(r))]
    for record in missing:
        try:
            place.write(_name(record), _content(record))
        except Exception as error:
            raise _failed(url, run, error) from error
    return len(missing)


def _refuse_another_past(held: Mapping[str, int], records: tuple[EvidenceRecord, ...], url: str, run: str) -> None:
    """An object under another name, or larger than its record, was written from another file. (A smaller one is a write
    that was cut off.)
    """
    ours = {_name(r): len(_content(r)) for r in records}
    strange = sorted(name for name, size in held.items() if size > ours.get(name, -1))
    if strange:
        raise NotMirrored(
            f"{url} holds of run {run} what the file on this machine does not: {', '.join(strange[:3])}. Records here"
            " were cut off or altered after they were copied",
            way_out=(
                "keep both for an inquiry; kraft-runbook evidence shows each. Where workers run on several machines,"
                " let them share KRAFT_RUNBOOK_STATE"
            ),
        )


def _failed(url: str, run: str, error: Exception) -> NotMirrored:
    return NotMirrored(
        f"records of run {run} could not be copied to {url}: {type(error).__name__}: {error}",
        way_out=(
            "they are safe in the run's file, and are copied with the next record, or when the closing report's task is"
            " cleared. Make the store writable; its URL is KRAFT_RUNBOOK_EVIDENCE, its credentials are in the Airflow"
            " connection that the URL names"
        ),
    )


def _name(record: EvidenceRecord) -> str:
    return f"{record.sequence:06d}-{record.digest}.json"


def _content(record: EvidenceRecord) -> bytes:
    return record.to_line().encode() + b"\n"
