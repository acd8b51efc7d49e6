"""The preview as a picture: each broker before and after, by data, replicas and preferred leaders, rack by rack. An SVG
that needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from kraft_runbook.reassignment.preview import BrokerChange, Preview, in_units

HEAD, RACK, ROW, BAR = 76, 26, 40, 13
BEFORE, KEPT, COPIED, INK, SOFT = "#b8c0cc", "#4c78a8", "#f58518", "#1c2430", "#5a6675"
MOST_BROKERS = 120
"""A row each: the picture of a larger cluster shows the brokers that change most."""


@dataclass(frozen=True, slots=True)
class Layout:
    """In pixels: the brokers' names (``left``), one column, and its longest bar; what is left of a column holds the
    numbers. ``columns``: at most so many.
    """

    left: int
    column: int
    bars: int
    columns: int


WIDE = Layout(130, 290, 190, 3)
NARROW = Layout(74, 224, 140, 1)
"""Airflow 3.3.2 shows no image in a gate's page wider than 300 pixels."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A broker's two bars in one column. ``new``: the part of ``after`` that is copied to it."""

    before: int
    after: int
    new: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """``pairs``: of each broker in their order. ``bytes``: what the numbers are."""

    title: str
    pairs: Sequence[Pair]
    bytes: bool = False

    def shown(self, value: int) -> str:
        return in_units(value) if self.bytes else f"{value:,}"


def draw(preview: Preview, layout: Layout = WIDE) -> str:
    """One row a broker, under its rack; what is copied to it stands out. No data column where no size is known."""
    shown = sorted(preview.brokers, key=lambda b: (-(b.replicas_in + b.replicas_out), b.broker))[:MOST_BROKERS]
    shown.sort(key=lambda each: (each.rack or "", each.broker))
    columns = _columns(shown)[: layout.columns]
    racks = [list(of) for _, of in groupby(shown, key=lambda each: each.rack or "")]
    named = any(each.rack for each in shown)
    width = layout.left + layout.column * len(columns)
    height = HEAD + ROW * len(shown) + (RACK * len(racks) if named else 0) + 8
    left_out = len(preview.brokers) - len(shown)
    head = preview.goal if layout is WIDE else "each broker"  # the page beside it names the goal
    head += f" (the {len(shown)} brokers that change most; {left_out} are not shown)" if left_out else ""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' font-family="sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{escape(preview.goal)}: each broker before and after</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="15" font-weight="bold">{escape(head)}</text>',
        *_legend(),
        *(
            f'<text x="{layout.left + at * layout.column}" y="{HEAD - 8}" font-weight="bold">{each.title}</text>'
            for at, each in enumerate(columns)
        ),
    ]
    y, number = HEAD, 0
    for rack in racks:
        if named:
            lines.append(_rack(rack, y, width))
            y += RACK
        for each in rack:
            lines.append(f'<text x="10" y="{y + 20}">broker {each.broker}</text>')
            for at, column in enumerate(columns):
                lines += _bars(column, number, layout.left + at * layout.column, y + 2, layout.bars)
            y, number = y + ROW, number + 1
    return "\n".join([*lines, "</svg>"]) + "\n"


def _columns(brokers: Sequence[BrokerChange]) -> list[Column]:
    found = [
        Column("replicas", [Pair(b.replicas_before, b.replicas_after, b.replicas_in) for b in brokers]),
        Column("preferred leaders", [Pair(b.leaders_before, b.leaders_after) for b in brokers]),
    ]
    if any(b.bytes_before or b.bytes_after for b in brokers):
        found.insert(0, Column("data", [Pair(b.bytes_before, b.bytes_after, b.bytes_in) for b in brokers], bytes=True))
    return found


def _legend() -> Iterator[str]:
    for at, (colour, what) in enumerate(((BEFORE, "before"), (KEPT, "after"), (COPIED, "copied to it"))):
        x = 10 + at * 90
        yield f'<rect x="{x}" y="32" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="42">{what}</text>'


def _rack(brokers: Sequence[BrokerChange], y: int, width: int) -> str:
    before, after = (sum(getattr(b, f"replicas_{when}") for b in brokers) for when in ("before", "after"))
    change = f"{before:,}" if before == after else f"{before:,} → {after:,}"
    name = escape(brokers[0].rack or "no rack")
    return (
        f'<line x1="10" x2="{width - 10}" y1="{y + 4}" y2="{y + 4}" stroke="#d5dbe3"/>'
        f'<text x="10" y="{y + 20}" fill="{SOFT}">{name}: {change} replicas</text>'
    )


def _bars(column: Column, number: int, x: int, y: int, most: int) -> Iterator[str]:
    longest = max((max(each.before, each.after) for each in column.pairs), default=0) or 1
    pair = column.pairs[number]
    new = min(pair.new, pair.after)

    def length(value: int) -> float:
        return round(most * value / longest, 1)

    for value, at, colour in ((pair.before, y, BEFORE), (pair.after - new, y + BAR + 2, KEPT)):
        yield f'<rect x="{x}" y="{at}" width="{length(value)}" height="{BAR}" fill="{colour}"/>'
    if new:
        kept = length(pair.after - new)
        yield f'<rect x="{x + kept}" y="{y + BAR + 2}" width="{length(new)}" height="{BAR}" fill="{COPIED}"/>'
    for value, line in ((pair.before, y + 11), (pair.after, y + BAR + 13)):
        yield f'<text x="{x + length(value) + 6}" y="{line}">{column.shown(value)}</text>'
