"""The metadata log followed from the active controller: one connection and one replay, read on as often as somebody
asks, each record once.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from kraft_runbook.cluster.observation import ZkMigrationState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.metadata_log_reader import MetadataLogReader, Position
from kraft_runbook.io.kafka.metadata_quorum import LOOKS_AT_AN_ELECTION, QuorumDescription, describe_elected
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.cluster_records import BrokersAndFeatures


class LogFollower:
    """A context manager; entering connects. ``replay`` takes the records; ``position``: where it has come to, None
    where it has read nothing yet.

    ``progress`` hears of the offset and the number of records reached. ``quorum``: as it was described last. ``looks``:
    how often a quorum without a leader is asked before that is said; a reader goes on with the next leader. Raises
    Unreachable.
    """

    quorum: QuorumDescription

    def __init__(
        self,
        spec: ClusterSpec,
        replay: LogReplay,
        *,
        secrets: Secrets,
        position: Position | None = None,
        timeout: float = 30.0,
        looks: int = LOOKS_AT_AN_ELECTION,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.replay = replay
        self._spec = spec
        self._secrets = secrets
        self._position = position
        self._timeout = timeout
        self._looks = looks
        self._progress = progress
        self.past_start: Position | None = None
        """The offset behind the replay's start, and the leader epoch there: from where a later reader goes on."""

    def __enter__(self) -> LogFollower:
        self.quorum = self._described()
        self._reader = MetadataLogReader(
            self._spec, self.quorum.leader_id, self.quorum.leader_epoch, secrets=self._secrets, timeout=self._timeout
        )
        self._reader.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.__exit__(kind, error, trace)

    def _described(self) -> QuorumDescription:
        return describe_elected(self._spec, secrets=self._secrets, looks=self._looks)

    @property
    def position(self) -> Position:
        """The next offset to read."""
        return self._position or Position(0, 0)

    def read_on(self) -> int:
        """Read what is committed by now; the last offset. Raises as ``read_to``."""
        self.quorum = self._described()
        end = self.quorum.high_watermark - 1
        if self.position.offset <= self.replay.start < end:
            self.read_to(self.replay.start)  # to stop there once, and see in which leader's epoch that is
        return self.read_to(end)

    def migration_state_now(self) -> ZkMigrationState | None:
        """What the log says by now. Of the records behind those that were replayed all others are skipped undecoded.
        Raises as ``read_to``.
        """
        self.quorum = self._described()
        seen = BrokersAndFeatures(migration_state=self.replay.migration_state)
        for chunk in self._reader.chunks(end=self.quorum.high_watermark - 1, start=self._position):
            seen.apply(chunk)
        return seen.migration_state

    def read_to(self, end: int) -> int:
        """Read up to ``end``, which must be committed; at once where that was read before.

        Raises LogTruncated when the state at the replay's start can't be had any more, Unreachable when the controller
        does not answer, Garbled where the log is not what Kafka writes.
        """
        chunks = self._reader.chunks(end=end, start=self._position, reach=self.replay.start)
        with ThreadPoolExecutor(1, "metadata-log") as beside:  # the next chunk is fetched while this one is replayed
            coming = beside.submit(next, chunks, None)
            while (chunk := coming.result()) is not None:
                coming = beside.submit(next, chunks, None)
                self.replay.apply(chunk)
                if self._progress is not None:
                    self._progress(self.replay.end, self.replay.records)
        self._position = self._reader.position
        if self._position.offset == self.replay.start + 1:
            self.past_start = self._position
        return end
