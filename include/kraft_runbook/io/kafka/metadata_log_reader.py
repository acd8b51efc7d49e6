"""The metadata log over the network, from the active controller, as a plain client may read it (KIP-595, KIP-630).

Fetch names the topic by its id, ``UUID(int=1)``, from version 13; without that, the epoch of DescribeQuorum and the
epoch of the batch before, the controller answers INVALID_REQUEST. Where a snapshot exists, Fetch at offset 0 answers
with its id and no records. Measured on 3.9.2.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import FetchRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.kafka.connection import FetchSnapshotRequest, KafkaConnection, connect_to
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.log.frames import batches
from kraft_runbook.metadata.log.log_chunks import Chunk, SnapshotId

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)
FETCH_VERSION = 16
FETCH_BYTES = 16 * 1024 * 1024
SNAPSHOT_BYTES = 8 * 1024 * 1024
NOT_ALLOWED, NEEDS = 31, "it needs ClusterAction on the cluster"
OLDEST_EPOCHS_TRIED = 64
"""How many leader epochs are tried for the snapshot at the log's start, whose epoch no response tells."""


@dataclass(frozen=True, slots=True)
class Position:
    """The next offset to read, and the leader epoch of the record before it."""

    offset: int
    epoch: int


class LogTruncated(RunbookError):
    """Neither the log nor an available snapshot reaches back to the requested offset."""


class _Stale(Exception):
    """The controller that was asked does not lead any more."""


