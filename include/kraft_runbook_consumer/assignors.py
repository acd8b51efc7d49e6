"""Who gets which partition: the assignors of ``ZookeeperConsumerConnector`` 1.1.1 (``PartitionAssignor.scala``), and
the subdivision of a member's partitions to its threads (KIP-125). Both equal the jar's in random cases (tests).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle

from kraft_runbook_consumer.znodes import Partition, Registration, by_topic, thread_id

RANGE, ROUND_ROBIN = "range", "roundrobin"


@dataclass(frozen=True, order=True)
class Thread:
    """One thread of a member. The order of threads is that of ``str``, in which ``-10`` comes before ``-2``."""

    name: str
    member: str
    number: int

    @classmethod
    def of(cls, member: str, number: int) -> Thread:
        return cls(thread_id(member, number), member, number)


Assignment = Mapping[Partition, Thread]


@lru_cache(maxsize=1 << 16)
def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, 32 bits, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def threads_by_topic(members: Mapping[str, Mapping[str, int]]) -> dict[str, list[Thread]]:
    """The threads that read a topic, in their order. ``members``: topics with the number of threads, by member."""
    found: dict[str, list[Thread]] = defaultdict(list)
    for member, topics in members.items():
        for topic, threads in topics.items():
            found[topic] += [Thread.of(member, number) for number in range(threads)]
    return {topic: sorted(threads) for topic, threads in found.items()}


def by_range(threads: Mapping[str, Sequence[Thread]], partitions: Mapping[str, Sequence[int]]) -> Assignment:
    """Topic by topic: each thread a row of neighbouring partitions, the first threads one more (``RangeAssignor``)."""
    found: dict[Partition, Thread] = {}
    for topic, readers in threads.items():
        numbers = partitions.get(topic, ())
        each_gets, more = divmod(len(numbers), len(readers))
        rest = iter(numbers)
        for at, reader in enumerate(readers):
            for _ in range(each_gets + (at < more)):
                found[topic, next(rest)] = reader
    return found


def by_round_robin(threads: Mapping[str, Sequence[Thread]], partitions: Mapping[str, Sequence[int]]) -> Assignment:
    """All partitions by Java's hash of ``topic-number``, dealt to all threads in turn; a thread that does not read the
    topic is left out (``RoundRobinAssignor``). Where hashes are equal (``colliding``) members may differ.
    """
    readers = {topic: frozenset(each) for topic, each in threads.items()}
    dealt = cycle(sorted({thread for each in threads.values() for thread in each}))
    every = [(topic, number) for topic in sorted(threads) for number in partitions.get(topic, ())]
    found: dict[Partition, Thread] = {}
    for topic, number in sorted(every, key=lambda each: java_hash(f"{each[0]}-{each[1]}")):
        found[topic, number] = next(thread for thread in dealt if thread in readers[topic])
    return found


def colliding(partitions: Iterable[Partition]) -> tuple[Partition, Partition] | None:
    """Two partitions that roundrobin can't put in order, None where there are none."""
    seen: dict[int, Partition] = {}
    for each in sorted(partitions):
        other = seen.setdefault(java_hash(f"{each[0]}-{each[1]}"), each)
        if other != each:
            return other, each
    return None


def assign(
    strategy: str,
    members: Mapping[str, Registration],
    partitions: Mapping[str, Sequence[int]],
    *,
    exclude_internal: bool = True,
) -> Assignment:
    """ZooKeeper's assignment of the whole group. ``partitions``: of each topic of the cluster, in order."""
    wanted = {m: r.topics(partitions, exclude_internal=exclude_internal) for m, r in members.items()}
    assignor = by_range if strategy == RANGE else by_round_robin
    return assignor(threads_by_topic(wanted), partitions)


def subdivide(member: str, topics: Mapping[str, int], partitions: Collection[Partition]) -> Assignment:
    """The partitions of one member, dealt to its threads as Kafka's ``RoundRobinAssignor`` does: topics by name, then
    numbers. ``topics``: with the number of its threads. A partition of another topic gets no thread.
    """
    readers = threads_by_topic({member: topics})
    dealt = cycle(sorted({thread for each in readers.values() for thread in each}))
    return dict(_deal(dealt, readers, by_topic(partitions)))


def _deal(
    dealt: Iterator[Thread], readers: Mapping[str, Sequence[Thread]], partitions: Mapping[str, Sequence[int]]
) -> Iterator[tuple[Partition, Thread]]:
    for topic, numbers in partitions.items():
        for number in numbers:
            if topic in readers:
                yield (topic, number), next(thread for thread in dealt if thread in readers[topic])
