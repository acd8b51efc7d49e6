"""The samples of a watch as a picture: epoch, lag and commit latency over days. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kraft_runbook.quorum.samples import Sample
from kraft_runbook.quorum.svg import document, text

WIDTH, LEFT, TOP, PANEL, GAP = 760, 60, 40, 90, 46
LINE, SOFT = "#4c78a8", "#d5dbe3"


@dataclass(frozen=True, slots=True)
class Figure:
    """``read``: of a sample; None where it was not read, which leaves a gap in the line."""

    title: str
    read: Callable[[Sample], float | None]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _worst(name: str) -> Callable[[Sample], float | None]:
    """The largest of the controllers'."""

    def read(sample: Sample) -> float | None:
        controllers = sample.get("controllers")
        found = [_number(each.get(name)) for each in controllers.values()] if isinstance(controllers, dict) else []
        return max((each for each in found if each is not None), default=None)

    return read


FIGURES = (
    Figure("epoch of the quorum", lambda sample: _number(sample.get("epoch"))),
    Figure("records that the last controller has not fetched", _worst("lag")),
    Figure("age of the last applied record, ms: the oldest of all controllers", _worst("applied_lag_ms")),
    Figure(
        "records that the slowest broker has not applied", lambda sample: _number(sample.get("unapplied_by_brokers"))
    ),
    Figure("commit latency, ms", _worst("commit_latency_ms")),
)


def draw(samples: Sequence[Sample]) -> str:
    """An SVG that needs nothing else: a panel each figure, the oldest sample on the left."""
    read = [(at, each) for each in samples if (at := _moment(each)) is not None]
    parts = [text(LEFT, 20, _span([at for at, _ in read]), bold=True)]
    for number, figure in enumerate(FIGURES):
        points = [(at.timestamp(), figure.read(each)) for at, each in read]
        parts += _panel(figure.title, points, TOP + number * (PANEL + GAP))
    return document(WIDTH, TOP + len(FIGURES) * (PANEL + GAP), parts)


def _moment(sample: Sample) -> datetime | None:
    try:
        return datetime.fromisoformat(str(sample.get("at")))
    except ValueError:
        return None


def _span(moments: Sequence[datetime]) -> str:
    if not moments:
        return "no samples"
    return f"{len(moments)} looks, {moments[0]:%Y-%m-%d %H:%M} to {moments[-1]:%Y-%m-%d %H:%M}"


def _panel(title: str, points: Sequence[tuple[float, float | None]], top: int) -> Iterator[str]:
    known = [value for _, value in points if value is not None]
    yield text(LEFT, top + 12, title if known else f"{title}: not read")
    bottom, right = top + 18 + PANEL, WIDTH - 20
    yield f'<line x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}" stroke="{SOFT}"/>'
    if not known:
        return
    low, high = min(known), max(known)
    first, last = points[0][0], points[-1][0]
    for value, y in ((high, top + 22), (low, bottom)):
        yield text(LEFT - 6, y + 4, f"{value:g}", anchor="end")

    def place(at: float, value: float) -> str:
        x = LEFT + (right - LEFT) * (at - first) / ((last - first) or 1.0)
        return f"{x:.1f},{bottom - (PANEL - 4) * (value - low) / ((high - low) or 1.0):.1f}"

    line: list[str] = []
    for at, seen in [*points, (last, None)]:
        if seen is not None:
            line.append(place(at, seen))
        elif line:
            yield f'<polyline points="{" ".join(line)}" fill="none" stroke="{LINE}"/>'
            line = []
