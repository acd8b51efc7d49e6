"""Baselines as former versions wrote them: a cluster that is finalized already can leave no new one, and is still
compared with its own.

A gzipped file of JSON lines: a head, then one row a line, then ``{"end": true}``. Format 1 held every topic row by row,
and knew one end; format 2 held most topics by a fingerprint (``topic_sums``).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.canonical_rows import Kind, Row

READABLE = (1, 2)
GZIP = b"\x1f\x8b"


def is_one(path: Path) -> bool:
    """Whether the file is gzipped, as these were."""
    with path.open("rb") as file:
        return file.read(2) == GZIP


def read_head(path: Path) -> dict[str, Any]:
    """The fields of ``proven.Head`` that such a file has. Raises RunbookError for a file that is none."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            head = json.loads(file.readline())
        if head.pop("format") not in READABLE:
            raise ValueError("an unknown format")
        names = ("cluster", "cluster_id", "migration_offset", "end_offset", "migration_epoch", "digest")
        return {name: head[name] for name in names} | {
            "last_offset": head.get("last_offset", head["end_offset"]),
            "salt": bytes.fromhex(head["salt"]),
        }
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise _not_whole(path, error) from None


def read_rows(path: Path) -> Iterator[Row]:
    """The rows. Raises RunbookError for a file that is cut short."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            file.readline()
            for line in file:
                parsed = json.loads(line)
                if isinstance(parsed, dict):
                    return
                yield Row(Kind(parsed[0]), parsed[1], parsed[2])
    except (OSError, ValueError, EOFError) as error:
        raise _not_whole(path, error) from None
    raise _not_whole(path, EOFError("its end is missing"))


def _not_whole(path: Path, error: Exception) -> RunbookError:
    return RunbookError(
        f"{path} is not a whole baseline: {error}",
        way_out="name a baseline that a MATCH in dual write left; this file is of no use",
    )
