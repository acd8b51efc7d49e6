"""One consumer group on both sides, ZooKeeper's and Kafka's: one look at it, and the writes that a move is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.groups.look import GroupLook, Mode, Partition
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.io.kafka.group_commits import commit_offsets
from kraft_runbook.io.kafka.group_members import remove_static_members
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper import group_znodes
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.procedures.see_groups import look_at_groups


@dataclass(frozen=True, slots=True)
class GroupSides:
    """``group``: its name. Each write raises as the client's that it is made by."""

    spec: ClusterSpec
    group: str
    secrets: Secrets

    def look(self, *plans: MovePlan) -> GroupLook:
        """``plans``: as of ``look_at_groups``. Raises Refused where it is not below /consumers, Unreachable."""
        found = look_at_groups(self.spec, secrets=self.secrets, names=[self.group], plans=plans)
        if not found:
            raise Refused(
                f"there is no group {self.group} below /consumers",
                way_out="kraft-runbook groups scan names those there are",
            )
        return found[0]

    # -- ZooKeeper's ---------------------------------------------------------------------------------------------------

    def fence(self, partitions: Iterable[Partition]) -> int:
        """Returns how many were not fenced before."""
        with self._zookeeper() as reader:
            return group_znodes.fence(reader, self.group, partitions)

    def mark_committed(self, partitions: Iterable[Partition]) -> None:
        with self._zookeeper() as reader:
            group_znodes.mark_committed(reader, self.group, partitions)

    def lift_fence(self, partitions: Iterable[Partition]) -> int:
        """Returns how many were fenced."""
        with self._zookeeper() as reader:
            return group_znodes.lift_fence(reader, self.group, partitions)

    def write_offsets(self, offsets: Mapping[Partition, int]) -> None:
        with self._zookeeper() as reader:
            group_znodes.write_offsets(reader, self.group, offsets)

    def read_mode(self) -> Znode | None:
        """The znode that says which side migrating members follow."""
        with self._zookeeper() as reader:
            return group_znodes.read_mode(reader, self.group)

    def write_mode(self, mode: Mode, seen: Znode | None) -> bool:
        """False where it is not any more as it was ``seen``."""
        with self._zookeeper() as reader:
            return group_znodes.write_mode(reader, self.group, mode, seen)

    def _zookeeper(self) -> ZookeeperReader:
        return ZookeeperReader(self.spec.ensemble, secrets=self.secrets)

    # -- Kafka's -------------------------------------------------------------------------------------------------------

    def commit(self, offsets: Mapping[Partition, int], *, kept: bool) -> None:
        """``kept``: as of ``commit_offsets``."""
        commit_offsets(self.spec, self.group, offsets, kept=kept, secrets=self.secrets)

    def remove_static(self, names: Sequence[str]) -> None:
        remove_static_members(self.spec, self.group, names, secrets=self.secrets)


OfGroup = Callable[[ClusterSpec, str, Secrets], GroupSides]
