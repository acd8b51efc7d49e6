"""Raising the version of a state znode that is lower than its partition's epoch, before KRaft is left.

Why that matters: ``parity.partition_epochs``. The znode's own bytes are written again while KRaft leads, each time only
at the version just read, until the version equals the epoch. KRaft's own writes accept any version
(``ZkTopicMigrationClient``: MatchAnyVersion), so none of them fails because of that. If one comes in between, our write
fails, and the znode is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.zookeeper.handover import read_controller_znodes
from kraft_runbook.io.zookeeper.multi_read import MAX_REQUEST_BYTES
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import WriteRefused, ZookeeperWriter
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.parity.final_proof import FinalProof
from kraft_runbook.parity.state_versions import Behind

ROUNDS = 10
"""How often all partitions are checked before leaving is given up.

Each round raises every version that it finds too low; in the next round only new changes can be lower.
"""
WRITES_AT_ONCE = 1000
Mend = Callable[[ZookeeperReader, Sequence[Behind]], tuple[Behind, ...]]


def raise_all(proof: FinalProof, *, tell: Callable[[str], None]) -> tuple[Behind, ...]:
    """Check every partition and raise the versions that are lower than their epochs, until none is. Returns the
    partitions whose version was raised. ``prove_and_raise`` does the same for partitions that change later.

    It can be interrupted anywhere and begun again.

    Raises StepFailed if ZooKeeper refuses, or if after ``ROUNDS`` rounds some versions are still lower; Unreachable,
    NoProof.
    """
    raised: list[Behind] = []
    with proof.paced_reader() as reader:
        for _ in range(ROUNDS):
            proof.read_on()
            found = proof.look_at_epochs(reader)
            if not found.behind:
                tell(found.summary)
                return tuple(raised)
            tell(f"{found.summary}; their own bytes are written again until each version equals the epoch")
            raised += raise_versions(reader, found.behind)
    raise StepFailed(
        f"after {ROUNDS} rounds {found.summary}",
        way_out=(
            "nothing was stopped. Partitions change faster than their znodes can be written: wait for a time with fewer"
            " changes, then clear this task"
        ),
    )


def prove_and_raise(
    proof: FinalProof, reader: ZookeeperReader, raised: list[Behind], *, mend: Mend | None = None
) -> int:
    """How many changed keys agree. Called where nobody else writes.

    A version that is lower than its epoch, with all else equal, is raised here, and the partition added to ``raised``.
    ``mend``: how (``raise_versions``). Raises StepFailed, naming the first keys that differ.
    """
    found = proof.compare(reader)
    if found.only_behind:
        raised += (mend or raise_versions)(reader, found.behind)
        found = proof.compare(reader)
    found.require_equal()
    return found.keys


def raise_versions(reader: ZookeeperReader, behind: Sequence[Behind]) -> tuple[Behind, ...]:
    """Write these znodes' own bytes again until each version equals the epoch. Returns the partitions for which it
    does.

    Znodes that something else writes at the same time are left out. It works only while a KRaft controller has the
    controller role: each transaction checks that no other controller has taken it. Raises StepFailed if another has, or
    if ZooKeeper refuses.
    """
    guard = reader.get("/controller_epoch")  # read first: a controller that takes the role later changes this znode
    if guard is None or not read_controller_znodes(reader).held_by_kraft:
        raise StepFailed(
            "the versions of state znodes can only be raised while /controller names a KRaft controller",
            way_out="clear this task: it looks at the cluster again",
        )
    writer, equal = ZookeeperWriter(reader), list[Behind]()
    znodes = reader.get_many([each.path for each in behind])
    for batch in batches(
        [
            (each, znode)
            for each, znode in zip(behind, znodes, strict=True)
            if znode is not None and znode.version < each.epoch
        ]
    ):
        try:
            written = writer.set_again(guard, [(znode, times) for _, znode, times in batch])
        except WriteRefused as error:
            raise StepFailed(
                f"{error.problem}, and their versions are lower than the partitions' epochs",
                way_out=f"{error.way_out}, then clear this task",
            ) from None
        if written:
            equal += [each for each, znode, times in batch if znode.version + times == each.epoch]
    return tuple(equal)


def batches(wanted: Sequence[tuple[Behind, Znode]]) -> Iterator[list[tuple[Behind, Znode, int]]]:
    """What goes into one transaction each: (partition, its znode at the version that it will have, how many writes)."""
    batch: list[tuple[Behind, Znode, int]] = []
    writes = size = 0
    for each, znode in wanted:
        one = len(znode.path) + len(znode.data) + 64
        while znode.version < each.epoch:
            room = min(WRITES_AT_ONCE - writes, (MAX_REQUEST_BYTES - size) // one)
            if room < 1 and batch:
                yield batch
                batch, writes, size = [], 0, 0
                continue
            times = min(max(room, 1), each.epoch - znode.version)
            batch.append((each, znode, times))
            writes, size = writes + times, size + times * one
            znode = Znode(
                znode.path,
                znode.data,
                znode.version + times,
                znode.czxid,
                znode.mzxid,
                znode.pzxid,
                znode.ephemeral_owner,
            )
    if batch:
        yield batch
