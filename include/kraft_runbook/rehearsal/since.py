"""What has changed at the source since it was copied: which topics, configs, quotas, ACLs and tokens are new, set, or
gone.

A znode's stat tells what is new and what was set (zxids); what is gone no stat tells, so the paths are kept as hashes,
eight bytes each. Partitions are not among them: their states change all the time, and a topic's own znode changes when
it gets more.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kraft_runbook.cluster.unread import Unread

HASH_BYTES = 8
"""Of a path. Two of a million paths share one with a chance of 1 in 37 million."""


class PathKind(StrEnum):
    """What is kept, in the words of the sentence that tells what changed."""

    TOPIC = "topic"
    TOPIC_CONFIG = "topic config"
    BROKER_CONFIG = "broker config"
    USER = "user"
    QUOTA = "quota"
    ACL = "ACL"
    TOKEN = "delegation token"  # noqa: S105 - a kind, no token


class LookedAt(NamedTuple):
    """A znode as its stat shows it. ``czxid``, ``mzxid``: the transactions that created it and last set its data."""

    path: str
    czxid: int
    mzxid: int


@dataclass(frozen=True, slots=True)
class Look:
    """The znodes that ``kind_of`` names, at one time. ``zxid``: the newest transaction that the server had seen when
    the look began.
    """

    zxid: int
    znodes: Iterable[LookedAt]


@dataclass(frozen=True, slots=True)
class KeptPaths:
    """What is kept of a copy. ``zxid``: the newest transaction before its reading began; ``hashes``: of each kind, the
    sorted hashes of its paths, joined; ``read_later``: by its hash, the mzxid of each znode that changed while the tree
    was read and was copied as it was then.
    """

    zxid: int
    hashes: Mapping[PathKind, bytes]
    read_later: Mapping[bytes, int]

    def to_dict(self) -> dict[str, object]:
        """As JSON keeps it."""
        return {
            "zxid": self.zxid,
            "hashes": {kind.value: _text(joined) for kind, joined in self.hashes.items()},
            "read_later": {_text(key): mzxid for key, mzxid in self.read_later.items()},
        }

    @staticmethod
    def from_dict(kept: Mapping[str, object]) -> KeptPaths:
        """The reverse of ``to_dict``. Raises ValueError, KeyError or TypeError for anything else."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Changes:
    """How many of each kind are new, were set (quotas changed …), or are gone. Kinds without any are left out."""

    new: Mapping[PathKind, int]
    changed: Mapping[PathKind, int]
    gone: Mapping[PathKind, int]

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)

    def __str__(self) -> str:
        """``3 topics new, 1 quota changed, 1 topic config gone``; ``nothing``."""
        raise NotImplementedError


def kind_of(path: str) -> PathKind | None:
    """The kind of a Kafka path (without a chroot); None for one that is not kept."""
    raise NotImplementedError


def hash_of(path: str) -> bytes:
    """The hash of a path, ``HASH_BYTES`` long."""
    return hashlib.blake2b(path.encode(), digest_size=HASH_BYTES).digest()


def changes_since(kept: KeptPaths, now: Look) -> Changes | Unread:
    """What changed between the copy and a later look. Unread where the look's zxid is older than the copy's: it is
    another ensemble, or one that was restored.
    """
    raise NotImplementedError


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


__all__ = [
    "HASH_BYTES", "Changes", "Counter", "KeptPaths", "Look", "LookedAt", "PathKind", "changes_since", "hash_of",
    "kind_of",
]  # fmt: skip
