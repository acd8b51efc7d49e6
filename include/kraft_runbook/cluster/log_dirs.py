"""What lies in the log directories of a broker (DescribeLogDirs, KIP-113; free space: KIP-827)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.assignment import TopicPartition


@dataclass(frozen=True, slots=True)
class LogDir:
    """One directory. ``total`` and ``usable``: bytes of its volume, None where the broker does not say (before 3.3).
    ``error``: why it can't be used; empty where it can.
    """

    path: str
    total: int | None
    usable: int | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class BrokerLogs:
    """One broker's directories, and the bytes of each partition that it holds. A copy that is being made to another
    directory of the same broker is not counted.
    """

    broker: int
    directories: tuple[LogDir, ...]
    sizes: Mapping[TopicPartition, int]

    @property
    def usable(self) -> int | None:
        """Bytes that are free over all volumes; None where a directory does not say.

        Directories that show the same total and the same usable bytes are taken for one volume, so that it is not
        counted twice.
        """
        usable = {(each.total, each.usable) for each in self.directories if not each.error}
        if not usable or any(free is None for _, free in usable):
            return None
        return sum(free or 0 for _, free in usable)
