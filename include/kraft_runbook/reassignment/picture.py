"""The preview as a picture: one bar a broker before and after, in an SVG that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from kraft_runbook.reassignment.preview import BrokerChange, Preview

WIDTH, LEFT, ROW, BAR, TOP = 760, 150, 46, 14, 54
BEFORE, KEPT, COPIED = "#b8c0cc", "#4c78a8", "#f58518"
MOST_BROKERS = 120
"""A bar each: the picture of a larger cluster shows the brokers that change most."""


def draw(preview: Preview) -> str:
    """Bars of bytes where sizes are known, else of replicas; what is copied to a broker stands out."""
    by_bytes = any(each.bytes_before or each.bytes_after for each in preview.brokers)
    shown = sorted(preview.brokers, key=lambda b: (-(b.replicas_in + b.replicas_out), b.broker))[:MOST_BROKERS]
    shown.sort(key=lambda each: (each.rack or "", each.broker))
    longest = max((max(_values(each, by_bytes)) for each in shown), default=0) or 1
    height = TOP + ROW * len(shown) + 12
    unit = "bytes" if by_bytes else "replicas"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(preview.goal)}: {unit} a broker, before and after</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{escape(preview.goal)}: {unit} a broker</text>',
        *_legend(),
    ]
    for at, each in enumerate(shown):
        lines += _bars(each, TOP + at * ROW, longest, by_bytes)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _legend() -> Iterator[str]:
    for at, (colour, what) in enumerate(((BEFORE, "before"), (KEPT, "after, kept"), (COPIED, "after, copied"))):
        x = 10 + at * 130
        yield f'<rect x="{x}" y="30" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="40">{what}</text>'


def _bars(each: BrokerChange, y: int, longest: int, by_bytes: bool) -> Iterator[str]:
    before, after = _values(each, by_bytes)
    copied = each.bytes_in if by_bytes else each.replicas_in

    def length(value: int) -> float:
        return round((WIDTH - LEFT - 110) * value / longest, 1)

    rack = f" ({each.rack})" if each.rack else ""
    kept = max(0, after - copied)
    yield f'<text x="10" y="{y + 19}">{escape(f"broker {each.broker}{rack}")}</text>'
    yield f'<rect x="{LEFT}" y="{y}" width="{length(before)}" height="{BAR}" fill="{BEFORE}"/>'
    yield f'<rect x="{LEFT}" y="{y + BAR + 2}" width="{length(kept)}" height="{BAR}" fill="{KEPT}"/>'
    yield (
        f'<rect x="{LEFT + length(kept)}" y="{y + BAR + 2}" width="{length(after - kept)}" height="{BAR}"'
        f' fill="{COPIED}"/>'
    )
    for value, line in ((before, y + 11), (after, y + BAR + 13)):
        yield f'<text x="{LEFT + length(value) + 6}" y="{line}">{_shown(value, by_bytes)}</text>'


def _values(each: BrokerChange, by_bytes: bool) -> tuple[int, int]:
    return (each.bytes_before, each.bytes_after) if by_bytes else (each.replicas_before, each.replicas_after)


def _shown(value: int, by_bytes: bool) -> str:
    if not by_bytes:
        return f"{value:,}"
    return f"{value / 1e9:,.1f} GB" if value >= 1e9 else f"{value / 1e6:,.1f} MB"
