"""The logs in which members of a consumer group write down what they hand out, as files that this host sees."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from kraft_runbook.errors import Refused
from kraft_runbook.groups.proof import HandedOut, read_log

LARGEST = 64 * 1024 * 1024
"""How many bytes of logs a task judges, of a group."""


def find_logs(patterns: Iterable[str]) -> tuple[Path, ...]:
    """The files that the patterns of ``glob`` fit, each once; nothing that is no regular file."""
    found = {Path(each).resolve() for pattern in patterns for each in glob.glob(pattern)}  # noqa: PTH207 - takes any pattern
    return tuple(sorted(each for each in found if each.is_file()))


def read_logs(paths: Iterable[Path]) -> Iterator[HandedOut]:
    """The records of these logs. A last line that its member has not written whole yet is left out. Raises Refused,
    which names the file and the line.
    """
    for path in paths:
        try:
            with path.open(errors="replace") as lines:
                yield from read_log((line for line in lines if _is_whole(line)), source=str(path))
        except OSError as error:
            raise Refused(f"{path} can't be read: {error.strerror}", way_out="name files that exist") from None


def size_of(paths: Iterable[Path]) -> int:
    """Bytes of all of them. Raises Refused."""
    try:
        return sum(each.stat().st_size for each in paths)
    except OSError as error:
        raise Refused(f"{error.filename} can't be read: {error.strerror}", way_out="name files that exist") from None


def _is_whole(line: str) -> bool:
    if line.endswith("\n"):
        return True
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
