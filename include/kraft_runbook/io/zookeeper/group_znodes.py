"""What a move of a consumer group writes below /consumers/<group>: its fence, and its offsets on the way back; and what
a toggle writes there: the mode.

The fence is an owner znode for each partition that no session holds. A ``ZookeeperConsumerConnector`` that is started
by mistake can't take the partition: it consumes nothing and ends with ConsumerRebalanceFailedException (measured with
1.1.1). One that owns the partition already would delete it at its next rebalance: so nobody may be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.groups.look import COMMITTED, Mode, Partition
from kraft_runbook.io.slices import slices
from kraft_runbook.io.zookeeper.read_groups import CONSUMERS
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import ZookeeperWriter
from kraft_runbook.io.zookeeper.znode import Znode

FENCE = b"kraft-runbook: this group has moved to Kafka's coordination"
MARKED = FENCE + COMMITTED.encode()
"""The fence of a partition once Kafka has the group's offsets; any other persistent owner znode is a fence too."""
WRITES_AT_ONCE = 500
TRIES = 3
Writes = Callable[[ZookeeperReader], ZookeeperWriter]
"""Who writes over a reader's session."""


def fence(
    reader: ZookeeperReader,
    group: str,
    partitions: Iterable[Partition],
    *,
    writer: Writes = ZookeeperWriter,
    at_once: int = WRITES_AT_ONCE,
) -> int:
    """Make the fence of each partition; returns how many were not fenced before. Some hundred partitions are fenced
    together or none of them. Raises Refused where a session owns a partition, Unreachable, WriteRefused.
    """
    return _in_slices(partial(_fence, reader, group, writer), group, partitions, at_once)


def _fence(reader: ZookeeperReader, group: str, writer: Writes, some: Sequence[Partition]) -> int | None:
    paths = [_path(group, "owners", each) for each in some]
    found = reader.get_many(paths)
    for znode in found:
        if znode is not None and znode.ephemeral_owner:
            raise Refused(
                f"{znode.path} is held by a session, of {znode.data.decode('utf-8', 'replace')}: an old member runs",
                way_out="stop it, then do this step again",
            )
    missing = [path for path, znode in zip(paths, found, strict=True) if znode is None]
    make = [*_parents(reader, group, "owners", some), *((path, FENCE) for path in missing)] if missing else []
    return len(missing) if writer(reader).write_together(make=make) else None


def mark_committed(
    reader: ZookeeperReader,
    group: str,
    partitions: Iterable[Partition],
    *,
    writer: Writes = ZookeeperWriter,
    at_once: int = WRITES_AT_ONCE,
) -> int:
    """Let the fences of these partitions say that Kafka has the group's offsets; returns how many did not. Where there
    is no fence, or a session holds the partition, nothing is written. Raises StepFailed, Unreachable, WriteRefused.
    """
    return _in_slices(partial(_mark, reader, group, writer), group, partitions, at_once)


def _mark(reader: ZookeeperReader, group: str, writer: Writes, some: Sequence[Partition]) -> int | None:
    found = reader.get_many([_path(group, "owners", each) for each in some])
    fences = [(z, MARKED) for z in found if z is not None and not z.ephemeral_owner and z.data != MARKED]
    return len(fences) if writer(reader).write_together(replace=fences) else None


def lift_fence(
    reader: ZookeeperReader,
    group: str,
    partitions: Iterable[Partition],
    *,
    writer: Writes = ZookeeperWriter,
    at_once: int = WRITES_AT_ONCE,
) -> int:
    """Delete the persistent owner znodes of these partitions; returns how many there were. One that a session holds is
    left alone. Raises Unreachable, WriteRefused.
    """
    return _in_slices(partial(_lift, reader, group, writer), group, partitions, at_once)


def _lift(reader: ZookeeperReader, group: str, writer: Writes, some: Sequence[Partition]) -> int | None:
    found = reader.get_many([_path(group, "owners", each) for each in some])
    fences = [each for each in found if each is not None and not each.ephemeral_owner]
    return len(fences) if writer(reader).write_together(delete=fences) else None


def write_offsets(
    reader: ZookeeperReader, group: str, offsets: Mapping[Partition, int], *, writer: Writes = ZookeeperWriter
) -> int:
    """Let these partitions have these offsets; returns how many had others. Each znode is written at the version that
    was read. Raises StepFailed where somebody else writes them, Unreachable, WriteRefused.
    """
    return _in_slices(partial(_write, reader, group, writer, offsets), group, offsets, WRITES_AT_ONCE)


def read_mode(reader: ZookeeperReader, group: str) -> Znode | None:
    """The znode that toggles the group (KIP-125); None where there is none. Raises Unreachable."""
    (found,) = reader.get_many([mode_path(group)])
    return found


def write_mode(
    reader: ZookeeperReader, group: str, mode: Mode, seen: Znode | None, *, writer: Writes = ZookeeperWriter
) -> bool:
    """Let the mode's znode say this. ``seen``: as it was read, None where it was not there. False where somebody else
    has written it since, or the group has no migration/ids: nothing is written then. Raises WriteRefused, Unreachable.
    """
    data = mode.value.encode()
    if seen is None:
        return writer(reader).write_together(make=[(mode_path(group), data)])
    return writer(reader).write_together(replace=[(seen, data)])


def mode_path(group: str) -> str:
    """``kafka``: Kafka assigns. Absent or anything else: ZooKeeper does."""
    return f"{CONSUMERS}/{group}/migration/mode"


def _write(
    reader: ZookeeperReader, group: str, writer: Writes, offsets: Mapping[Partition, int], some: Sequence[Partition]
) -> int | None:
    wanted = {_path(group, "offsets", each): str(offsets[each]).encode() for each in some}
    found = reader.get_many(list(wanted))
    missing = [(path, data) for (path, data), znode in zip(wanted.items(), found, strict=True) if znode is None]
    others = [(znode, wanted[znode.path]) for znode in found if znode is not None and znode.data != wanted[znode.path]]
    make = [*_parents(reader, group, "offsets", some), *missing] if missing else []
    done = writer(reader).write_together(make=make, replace=others)
    return len(missing) + len(others) if done else None


def _parents(reader: ZookeeperReader, group: str, kind: str, some: Sequence[Partition]) -> Iterator[tuple[str, bytes]]:
    """Those that are missing above the znodes, the highest first."""
    root = f"{CONSUMERS}/{group}"
    paths = [root, f"{root}/{kind}", *dict.fromkeys(f"{root}/{kind}/{topic}" for topic, _ in some)]
    znodes: list[Znode | None] = reader.get_many(paths)
    return ((path, b"") for path, znode in zip(paths, znodes, strict=True) if znode is None)


def _in_slices(
    write: Callable[[Sequence[Partition]], int | None], group: str, partitions: Iterable[Partition], at_once: int
) -> int:
    """What was written of all, so many partitions at a time."""
    return sum(_again(write, group, some) for some in slices(sorted(partitions), at_once))


def _again(write: Callable[[Sequence[Partition]], int | None], group: str, some: Sequence[Partition]) -> int:
    """What was written; read and tried anew where something changed in between."""
    for _ in range(TRIES):
        done = write(some)
        if done is not None:
            return done
    raise StepFailed(
        f"the znodes of group {group} changed {TRIES} times while they were written: somebody else writes them",
        way_out="stop the group's old members, then do this step again: it leaves alone whatever is already so",
    )


def _path(group: str, kind: str, partition: Partition) -> str:
    return f"{CONSUMERS}/{group}/{kind}/{partition[0]}/{partition[1]}"
