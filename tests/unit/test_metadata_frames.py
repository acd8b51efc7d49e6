"""Cutting the log's bytes into records."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_encoding import NO_OP, batch, config, log, uvarint, varint

from kraft_runbook.metadata.log.frames import Garbled, read_uvarint, read_varint, records
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId
from kraft_runbook.metadata.log.record_index import index_records


@given(st.integers(0, 2**35 - 1))
def test_an_unsigned_varint_reads_back(value: int) -> None:
    assert read_uvarint(b"xx" + uvarint(value) + b"tail", 2) == (value, 2 + len(uvarint(value)))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_zigzag_varint_reads_back(value: int) -> None:
    assert read_varint(varint(value), 0) == (value, len(varint(value)))


def test_an_endless_varint_is_garbled() -> None:
    with pytest.raises(Garbled, match="longer than five bytes"):
        read_uvarint(b"\xff" * 12, 0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 40))
def test_records_come_in_order_and_a_batch_that_is_cut_short_is_left_out(sizes: list[int], cut: int) -> None:
    data, offset, ends = b"", 0, []
    for size in sizes:
        data += batch(offset, *[config("k", str(at)) for at in range(size)])
        offset += size
        ends.append((len(data), offset))
    kept = max((end for length, end in ends if length <= len(data) - cut), default=0)
    assert [each.offset for each in records(data[: len(data) - cut])] == list(range(kept))


def test_control_batches_hold_no_metadata() -> None:
    data = batch(0, b"\0\0\0\0", control=True) + batch(1, NO_OP)
    assert [each.offset for each in records(data)] == [1]


def test_records_above_the_high_watermark_are_not_given() -> None:
    assert [each.offset for each in records(batch(5, NO_OP, NO_OP, NO_OP), up_to=6)] == [5, 6]


def test_a_chunk_skips_what_was_read_before() -> None:
    assert [each.offset for each in Chunk(batch(5, NO_OP, NO_OP, NO_OP), since=6, up_to=9).records()] == [6, 7]


def test_the_records_of_a_snapshot_take_effect_at_its_last_offset() -> None:
    chunk = Chunk(log(NO_OP, NO_OP), snapshot=SnapshotId(end_offset=100, epoch=3))
    assert [each.offset for each in chunk.records()] == [99, 99]


@pytest.mark.parametrize(("codec", "name"), [(1, "gzip"), (2, "snappy"), (3, "lz4"), (4, "zstd")])
def test_compressed_batches_are_read_beside_plain_ones(codec: int, name: str) -> None:
    values = [config("k", "v" * at) for at in range(50)]
    data = batch(0, NO_OP) + batch(1, *values, codec=codec) + batch(51, NO_OP)
    assert len(data) < len(batch(1, *values))
    assert [(r.offset, bytes(r.body)) for r in records(data)] == [
        (r.offset, bytes(r.body)) for r in records(batch(0, NO_OP) + batch(1, *values) + batch(51, NO_OP))
    ]
    assert index_records(Chunk(data, up_to=99)).offset.tolist() == list(range(52))
    broken = bytearray(data)
    start = len(batch(0, NO_OP)) + 61  # where the batch's records begin
    broken[start : start + 40] = b"\xff" * 40
    with pytest.raises(Garbled, match=f"offset 1 can't be decompressed: it is not what {name} writes"):
        list(records(bytes(broken)))


def test_a_foreign_or_broken_batch_is_garbled_and_named_by_its_offset() -> None:
    data = bytearray(batch(42, NO_OP))
    data[22] |= 1  # attributes: gzip, which the bytes are not
    with pytest.raises(Garbled, match="offset 42 can't be decompressed: it is not what gzip writes"):
        list(records(bytes(data)))
    data = bytearray(batch(42, NO_OP))
    data[16] = 1  # magic
    with pytest.raises(Garbled, match="offset 42 has magic 1"):
        list(records(bytes(data)))
