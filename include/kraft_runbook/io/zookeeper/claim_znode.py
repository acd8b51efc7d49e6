"""The claim on a cluster as one znode of its own ZooKeeper, written only at the version that was read. So it holds
wherever a task runs.
"""

from __future__ import annotations

from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import ZookeeperWriter
from kraft_runbook.io.zookeeper.znode import Znode

PATH = "/kraft_runbook_claim"
"""Below the chroot. Kafka does not read it, and the migration does not copy it."""


class ClaimZnode:
    """The znode, read and written over one open session."""

    name = f"{PATH} in ZooKeeper"
    way_to_delete = f"delete {PATH} with zookeeper-shell"

    def __init__(self, zookeeper: ZookeeperReader) -> None:
        self._zookeeper = zookeeper
        self._read: Znode | None = None

    def read(self) -> bytes | None:
        self._read = self._zookeeper.get(PATH)
        return None if self._read is None else self._read.data

    def write(self, data: bytes) -> bool:
        """Create it, or replace what was read. False if another run was quicker. Raises RunbookError if ZooKeeper does
        not let this tool write.
        """
        writer = ZookeeperWriter(self._zookeeper)
        return writer.create(PATH, data) if self._read is None else writer.replace(self._read, data)

    def delete(self) -> bool:
        return self._read is not None and ZookeeperWriter(self._zookeeper).delete(self._read)
