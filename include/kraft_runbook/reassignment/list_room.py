"""How many moves of one topic may go on at once, for its lists of throttled replicas to stay short enough.

A topic has one list for leaders and one for followers, and Kafka has no limit where entries are appended in ZooKeeper
mode. A longer text than ``LONGEST_TEXT`` is in no answer and in no record: nobody can read the list any more, the
metadata copy ends on it, and a KRaft controller that is to append to it ends (measured on 3.9.2). Whether a run has a
throttle does not matter here: one may be asked for while it moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from kraft_runbook.cluster.assignment import Move
from kraft_runbook.reassignment.throttles import FOLLOWER_LIST, UNREADABLE, throttled_lists

LIST_BYTES = 32_000
"""The most bytes of a list, with what others listed in it. They may add some meanwhile, up to ``LONGEST_TEXT``."""


Listed = Mapping[str, Mapping[str, frozenset[str]]]
"""By topic and key, entries of lists of throttled replicas."""


class ListRoom:
    """What is left of each list. ``others``: the entries that stay beside those of moves."""

    def __init__(self, others: Listed) -> None:
        self._bytes: Counter[tuple[str, str]] = Counter()
        self._add(others)

    def fits(self, move: Move) -> bool:
        lists = throttled_lists((move,))
        return all(
            self._bytes[topic, key] + bytes_of(entries) <= LIST_BYTES
            for topic, keys in lists.items()
            for key, entries in keys.items()
        )

    def take(self, move: Move) -> None:
        self._add(throttled_lists((move,)))

    def _add(self, lists: Listed) -> None:
        for topic, keys in lists.items():
            for key, entries in keys.items():
                self._bytes[topic, key] += bytes_of(entries)


def bytes_of(entries: Collection[str]) -> int:
    """Of a list of them, with a comma behind each. One that can't be read is full."""
    return LIST_BYTES if UNREADABLE in entries else sum(len(each) + 1 for each in entries)


def crowded(left: Iterable[Move], going_on: Iterable[Move]) -> tuple[str, ...]:
    """The topics of which moves are left that find no room beside those that go on."""
    room, begun = ListRoom({}), frozenset(going_on)
    for move in begun:
        room.take(move)
    one_each = {move.partition.topic: move for move in left if move not in begun}
    return tuple(sorted(topic for topic, move in one_each.items() if not room.fits(move)))


def filled_by_others(left: Iterable[Move], going_on: Iterable[Move], listed: Listed) -> tuple[str, ...]:
    """The topics of which moves are left that would find room beside those that go on, if others had listed nothing."""
    with_others, alone, begun = ListRoom(listed), ListRoom({}), frozenset(going_on)
    for move in begun:
        with_others.take(move)
        alone.take(move)
    waiting = (each for each in left if each.partition.topic in listed and each not in begun)
    return tuple(sorted({m.partition.topic for m in waiting if alone.fits(m) and not with_others.fits(m)}))


def without_room(topics: Iterable[str]) -> Listed:
    """What is listed where others have filled the lists of these topics."""
    return {topic: {FOLLOWER_LIST: frozenset({UNREADABLE})} for topic in topics}
