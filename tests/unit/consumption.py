"""Records that a group of two members has handed out, orderly and with each fault planted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from kraft_runbook.groups.proof import HandedOut

TENTH = 0.125
"""Seconds from record to record; a power of two, so that sums are exact."""
PRODUCED = {("orders", 0): (0, 10), ("orders", 1): (0, 10)}


def handed(member: str, offsets: Iterable[int], begin: float, partition: int = 0) -> list[HandedOut]:
    """One after the other."""
    return [HandedOut("orders", partition, o, member, begin + at * TENTH) for at, o in enumerate(offsets)]


OTHER = handed("a", range(10), 0, partition=1)
ORDERLY = [*handed("a", range(5), 0), *handed("b", range(5, 10), 1.125), *OTHER]
"""Partition 0 goes from a to b."""
SUMMARY = "20 records of 2 partitions: 0 lost, 0 twice, 0 by two at once"
SHARES = "orders, partitions at the end: a 1, b 1"
FAULTS: Mapping[str, tuple[Sequence[HandedOut], Sequence[str]]] = {
    "lost": ([each for each in ORDERLY if (each.partition, each.offset) != (0, 7)], ["orders-0 lost: 7"]),
    "twice": (
        [*ORDERLY, *handed("b", (9,), 3)],
        ["orders, partitions at the end: a 1, b 1", "orders-0 twice: 9"],
    ),
    "by two at once": (
        [*handed("a", range(5), 0), *handed("b", range(5, 10), 0.4), *OTHER],
        [SHARES, "orders-0 by two at once, 1 records: a handed out 4 after b had handed out 5"],
    ),
    "silence": (
        [*handed("a", range(5), 0), *handed("b", range(5, 10), 9.5), *OTHER],
        [SUMMARY, "the longest silence of a partition: 9.0 s", SHARES],
    ),
    "uneven spread": (
        [*handed("a", range(10), 0), *OTHER],
        [SUMMARY, "the longest silence of a partition: 0.1 s", "orders, partitions at the end: a 2"],
    ),
}
"""What is planted: the records, and the last lines that tell of it."""


def lines(records: Iterable[HandedOut]) -> list[str]:
    """As a log has them."""
    return [json.dumps(asdict(each)) for each in records]
