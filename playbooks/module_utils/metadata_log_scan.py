"""What a metadata log on disk says of the migration, and of feature levels: its segments and snapshots are read record
by record, and of each only its kind.

The layout is that of Kafka's record batches, magic 2, as in ``kraft_runbook.metadata.log.frames``; a test compares the
two.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Iterator

from ansible.module_utils.kafka_host import HostError, is_there

FEATURE_LEVEL = 12
ZK_MIGRATION_STATE, BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = 21, 23, 24, 25
_BATCH = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH = 12
_SEGMENT = re.compile(r"\d{20}\.log")
_SNAPSHOT = re.compile(r"\d{20}-\d{10}\.checkpoint")
BOOTSTRAP = "bootstrap.checkpoint"
DUMP = "look at it with kafka-dump-log.sh --cluster-metadata-decoder"


class Scan:
    """What was found so far. ``states``: the migration states whose record takes effect if it is committed;
    ``open_since``: as a transaction's Begin.
    """

    def __init__(self) -> None:
        self.states: set[int] = set()
        self.end = 0
        self.open_since: int | None = None
        self._held: set[int] = set()

    def see(self, offset: int, kind: int, state: object) -> None:
        self.end = offset + 1
        if kind == BEGIN_TRANSACTION:
            self.open_since, self._held = offset, set()
        elif kind in (END_TRANSACTION, ABORT_TRANSACTION):
            if kind == END_TRANSACTION:
                self.states |= self._held
            self.open_since, self._held = None, set()
        elif kind == ZK_MIGRATION_STATE and state is not None:
            (self.states if self.open_since is None else self._held).add(state)


def scan(directory: str) -> Scan:
    """Read a ``__cluster_metadata-0`` whose controller is stopped. Raises HostError where something in it is not what
    Kafka writes.
    """
    names = sorted(os.listdir(directory))
    segments = [name for name in names if _SEGMENT.fullmatch(name)]
    found = Scan()
    for name in segments:
        for offset, kind, state in records(os.path.join(directory, name), may_be_torn=name == segments[-1]):
            found.see(offset, kind, state)
    for name in names:
        if _SNAPSHOT.fullmatch(name):
            apart = Scan()  # a snapshot's offsets count its own records
            for offset, kind, state in records(os.path.join(directory, name), may_be_torn=False):
                apart.see(offset, kind, state)
            found.states |= apart.states
            found.end = max(found.end, int(name.partition("-")[0]))
    return found


def read_at_start(directory: str) -> dict:
    """Which feature levels a node meets when it starts on this ``__cluster_metadata-0``: those in its newest snapshot,
    and every FeatureLevelRecord after it, whatever was written later. The node may run meanwhile.

    ``snapshot``: its end offset, when it was taken (seconds since the epoch) and its levels; None where there is none.
    ``bootstrap``: the levels in bootstrap.checkpoint beside it, which is read at each start too. ``end``: where the
    log ends. ``epoch``: the leader epoch of its last batch, by which the quorum's leader tells what the node is sent.
    """
    while True:
        try:
            return _read_at_start(directory)
        except FileNotFoundError:  # a segment or a snapshot was deleted since the directory was listed
            if not os.path.isdir(directory):
                raise


def _read_at_start(directory: str) -> dict:
    names = sorted(os.listdir(directory))
    newest = max((name for name in names if _SNAPSHOT.fullmatch(name)), default=None)
    begin = int(newest.partition("-")[0]) if newest else 0
    segments = [name for name in names if _SEGMENT.fullmatch(name)]
    holding = max((at for at, name in enumerate(segments) if int(name[:20]) <= begin), default=0)
    found, end, epoch = [], begin, int(newest.partition(".")[0].partition("-")[2]) if newest else 0
    for name in segments[holding:]:
        path = os.path.join(directory, name)
        for offset, kind, value in records(path, may_be_torn=True):
            if kind == FEATURE_LEVEL and offset >= begin:
                found.append({"feature": value[0], "level": value[1], "offset": offset})
        behind, of_last = _last_batch(path)
        if behind > end:
            end, epoch = behind, of_last
    bootstrap = os.path.join(os.path.dirname(directory), BOOTSTRAP)
    return {
        "snapshot": _snapshot(os.path.join(directory, newest), begin) if newest else None,
        "bootstrap": _levels(bootstrap) if is_there(bootstrap) else {},
        "after": found,
        "end": end,
        "epoch": epoch,
    }


def _last_batch(path: str) -> tuple[int, int]:
    """Where a segment ends, and its last whole batch's leader epoch, control records included; (0, 0): it is empty."""
    end = epoch = at = 0
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        while at + _BATCH.size <= size:
            stream.seek(at)
            base, length, of_batch, _, _, _, last, *_ = _BATCH.unpack(stream.read(_BATCH.size))
            if length == 0 or at + _BEFORE_LENGTH + length > size:
                break
            end, epoch, at = base + last + 1, of_batch, at + _BEFORE_LENGTH + length
    return end, epoch


