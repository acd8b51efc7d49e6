"""Who handed out which record, when: what was lost, what came twice, and where two had a partition at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, order=True)
class HandedOut:
    """``at``: seconds, by one clock for all members."""

    at: float
    member: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Account:
    """``lost`` and ``twice``: (partition, offset). ``overlaps``: records that one handed out after another one had
    handed out the same or a later one of the partition. ``silent``: the longest time without a record of a partition,
    seconds.
    """

    lost: tuple[tuple[int, int], ...]
    twice: tuple[tuple[int, int], ...]
    overlaps: tuple[HandedOut, ...]
    silent: Mapping[int, float]


def account(sent: Mapping[int, int], seen: Iterable[HandedOut], timeless: Collection[str] = ()) -> Account:
    """``sent``: how many records each partition has, offsets from 0. ``timeless``: members whose times nobody knows;
    they count for what was lost and what came twice.
    """
    times: dict[tuple[int, int], int] = defaultdict(int)
    in_time: dict[int, list[HandedOut]] = defaultdict(list)
    for each in sorted(seen):
        times[each.partition, each.offset] += 1
        if each.member not in timeless:
            in_time[each.partition].append(each)
    expected = {(partition, offset) for partition, count in sent.items() for offset in range(count)}
    overlaps: list[HandedOut] = []
    silent: dict[int, float] = {}
    for partition, records in in_time.items():
        furthest: dict[str, int] = {}
        for each in records:
            if any(member != each.member and each.offset <= offset for member, offset in furthest.items()):
                overlaps.append(each)
            furthest[each.member] = max(each.offset, furthest.get(each.member, -1))
        moments = [each.at for each in records]
        silent[partition] = max((b - a for a, b in pairwise(moments)), default=0.0)
    return Account(
        lost=tuple(sorted(expected - times.keys())),
        twice=tuple(sorted(each for each, count in times.items() if count > 1)),
        overlaps=tuple(overlaps),
        silent=silent,
    )
