"""Every znode of a tree, parents before their children, in one pass that holds some megabytes of them.

Most znodes are partitions of topics whose shape is known: a topic's two znodes tell how many there are, and each one's
state is asked for with it, so that nothing is listed. What has another shape is walked listing by listing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import msgspec

from kraft_runbook.io.slices import slices
from kraft_runbook.io.zookeeper.multi_read import get_data_request
from kraft_runbook.io.zookeeper.raw_read import UNREADABLE, Paths, Raw, RawBlock, RawUnits
from kraft_runbook.io.zookeeper.reassignment_znodes import DELETED_TOPICS
from kraft_runbook.metadata.znodes.state_columns import UNUSUAL

TOPICS, TOPIC_CONFIGS = "/brokers/topics", "/config/topics"
LATER = frozenset({TOPICS, TOPIC_CONFIGS, DELETED_TOPICS})
"""What lies below these is asked for when the rest is read, topics before their configs: Kafka makes a topic's config
first, and deletes it last.
"""
SETTLING_SECONDS = 1.0
"""In which a topic that is created, extended or deleted is whole, or gone (some milliseconds, measured)."""
PATHS_AT_ONCE = 2000
TOPICS_AT_ONCE = 500
PARTITIONS_AT_ONCE = 10_000
"""About 5 MB of znodes. A topic with more partitions is walked."""

Walked = tuple[bytes, bytes, bytes]
"""A znode: its path (empty for the root), and ``raw_read.Raw``."""

_OWNER, _CHILDREN = slice(44, 52), slice(56, 60)
"""Where a stat has its ephemeralOwner and its numChildren."""
_NOBODY, _NONE, _ONE = bytes(8), bytes(4), b"\0\0\0\1"
_CONTAINER, _TTL = b"\x80" + bytes(7), b"\xff\0\0"
"""The ephemeralOwner of a container, and how that of a znode with a time to live begins (``EphemeralType``; the older
form of ``EphemeralTypeEmulate353`` is off by default, and can't be told from a session's).
"""


class Reader(Protocol):
    """What the walk takes of ``ZookeeperReader``."""

    def get_raw(self, units: RawUnits) -> Iterator[RawBlock]: ...

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]: ...


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's znodes, its own first, its config not among them. ``replicas``: its assignment, by partition; empty
    where it can't be read.
    """

    name: str
    znodes: Iterable[Walked]
    replicas: Mapping[str, Sequence[int]]


class _Assignment(msgspec.Struct, gc=False):
    partitions: dict[str, list[int]]


_decode = msgspec.json.Decoder(_Assignment).decode


