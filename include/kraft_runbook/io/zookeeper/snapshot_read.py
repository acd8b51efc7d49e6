"""Reading a snapshot file znode by znode, and writing one that lacks some of them: for trying a copied tree in parts.

For files that ``snapshot_file`` wrote: no session, no ACL list, every znode open.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.zookeeper.snapshot_file import HEADER, snapshot_file

_INT = struct.Struct("!i")
_BEHIND = 8 + 60
"""Bytes behind a znode's data: its ACL's number, and ``StatPersisted``."""


def znodes_in(snapshot: Path) -> Iterator[tuple[str, bytes]]:
    """The path of each znode, ``/`` for the root, and all its bytes. Raises OSError; RunbookError for a file that is
    cut short, or that ``snapshot_file`` did not write.
    """
    with snapshot.open("rb") as file:

        def read(length: int) -> bytes:
            piece = file.read(length)
            if len(piece) < length:
                raise RunbookError(f"{snapshot} is cut short", way_out="copy the tree again")
            return piece

        if read(len(HEADER)) != HEADER:
            raise RunbookError(f"{snapshot} was not written by a rehearsal", way_out="copy the tree again")
        while True:
            name = read(_INT.size)
            path = read(*_INT.unpack(name))
            if path == b"/":
                return
            held = read(_INT.size)
            rest = read(max(0, *_INT.unpack(held)) + _BEHIND)  # of no data the length is -1
            yield path.decode() or "/", b"".join((name, path, held, rest))


def write_part(snapshot: Path, data_dir: Path, *, holds: Callable[[str], bool]) -> Path:
    """Write the znodes whose path ``holds``, with their parents, as a snapshot of the same newest transaction below
    ``data_dir``, another ZooKeeper's. A znode without its parent would end that one: leave out all below it too. Raises
    as ``znodes_in`` and ``snapshot_file``.
    """
    with snapshot_file(data_dir) as part:
        for path, znode in znodes_in(snapshot):
            if holds(path):
                part.write([znode])
        part.zxid = int(snapshot.suffix[1:], 16)
    assert part.path is not None
    return part.path
