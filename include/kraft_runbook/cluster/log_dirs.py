"""What lies in the log directories of a broker (DescribeLogDirs, KIP-113; free space: KIP-827; cordoned: KIP-1066)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace

from kraft_runbook.cluster.assignment import TopicPartition

Directories = Mapping[tuple[int, TopicPartition], str]
"""By broker and partition, the log directory that a replica is to lie in."""
ABOUT = 0.001
"""The part of a volume by which the usable bytes of one volume may differ in one answer."""
LONGEST_NAME = 255
"""Of a log's directory. That of a copy between disks is the log's with 40 characters more, a dot, 32 hexadecimal digits
and "-future", and Kafka does not shorten it (LocalLog.logFutureDirName).
"""


def too_long_for_a_copy(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Those of which AlterReplicaLogDirs is refused (INVALID_TOPIC_EXCEPTION), also where the replica is not there yet:
    their topics' names are too long (ReplicaManager.alterReplicaLogDirs, KAFKA-4893).
    """
    return sorted(p for p in set(partitions) if len(str(p)) + 40 > LONGEST_NAME)


@dataclass(frozen=True, slots=True)
class LogDir:
    """One directory. ``total`` and ``usable``: bytes of its volume, None where the broker does not say (before 3.3).
    ``error``: why it can't be used; empty where it can. ``logs``: how many replicas lie in it. ``cordoned``: no new
    replica is to come to it (cordoned.log.dirs); what lies there is used as before. False before 4.3.
    """

    path: str
    total: int | None
    usable: int | None
    error: str = ""
    logs: int = 0
    cordoned: bool = False

    @property
    def is_open(self) -> bool:
        """Whether replicas may come to it."""
        return not self.error and not self.cordoned


@dataclass(frozen=True, slots=True)
class FutureCopy:
    """A copy that a broker makes to another directory of its own (KIP-113); it takes the replica's place once it has
    caught up. ``size``: its bytes so far; ``behind``: records that it still lacks.
    """

    path: str
    size: int
    behind: int


@dataclass(frozen=True, slots=True)
class BrokerLogs:
    """One broker's directories, and the bytes of each partition that it holds. A copy that is being made to another
    directory of the same broker is not counted: it is in ``future``. ``placed``: the directory of each replica.
    """

    broker: int
    directories: tuple[LogDir, ...]
    sizes: Mapping[TopicPartition, int]
    placed: Mapping[TopicPartition, str] = field(default_factory=dict)
    future: Mapping[TopicPartition, FutureCopy] = field(default_factory=dict)

    def why_not_usable(self, path: str) -> str:
        """Why a replica can't go to this directory; empty where it can."""
        found = self._directory(path)
        if found is None:
            return f"{path} is none of broker {self.broker}'s: {', '.join(each.path for each in self.directories)}"
        if found.error:
            return f"{path} has failed ({found.error})"
        return f"{path} is cordoned" if found.cordoned else ""

    @property
    def why_no_copies(self) -> str:
        """Why the broker begins no copy between its directories; empty where it does. It begins none while any of them
        is offline, also one that the copy has nothing to do with: the copy may lie there already
        (LogManager.getOrCreateLog of a log that is not new). New replicas of the broker are made all the same.
        """
        failed = [f"{each.path} has failed ({each.error})" for each in self.directories if each.error]
        if not failed:
            return ""
        return (
            f"broker {self.broker} begins no copy between its log directories while one is offline: {', '.join(failed)}"
        )

    def is_cordoned(self, path: str) -> bool:
        """Also False where it is none of the broker's."""
        found = self._directory(path)
        return found is not None and found.cordoned

    def _directory(self, path: str) -> LogDir | None:
        return next((each for each in self.directories if each.path == path), None)


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume, with the directories on it that replicas go to. ``usable``: bytes free now. ``taken``: bytes that
    come if replicas come in the order that was given; ``at_most``: if the largest ones come to it.
    """

    paths: tuple[str, ...]
    usable: int
    taken: int
    at_most: int


def usable_bytes(directories: Sequence[LogDir]) -> int | None:
    """Bytes free on all volumes that replicas may come to; None where a directory does not say, or whether some share a
    volume is not known.
    """
    ready = [each for each in directories if each.is_open]
    volumes = filled(ready, (), one=is_one_volume)
    said = sum(len(each.paths) for each in volumes) == len(ready)
    if not ready or not said or len(filled(ready, (), one=may_be_one_volume)) != len(volumes):
        return None
    return sum(each.usable for each in volumes)


def total_bytes(directories: Sequence[LogDir]) -> int | None:
    """The size of all volumes together that replicas may come to; None as of ``usable_bytes``."""
    if usable_bytes(directories) is None:
        return None
    size = {each.path: each.total for each in directories}
    volumes = filled(directories, (), one=is_one_volume)
    return sum(size[each.paths[0]] or 0 for each in volumes)


def all_cordoned(directories: Sequence[LogDir]) -> bool:
    """Whether nothing is to come to any of them, since those that work are cordoned."""
    return any(each.cordoned for each in directories) and not any(each.is_open for each in directories)


def is_one_volume(one: LogDir, other: LogDir) -> bool:
    """Whether two directories lie on one volume, beyond doubt: logs lie in them, and both show the same bytes.

    Kafka tells no more of a volume than its total and its usable bytes (KIP-827). Two disks of one make that are empty
    show the same.
    """
    return one.total == other.total and one.usable == other.usable and one.logs + other.logs > 0


def may_be_one_volume(one: LogDir, other: LogDir) -> bool:
    """Whether two directories may lie on one volume: it is as large, and about as much is free. A broker asks one
    directory after the other, while it writes.
    """
    if one.total is None or one.usable is None or other.usable is None:
        return False
    return one.total == other.total and abs(one.usable - other.usable) <= one.total * ABOUT


def filled(
    directories: Iterable[LogDir],
    sizes: Sequence[int],
    *,
    one: Callable[[LogDir, LogDir], bool],
    asked: Mapping[str, Sequence[int]] | None = None,
) -> tuple[Volume, ...]:
    """What replicas of these sizes that come take of each volume. ``one``: whether two directories are on one volume.
    ``asked``: by directory, the sizes of others that come to it by name.

    Kafka puts each into the directory with the fewest logs, however full its volume is (LogManager.nextLogDirs). So
    how many each gets is known, and which ones only if the order is. Directories that failed or are cordoned get
    none; a volume of which the broker does not say how much is free is left out.
    """
    ready = [each for each in directories if each.is_open]
    named = [(asked or {}).get(each.path, ()) for each in ready]
    counts, taken = [0] * len(ready), [sum(each) for each in named]
    fewest = [(each.logs + len(named[at]), at) for at, each in enumerate(ready)]
    heapify(fewest)
    for size in sizes if ready else ():
        logs, at = fewest[0]
        heapreplace(fewest, (logs + 1, at))
        counts[at] += 1
        taken[at] += size
    largest = sorted(sizes, reverse=True)
    groups: list[list[int]] = []
    for at, each in enumerate(ready):
        joined = [group for group in groups if any(one(each, ready[other]) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(other for group in joined for other in group), at])
    return tuple(
        Volume(
            tuple(ready[at].path for at in group),
            min(free),
            sum(taken[at] for at in group),
            sum(largest[: sum(counts[at] for at in group)]) + sum(sum(named[at]) for at in group),
        )
        for group in groups
        if len(free := [u for at in group if (u := ready[at].usable) is not None]) == len(group)
    )