def _snapshot(path: str, end: int) -> dict:
    return {"end": end, "taken": os.path.getmtime(path), "levels": _levels(path)}


def _levels(path: str) -> dict:
    return dict(value for _, kind, value in records(path, may_be_torn=False) if kind == FEATURE_LEVEL)


def records(path: str, *, may_be_torn: bool) -> Iterator[tuple[int, int, object]]:
    """Offset and kind of each data record, and what is in it: a migration state's value, or a feature level's name and
    level; else None. ``may_be_torn``: a batch that was being written may be cut short at the end.
    """
    if os.path.getsize(path) == 0:
        return
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at, size = 0, len(data)
        while at + _BATCH.size <= size:
            base, length, _, magic, _, attributes, _, _, _, _, _, _, count = _BATCH.unpack_from(data, at)
            end = at + _BEFORE_LENGTH + length
            if may_be_torn and (end > size or length == 0):
                return
            if magic != 2 or length < _BATCH.size - _BEFORE_LENGTH or end > size:
                raise HostError(f"{path} is not what Kafka writes at byte {at} (magic {magic}, length {length})", DUMP)
            if attributes & 0x07:
                raise HostError(
                    f"{path} holds a compressed batch at byte {at}, which no controller of Kafka 3.9 writes", DUMP
                )
            if not attributes & 0x20:  # control records are no metadata
                yield from _batch(data, path, base, at + _BATCH.size, end, count)
            at = end
        if at < size and not may_be_torn:
            raise HostError(f"{path} ends in the middle of a batch at byte {at}", DUMP)


def _batch(data: mmap.mmap, path: str, base: int, at: int, end: int, count: int) -> Iterator[tuple[int, int, object]]:
    for _ in range(count):
        length, at = _varint(data, at)
        following = at + length
        if length < 0 or following > end:
            raise HostError(f"{path}: a record in the batch at offset {base} is cut short", DUMP)
        _, at = _varint(data, at + 1)  # attributes, then the timestamp's delta
        delta, at = _varint(data, at)
        key, at = _varint(data, at)
        _, at = _varint(data, at + max(0, key))
        _, at = _uvarint(data, at)  # frame version
        kind, at = _uvarint(data, at)
        _, at = _uvarint(data, at)
        yield base + delta, kind, _content(data, kind, at)
        at = following


def _content(data: mmap.mmap, kind: int, at: int) -> object:
    if kind == ZK_MIGRATION_STATE:
        return struct.unpack_from(">b", data, at)[0]
    if kind == FEATURE_LEVEL:
        size, at = _uvarint(data, at)
        end = at + size - 1
        return data[at:end].decode(), struct.unpack_from(">h", data, end)[0]
    return None


def _uvarint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value, at = _uvarint(data, at)
    return (value >> 1) ^ -(value & 1), at