class MetadataLogReader:
    """Reads committed records from the quorum's leader. A context manager.

    ``leader_id`` and ``leader_epoch`` are those of DescribeQuorum. Raises Unreachable, naming the controller, when it
    answers no more or leads no more.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        leader_id: int,
        leader_epoch: int,
        *,
        secrets: Secrets,
        timeout: float = 10.0,
        connect: Callable[..., KafkaConnection] = connect_to,
    ) -> None:
        if leader_id not in spec.controller_ids:
            raise Unreachable(
                f"the quorum's leader is controller {leader_id}, which the cluster file does not declare",
                way_out=f"add controller {leader_id} to the cluster file, or correct 'controllers' there",
            )
        self._spec = spec
        self._secrets = secrets
        self._timeout = timeout
        self._connect_to = connect
        self._leader_id, self._leader_epoch = leader_id, leader_epoch
        self._connection = self._connect()
        self.position = Position(0, 0)

    def _connect(self) -> KafkaConnection:
        controller = self._spec.controller(self._leader_id)
        return self._connect_to(self._spec, controller, secrets=self._secrets, timeout=self._timeout)

    def __enter__(self) -> MetadataLogReader:
        self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, trace)

    def chunks(self, *, end: int, start: Position | None = None, reach: int | None = None) -> Iterator[Chunk]:
        """The log up to and with offset ``end`` (which must be committed), from ``start``, or from a snapshot or the
        log's beginning.

        ``reach``: the state at this offset is needed, so a later snapshot won't do. Raises LogTruncated if there is no
        earlier one. ``position`` follows.
        """
        if start is None:
            for chunk in self._beginning(reach):
                yield chunk
        else:
            self.position = start
        while self.position.offset <= end:
            partition = self._following(self.position)
            if _not_there(partition):
                raise _truncated(self.position.offset, partition.log_start_offset)
            chunk = Chunk(
                bytes(partition.records or b""),
                since=self.position.offset,
                up_to=min(end, partition.high_watermark - 1),
            )
            yield chunk
            self._advance(chunk)

    def sent_to(self, replica: Position, *, end: int) -> Iterator[Chunk]:
        """What a replica whose own log ends there is sent, up to and with the committed offset ``end``: the records
        from there on, or the newest snapshot and what follows it, where the log does not reach back so far. What only
        the replica's log has is cut off first.
        """
        while replica.offset <= end or replica.epoch < self._leader_epoch:
            partition = self._following(replica)
            if partition.diverging_epoch is not None:
                diverging = Position(partition.diverging_epoch.end_offset, partition.diverging_epoch.epoch)
                if diverging.offset < replica.offset or diverging.epoch < replica.epoch:
                    replica = diverging
                    continue
            yield from self.chunks(end=end, start=None if partition.snapshot_id is not None else replica)
            return

    def _advance(self, chunk: Chunk) -> None:
        for batch in batches(memoryview(chunk.data)):
            if batch.first_offset > chunk.up_to:
                break
            self.position = Position(min(batch.last_offset, chunk.up_to) + 1, batch.epoch)

    # -- where to begin ------------------------------------------------------------------------------------------------

    def _beginning(self, reach: int | None) -> Iterator[Chunk]:
        self.position = Position(0, 0)
        first = self._following(self.position)
        if first.snapshot_id is None:
            return  # the log is whole and no snapshot was taken: fetch from offset 0
        newest = SnapshotId(first.snapshot_id.end_offset, first.snapshot_id.epoch)
        if reach is None or newest.end_offset - 1 <= reach:
            yield from self._snapshot(newest)
        elif first.log_start_offset == 0:
            self.position = self._first_record(newest.epoch)
            return
        elif first.log_start_offset - 1 <= reach:
            yield from self._oldest_snapshot(first.log_start_offset, newest.epoch, reach)
        else:
            raise _truncated(reach, first.log_start_offset)

    def _first_record(self, newest_epoch: int) -> Position:
        """Offset 1 of a whole log: readable with the epoch of offset 0 (a control record), which has to be found by
        trying.
        """
        for epoch in range(newest_epoch + 1):
            partition = self._following(Position(1, epoch))
            if partition.records and not _not_there(partition):
                return Position(1, epoch)
        raise _truncated(0, 1)

    def _oldest_snapshot(self, end_offset: int, newest_epoch: int, reach: int) -> Iterator[Chunk]:
        for epoch in range(newest_epoch, max(-1, newest_epoch - OLDEST_EPOCHS_TRIED), -1):
            chunks = self._snapshot(SnapshotId(end_offset, epoch))
            try:
                first = next(chunks)
            except LogTruncated:
                continue
            yield first
            yield from chunks
            return
        raise _truncated(reach, end_offset)

    def _snapshot(self, wanted: SnapshotId) -> Iterator[Chunk]:
        """A whole snapshot, in chunks of whole batches. Raises LogTruncated where the controller has none of this id
        (any more).
        """
        at, left, begins = 0, b"", True
        while True:
            size, piece = self._snapshot_piece(wanted, at)
            at += len(piece)
            data = left + piece
            whole = max((batch.end for batch in batches(memoryview(data))), default=0)
            if at >= size and whole < len(data):
                raise _truncated(wanted.end_offset - 1, wanted.end_offset)
            yield Chunk(data[:whole], snapshot=wanted, begins=begins)
            left, begins = data[whole:], False
            if at >= size:
                self.position = Position(wanted.end_offset, wanted.epoch)
                return

    def _snapshot_piece(self, wanted: SnapshotId, at: int) -> tuple[int, bytes]:
        """The snapshot's size, and its bytes from ``at`` on, as many as one answer holds."""
        topic = FetchSnapshotRequest.TopicSnapshot
        asked = topic.PartitionSnapshot(
            partition=0,
            current_leader_epoch=self._leader_epoch,
            snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=wanted.end_offset, epoch=wanted.epoch),
            position=at,
        )
        request = FetchSnapshotRequest(
            version=0, replica_id=-1, max_bytes=SNAPSHOT_BYTES, topics=[topic(name=METADATA_TOPIC, partitions=[asked])]
        )
        answer = self._connection.send(request)
        if answer.error_code == NOT_ALLOWED:
            raise self._connection.unreachable(f"FetchSnapshot failed with error {NOT_ALLOWED}: {NEEDS}")
        if answer.error_code or answer.topics[0].partitions[0].error_code:
            raise _truncated(wanted.end_offset - 1, wanted.end_offset)
        piece = answer.topics[0].partitions[0]
        return int(piece.size), bytes(piece.unaligned_records or b"")

    # -- Fetch ---------------------------------------------------------------------------------------------------------

    def _following(self, position: Position) -> Any:
        """Fetch at a position, going on with the new leader when the old one has lost its place."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return self._fetch(position)
            except _Stale:
                if time.monotonic() > deadline:
                    raise self._connection.unreachable(
                        "it does not lead the quorum any more, and no other leader was found in time"
                    ) from None
                time.sleep(0.1)

    def _fetch(self, position: Position) -> Any:
        topic = FetchRequest.FetchTopic
        asked = topic.FetchPartition(
            partition=0,
            current_leader_epoch=self._leader_epoch,
            fetch_offset=position.offset,
            last_fetched_epoch=position.epoch,
            log_start_offset=-1,
            partition_max_bytes=FETCH_BYTES,
        )
        request = FetchRequest(
            version=FETCH_VERSION,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=0,
            topics=[topic(topic_id=METADATA_TOPIC_ID, partitions=[asked])],
        )
        answer = self._connection.send(request)
        if answer.error_code or not answer.responses:
            raise self._connection.unreachable(
                f"Fetch of the metadata log failed with error {answer.error_code} ({NOT_ALLOWED}: {NEEDS})"
            )
        found = answer.responses[0].partitions[0]
        if found.error_code in (6, 74, 75):
            if found.current_leader is not None:
                self._follow(found.current_leader.leader_id, found.current_leader.leader_epoch)
            raise _Stale
        if found.error_code:
            raise self._connection.unreachable(
                f"Fetch of the metadata log at offset {position.offset} failed with error {found.error_code}"
            )
        return found

    def _follow(self, leader_id: int, leader_epoch: int) -> None:
        if leader_id not in self._spec.controller_ids or leader_epoch < self._leader_epoch:
            return
        self._leader_epoch = leader_epoch
        if leader_id != self._leader_id:
            self._connection.__exit__(None, None, None)
            self._leader_id = leader_id
            self._connection = self._connect()


def _not_there(partition: Any) -> bool:
    """Whether the response sends us elsewhere: to a snapshot (the log starts later), or to the end of our epoch."""
    return partition.snapshot_id is not None or partition.diverging_epoch is not None


def _truncated(wanted: int, log_start: int) -> LogTruncated:
    return LogTruncated(
        f"the controllers' metadata log does not reach back to offset {wanted} any more: it starts at {log_start}",
        way_out=(
            "run again; if it persists, wait until /migration has passed the newest snapshot, or raise"
            " metadata.max.retention.bytes and .ms on the controllers"
        ),
    )
