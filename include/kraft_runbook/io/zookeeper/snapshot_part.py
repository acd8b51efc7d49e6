"""A snapshot file without some of its znodes: to find out which of them a migration dies of, copy after copy."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.zookeeper.snapshot_file import END, HEADER, snapshot_file

_INT = struct.Struct("!i")
_BEHIND_DATA = 68
"""The ACL (8 bytes) and the persisted stat (60) of a znode."""


def snapshot_part(snapshot: Path, into: Path, *, leaves_out: Callable[[str], bool]) -> tuple[Path, int]:
    """Write the snapshot again below ``into``, another ``dataDir``, without the znodes that ``leaves_out`` names and
    all below them. Gives the file, and how many znodes are in it. ``snapshot``: as ``snapshot_file`` wrote it.

    The newest transaction stays the same. Raises RunbookError for another file; what ``snapshot_file`` raises; OSError.
    """
    left: set[bytes] = set()
    kept = 0
    with snapshot_file(into) as part:
        part.zxid = int(snapshot.suffix.removeprefix("."), 16)
        for path, znode in _znodes(snapshot):
            if path.rpartition(b"/")[0] in left or leaves_out(path.decode() or "/"):
                left.add(path)
            else:
                part.write([znode])
                kept += 1
    assert part.path is not None
    return part.path, kept


def paths_in(snapshot: Path) -> Iterator[str]:
    """The paths in such a file, parents first. Raises RunbookError for another file; OSError."""
    return (path.decode() or "/" for path, _ in _znodes(snapshot))


def _znodes(snapshot: Path) -> Iterator[tuple[bytes, bytes]]:
    """Each znode's path, and all its bytes."""
    with snapshot.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        if held[: len(HEADER)] != HEADER:
            raise RunbookError(f"{snapshot} is no snapshot that this tool wrote", way_out="copy the tree again")
        start = len(HEADER)
        while held[start : start + len(END)] != END:
            behind_path = start + 4 + _INT.unpack_from(held, start)[0]
            end = behind_path + 4 + max(0, _INT.unpack_from(held, behind_path)[0]) + _BEHIND_DATA
            yield held[start + 4 : behind_path], held[start:end]
            start = end
