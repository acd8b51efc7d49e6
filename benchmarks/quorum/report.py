"""What many runs say: a table, and how their cost grows with the partitions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from benchmarks.quorum.measured import KINDS, Run

READ: tuple[tuple[str, Callable[[Run], float | None]], ...] = (
    ("seconds", lambda run: run.seconds),
    ("seconds after the election", lambda run: run.afterwards),
    ("cpu-seconds", lambda run: run.cpu),
)
LEAST = 0.01
"""Seconds: less is taken for as much, as it can't be told from it."""


def exponent(points: Sequence[tuple[int, float]]) -> tuple[float, float, float] | None:
    """How the seconds grow with the partitions: the power in seconds ~ partitions^power, by the medians of the smallest
    and the largest size, and its range by their extremes. None where there is one size only.
    """
    by_size: dict[int, list[float]] = {}
    for size, seconds in points:
        by_size.setdefault(size, []).append(max(seconds, LEAST))
    if len(by_size) < 2:
        return None
    small, large = by_size[min(by_size)], by_size[max(by_size)]
    scale = math.log(max(by_size) / min(by_size))

    def power(above: float, below: float) -> float:
        return math.log(above / below) / scale

    return (
        power(statistics.median(large), statistics.median(small)),
        power(min(large), max(small)),
        power(max(large), min(small)),
    )


def groups(runs: Iterable[Run]) -> dict[tuple[str, str], list[Run]]:
    """By kind and side, in the order of kinds."""
    found: dict[tuple[str, str], list[Run]] = {}
    for each in sorted(runs, key=lambda run: (KINDS.index(run.kind), run.side, run.partitions)):
        found.setdefault((each.kind, each.side), []).append(each)
    return found


def table(runs: Sequence[Run]) -> str:
    """As markdown: a row a kind, side and size, with every run's figure."""
    lines = [
        "| | | partitions | seconds | until elected | records behind | cpu-s | load |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (kind, side), all_of_them in groups(runs).items():
        for size in sorted({each.partitions for each in all_of_them}):
            found = [each for each in all_of_them if each.partitions == size]
            columns = [[f"{each.seconds:g}" for each in found]]
            columns += [[f"{value:g}" for each in found if (value := each.detected) is not None]]
            columns += [[f"{value:,}" for each in found if (value := each.behind) is not None]]
            columns += [[f"{each.cpu:g}" for each in found], [f"{each.load:g}" for each in found]]
            lines.append(f"| {kind} | {side} | {size:,} | {' | '.join(', '.join(each) for each in columns)} |")
    return "\n".join(lines)


def growth(runs: Sequence[Run]) -> str:
    """A line each kind, side and figure that two sizes have; nothing where there is one size."""
    lines: list[str] = []
    for (kind, side), found in groups(runs).items():
        for what, read in READ:
            grown = exponent([(each.partitions, value) for each in found if (value := read(each)) is not None])
            if grown:
                lines.append(
                    f"{kind}, {side}: {what} grow with partitions to the power of {grown[0]:.2f} ({grown[1]:.2f} to"
                    f" {grown[2]:.2f})"
                )
    return "\n".join(lines)
