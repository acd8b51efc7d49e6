"""What time it is by the clock that the znodes' times are of: that of ZooKeeper's leader."""

from __future__ import annotations

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import ZookeeperWriter


def read_clock(reader: ZookeeperReader) -> int | Unread:
    """Milliseconds since the epoch; Unread where this tool may not create a znode."""
    try:
        return ZookeeperWriter(reader).clock_ms()
    except RunbookError as error:
        return Unread(error.problem, way_out=error.way_out)
