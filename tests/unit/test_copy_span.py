"""The copy's span is read from the log's own time stamps, in whatever pieces the log comes."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest
from metadata_encoding import batch, partition, record, topic

from kraft_runbook.cluster.observation import CopySpan
from kraft_runbook.metadata.log.cluster_records import BrokersAndFeatures
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId
from kraft_runbook.metadata.log.record_schemas import RecordType

BEGAN = datetime(2026, 3, 4, 10, 0, 0, 250_000, tzinfo=UTC)
BEGIN, END, ABORT = (
    record(RecordType.BEGIN_TRANSACTION, name="ZK Migration"),
    record(RecordType.END_TRANSACTION),
    record(RecordType.ABORT_TRANSACTION, reason="x"),
)
OTHER = record(RecordType.BEGIN_TRANSACTION, name="Bootstrap records")


def at(seconds: float, offset: int, *values: bytes) -> bytes:
    """A batch appended so many seconds after BEGAN."""
    stamped = bytearray(batch(offset, *values))
    milliseconds = round((BEGAN.timestamp() + seconds) * 1000)
    struct.pack_into(">qq", stamped, 27, milliseconds, milliseconds)
    return bytes(stamped)


COPY = [at(-1, 0, topic()), at(0, 1, BEGIN), at(2, 2, topic("b"), partition()), at(36.9, 4, END), at(40, 5, topic("c"))]


def seconds_of(pieces: list[bytes]) -> BrokersAndFeatures:
    state, since = BrokersAndFeatures(), 0
    for piece in pieces:
        state = state.copy()  # as it is kept between two looks
        state.apply(Chunk(piece, since=since, up_to=10_000))
        since += sum(1 for each in Chunk(piece, up_to=10_000).records())
    return state


@pytest.mark.parametrize(
    "pieces",
    [[b"".join(COPY)], COPY, [b"".join(COPY[:2]), b"".join(COPY[2:])]],
    ids=["whole", "batch by batch", "in two looks"],
)
def test_from_the_transaction_s_first_record_to_its_last(pieces: list[bytes]) -> None:
    span = seconds_of(pieces).copied.span
    assert span == CopySpan(BEGAN, datetime(2026, 3, 4, 10, 0, 37, 150_000, tzinfo=UTC), 2)
    assert span.seconds == 36.9


def test_a_copy_under_way_and_one_that_was_aborted_have_no_span() -> None:
    assert seconds_of(COPY[:3]).copied.span is None
    assert seconds_of([at(0, 1, BEGIN), at(1, 2, topic()), at(2, 3, ABORT), at(3, 4, END)]).copied.span is None


def test_the_copy_that_came_after_an_aborted_one_is_the_one_that_counts() -> None:
    span = seconds_of(
        [at(0, 1, BEGIN), at(2, 2, ABORT), at(10, 3, BEGIN), at(11, 4, topic()), at(15, 5, END)]
    ).copied.span
    assert span is not None and (span.seconds, span.records) == (5.0, 1)


def test_another_transaction_is_no_copy() -> None:
    assert seconds_of([at(0, 1, OTHER), at(2, 2, topic()), at(3, 3, END)]).copied.span is None


def test_a_snapshot_does_not_tell() -> None:
    state = BrokersAndFeatures()
    state.apply(Chunk(b"".join(COPY), snapshot=SnapshotId(6, 1)))
    assert state.copied.span is None
