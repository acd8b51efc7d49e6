"""Giving the controller role back to ZooKeeper: deleting the znodes that name a KRaft controller.

One transaction deletes them, each only at the version that was read. If anyone else changed one of them after that,
nothing is deleted. The same transaction sets /controller_epoch where it is lower than an epoch that a partition's state
may hold: the ZooKeeper controller, whose epoch is the next number, could elect no leader for such a partition
(``metadata.znodes.state_epochs``).

/controller_epoch is never set without deleting /controller. A ZooKeeper controller that leads is fenced by that znode's
version, and brokers that are about to be elected would all fail at another version, and not try again
(``KafkaZkClient.registerControllerAndIncrementControllerEpoch``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from kazoo.exceptions import KazooException, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError

from kraft_runbook.cluster.observation import MigrationZnode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError, StepFailed
from kraft_runbook.io.zookeeper.read_epochs import CONTROLLER_EPOCH, number_in
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import ZookeeperWriter
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.znodes.cluster_rows import parse_controller, parse_migration
from kraft_runbook.metadata.znodes.znode_values import BadZnode

REASSIGNMENT = "/admin/reassign_partitions"
"""KRaft never deletes it. A ZooKeeper controller that finds it would carry out an old reassignment again (inferred from
3.9's code).
"""


BESIDE = "/brokers"
"""A sibling of /controller and /migration in every Kafka cluster. It has children, so no mistake can delete it."""
BESIDE_REASSIGNMENT = "/admin/delete_topics"


class NothingDeleted(StepFailed):
    """ZooKeeper answered that it deleted nothing, so the stopped controllers may run again."""


@dataclass(frozen=True, slots=True)
class ControllerZnodes:
    """/controller, /migration, /admin/reassign_partitions and /controller_epoch as they were read, for a guarded
    deletion.
    """

    controller: Znode | None
    migration: Znode | None
    reassignment: Znode | None
    epoch: Znode | None = None

    @property
    def held_by_kraft(self) -> bool:
        """Whether /controller names a KRaft controller (KIP-866: ``kraftControllerEpoch``)."""
        return self.controller is not None and parse_controller(self.controller.data).kraft_controller_epoch >= 0

    @property
    def cut_off(self) -> bool:
        """Whether /controller names a broker that can write nothing, since someone set /controller_epoch after its
        election (``ControllerZnode.epoch_set_after``).
        """
        if self.controller is None or self.epoch is None or self.held_by_kraft:
            return False
        return self.epoch.mzxid > self.controller.czxid

    @property
    def kraft_epoch(self) -> int:
        """The raft epoch of the KRaft controller in /controller; -1 if that names none.

        It bounds what KRaft has written into partition states since it took the controller role: each of its writes
        checks the version of /controller_epoch, and each claim changes that and names a higher raft epoch here
        (``KafkaZkClient.tryRegisterKRaftControllerAsActiveController``).
        """
        return -1 if self.controller is None else parse_controller(self.controller.data).kraft_controller_epoch

    def epoch_wanted(self, greatest: int) -> int | None:
        """What /controller_epoch must be set to, so that no epoch up to ``greatest`` is above it; None if it is enough.
        Raises RunbookError if it is no number.
        """
        if self.epoch is None:
            return None  # no controller was ever elected
        return greatest if greatest > number_in(self.epoch) else None

    def doomed(self, *, epoch: int | None) -> tuple[Znode, ...]:
        """What leaving KRaft deletes, or an election anew; ``epoch`` as in ``delete_controller_znodes``."""
        found = [
            self.migration,
            self.controller if self.held_by_kraft or self.cut_off or epoch is not None else None,
            self.reassignment if self.held_by_kraft else None,
        ]
        return tuple(znode for znode in found if znode is not None)

    @property
    def written_to(self) -> MigrationZnode | None:
        """The content of /migration; None if it does not exist or no controller has copied anything."""
        if self.migration is None:
            return None
        found = parse_migration(self.migration.data)
        return found if found.holds_a_copy else None


def why_not_deletable(reader: ZookeeperReader) -> str | None:
    """Why this session may not delete these znodes; None if it may. Changes nothing.

    ZooKeeper checks DELETE on the parent, not on the znode: Kafka's root for /controller and /migration. Raises
    Unreachable.
    """
    found, writer = [], ZookeeperWriter(reader)
    if not writer.may_delete_beside(BESIDE):
        found.append(f"/controller and /migration ({_no_delete(reader)})")
    left = reader.get_many([REASSIGNMENT, BESIDE_REASSIGNMENT])
    if all(left) and not writer.may_delete_beside(BESIDE_REASSIGNMENT):
        found.append(f"{REASSIGNMENT} (NoAuth: no DELETE on /admin, whose ACL is {reader.acl('/admin')})")
    return f"this tool may not delete {' and '.join(found)}" if found else None


def _no_delete(reader: ZookeeperReader) -> str:
    return f"NoAuth: no DELETE on their parent, whose ACL is {reader.acl('/')}"


def why_epoch_not_writable(reader: ZookeeperReader) -> str | None:
    """Why this session may not write /controller_epoch; None if it may, and if there is none. Changes nothing. Matters
    only where another number must be set. Raises Unreachable.
    """
    if ZookeeperWriter(reader).may_write(CONTROLLER_EPOCH):
        return None
    return f"this tool may not write {CONTROLLER_EPOCH} (NoAuth: no WRITE; its ACL is {reader.acl(CONTROLLER_EPOCH)})"


GRANT = (
    "give this tool an identity that has this right ('zookeeper.security' in the cluster file; the brokers' identity"
    " has it if zookeeper.set.acl made the ACLs), or grant it (setAcl in zookeeper-shell.sh, as an administrator of the"
    " ensemble)"
)


def require_deletable(reader: ZookeeperReader) -> None:
    """Raise Refused if this session may not delete these znodes, before anything is stopped."""
    _require(why_not_deletable(reader))


def require_controller_deletable(reader: ZookeeperReader) -> None:
    """The same of /controller alone."""
    may = ZookeeperWriter(reader).may_delete_beside(BESIDE)
    _require(None if may else f"this tool may not delete /controller ({_no_delete(reader)})")


def require_epoch_settable(reader: ZookeeperReader, znodes: ControllerZnodes, greatest: int) -> str | None:
    """Raise Refused, before anything is stopped, if /controller_epoch must be set for epochs up to ``greatest`` and
    this session may not write it. Where nothing must be set: why it could not be, or None.
    """
    why_not = why_epoch_not_writable(reader)
    wanted = znodes.epoch_wanted(greatest)
    if wanted is None:
        return why_not
    _require(why_not and f"{why_not}, which must be set to {wanted}")
    return None


def _require(why_not: str | None) -> None:
    if why_not:
        raise Refused(f"{why_not}; nothing was stopped", way_out=f"{GRANT}; then clear this task")


def read_controller_znodes(reader: ZookeeperReader) -> ControllerZnodes:
    """Read the four znodes. /controller_epoch, which guards the others, comes first: a server before ZooKeeper 3.6 is
    read one by one, and a claim between two reads must show in that version. Raises Unreachable, BadZnode.
    """
    epoch, controller, migration, reassignment = reader.get_many(
        [CONTROLLER_EPOCH, "/controller", "/migration", REASSIGNMENT]
    )
    return ControllerZnodes(controller, migration, reassignment, epoch)


def delete_controller_znodes(
    reader: ZookeeperReader, znodes: ControllerZnodes, *, epoch: int | None = None
) -> tuple[str, ...]:
    """Delete /migration and, if /controller names a KRaft controller, /controller and /admin/reassign_partitions, each
    at the version that was read: all or none. Returns the paths.

    ``epoch``: what /controller_epoch is set to in the same transaction (``ControllerZnodes.epoch_wanted``). Then
    /controller is deleted whomever it names, so that a broker is elected with the number after it. So it is where its
    controller can write nothing (``ControllerZnodes.cut_off``). Nothing happens if
    anyone has claimed the controller role since the znodes were read, which changes /controller_epoch; also where there
    is nothing to delete, that is looked at.

    Raises NothingDeleted if one was changed, if ZooKeeper refused, or if an epoch must be set while nobody has the
    controller role; StepFailed if it is not known whether ZooKeeper deleted them.
    """
    if epoch is not None and znodes.controller is None:
        raise NothingDeleted(
            f"{CONTROLLER_EPOCH} must be set to {epoch}, and nobody has the controller role: brokers that are about to"
            " be elected would fail, and not try again",
            way_out="wait until /controller names a broker, then clear this task",
        )
    deleted = list(znodes.doomed(epoch=epoch))
    guard = znodes.epoch
    found = deleted if guard is None else [guard, *deleted]
    if not found:
        return ()
    writer = ZookeeperWriter(reader)
    try:
        if guard is None:
            answers = writer.delete_all(deleted)
        elif epoch is None:
            answers = writer.delete_all(deleted, unchanged=guard)
        else:
            answers = writer.delete_all(deleted, first=(guard, b"%d" % epoch))
    except (KazooException, KazooTimeoutError, OSError) as error:
        raise StepFailed(
            f"{_names(deleted)} could not be deleted: {type(error).__name__}"
            if deleted
            else f"whether {_names(found)} changed could not be looked at: {type(error).__name__}",
            way_out=(
                "make ZooKeeper reachable for this tool with the brokers' identity, then clear this task: it goes on"
                " from what it finds"
            ),
        ) from None
    if any(isinstance(answer, NoAuthError) for answer in answers):
        refused = [znode for znode, answer in zip(found, answers, strict=True) if isinstance(answer, NoAuthError)]
        why_not = why_not_deletable(reader) or why_epoch_not_writable(reader) or "the right was given back meanwhile"
        raise NothingDeleted(
            f"{_names(refused)} could not be changed (NoAuth), so nothing was; {why_not}", way_out=GRANT
        )
    if any(isinstance(answer, Exception) for answer in answers):
        raise NothingDeleted(
            f"nothing was deleted: one of {_names(found)} changed after it was read", way_out=_after_a_change(reader)
        )
    return tuple(znode.path for znode in deleted)


def _after_a_change(reader: ZookeeperReader) -> str:
    """What to do where someone else changed the znodes: an election of a broker is nothing wrong."""
    try:
        now = reader.get("/controller")
        holder = None if now is None else parse_controller(now.data)
    except (RunbookError, BadZnode):
        holder = None
    if holder is None:
        return "clear this task: it begins again with what ZooKeeper holds then"
    if holder.kraft_controller_epoch < 0:
        return (
            f"clear this task: it begins again with broker {holder.broker_id}, which is the controller now. If this"
            " comes again and again, find in the brokers' controller.log why they elect each other"
        )
    return (
        f"KRaft controller {holder.broker_id} is in /controller now. Find the running controller that the cluster file"
        " does not name, stop it, then clear this task"
    )


def await_election(reader: ZookeeperReader, spec: ClusterSpec, *, within: float) -> int:
    """The id of the broker that ZooKeeper elected. Raises StepFailed after ``within`` seconds (measured:
    0.02 to 0.16).
    """
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        znode = reader.get("/controller")
        if znode is not None:
            found = parse_controller(znode.data)
            if found.kraft_controller_epoch < 0 and found.broker_id in spec.broker_ids:
                return found.broker_id
        time.sleep(0.01)
    raise StepFailed(
        f"no broker was elected controller within {within:.0f} s after /controller was deleted",
        way_out=(
            "check that a broker runs in ZooKeeper or migration mode and reaches ZooKeeper (its log names"
            " 'KafkaController'); then clear this task"
        ),
    )


def _names(znodes: list[Znode]) -> str:
    return ", ".join(znode.path for znode in znodes)
