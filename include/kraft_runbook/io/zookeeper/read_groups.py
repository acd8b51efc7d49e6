"""Every consumer group below /consumers, some hundred at a time: its members, owners, offsets and mode.

A group that may not be read is Unread; the others are read all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraft_runbook.cluster.java_values import java_int, java_long
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.groups.look import Mode, Owner, Partition, StoredOffset, ZookeeperSide
from kraft_runbook.groups.members import registration
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.znode import Znode

CONSUMERS = "/consumers"
GROUPS_AT_ONCE = 250
"""Whose znodes are in memory at once; with 50 partitions each, 25,000 of them."""

NamedSide = tuple[str, ZookeeperSide | Unread]


def read_groups(reader: ZookeeperReader, names: Sequence[str] | None = None) -> Iterator[list[NamedSide]]:
    """Some hundred groups at a time. ``names``: only these, where they are there. Raises Unreachable."""
    there = reader.children(CONSUMERS) or ()
    wanted = there if names is None else sorted(set(names).intersection(there))
    for start in range(0, len(wanted), GROUPS_AT_ONCE):
        yield _read_some(reader, wanted[start : start + GROUPS_AT_ONCE])


def read_topics(reader: ZookeeperReader) -> frozenset[str]:
    """The cluster's topics, as old members read them. Raises Unreachable."""
    return frozenset(reader.children("/brokers/topics") or ())


def _read_some(reader: ZookeeperReader, groups: Sequence[str]) -> list[NamedSide]:
    """Where one znode's ACL refuses the whole request, the groups are halved until that group stands alone."""
    try:
        return list(zip(groups, _sides(reader, groups), strict=True))
    except Unreachable:
        raise
    except RunbookError as error:
        if len(groups) == 1:
            return [(groups[0], Unread(error.problem, way_out=error.way_out))]
        middle = len(groups) // 2
        return _read_some(reader, groups[:middle]) + _read_some(reader, groups[middle:])


def _sides(reader: ZookeeperReader, groups: Sequence[str]) -> list[ZookeeperSide]:
    roots = [f"{CONSUMERS}/{group}" for group in groups]
    ids, migrating, named, owned, stored = (
        [names or () for names in reader.children_many([f"{root}/{kind}" for root in roots])]
        for kind in ("ids", "migration/ids", "migration/embedded", "owners", "offsets")
    )
    modes = reader.get_many([f"{root}/migration/mode" for root in roots])
    members = _data(reader, roots, "ids", ids)
    embedded = _data(reader, roots, "migration/embedded", named)
    owners, bad_owners = _partitions(reader, roots, "owners", owned)
    offsets, bad_offsets = _partitions(reader, roots, "offsets", stored)
    found = []
    for at, group in enumerate(groups):
        of_group = frozenset(migrating[at])
        found.append(
            ZookeeperSide(
                members=tuple(registration(group, name, znode.data, of_group) for name, znode in members[at]),
                migrating_ids=of_group,
                mode=_mode(modes[at]),
                owners={
                    p: Owner(znode.data.decode("utf-8", "replace"), not znode.ephemeral_owner)
                    for p, znode in owners[at].items()
                },
                offsets={
                    p: StoredOffset(java_long(znode.data.decode("utf-8", "replace")), znode.modified_ms)
                    for p, znode in offsets[at].items()
                },
                bad_names=tuple(bad_owners[at] + bad_offsets[at]),
                embedded=frozenset(znode.data.decode("utf-8", "replace") for _, znode in embedded[at]),
            )
        )
    return found


def _data(
    reader: ZookeeperReader, roots: Sequence[str], kind: str, names: Sequence[Sequence[str]]
) -> list[list[tuple[str, Znode]]]:
    """The children's znodes of each group's ``kind``, by name."""
    flat = [(at, name) for at, some in enumerate(names) for name in some]
    znodes = reader.get_many([f"{roots[at]}/{kind}/{name}" for at, name in flat])
    found: list[list[tuple[str, Znode]]] = [[] for _ in roots]
    for (at, name), znode in zip(flat, znodes, strict=True):
        if znode is not None:
            found[at].append((name, znode))
    return found


def _partitions(
    reader: ZookeeperReader, roots: Sequence[str], kind: str, topics: Sequence[Sequence[str]]
) -> tuple[list[dict[Partition, Znode]], list[list[str]]]:
    """The znodes of each group's ``kind``/<topic>/<partition>, and the names there that are no partition's."""
    flat = [(at, topic) for at, some in enumerate(topics) for topic in some]
    numbers = reader.children_many([f"{roots[at]}/{kind}/{topic}" for at, topic in flat])
    found: list[dict[Partition, Znode]] = [{} for _ in roots]
    bad: list[list[str]] = [[] for _ in roots]
    paths: list[tuple[int, Partition]] = []
    for (at, topic), names in zip(flat, numbers, strict=True):
        for name in names or ():
            number = java_int(name)
            if number is None or number < 0 or str(number) != name:
                bad[at].append(f"{kind}/{topic}/{name}")
            else:
                paths.append((at, (topic, number)))
    znodes = reader.get_many([f"{roots[at]}/{kind}/{topic}/{number}" for at, (topic, number) in paths])
    for (at, partition), znode in zip(paths, znodes, strict=True):
        if znode is not None:
            found[at][partition] = znode
    return found, bad


def _mode(znode: Znode | None) -> Mode:
    if znode is None:
        return Mode.ABSENT
    return {b"kafka": Mode.KAFKA, b"zookeeper": Mode.ZOOKEEPER}.get(znode.data, Mode.OTHER)
