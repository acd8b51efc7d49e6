"""A tree of znodes in memory that answers as ZooKeeper does, byte by byte; and a snapshot file read as ZooKeeper reads
it.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraft_runbook.io.zookeeper.raw_read import RawBlock, RawRead, RawUnits


@dataclass
class InMemory:
    """A znode as the server has it. ``created``: children that were ever created below it (``StatPersisted``'s
    cversion).
    """

    data: bytes | None = None
    version: int = 0
    created: int = 0
    zxid: int = 7
    owner: int = 0
    readable: bool = True


class Tree:
    """Answers what ``ZookeeperReader`` is asked, from real multiRead replies of at most ``most`` units."""

    def __init__(self, znodes: dict[str, InMemory], *, most: int = 3) -> None:
        self.znodes, self._most = znodes, most
        self.asked: list[str] = []

    def get_raw(self, units: RawUnits) -> Iterator[RawBlock]:
        start = 0
        while start < len(units):
            request = RawRead(units, start, self._most, b"")
            self.asked += (paths := _paths_in(request.serialize()))
            assert paths == list(units.paths(start, request.end))
            yield RawBlock(start, request.deserialize(b"xxxx" + self._reply(paths), 4))
            start = request.end

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        return [tuple(sorted(self.children(path))) if path in self.znodes else None for path in paths]

    def children(self, path: str) -> list[str]:
        above = path.rstrip("/") + "/"
        return [
            each[len(above) :]
            for each in self.znodes
            if each.startswith(above) and each != "/" and "/" not in each[len(above) :]
        ]

    def stat(self, path: str) -> bytes:
        """As ``DataNode.copyStat`` fills it."""
        each, children = self.znodes[path], len(self.children(path))
        length = len(each.data or b"")
        told = each.created * 2 - children
        return struct.pack("!qqqqiiiqiiq", 1, each.zxid, 2, 3, each.version, told, 4, each.owner, length, children, 5)

    def _reply(self, paths: Sequence[str]) -> bytes:
        found = b""
        for path in paths:
            znode = self.znodes.get(path)
            if znode is None or not znode.readable:
                found += struct.pack("!iBii", -1, False, -1, -101 if znode is None else -102)
                continue
            data = struct.pack("!i", -1) if znode.data is None else struct.pack("!i", len(znode.data)) + znode.data
            found += struct.pack("!iBi", 4, False, 0) + data + self.stat(path)
        return found + struct.pack("!iBi", -1, True, -1)


def _paths_in(request: bytes) -> list[str]:
    found, offset = [], 0
    while True:
        kind, done, _ = struct.unpack_from("!iBi", request, offset)
        if done:
            return found
        assert kind == 4
        (length,) = struct.unpack_from("!i", request, offset + 9)
        found.append(request[offset + 13 : offset + 13 + length].decode())
        assert request[offset + 13 + length] == 0, "no watch"
        offset += 14 + length


class Decoded:
    """A node as ZooKeeper's ``DataTree.deserialize`` reads it."""

    def __init__(self, file: io.BytesIO) -> None:
        self.path = _text(file)
        length = _integer(file)
        self.data = None if length < 0 else file.read(length)
        self.acl, self.czxid, self.mzxid, self.ctime, self.mtime = struct.unpack("!qqqqq", file.read(40))
        self.version, self.cversion, self.aversion, self.owner, self.pzxid = struct.unpack("!iiiqq", file.read(28))


def _integer(file: io.BytesIO) -> int:
    return int(struct.unpack("!i", file.read(4))[0])


def _text(file: io.BytesIO) -> str:
    return file.read(_integer(file)).decode()


def read_snapshot(data: bytes) -> dict[str, Decoded]:
    """Every node by path, in the file's order; checks the header, that parents come first, and the seal."""
    file = io.BytesIO(data)
    assert struct.unpack("!4siq", file.read(16)) == (b"ZKSN", 2, -1)
    assert (_integer(file), _integer(file)) == (0, 0), "no sessions, no ACL lists"
    nodes: dict[str, Decoded] = {}
    while data[file.tell() : file.tell() + 5] != b"\0\0\0\1/":
        node = Decoded(file)
        assert node.path not in nodes
        assert not node.path or node.path.rpartition("/")[0] in nodes, f"{node.path} comes before its parent"
        nodes[node.path] = node
    file.read(5)
    sealed = zlib.adler32(data[: file.tell()])
    assert struct.unpack("!q", file.read(8))[0] == sealed
    assert file.read() == b"\0\0\0\1/"
    return nodes