class TreeWalk:
    """``enters``: whether the znode at a path is wanted, with all below it; asked before it is read, and again with
    True when it turns out to be ephemeral. ``unreadable``: is told each path that may not be read; nothing below it is
    seen. ``at_once``: how many partitions are held at most.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        enters: Callable[[str, bool], bool],
        unreadable: Callable[[str], object],
        sleep: Callable[[float], object] = time.sleep,
        at_once: int = PARTITIONS_AT_ONCE,
    ) -> None:
        self._reader, self._enters, self._unreadable, self._sleep = reader, enters, unreadable, sleep
        self._at_once = at_once
        self._later: set[str] = set()

    def all_but_topics(self) -> Iterator[Walked]:
        """The root and all below it, but what lies below those of ``LATER``."""
        return self._walk(["/"])

    def in_deletion(self) -> frozenset[str]:
        """The topics whose deletion is asked for, once ``all_but_topics`` has ended, and is not done a second later."""
        asked = self._names(DELETED_TOPICS)
        if not asked:
            return frozenset()
        self._sleep(SETTLING_SECONDS)
        return frozenset(asked).intersection(self._names(DELETED_TOPICS))

    def topics(self, *, but: Collection[str] = ()) -> Iterator[Topic]:
        """All topics ``but`` these, once ``all_but_topics`` has ended. One that is incomplete is read again a second
        later, and then given as it is: it may be about to be created or deleted.
        """
        odd = list[str]()
        yield from self._known_shape([each for each in self._names(TOPICS) if each not in but], odd)
        if odd:
            self._sleep(SETTLING_SECONDS)
            again, odd = odd, []
            yield from self._known_shape(again, odd)
        for name in odd:
            znodes = self._walk([f"{TOPICS}/{name}"])
            own = next(znodes, None)
            if own is not None:
                yield Topic(name, chain([own], znodes), _assigned(own[1]) or {})

    def topic_configs(self) -> Iterator[Walked]:
        """The configs of topics, once ``topics`` has ended."""
        return self._walk(self._children([TOPIC_CONFIGS]) if TOPIC_CONFIGS in self._later else ())

    def _names(self, parent: str) -> Sequence[str]:
        return (self._reader.children_many([parent])[0] or ()) if parent in self._later else ()

    def _walk(self, paths: Sequence[str]) -> Iterator[Walked]:
        for some in slices(paths, PATHS_AT_ONCE):
            above: list[str] = []
            for block in self._reader.get_raw(Paths(some)):
                for at, found in enumerate(block.znodes, block.start):
                    if found is None:
                        continue
                    path, (data, stat) = some[at], found
                    if found is UNREADABLE:
                        self._unreadable(path)
                    elif not _is_ephemeral(stat[_OWNER]) or self._enters(path, True):
                        yield (path.encode() if path != "/" else b""), data, stat
                        if path in LATER:
                            self._later.add(path)
                        elif stat[_CHILDREN] != _NONE:
                            above.append(path)
            if above:
                yield from self._walk(self._children(above))

    def _children(self, parents: Sequence[str]) -> list[str]:
        return [
            path
            for parent, names in zip(parents, self._reader.children_many(parents), strict=True)
            for path in (f"{parent.rstrip('/')}/{name}" for name in names or ())
            if self._enters(path, False)
        ]

    # -- topics whose shape is known -----------------------------------------------------------------------------------

    def _known_shape(self, names: Sequence[str], odd: list[str]) -> Iterator[Topic]:
        """The topics that have the shape that Kafka gives them: partitions 0 to n - 1 in their assignment and as
        znodes, each with a state and nothing else. The names of the others go to ``odd``; topics that are gone are left
        out.
        """
        for some in slices(names, TOPICS_AT_ONCE):
            heads: list[Raw | None] = [None] * (2 * len(some))
            for block in self._reader.get_raw(_Heads(some)):
                heads[2 * block.start : 2 * block.start + len(block.znodes)] = block.znodes
            plain: list[_Plain] = []
            for name, own, partitions in zip(some, heads[::2], heads[1::2], strict=True):
                if own is None:
                    continue
                found = _plain(name, own, partitions, self._at_once)
                if found is None:
                    odd.append(name)
                else:
                    plain.append(found)
            for few in _few(plain, self._at_once):
                yield from self._with_partitions(few, odd)

    def _with_partitions(self, topics: Sequence[_Plain], odd: list[str]) -> Iterator[Topic]:
        asked = _Partitions([each.above for each in topics], [len(each.replicas) for each in topics])
        found: list[Raw | None] = [None] * (2 * len(asked))
        for block in self._reader.get_raw(asked):
            found[2 * block.start : 2 * block.start + len(block.znodes)] = block.znodes
        first = 0
        for topic in topics:
            last = first + 2 * len(topic.replicas)
            znodes = topic.with_partitions(found[first:last:2], found[first + 1 : last : 2])
            first = last
            if znodes is None:
                odd.append(topic.name)
            else:
                yield Topic(topic.name, znodes, topic.replicas)


@dataclass(frozen=True, slots=True)
class _Plain:
    """A topic whose own znodes are as Kafka makes them. ``above``: what stands before its partitions' numbers."""

    name: str
    own: Raw
    partitions: Raw
    above: bytes
    replicas: Mapping[str, Sequence[int]]

    def with_partitions(self, nodes: Sequence[Raw | None], states: Sequence[Raw | None]) -> list[Walked] | None:
        """All its znodes; None where one is missing, may not be read, or has others below it."""
        above = self.above
        znodes: list[Walked] = [(above[:-12], *self.own), (above[:-1], *self.partitions)]
        for number, node, state in zip(map(str, range(len(nodes))), nodes, states, strict=True):
            if node is None or state is None or node[1][_CHILDREN] != _ONE or state[1][_CHILDREN] != _NONE:
                return None
            if node[1][_OWNER] != _NOBODY or state[1][_OWNER] != _NOBODY:
                return None
            path = above + number.encode()
            znodes.append((path, *node))
            znodes.append((path + b"/state", *state))
        return znodes


