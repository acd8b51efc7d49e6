"""How the Scala client assigns partitions to its threads, as far as it shows from outside (``PartitionAssignor``,
1.1.1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import cycle

from kraft_runbook.groups.look import Partition, Registration

MOST_THREADS = 10_000
"""More than any member runs for a topic; the number is whatever somebody wrote into a znode."""


@lru_cache(maxsize=1 << 17)  # many groups read the same topics
def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, 32 bits, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def colliding(partitions: Iterable[Partition]) -> tuple[tuple[str, ...], ...]:
    """The partitions, as ``topic-number``, whose hashes are the same.

    roundrobin sorts by this hash alone. Members that hold equal ones in another order own the same partition twice
    (16 of 300 random cases, measured).
    """
    by_hash: dict[int, list[str]] = defaultdict(list)
    for topic, number in partitions:
        name = f"{topic}-{number}"
        by_hash[java_hash(name)].append(name)
    return tuple(tuple(sorted(names)) for names in by_hash.values() if len(names) > 1)


def by_range(
    members: Sequence[Registration], partitions: Mapping[str, Collection[int]]
) -> Mapping[Partition, str] | None:
    """The owners, as their znodes name them, where the assignor is range: topic by topic, the threads in the order of
    their names, the first ones one partition more. None where a member subscribes by a pattern, or says that it has
    more threads than MOST_THREADS.
    """
    if not _names_topics(members):
        return None
    owners: dict[Partition, str] = {}
    for topic, numbers in partitions.items():
        threads = sorted(f"{each.id}-{n}" for each in members for n in range(each.subscription.get(topic, 0)))
        if not threads:
            continue
        each_gets, more = divmod(len(numbers), len(threads))
        ordered = iter(sorted(numbers))
        for at, thread in enumerate(threads):
            for _ in range(each_gets + (at < more)):
                owners[topic, next(ordered)] = thread
    return owners


def by_round_robin(
    members: Sequence[Registration], partitions: Mapping[str, Collection[int]]
) -> Mapping[Partition, str] | None:
    """The same where it is roundrobin: all partitions by Java's hash of ``topic-number``, dealt to all threads in turn,
    without those that do not read the topic. Where hashes are equal members may differ (``colliding``).
    """
    if not _names_topics(members):
        return None
    readers = {
        topic: {f"{each.id}-{n}" for each in members for n in range(each.subscription.get(topic, 0))}
        for topic in partitions
    }
    dealt = cycle(sorted(set[str]().union(*readers.values())))
    every = [(topic, number) for topic in sorted(partitions) for number in sorted(partitions[topic]) if readers[topic]]
    return {
        each: next(thread for thread in dealt if thread in readers[each[0]])
        for each in sorted(every, key=lambda each: java_hash(f"{each[0]}-{each[1]}"))
    }


def _names_topics(members: Sequence[Registration]) -> bool:
    """Whether each of them names its topics, with a number of threads that can be counted."""
    return all(
        each.pattern == "static" and max(each.subscription.values(), default=0) <= MOST_THREADS for each in members
    )
