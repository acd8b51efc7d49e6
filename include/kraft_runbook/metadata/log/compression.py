"""Compressed record batches, made plain: the four codecs of Kafka's record format (``CompressionType``), by Arrow's own
implementations.

Kafka never compresses the metadata log (none was seen, and the topic has no such setting); a batch that is compressed
all the same is read.
"""

from __future__ import annotations

import struct

import pyarrow as pa

CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""By the lowest three bits of a batch's attributes."""
_XERIAL = b"\x82SNAPPY\0"
"""snappy-java's stream begins so; two int32 (version, compatible) follow, then blocks, each behind its int32 length."""


def decompress(codec: int, data: bytes) -> bytes:
    """What ``data`` holds. Raises ValueError where it is cut short, of another kind, or the codec is unknown."""
    name = CODECS.get(codec, str(codec))
    try:
        if name == "snappy":
            return _snappy(data)
        with pa.CompressedInputStream(pa.BufferReader(data), name) as stream:
            return bytes(stream.read())
    except (OSError, ValueError, IndexError, OverflowError, MemoryError, struct.error) as error:
        raise ValueError(f"it is not what {name} writes ({type(error).__name__})") from None


def _snappy(data: bytes) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data)
    plain, at = b"", len(_XERIAL) + 8
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        if length < 0 or at + 4 + length > len(data):
            raise ValueError("cut short")
        plain += _snappy_block(data[at + 4 : at + 4 + length])
        at += 4 + length
    return plain


def _snappy_block(block: bytes) -> bytes:
    """A block begins with its plain length, an unsigned varint."""
    size = shift = at = 0
    while True:
        byte = block[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return bytes(pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True))