def _is_ephemeral(owner: bytes) -> bool:
    """Whether a session owns it. Containers and znodes with a time to live are persistent, and have children."""
    return owner != _NOBODY and owner != _CONTAINER and not owner.startswith(_TTL)


def _plain(name: str, own: Raw, partitions: Raw | None, most: int) -> _Plain | None:
    """None for a topic that has to be walked. Of what can't be read the stat is empty, and is no number of children."""
    if partitions is None or own[1][_CHILDREN] != _ONE or own[1][_OWNER] != _NOBODY:
        return None
    replicas = _assigned(own[0])
    if replicas is None or not 0 < len(replicas) <= most:
        return None
    if partitions[1][_CHILDREN] != len(replicas).to_bytes(4) or not all(
        str(n) in replicas for n in range(len(replicas))
    ):
        return None
    return _Plain(name, own, partitions, f"{TOPICS}/{name}/partitions/".encode(), replicas)


def _assigned(data: bytes) -> Mapping[str, Sequence[int]] | None:
    try:
        return _decode(data[4:]).partitions
    except UNUSUAL:
        return None


def _few(topics: Sequence[_Plain], most: int) -> Iterator[Sequence[_Plain]]:
    """Topics in their order, so many that they have at most ``most`` partitions, or one."""
    start = held = 0
    for at, topic in enumerate(topics):
        if held and held + len(topic.replicas) > most:
            yield topics[start:at]
            start, held = at, 0
        held += len(topic.replicas)
    if held:
        yield topics[start:]


class _Heads:
    """A unit is a topic: its znode, and the one above its partitions."""

    znodes = 2

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def path(self, at: int) -> str:
        return f"{TOPICS}/{self._names[at]}"

    def paths(self, start: int, end: int) -> list[str]:
        return [f"{self.path(at)}{behind}" for at in range(start, end) for behind in ("", "/partitions")]

    def requests(self, start: int, end: int, chroot: bytes) -> bytes:
        parts: list[bytes] = []
        for name in self._names[start:end]:
            path = chroot + f"{TOPICS}/{name}".encode()
            parts += (get_data_request(len(path)), path, b"\0")
            parts += (get_data_request(len(path) + 11), path, b"/partitions\0")
        return b"".join(parts)


class _Partitions:
    """A unit is a partition: its znode and its state. ``above``: of each topic, what stands before its partitions'
    numbers, which are 0 to its count - 1.
    """

    znodes = 2

    def __init__(self, above: Sequence[bytes], counts: Sequence[int]) -> None:
        self._units = [
            each + b"%d" % number for each, count in zip(above, counts, strict=True) for number in range(count)
        ]

    def __len__(self) -> int:
        return len(self._units)

    def path(self, at: int) -> str:
        return self._units[at].decode()

    def paths(self, start: int, end: int) -> list[str]:
        return [f"{each.decode()}{behind}" for each in self._units[start:end] for behind in ("", "/state")]

    def requests(self, start: int, end: int, chroot: bytes) -> bytes:
        parts: list[bytes] = []
        for each in self._units[start:end]:
            path = chroot + each
            parts += (get_data_request(len(path)), path, b"\0")
            parts += (get_data_request(len(path) + 6), path, b"/state\0")
        return b"".join(parts)
