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
from typing import Any, NamedTuple

from kraft_runbook.cluster.unread import Unread

HASH_BYTES = 8
"""Of a path. That any two of a million paths share one has a chance of 1 in 37 million."""


class PathKind(StrEnum):
    """What is kept, in the words of the sentence that tells what changed."""

    TOPIC = "topic"
    TOPIC_CONFIG = "topic config"
    BROKER_CONFIG = "broker config"
    USER = "user"
    """A user's quotas and credentials: one znode."""
    QUOTA = "quota"
    ACL = "ACL"
    TOKEN = "delegation token"  # noqa: S105 - a kind, no token


class LookedAt(NamedTuple):
    """A znode as its stat shows it. ``mzxid``: the transaction that last set its data, or created it."""

    path: str
    mzxid: int


@dataclass(frozen=True, slots=True)
class SourceLook:
    """The znodes of which ``kind_of`` names a kind, at one time. ``zxid``: the newest transaction that the server had
    seen when the look began. ``unread``: paths that may not be read.
    """

    zxid: int
    znodes: tuple[LookedAt, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptPaths:
    """What is kept of a copy. ``zxid``: the newest transaction that the server had seen before the reading began;
    ``hashes``: of each kind, the sorted hashes of its paths, joined; ``read_later``: by its hash, the mzxid of each
    znode that was set while the tree was read, and is in the copy as it was then.
    """

    zxid: int
    hashes: Mapping[PathKind, bytes]
    read_later: Mapping[bytes, int]

    def __len__(self) -> int:
        return sum(map(len, self.hashes.values())) // HASH_BYTES

    def to_dict(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {
            "zxid": self.zxid,
            "hashes": {kind.value: _text(joined) for kind, joined in self.hashes.items()},
            "read_later": {_text(key): mzxid for key, mzxid in self.read_later.items()},
        }

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> KeptPaths:
        """The reverse of ``to_dict``. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
        hashes = {PathKind(kind): base64.b64decode(joined, validate=True) for kind, joined in kept["hashes"].items()}
        if any(len(joined) % HASH_BYTES for joined in hashes.values()):
            raise ValueError("the kept hashes were cut off")
        later = {base64.b64decode(key, validate=True): int(mzxid) for key, mzxid in kept["read_later"].items()}
        return KeptPaths(int(kept["zxid"]), hashes, later)


class Keeping:
    """Gathers what to keep, znode by znode; those without a kind are passed over. ``zxid``: see ``KeptPaths``."""

    def __init__(self, zxid: int) -> None:
        self._zxid = zxid
        self._hashes: dict[PathKind, list[bytes]] = {}
        self._later: dict[bytes, int] = {}

    def see(self, path: str, mzxid: int) -> None:
        kind = kind_of(path)
        if kind is not None:
            self._hashes.setdefault(kind, []).append(key := hash_of(path))
            if mzxid > self._zxid:
                self._later[key] = mzxid

    @property
    def kept(self) -> KeptPaths:
        return KeptPaths(self._zxid, {kind: b"".join(sorted(some)) for kind, some in self._hashes.items()}, self._later)


@dataclass(frozen=True, slots=True)
class Changes:
    """How many of each kind are new, changed, or gone. A kind without any is left out. ``unread``: how many could not
    be read, of which nothing is known.
    """

    new: Mapping[PathKind, int]
    changed: Mapping[PathKind, int]
    gone: Mapping[PathKind, int]
    unread: int = 0

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone or self.unread)

    def __str__(self) -> str:
        """``3 topics new, 1 quota changed, 1 topic config gone``; ``nothing``."""
        told = [
            f"{some[kind]} {kind}{'' if some[kind] == 1 else 's'} {word}"
            for some, word in ((self.new, "new"), (self.changed, "changed"), (self.gone, "gone"))
            for kind in PathKind
            if kind in some
        ]
        told += [f"{self.unread} could not be read"] if self.unread else []
        return ", ".join(told) or "nothing"


def kind_of(path: str) -> PathKind | None:
    """The kind of a Kafka path (without a chroot); None for one that is not kept."""
    match path.split("/")[1:]:
        case ["brokers", "topics", _]:
            return PathKind.TOPIC
        case ["config", "topics", _]:
            return PathKind.TOPIC_CONFIG
        case ["config", "brokers", _]:
            return PathKind.BROKER_CONFIG
        case ["config", "users", _]:
            return PathKind.USER
        case ["config", "clients" | "ips", _] | ["config", "users", _, "clients", _]:
            return PathKind.QUOTA
        case ["kafka-acl", _, _, *_] | ["kafka-acl-extended", _, _, _, *_]:
            return PathKind.ACL
        case ["delegation_token", "tokens", _]:
            return PathKind.TOKEN
        case _:
            return None


def hash_of(path: str) -> bytes:
    """The hash of a path, ``HASH_BYTES`` long."""
    return hashlib.blake2b(path.encode(), digest_size=HASH_BYTES).digest()


def changes_since(kept: KeptPaths, now: SourceLook) -> Changes | Unread:
    """What changed between the copy and a later look. Unread where the look's zxid is older than the copy's: it is
    another ensemble, or one that was restored.
    """
    if now.zxid < kept.zxid:
        return Unread(
            "ZooKeeper's newest transaction is older than the copy's: it is another ensemble, or a restored one",
            way_out="rehearse again",
        )
    known = {kind: set(_split(joined)) for kind, joined in kept.hashes.items()}
    new, changed, gone = Counter[PathKind](), Counter[PathKind](), Counter[PathKind]()
    for path, mzxid in now.znodes:
        kind = kind_of(path)
        if kind is None:
            continue
        key = hash_of(path)
        if key not in known.get(kind, ()):
            new[kind] += 1
            continue
        known[kind].remove(key)
        changed[kind] += mzxid > kept.read_later.get(key, kept.zxid)
    for path in now.unread:
        known.get(kind_of(path) or PathKind.TOPIC, set()).discard(hash_of(path))
    for kind, left in known.items():
        gone[kind] = len(left)
    return Changes(_some(new), _some(changed), _some(gone), len(now.unread))


def _some(counted: Mapping[PathKind, int]) -> dict[PathKind, int]:
    return {kind: number for kind, number in counted.items() if number}


def _split(joined: bytes) -> Iterable[bytes]:
    return (joined[at : at + HASH_BYTES] for at in range(0, len(joined), HASH_BYTES))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
