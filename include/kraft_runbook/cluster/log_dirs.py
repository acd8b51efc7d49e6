"""What lies in the log directories of a broker (DescribeLogDirs, KIP-113; free space: KIP-827)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.assignment import TopicPartition


@dataclass(frozen=True, slots=True)
class LogDir:
    """One directory. ``total`` and ``usable``: bytes of its volume, None where the broker does not say (before 3.3).
    ``error``: why it can't be used; empty where it can. ``logs``: how many replicas lie in it.
    """

    path: str
    total: int | None
    usable: int | None
    error: str = ""
    logs: int = 0


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
        """Bytes that replicas which come may take; None where a directory does not say.

        A replica that comes goes into the directory with the fewest logs, however full its volume is
        (LogManager.nextLogDirs): a full volume beside an empty one is no room. So only the directories with the fewest
        logs count, with those that have a tenth more. They take replicas in turn, until the fullest is full.
        Directories that show the same total and the same usable bytes are taken for one volume.
        """
        working = [each for each in self.directories if not each.error]
        if not working or any(each.usable is None for each in working):
            return None
        most = max(each.logs for each in working)
        fewest = min(each.logs for each in working)
        taking = {(each.total, each.usable) for each in working if each.logs - fewest <= max(1, most // 10)}
        return min(free or 0 for _, free in taking) * len(taking)
