"""Where the records of a chunk lie, as columns: the first step of reading the log without an object a record.

Gives exactly the records that ``Chunk.records`` gives. What is unusual in the bytes is found by a check over whole
columns, and then named by reading the chunk once more record by record.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.log.frames import FRAME_VERSION, Garbled, Record, batches, plain
from kraft_runbook.metadata.log.log_chunks import Chunk

Places = NDArray[np.int64]
Bytes = NDArray[np.uint8]

PADDING = 32
"""Zero bytes behind the data, so that reading a field at the very end stays inside."""


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """One entry a record. ``start`` and ``end``: where its body lies in ``data``, which is padded."""

    data: Bytes
    offset: Places
    epoch: Places
    api_key: NDArray[np.int16]
    version: NDArray[np.int16]
    start: Places
    end: Places

    def __len__(self) -> int:
        return len(self.offset)

    def take(self, wanted: Places | NDArray[np.bool_]) -> RecordIndex:
        """Some of the records, over the same bytes."""
        return RecordIndex(self.data, *(getattr(self, name)[wanted] for name in self.__slots__[1:]))

    def records(self) -> list[Record]:
        """The records one by one, for the generic decoder."""
        view = memoryview(self.data.data)
        columns = (self.offset, self.epoch, self.api_key, self.version, self.start, self.end)
        return [
            Record(o, e, a, v, view[s:t]) for o, e, a, v, s, t in zip(*(each.tolist() for each in columns), strict=True)
        ]


def index_records(chunk: Chunk) -> RecordIndex:
    """The records of a chunk. Raises Garbled, naming the offset."""
    whole = b"".join((plain(chunk.data), bytes(PADDING)))
    try:
        found = _index(whole, chunk)
    except IndexError:
        found = None
    if found is None:
        for _ in chunk.records():
            pass
        raise Garbled(
            "a chunk of the metadata log could be read record by record, but not as a whole",
            way_out="run again, and take the report to the project",
        )
    return found


def _index(whole: bytes, chunk: Chunk) -> RecordIndex | None:
    """None where something is not as Kafka writes it."""
    heads = array("q")
    bases: list[int] = []
    epochs: list[int] = []
    counts: list[int] = []
    snapshot, begins_at = chunk.snapshot is not None, heads.append
    for batch in batches(memoryview(whole)[:-PADDING]):
        if batch.control:
            continue
        if not snapshot and batch.first_offset > chunk.up_to:
            break
        bases.append(batch.first_offset)
        epochs.append(batch.epoch)
        counts.append(batch.count)
        at = batch.start
        for _ in range(batch.count):  # for each record: nothing here that can be done for all at once
            begins_at(at)
            length = whole[at]  # a varint of up to four bytes; not negative, so that its zigzag form is twice the value
            if length < 0x80:
                at += 1 + (length >> 1)
                continue
            length = length & 0x7F | whole[at + 1] << 7
            if length < 0x4000:
                at += 2 + (length >> 1)
                continue
            length = length & 0x3FFF | whole[at + 2] << 14
            if length < 0x200000:
                at += 3 + (length >> 1)
                continue
            length = length & 0x1FFFFF | whole[at + 3] << 21
            if length >= 0x10000000:
                return None
            at += 4 + (length >> 1)
        if at > batch.end:
            return None
    data: Bytes = np.frombuffer(whole, np.uint8)
    length_of, begin = uvarints(data, np.array(heads, np.int64))
    end = begin + (length_of >> 1)
    place = begin + 1  # behind the attributes
    _, place = zigzags(data, place)
    delta, place = zigzags(data, place)
    key_length, place = zigzags(data, place)
    place = place + np.maximum(key_length, 0)
    value_length, place = zigzags(data, place)
    stop = place + value_length
    frame, place = uvarints(data, place)
    api_key, place = uvarints(data, place)
    version, place = uvarints(data, place)
    if (
        (frame != FRAME_VERSION).any()
        or (stop > end).any()
        or (place > stop).any()
        or (api_key > 0x7FFF).any()
        or (version > 0x7FFF).any()
    ):
        return None
    offset = np.repeat(np.array(bases, np.int64), counts) + delta
    found = RecordIndex(
        data,
        offset,
        np.repeat(np.array(epochs, np.int64), counts),
        api_key.astype(np.int16),
        version.astype(np.int16),
        place,
        stop,
    )
    if chunk.snapshot is not None:
        at_once = np.full(len(found), chunk.snapshot.end_offset - 1, np.int64)
        return RecordIndex(data, at_once, found.epoch, found.api_key, found.version, found.start, found.end)
    beyond = np.flatnonzero(offset > chunk.up_to)
    if len(beyond):
        found = found.take(np.arange(beyond[0]))
    return found.take(found.offset >= chunk.since) if len(found) and found.offset[0] < chunk.since else found


def uvarints(data: Bytes, at: Places) -> tuple[Places, Places]:
    """The unsigned varints at these places, and the places behind them. Raises IndexError for one longer than five
    bytes.
    """
    return _varints(data, at, 5)


def zigzags(data: Bytes, at: Places) -> tuple[Places, Places]:
    """The zigzag varints at these places, and the places behind them. Raises IndexError for one longer than
    ten bytes.
    """
    value, at = _varints(data, at, 10)
    unsigned = value.view(np.uint64)
    return (unsigned >> np.uint64(1)).view(np.int64) ^ -(value & 1), at


def _varints(data: Bytes, at: Places, longest: int) -> tuple[Places, Places]:
    byte = data[at]
    value = (byte & 0x7F).astype(np.int64)
    at = at + 1
    more = np.flatnonzero(byte >= 0x80)
    shift = 7
    while len(more):
        if shift >= 7 * longest:
            raise IndexError("a varint is too long")
        byte = data[at[more]]
        value[more] |= (byte & 0x7F).astype(np.int64) << shift
        at[more] += 1
        more = more[byte >= 0x80]
        shift += 7
    return value, at
