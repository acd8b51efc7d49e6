"""Copies between disks that stand still, of which no broker says so."""

from __future__ import annotations

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.reassignment.disks import DiskReading

SAMPLE = 5
STILL_SECONDS = 300.0
A_FETCH = 2**20
"""Bytes that a broker copies at once (replica.fetch.max.bytes, as it is by default)."""


class StillCopies:
    """Watches the copies of each broker, look after look. A thread of a broker copies one replica after the other
    (LocalLeaderEndPoint.selectPartitionToFetch), so that one gains nothing says nothing while another does. One that
    has failed stays in DescribeLogDirs as if it went on, and asking for it again begins nothing (KAFKA-9654).
    """

    def __init__(self) -> None:
        self._since: dict[int, tuple[dict[TopicPartition, int], float]] = {}

    def look(self, reading: DiskReading, now: float, throttled: int | None) -> tuple[str, ...]:
        """The copies of brokers of which none has gained a byte for ``STILL_SECONDS``, in words, a broker each; none
        under a throttle of so few bytes a second that this explains it. ``now``: in seconds.
        """
        copied: dict[int, dict[TopicPartition, int]] = {}
        for move in reading.moving:
            if (copy := reading.logs[move.broker].future.get(move.partition)) is not None:
                copied.setdefault(move.broker, {})[move.partition] = copy.size
        since = {broker: self._since.get(broker, ({}, now)) for broker in copied}
        self._since = {b: since[b] if since[b][0] == sizes else (sizes, now) for b, sizes in copied.items()}
        if throttled is not None and throttled * STILL_SECONDS < 2 * A_FETCH:
            return ()
        return tuple(
            f"{some(sorted(sizes), SAMPLE)} of broker {broker} stand still: no byte was copied for {now - at:,.0f} s"
            for broker, (sizes, at) in sorted(self._since.items())
            if now - at >= STILL_SECONDS
        )
