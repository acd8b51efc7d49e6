"""ZooKeeper's transaction log as it lies on disk: who changed what, every session included.

A file begins with 16 bytes (magic, version, database id). Then, for each transaction: a checksum (8 bytes), its length
(4), a header (session, cxid, zxid, time, type: ``TxnHeader``), its body, and one byte ``B``. Zeros follow the last one,
room that the server reserved (``FileTxnLog``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CREATE_SESSION, CLOSE_SESSION = -10, -11
"""``ZooDefs.OpCode``: each session leaves these two, also one that reads alone."""


class Transaction(NamedTuple):
    """``type``: of ``ZooDefs.OpCode``."""

    session: int
    zxid: int
    type: int


def transactions(data: Path) -> Iterator[Transaction]:
    """All that a server's data directory has, in their order. One that is being written now may be missing."""
    for file in sorted((data / "version-2").glob("log.*"), key=lambda path: int(path.suffix[1:], 16)):
        content = file.read_bytes()
        assert content[:4] == b"ZKLG", file
        at = 16
        while at + 12 <= len(content) and (length := struct.unpack_from(">i", content, at + 8)[0]):
            if content[at + 12 + length : at + 13 + length] != b"B":
                break
            session, _, zxid, _, kind = struct.unpack_from(">qiqqi", content, at + 12)
            yield Transaction(session, zxid, kind)
            at += 13 + length
