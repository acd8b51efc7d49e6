"""What a controller's own metadata log says of Kafka's copy: the marks of its transactions, in their order.

A quorum's first leader writes its bootstrap records in a transaction too, under another name; that one is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.metadata.log.copy_span import MIGRATION_TRANSACTION
from kraft_runbook.metadata.log.frames import Record, records
from kraft_runbook.metadata.log.record_schemas import RecordType, decode

MARKS = {
    RecordType.BEGIN_TRANSACTION: "begin",
    RecordType.END_TRANSACTION: "end",
    RecordType.ABORT_TRANSACTION: "abort",
}


@dataclass(frozen=True)
class CopyLog:
    """``marks``: begin, end and abort, as they follow each other. ``copied``: how many records stand behind a begin
    that has no end; ``end``: the last offset.
    """

    marks: tuple[str, ...]
    copied: int
    end: int


def read_copy_log(spec: ClusterSpec) -> CopyLog:
    """From the log on disk that goes furthest; of one that is being written, up to its last whole batch."""
    logs = [copy_log(_on_disk(Path(controller.log_dir))) for controller in spec.controllers]
    return max(logs, key=lambda log: log.end)


def copy_log(found: Iterable[Record]) -> CopyLog:
    """The same of records."""
    marks: list[str] = []
    copied, end, is_open = 0, -1, False
    for record in found:
        end = record.offset
        mark = MARKS.get(RecordType(record.api_key))
        if mark == "begin":
            is_open = decode(record)["name"] == MIGRATION_TRANSACTION
        if mark and is_open:
            marks.append(mark)
            is_open, copied = mark == "begin", 0
        elif is_open:
            copied += 1
    return CopyLog(tuple(marks), copied, end)


def _on_disk(log_dir: Path) -> Iterable[Record]:
    for segment in sorted((log_dir / "__cluster_metadata-0").glob("*.log")):
        yield from records(segment.read_bytes())
