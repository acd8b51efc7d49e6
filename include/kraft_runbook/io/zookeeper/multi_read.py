"""multiRead (opcode 22, ZooKeeper 3.6 and later): the requests as kazoo's connection wants them, and their replies
decoded.

Three kinds: ``MultiRead`` gives an object a znode, with its stat; ``BulkRead`` gives the data of very many, and at most
one number of each one's stat; ``raw_read.RawRead`` gives data and stat as they lie in the reply.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Protocol

from kazoo.exceptions import EXCEPTIONS, NoNodeError

GET_DATA = 4
GET_CHILDREN = 8
MULTI_READ = 22

MAX_REQUEST_BYTES = 256 * 1024
"""jute.maxbuffer, by default a megabyte, is the limit on a packet."""

_INT = struct.Struct("!i")
_HEADER = struct.Struct("!iBi")
_STAT = struct.Struct("!qqqqiiiqiiq")
_RESULT = struct.Struct("!iBii")
END = _HEADER.pack(-1, True, -1)
"""What ends the parts of a multiRead, in the request as in the reply."""


class OfStat(IntEnum):
    """A number of a znode's stat: how many bytes before the stat's end it begins (ZooKeeper's ``Stat``: … version,
    cversion, aversion, … numChildren, pzxid).
    """

    VERSION = 36
    CHILDREN = 12


class MultiRead:
    """A multiRead request as kazoo's connection wants one: ``type``, ``serialize``, ``deserialize``. Answers [(result |
    None)].
    """

    type = MULTI_READ

    def __init__(self, operation: int, paths: Sequence[str]) -> None:
        self.operation = operation
        self.paths = paths
        self.request_bytes = 0
        self.reply_bytes = 0

    def serialize(self) -> bytes:
        header = _HEADER.pack(self.operation, False, -1)
        parts: list[bytes] = []
        for path in self.paths:
            encoded = path.encode()
            parts += (header, _INT.pack(len(encoded)), encoded, b"\0")  # the last byte: no watch
        parts.append(END)
        return b"".join(parts)

    def deserialize(self, reply: bytes, offset: int) -> list[Any]:
        self.reply_bytes = len(reply)
        found: list[Any] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(reply, offset)
            offset += _HEADER.size
            if done:
                if len(found) != len(self.paths):
                    raise ValueError("a reply that ends elsewhere than its results do")
                return found
            if kind not in (-1, self.operation):
                raise ValueError(f"a result of type {kind} in a reply to {self.operation}")
            if kind == -1:
                (code,) = _INT.unpack_from(reply, offset)
                offset += _INT.size
                if code != NoNodeError.code:
                    raise EXCEPTIONS[code](f"{self.paths[len(found)]}")
                found.append(None)
            elif kind == GET_DATA:
                data, offset = _buffer(reply, offset)
                found.append((data, _STAT.unpack_from(reply, offset)))
                offset += _STAT.size
            else:
                (count,) = _INT.unpack_from(reply, offset)
                offset += _INT.size
                names = []
                for _ in range(count):
                    name, offset = _buffer(reply, offset)
                    names.append((name or b"").decode())
                found.append(tuple(names))


def _buffer(reply: bytes, offset: int) -> tuple[bytes | None, int]:
    """A buffer of jute's, and where it ends; None: null, which is not the same as one of no bytes."""
    (length,) = _INT.unpack_from(reply, offset)
    offset += _INT.size
    return (None, offset) if length < 0 else (reply[offset : offset + length], offset + length)


class Request(Protocol):
    """As kazoo's connection wants one."""

    type: int

    def serialize(self) -> bytes: ...

    def deserialize(self, reply: bytes, offset: int) -> Any: ...


@dataclass(frozen=True, slots=True)
class NotRead:
    """In the place of results: what the reply says instead (a znode that its ACL does not show), or that it is none."""

    error: Exception


class Quietly:
    """The request, whose reply is an answer in any case: what is raised while kazoo reads a reply, kazoo logs with a
    traceback.
    """

    def __init__(self, request: Request) -> None:
        self._request = request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)

    def deserialize(self, reply: bytes, offset: int) -> Any:
        try:
            return self._request.deserialize(reply, offset)
        except Exception as error:
            return NotRead(error)


class Units(Protocol):
    """What a bulk read asks for: many units, each of ``znodes`` znodes. A reply holds whole units."""

    znodes: int

    def __len__(self) -> int: ...

    def path(self, at: int) -> str:
        """A path of this unit, for errors."""

    def requests(self, start: int, end: int, chroot: bytes) -> bytes:
        """The units' requests, each as ``get_data_request`` makes them, joined."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """The znodes of the units from ``start``, in order. ``data``: None where there is no such znode; ``numbers``: of
    each one's stat, if that was asked for.
    """

    start: int
    data: list[bytes | None]
    numbers: list[int]


class NoMultiRead(Exception):
    """This server (before ZooKeeper 3.6) does not know multiRead: nothing is read in bulk from it."""


@cache
def get_data_request(length: int) -> bytes:
    """What stands before a path of so many bytes in a multiRead that gets its data; after it stands a zero byte (no
    watch).
    """
    return _HEADER.pack(GET_DATA, False, -1) + _INT.pack(length)


class UnitsRead:
    """A multiRead of so many whole units from ``start`` as one packet takes, ``size`` at most. What a reply holds is
    for those that derive from it to say.
    """

    type = MULTI_READ

    def __init__(self, units: Units, start: int, size: int, chroot: bytes) -> None:
        self._units, self._start = units, start
        end = min(len(units), start + size)
        requests = units.requests(start, end, chroot)
        while len(requests) > MAX_REQUEST_BYTES and end - start > 1:
            end = start + max(1, (end - start) * MAX_REQUEST_BYTES // len(requests))
            requests = units.requests(start, end, chroot)
        self.end = end
        self._requests = requests
        self.request_bytes = len(requests)
        self.reply_bytes = 0

    def serialize(self) -> bytes:
        return self._requests + END


class BulkRead(UnitsRead):
    """Of many znodes' data. Answers [data | None] and, if wanted, one number of each one's stat (0 where there is no
    such znode).
    """

    def __init__(self, units: Units, start: int, size: int, chroot: bytes, number: OfStat | None) -> None:
        super().__init__(units, start, size, chroot)
        self._number = number

    def deserialize(self, reply: bytes, offset: int) -> tuple[list[bytes | None], list[int]]:
        self.reply_bytes = len(reply)
        data: list[bytes | None] = []
        numbers: list[int] = []
        result, integer, stat, number = _RESULT.unpack_from, _INT.unpack_from, _STAT.size, self._number
        last = len(reply) - _HEADER.size  # where the header stands that ends them all
        while offset < last:
            kind, done, _, length = result(reply, offset)
            offset += 13
            if kind == GET_DATA:
                end = offset + length if length > 0 else offset  # -1: null
                data.append(reply[offset:end])
                offset = end + stat
                if number is not None:
                    numbers.append(integer(reply, offset - number)[0])
            elif kind == -1 and not done and length == NoNodeError.code:
                data.append(None)
                numbers.append(0)
            elif kind == -1 and not done:
                raise EXCEPTIONS[length](self._units.path(self._start + len(data) // self._units.znodes))
            else:
                raise ValueError(f"a result of type {kind} in a reply of data")
        if (
            offset != last
            or not _HEADER.unpack_from(reply, offset)[1]
            or len(data) != (self.end - self._start) * self._units.znodes
        ):
            raise ValueError("a reply that ends elsewhere than its results do")
        return data, numbers
