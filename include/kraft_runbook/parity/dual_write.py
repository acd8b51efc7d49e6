"""Dual write as /migration shows it: up to which offset ZooKeeper was written, and whether it still is."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from kraft_runbook.cluster.observation import ClusterObservation, MigrationZnode, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription, describe_elected
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.znodes.cluster_rows import parse_migration
from kraft_runbook.metadata.znodes.znode_values import BadZnode
from kraft_runbook.parity.standstill import CURE

STANDSTILL = 3.0
"""Seconds in which /migration must follow what was committed."""
LOOKS_A_SECOND = 4


class NoProof(RunbookError):
    """A comparison can't be made now, or would prove nothing."""


def read_migration(reader: ZookeeperReader) -> MigrationZnode:
    """/migration as it is now. Raises NoProof where it names no offset."""
    znode = reader.get("/migration")
    if znode is None:
        raise NoProof(
            "/migration is missing, so it is not known up to which offset ZooKeeper was written",
            way_out=(
                "if the controllers run in migration mode, look for errors of KRaftMigrationDriver in their logs; after"
                " a rollback there is nothing to compare"
            ),
        )
    try:
        migration = parse_migration(znode.data)
    except BadZnode as error:
        raise NoProof(
            f"/migration can't be read: {error}",
            way_out="find out who wrote it; the next controller to be elected writes it again",
        ) from None
    if not migration.holds_a_copy:
        raise NoProof(
            "/migration has no offset: no controller has told ZooKeeper the end of the metadata copy",
            way_out="wait for the copy, then run again; kraft-runbook explain says where waiting is in vain",
        )
    return migration


def await_movement(
    spec: ClusterSpec,
    earlier: ClusterObservation,
    *,
    secrets: Secrets,
    within: float,
    opened: Callable[..., ZookeeperReader] = ZookeeperReader,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Wait until /migration has moved since ``earlier``, up to what was committed then, at most ``within`` seconds. The
    next look can then judge.

    It judges nothing and raises nothing. If /migration can't be read or does not move, it returns after ``within``
    seconds.
    """
    ends = monotonic() + within
    with contextlib.suppress(RunbookError), opened(spec.ensemble, secrets=secrets, timeout=within) as reader:
        while not _has_moved(earlier, read_migration(reader)) and monotonic() < ends:
            sleep(1 / LOOKS_A_SECOND)
        return
    sleep(max(0.0, ends - monotonic()))


def _has_moved(earlier: ClusterObservation, now: MigrationZnode) -> bool:
    if not was_read(earlier.zookeeper) or not was_read(earlier.quorum) or earlier.zookeeper.migration is None:
        return False
    before, committed = earlier.zookeeper.migration.kraft_metadata_offset, earlier.quorum.high_watermark - 1
    return now.kraft_metadata_offset > before and now.kraft_metadata_offset >= committed


def require_movement(
    reader: ZookeeperReader,
    spec: ClusterSpec,
    *,
    since: int,
    secrets: Secrets,
    within: float = STANDSTILL,
    describe: Callable[..., QuorumDescription] = describe_elected,
) -> None:
    """Raises NoProof where the metadata log has gone on behind offset ``since`` and /migration stays there: then later
    changes do not reach ZooKeeper, and a comparison up to ``since`` says nothing about now. Where nothing was committed
    behind it, there is nothing that could have moved it. ``within``: seconds in which it must move, from when the log
    was seen to have gone on. Raises Unreachable too.
    """
    if read_migration(reader).kraft_metadata_offset != since:
        return
    written = describe(spec, secrets=secrets).high_watermark - 1
    deadline = time.monotonic() + within
    while written > since and read_migration(reader).kraft_metadata_offset == since:
        if time.monotonic() > deadline:
            raise NoProof(
                f"dual write has stopped: /migration stays at offset {since} while the metadata log has reached"
                f" {written}",
                way_out=CURE,
            )
        time.sleep(1 / LOOKS_A_SECOND)
