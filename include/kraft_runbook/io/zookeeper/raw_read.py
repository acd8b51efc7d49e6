"""A multiRead that gives each znode's data and stat as they lie in the reply: for a copy of very many of them, which
needs no object of any.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kazoo.exceptions import EXCEPTIONS, NoAuthError, NoNodeError

from kraft_runbook.io.zookeeper.multi_read import (
    END,
    GET_DATA,
    Units,
    UnitsRead,
    get_data_request,
)

Raw = tuple[bytes, bytes]
"""A znode: its data behind the four bytes of their length (jute's buffer; -1: none), and its ``STAT_BYTES`` of stat."""

STAT_BYTES = 68
UNREADABLE: Raw = (b"", b"")
"""In the place of a znode whose ACL does not let this session read it."""
NO_DATA = struct.pack("!i", -1)

_INT = struct.Struct("!i")
_STAT = struct.Struct("!qqqqiiiqiiq")
_RESULT = struct.Struct("!iBii")


class RawUnits(Units, Protocol):
    """What is asked for: many units, each of ``znodes`` znodes."""

    def paths(self, start: int, end: int) -> Sequence[str]:
        """The paths of the units' znodes, in order, for a server that is asked one by one."""


@dataclass(frozen=True, slots=True)
class RawBlock:
    """The znodes of the units from ``start``, in order; None where there is none."""

    start: int
    znodes: list[Raw | None]


class Paths:
    """A unit is a znode, at any path."""

    znodes = 1

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def path(self, at: int) -> str:
        return self._paths[at]

    def paths(self, start: int, end: int) -> Sequence[str]:
        return self._paths[start:end]

    def requests(self, start: int, end: int, chroot: bytes) -> bytes:
        parts: list[bytes] = []
        for each in self._paths[start:end]:
            path = chroot + each.encode() if each != "/" else chroot or b"/"
            parts += (get_data_request(len(path)), path, b"\0")
        return b"".join(parts)


class RawRead(UnitsRead):
    """Answers [Raw | None]."""

    def deserialize(self, reply: bytes, offset: int) -> list[Raw | None]:
        self.reply_bytes = len(reply)
        found: list[Raw | None] = []
        result = _RESULT.unpack_from
        last = len(reply) - len(END)
        while offset < last:
            kind, done, _, length = result(reply, offset)
            if kind == GET_DATA:
                stat = offset + 13 + (length if length > 0 else 0)
                found.append((reply[offset + 9 : stat], reply[stat : stat + STAT_BYTES]))
                offset = stat + STAT_BYTES
            elif kind == -1 and not done and length in _NO_ZNODE:
                found.append(_NO_ZNODE[length])
                offset += 13
            elif kind == -1 and not done:
                raise EXCEPTIONS[length](self._units.path(self._start + len(found) // self._units.znodes))
            else:
                raise ValueError(f"a result of type {kind} in a reply of data")
        if reply[offset:] != END or len(found) != (self.end - self._start) * self._units.znodes:
            raise ValueError("a reply that ends elsewhere than its results do")
        return found


_NO_ZNODE: dict[int, Raw | None] = {NoNodeError.code: None, NoAuthError.code: UNREADABLE}


def raw_of(data: bytes | None, stat: Sequence[int]) -> Raw:
    """The same of what kazoo's ``get`` gives."""
    return (buffer_of(data), _STAT.pack(*stat))


def buffer_of(data: bytes | None) -> bytes:
    """Data as jute writes it."""
    return NO_DATA if data is None else _INT.pack(len(data)) + data
