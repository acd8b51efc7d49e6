"""The runs as a picture: seconds and processor seconds against partitions, both axes logarithmic."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from benchmarks.quorum.measured import COLD, FAILOVER, KILL, KRAFT, SHUTDOWN, ZOOKEEPER, Run
from benchmarks.quorum.report import LEAST, groups
from kraft_runbook.quorum.svg import document, text

LEFT, TOP, PANEL, HIGH, GAP, LEGEND = 62, 46, 330, 300, 70, 110
SOFT, BAND = "#d5dbe3", "#eef1f5"
COLOURS = {
    (SHUTDOWN, ZOOKEEPER): "#e45756",
    (SHUTDOWN, KRAFT): "#f2a29f",
    (FAILOVER, ZOOKEEPER): "#1c2430",
    (FAILOVER, KRAFT): "#72b7b2",
    (KILL, KRAFT): "#4c78a8",
    (COLD, KRAFT): "#f58518",
}
DETECTION = ((2.0, "controller.quorum.fetch.timeout.ms"), (18.0, "zookeeper.session.timeout.ms"))
"""How long a killed controller goes unnoticed by default, in seconds: on top of ZooKeeper's figures, where /controller
is deleted, and part of those of a SIGKILL.
"""

READ: tuple[tuple[str, Callable[[Run], float]], ...] = (
    ("seconds until answered", attrgetter("seconds")),
    ("cpu-seconds", attrgetter("cpu")),
)


@dataclass(frozen=True, slots=True)
class Panel:
    """``low``, ``high``: whole powers of ten at the ends of the vertical axis; ``first``, ``last``: of partitions."""

    title: str
    left: float
    low: int
    high: int
    first: float
    last: float

    def x(self, partitions: int) -> float:
        span = math.log10(self.last / self.first) or 1.0
        return self.left + 24 + (PANEL - 48) * math.log10(partitions / self.first) / span

    def y(self, value: float) -> float:
        at = (math.log10(max(value, 10**self.low)) - self.low) / (self.high - self.low)
        return TOP + HIGH * (1 - at)


def draw(runs: Sequence[Run]) -> str:
    """An SVG that needs nothing else. Each dot is a run, each line goes through the medians. Raises ValueError without
    a run.
    """
    if not runs:
        raise ValueError("there is no run to draw")
    sizes = sorted({each.partitions for each in runs})
    parts: list[str] = []
    for number, (title, read) in enumerate(READ):
        values = [max(LEAST, read(each)) for each in runs]
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(*values, 20.0)))
        panel = Panel(title, LEFT + number * (PANEL + GAP), low, high, sizes[0], sizes[-1])
        parts += _axes(panel, sizes, detection=number == 0)
        for kind, found in groups(runs).items():
            parts += _series(panel, found, read, COLOURS.get(kind, "#888888"))
    for number, kind in enumerate(groups(runs)):
        x, y = LEFT + (number % 2) * (PANEL + GAP), TOP + HIGH + 54 + (number // 2) * 20
        parts.append(f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{COLOURS.get(kind, "#888888")}"/>')
        parts.append(text(x + 10, y, f"{kind[1]}: {kind[0]}"))
    return document(2 * PANEL + GAP + LEFT + 20, TOP + HIGH + LEGEND, parts)


def _axes(panel: Panel, sizes: Sequence[int], *, detection: bool) -> Iterator[str]:
    yield text(panel.left, 24, panel.title, bold=True)
    right = panel.left + PANEL
    for power in range(panel.low, panel.high + 1):
        y = panel.y(10**power)
        yield f'<line x1="{panel.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{SOFT}"/>'
        yield text(panel.left - 6, y + 4, f"{10**power:g}", anchor="end")
    for size in sizes:
        x = panel.x(size)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + HIGH}" stroke="{SOFT}"/>'
        yield text(x, TOP + HIGH + 18, f"{size:,}", anchor="middle")
    yield text(right, TOP + HIGH + 34, "partitions", anchor="end")
    for seconds, name in DETECTION if detection else ():
        y = panel.y(seconds)
        yield f'<rect x="{panel.left}" y="{y - 3:.1f}" width="{PANEL}" height="6" fill="{BAND}"/>'
        yield text(panel.left + 4, y - 6, f"{seconds:g} s: {name}")


def _series(panel: Panel, runs: Sequence[Run], read: Callable[[Run], float], colour: str) -> Iterator[str]:
    sizes = sorted({each.partitions for each in runs})
    middles = [statistics.median(read(each) for each in runs if each.partitions == size) for size in sizes]
    line = " ".join(f"{panel.x(size):.1f},{panel.y(value):.1f}" for size, value in zip(sizes, middles, strict=True))
    yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for each in runs:
        yield f'<circle cx="{panel.x(each.partitions):.1f}" cy="{panel.y(read(each)):.1f}" r="3" fill="{colour}"/>'
