"""The last proven dual-write state, kept in a file, so that a finalized cluster can still be compared with what
ZooKeeper held.

A gzipped file of JSON lines: a head (cluster, salt, offsets, digest of the report that proved it), then one row a line:
most topics as one fingerprint, those that needed a closer look row by row. It holds fingerprints of secrets together
with their salt: keep it as you keep the metadata itself. It is written with mode 0600.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.private_file import private_file
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.parity.comparison import ParityReport, Verdict

FORMAT = 2
READABLE = (1, 2)
"""Format 1 held every topic row by row, and knew one end."""


@dataclass(frozen=True, slots=True)
class BaselineHead:
    """What a baseline is about. ``migration_offset`` and ``end_offset``: the M and E of the comparison that proved it;
    ``digest``: its report's.

    ``last_offset``: the E of its last look at what first did not fit.
    """

    cluster: str
    cluster_id: str
    migration_offset: int
    end_offset: int
    last_offset: int
    migration_epoch: int
    digest: str
    salt: bytes = field(repr=False)


def outlives_zookeeper(kind: Kind) -> bool:
    """Whether rows of this kind still mean something once ZooKeeper is gone: hybrid brokers, the znodes of controllers
    and versions of znodes don't.
    """
    return kind not in (Kind.BROKER, Kind.CONTROLLER, Kind.UNREADABLE, Kind.PARTITION_EPOCH)


def write_baseline(path: Path, head: BaselineHead, rows: Iterable[Row]) -> None:
    """Write the whole file or nothing."""
    with private_file(path) as raw, gzip.open(raw, "wt", compresslevel=1, encoding="utf-8") as file:
        first = {
            "format": FORMAT,
            "cluster": head.cluster,
            "cluster_id": head.cluster_id,
            "migration_offset": head.migration_offset,
            "end_offset": head.end_offset,
            "last_offset": head.last_offset,
            "migration_epoch": head.migration_epoch,
            "digest": head.digest,
            "salt": head.salt.hex(),
        }
        file.write(json.dumps(first) + "\n")
        for row in rows:
            if outlives_zookeeper(row.kind):
                file.write(json.dumps([row.kind.value, row.key, row.value], ensure_ascii=False) + "\n")
        file.write(json.dumps({"end": True}) + "\n")


def read_head(path: Path) -> BaselineHead:
    """The head of a baseline. Raises RunbookError for a file that is missing or is none."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            head = json.loads(file.readline())
        if head["format"] not in READABLE:
            raise ValueError(f"format {head['format']}")
        return BaselineHead(
            cluster=head["cluster"],
            cluster_id=head["cluster_id"],
            migration_offset=head["migration_offset"],
            end_offset=head["end_offset"],
            last_offset=head.get("last_offset", head["end_offset"]),
            migration_epoch=head["migration_epoch"],
            digest=head["digest"],
            salt=bytes.fromhex(head["salt"]),
        )
    except FileNotFoundError:
        raise RunbookError(
            f"there is no baseline at {path}", way_out="name the baseline that the last MATCH in dual write left"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise _not_a_baseline(path, error) from None


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a baseline. Raises RunbookError for a file that is cut short."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            file.readline()
            for line in file:
                parsed = json.loads(line)
                if isinstance(parsed, dict):
                    return
                yield Row(Kind(parsed[0]), parsed[1], parsed[2])
    except (OSError, ValueError, EOFError) as error:
        raise _not_a_baseline(path, error) from None
    raise _not_a_baseline(path, EOFError("its end is missing"))


def _not_a_baseline(path: Path, error: Exception) -> RunbookError:
    return RunbookError(
        f"{path} is not a whole baseline: {error}",
        way_out="name a baseline that a MATCH in dual write left; this file is of no use",
    )


def proves(report: ParityReport) -> bool:
    """Whether a report may leave a baseline: only a MATCH against ZooKeeper itself."""
    return report.verdict is Verdict.MATCH and report.against == "ZooKeeper"
