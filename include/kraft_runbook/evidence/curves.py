"""Values over time as a drawing, in words, and as a table, for any of this project's pages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from kraft_runbook.evidence.templates import templates_of

WIDTH, LABELS = 1000.0, 120.0
"""Sizes in the drawing's own units: its width, and that of the names beside low panels."""
COLUMNS = 8
"""Of the table: as many as a page has room for."""
NOT_KNOWN = "not known"
Point = tuple[datetime, int | None]
"""None: not known then."""


@dataclass(frozen=True, slots=True)
class Curve:
    """``points``: in the order of their times. ``show``: how a value is told. ``drawn``: it has a panel, not only a row
    of the table. ``unknown``: what is said where there is no value.
    """

    name: str
    points: Sequence[Point]
    show: Callable[[int], str] = "{:,}".format
    drawn: bool = True
    unknown: str = NOT_KNOWN

    def told(self, value: int | None) -> str:
        """A value as it is shown."""
        return self.unknown if value is None else self.show(value)


@dataclass(frozen=True, slots=True)
class Figure:
    """How curves are drawn. ``caption``: the table's. ``gap``: seconds after which a value is not known any more.
    ``peaks``: the table has the most of each stretch of time, where a value that lasts for a moment counts; else the
    value at each of some moments. ``low``: low panels on one scale, each with its name beside it, for many curves.
    """

    caption: str
    gap: float
    peaks: bool = False
    low: bool = False

    @property
    def panel(self) -> float:
        return 18.0 if self.low else 60.0

    @property
    def step(self) -> float:
        """From one panel to the next."""
        return 24.0 if self.low else 88.0

    @property
    def left(self) -> float:
        return LABELS if self.low else 0.0


@dataclass(frozen=True, slots=True)
class Panel:
    """A curve that is laid out. ``line``, ``area``: the drawing's paths; empty where no value is known. ``most``: the
    greatest value.
    """

    name: str
    most: str
    y: float
    line: str
    area: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    values: tuple[str, ...]


def curves_as_html(curves: Sequence[Curve], figure: Figure) -> Markup:
    """The drawing, a sentence that says the same, and the table. Empty where there are fewer than two moments."""
    moments = sorted({at for each in curves for at, _ in each.points})
    if len(moments) < 2:
        return Markup()
    began, ended = moments[0], moments[-1]
    clock = _clock(ended - began)
    drawn = [each for each in curves if each.drawn]
    top = 2.0 if figure.low else 22.0
    bottom = top + (len(drawn) - 1) * figure.step + figure.panel
    scale = max((_most(each) or 0 for each in drawn), default=0) if figure.low else None
    times, values = _peaks(moments) if figure.peaks else _moments(moments)
    page = _environment().get_template("curves.html")
    html = page.render(
        figure=figure,
        panels=[_panel(c, figure, top + n * figure.step, began, ended, scale) for n, c in enumerate(drawn)],
        words=f"From {clock(began)} to {clock(ended)} UTC; {'; '.join(map(_words, curves))}.",
        ticks=[
            (round(figure.left + (WIDTH - figure.left) * n / 4, 1), clock(began + n * (ended - began) / 4))
            for n in range(5)
        ],
        times=[clock(at) for at in times],
        rows=[Row(each.name, tuple(map(each.told, values(each)))) for each in curves],
        width=WIDTH,
        bottom=bottom,
    )
    return Markup(html)  # noqa: S704 - the template escapes every value


def _panel(curve: Curve, figure: Figure, y: float, began: datetime, ended: datetime, scale: int | None) -> Panel:
    most = _most(curve)
    wide, seconds = WIDTH - figure.left, max(1.0, (ended - began).total_seconds())
    line, area = list[str](), list[str]()
    for stretch in _stretches(curve.points, figure.gap):
        dots = [
            (
                round(figure.left + wide * (at - began).total_seconds() / seconds, 1),
                round(y + figure.panel * (1 - n / max(scale or most or 0, 1)), 1),
            )
            for at, n in stretch
        ]
        if len(dots) == 1:  # a single moment is a short line
            ((x, at_y),) = dots
            dots = [(max(figure.left, x - 1), at_y), (min(WIDTH, x + 1), at_y)]
        path = " L".join(f"{x} {at_y}" for x, at_y in dots)
        line.append(f"M{path}")
        area.append(f"M{dots[0][0]} {y + figure.panel} L{path} L{dots[-1][0]} {y + figure.panel} Z")
    return Panel(curve.name, curve.told(most), y, " ".join(line), " ".join(area))


def _stretches(points: Iterable[Point], gap: float) -> list[list[tuple[datetime, int]]]:
    """Points that are near enough for a line between them: nothing is drawn where nobody told for long."""
    found: list[list[tuple[datetime, int]]] = []
    last: datetime | None = None
    for at, n in points:
        if n is None:
            continue
        if last is None or (at - last).total_seconds() > gap:
            found.append([])
        found[-1].append((at, n))
        last = at
    return found


def _words(curve: Curve) -> str:
    values = [n for _, n in curve.points]
    first, last = (curve.told(values[place] if values else None) for place in (0, -1))
    return f"{curve.name} {first} at first, {curve.told(_most(curve))} at most, {last} at last"


def _most(curve: Curve) -> int | None:
    return max((n for _, n in curve.points if n is not None), default=None)


Values = Callable[[Curve], list[int | None]]
"""A curve's values in the table's columns."""


def _moments(moments: Sequence[datetime]) -> tuple[list[datetime], Values]:
    """The first moment, the last, and others at even distances."""
    last = len(moments) - 1
    chosen = [moments[place] for place in dict.fromkeys(round(n * last / (COLUMNS - 1)) for n in range(COLUMNS))]

    def values(curve: Curve) -> list[int | None]:
        at = dict(curve.points)
        return [at.get(each) for each in chosen]

    return chosen, values


def _peaks(moments: Sequence[datetime]) -> tuple[list[datetime], Values]:
    """The begin of each stretch of time, all equally long."""
    long = (moments[-1] - moments[0]) / COLUMNS
    begins = [moments[0] + n * long for n in range(COLUMNS)]

    def values(curve: Curve) -> list[int | None]:
        most: list[int | None] = [None] * COLUMNS
        for at, n in curve.points:
            place = min(int((at - moments[0]) / long), COLUMNS - 1)
            if n is not None:
                most[place] = max(n, most[place] or 0)
        return most

    return begins, values


def _clock(lasts: timedelta) -> Callable[[datetime], str]:
    form = "%H:%M:%S" if lasts < timedelta(hours=20) else "%m-%d %H:%M"
    return lambda at: at.strftime(form)


@cache
def _environment() -> Environment:
    return templates_of("kraft_runbook.evidence", str)
