"""The claim on a cluster, or on a consumer group, as one znode of its own ZooKeeper, written only at the version that
was read. So it holds wherever a task runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_groups import CONSUMERS
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import ZookeeperWriter
from kraft_runbook.io.zookeeper.znode import Znode

PATH = "/kraft_runbook_claim"
"""Below the chroot. Kafka does not read it, and the migration does not copy it."""


def group_path(group: str) -> str:
    """Where a consumer group's claim lies. Consumers do not read it, and the migration does not copy it."""
    return f"{CONSUMERS}/{group}/kraft_runbook_claim"


class ClaimZnode:
    """The znode, read and written over one open session."""

    def __init__(
        self,
        zookeeper: ZookeeperReader,
        path: str = PATH,
        *,
        writer: Callable[[ZookeeperReader], ZookeeperWriter] = ZookeeperWriter,
    ) -> None:
        self._zookeeper, self._path, self._writer = zookeeper, path, writer
        self.name = f"{path} in ZooKeeper"
        self.way_to_delete = f"delete {path} with zookeeper-shell"
        self._read: Znode | None = None

    def read(self) -> bytes | None:
        self._read = self._zookeeper.get(self._path)
        return None if self._read is None else self._read.data

    def write(self, data: bytes) -> bool:
        """Create it, or replace what was read. False if another run was quicker. Raises RunbookError if ZooKeeper does
        not let this tool write.
        """
        writer = self._writer(self._zookeeper)
        return writer.create(self._path, data) if self._read is None else writer.replace(self._read, data)

    def delete(self) -> bool:
        return self._read is not None and self._writer(self._zookeeper).delete(self._read)


@contextmanager
def claim_znode(zookeeper: ZooKeeper, *, secrets: Secrets) -> Iterator[ClaimZnode]:
    """The znode, over a session of its own. Raises Unreachable."""
    with ZookeeperReader(zookeeper, secrets=secrets) as reader:
        yield ClaimZnode(reader)


@contextmanager
def claim_znodes(zookeeper: ZooKeeper, *, secrets: Secrets) -> Iterator[Callable[[str], ClaimZnode]]:
    """The znode at any path, over one session. Raises Unreachable."""
    with ZookeeperReader(zookeeper, secrets=secrets) as reader:
        yield lambda path: ClaimZnode(reader, path)


@contextmanager
def claims_of_groups(zookeeper: ZooKeeper, *, secrets: Secrets) -> Iterator[Mapping[str, ClaimZnode]]:
    """The claims on consumer groups that are there now, each by its group, over one session. Raises Unreachable."""
    with ZookeeperReader(zookeeper, secrets=secrets) as reader:
        groups = reader.children(CONSUMERS) or ()
        found = reader.get_many([group_path(each) for each in groups])
        there = [group for group, znode in zip(groups, found, strict=True) if znode is not None]
        yield {group: ClaimZnode(reader, group_path(group)) for group in there}
