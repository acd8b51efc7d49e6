"""Whether a tree is the one that it was before: every znode that belongs to the cluster's metadata, by what it means
and by its bytes. Pure.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kraft_runbook.metadata.canonical_rows import Row
from kraft_runbook.runbook.check_results import sample

SIZE = 8
"""Bytes of a print: a change is missed with a chance of 2^-64."""
_PACKED = struct.Struct(f"{SIZE}s{SIZE}si")
_BETWEEN = "\n"
"""Between paths: no path of ZooKeeper holds a control character (``PathUtils.validatePath``)."""
_PASSING = re.compile(
    r"^/(?:controller|controller_epoch|migration|zookeeper|consumers|admin|kraft_runbook_.*|isr_change_notification"
    r"|log_dir_event_notification|brokers/ids|brokers/seqid|config/changes|kafka-acl-changes"
    r"|kafka-acl-extended-changes|delegation_token/token_changes)(?:/|$)"
)
"""What is no metadata: who leads now, who is there now, and notifications."""
_GIVEN = re.compile(r"(?P<topic>.+)-(?P<partition>\d+) was given its first replica, ")
_STATE = re.compile(r"^/brokers/topics/[^/]+/partitions/\d+/state$")


@dataclass(frozen=True, slots=True)
class TreePrint:
    """``meaning``: of what the znode says; ``raw``: of its bytes; ``version``: of a partition's state, else 0."""

    meaning: bytes
    raw: bytes
    version: int


@dataclass(frozen=True, slots=True)
class PackedPrints:
    """The prints of a tree while a whole ladder is climbed: with 460,000 znodes 40 MiB, where they took 400 one by one.
    ``paths``: joined by ``_BETWEEN``; ``prints``: in the same order.
    """

    paths: str = ""
    prints: bytes = b""

    @classmethod
    def of(cls, tree: Mapping[str, TreePrint]) -> PackedPrints:
        packed = b"".join(_PACKED.pack(each.meaning, each.raw, each.version) for each in tree.values())
        return cls(_BETWEEN.join(tree), packed)

    def __len__(self) -> int:
        return len(self.prints) // _PACKED.size

    def by_path(self) -> dict[str, TreePrint]:
        """One by one again."""
        paths = self.paths.split(_BETWEEN) if len(self) else ()
        return {path: TreePrint(*told) for path, told in zip(paths, _PACKED.iter_unpack(self.prints), strict=True)}


def belongs(path: str) -> bool:
    """Whether a znode is the cluster's metadata."""
    return not _PASSING.match(path)


def print_of(path: str, data: bytes, version: int, rows: Iterable[Row]) -> TreePrint:
    """``rows``: what parity takes the znode for (``znode_rows.rows_of``); none: its bytes are its meaning."""
    said = sorted(f"{row.kind}\0{row.key}\0{row.value}" for row in rows)
    meaning = "\n".join(said).encode() if said else data
    return TreePrint(_digest(meaning), _digest(data), version if _STATE.match(path) else 0)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=SIZE).digest()


@dataclass(frozen=True, slots=True)
class TreeChanges:
    """Paths by what became of them. ``respelt``: they mean the same in other bytes. ``versions``: a partition's state
    whose version is lower than it was: a leader with the higher epoch would not follow it.
    """

    gone: tuple[str, ...]
    new: tuple[str, ...]
    changed: tuple[str, ...]
    respelt: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def wrong(self) -> tuple[str, ...]:
        """In words, what is not as it was; empty where all is. A respelt znode is."""
        named: Mapping[str, Collection[str]] = {
            "gone": self.gone,
            "new": self.new,
            "changed": self.changed,
            "with a lower version": self.versions,
        }
        return tuple(f"{word} {sample(paths)}" for word, paths in named.items() if paths)


def elected(told: str) -> str | None:
    """The state znode of the partition that leaving KRaft gave to its first replica, to prove that the ZooKeeper
    controller elects leaders (``Departure.election``, in words); None where it gave none.
    """
    match = _GIVEN.match(told)
    return f"/brokers/topics/{match['topic']}/partitions/{match['partition']}/state" if match else None


def changes_between(
    before: Mapping[str, TreePrint], after: Mapping[str, TreePrint], *, elected: str | None = None
) -> TreeChanges:
    """What became of each znode. ``elected``: the one state that leaving KRaft itself changes."""
    both = sorted(before.keys() & after.keys())
    return TreeChanges(
        gone=tuple(sorted(before.keys() - after.keys())),
        new=tuple(sorted(after.keys() - before.keys())),
        changed=tuple(path for path in both if before[path].meaning != after[path].meaning and path != elected),
        respelt=tuple(
            path for path in both if before[path].meaning == after[path].meaning and before[path].raw != after[path].raw
        ),
        versions=tuple(path for path in both if after[path].version < before[path].version),
    )
