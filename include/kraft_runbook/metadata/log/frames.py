"""Bytes of the metadata log, as Fetch and FetchSnapshot give them, cut into records.

The layout is that of Kafka's record batches, magic 2, and of ``MetadataRecordSerde``: an unsigned varint frame version
(1), the record's api key and version (unsigned varints), then its flexible body.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.log.compression import decompress

_BATCH = struct.Struct(">qiibIhiqqqhii")
"""baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, timestamps, producer, count.
"""
_BEFORE_LENGTH = 12
"""batchLength counts the bytes after itself: base offset and length come before."""
CONTROL = 0x20
COMPRESSION = 0x07
FRAME_VERSION = 1


class Garbled(RunbookError):
    """Bytes that are not what Kafka writes; the message names the place."""


@dataclass(frozen=True, slots=True)
class Record:
    """One committed record of the metadata log: where it lies, its kind, and its body (decoded only where it is
    wanted).
    """

    offset: int
    epoch: int
    api_key: int
    version: int
    body: memoryview


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """A batch's place: its offsets (first and last), its leader epoch, and where its records begin and end. ``codec``
    0: not compressed.
    """

    first_offset: int
    last_offset: int
    epoch: int
    control: bool
    count: int
    start: int
    end: int
    codec: int


def read_uvarint(data: memoryview | bytes, at: int) -> tuple[int, int]:
    """An unsigned varint and the place after it. Raises Garbled for one longer than five bytes."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 28:
            raise _garbled("a varint is longer than five bytes")


def read_varint(data: memoryview | bytes, at: int) -> tuple[int, int]:
    """A zigzag varint (records' lengths and deltas; up to ten bytes, for timestamps) and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise _garbled("a varint is longer than ten bytes")


def batches(data: memoryview) -> Iterator[BatchHeader]:
    """The whole batches in ``data``; a last one that is cut short, as Fetch may give it, is left out."""
    at = 0
    while at + _BATCH.size <= len(data):
        base, length, epoch, magic, _, attributes, last_delta, _, _, _, _, _, count = _BATCH.unpack_from(data, at)
        end = at + _BEFORE_LENGTH + length
        if magic != 2 or length < _BATCH.size - _BEFORE_LENGTH:
            raise _garbled(f"the batch at offset {base} has magic {magic} and length {length}")
        if end > len(data):
            return
        yield BatchHeader(
            base,
            base + last_delta,
            epoch,
            bool(attributes & CONTROL),
            count,
            at + _BATCH.size,
            end,
            attributes & COMPRESSION,
        )
        at = end


def plain(data: bytes | memoryview) -> bytes | memoryview:
    """The same batches with none compressed; the very bytes given where none was. Raises Garbled, naming the offset."""
    view = memoryview(data)
    if not any(batch.codec for batch in batches(view)):
        return data
    out = bytearray()
    for batch in batches(view):
        head = bytearray(view[batch.start - _BATCH.size : batch.start])
        body = bytes(view[batch.start : batch.end])
        try:
            body = decompress(batch.codec, body) if batch.codec else body
        except ValueError as error:
            raise _garbled(f"the batch at offset {batch.first_offset} can't be decompressed: {error}") from None
        struct.pack_into(">i", head, 8, _BATCH.size - _BEFORE_LENGTH + len(body))
        struct.pack_into(">h", head, 21, CONTROL if batch.control else 0)
        out += head + body
    return bytes(out)


def records(data: bytes | memoryview, *, up_to: int | None = None) -> Iterator[Record]:
    """The data records of whole batches, with offset at most ``up_to``; control records are no metadata.

    Raises Garbled, which names the offset.
    """
    view = memoryview(plain(data))
    for batch in batches(view):
        if batch.control:
            continue
        if up_to is not None and batch.first_offset > up_to:
            return
        at = batch.start
        for _ in range(batch.count):
            try:
                length, at = read_varint(view, at)
                end = at + length
                _, at = read_varint(view, at + 1)  # attributes, then the timestamp's delta
                delta, at = read_varint(view, at)
                key_length, at = read_varint(view, at)
                at += max(0, key_length)
                value_length, at = read_varint(view, at)
                offset = batch.first_offset + delta
                if up_to is not None and offset > up_to:
                    return
                frame, body = read_uvarint(view, at)
                api_key, body = read_uvarint(view, body)
                version, body = read_uvarint(view, body)
                if frame != FRAME_VERSION or at + value_length > end or end > batch.end:
                    raise _garbled(f"the record at offset {offset} has frame version {frame}")
                yield Record(offset, batch.epoch, api_key, version, view[body : at + value_length])
                at = end
            except IndexError:
                raise _garbled(f"a record in the batch at offset {batch.first_offset} is cut short") from None


def _garbled(what: str) -> Garbled:
    return Garbled(
        f"the metadata log can't be read: {what}",
        way_out=(
            "compare the controllers' log directories with kafka-dump-log.sh --cluster-metadata-decoder, and take the"
            " report to the project"
        ),
    )
