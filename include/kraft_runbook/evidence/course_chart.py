"""A reassignment's course as a drawing, in words, and as a table, for any of this project's pages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from kraft_runbook.evidence.course import CoursePoint, apart
from kraft_runbook.evidence.templates import templates_of

WIDTH, PANEL = 1000.0, 60.0
"""Sizes in the drawing's own units: its width, and the height of one curve."""
GAP = 300.0
"""Seconds after which what was left is not known any more: the run says it at least every half a minute."""
COLUMNS = 8
"""Moments in the table: the first, the last, and others at even distances."""
Value = Callable[[CoursePoint], int | None]
CURVES: tuple[tuple[str, Value, Callable[[int], str]], ...] = (
    ("partitions not as planned yet", lambda point: point.partitions, lambda n: f"{n:,}"),
    ("replicas still to be copied", lambda point: point.replicas, lambda n: f"{n:,}"),
    ("MB left of the copies under way", lambda point: point.bytes_left, lambda n: f"{n / 1e6:,.1f}"),
)
"""Name, value, and how the value is shown. The first is in the table only: it looks like the second."""
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Curve:
    """``line``, ``area``: the drawing's paths; empty where no value is known. ``most``: the greatest value, which is at
    the top of the panel.
    """

    name: str
    most: str
    y: float
    line: str
    area: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a value at each of the chosen moments."""

    name: str
    values: tuple[str, ...]


def course_as_html(course: Sequence[CoursePoint]) -> Markup:
    """A figure with two curves, a sentence that says the same, and a table. Empty for fewer than two points: nothing
    has a course yet.
    """
    if len(course) < 2:
        return Markup()
    began, ended = course[0].at, course[-1].at
    clock = _clock(ended - began)
    chosen = _chosen(course)
    page = _environment().get_template("course.html")
    html = page.render(
        curves=tuple(_curve(course, place) for place in (1, 2)),
        words=_words(course, clock),
        ticks=tuple((round(WIDTH * n / 4, 1), clock(began + n * (ended - began) / 4)) for n in range(5)),
        times=tuple(clock(each.at) for each in chosen),
        rows=tuple(Row(name, tuple(_shown(value(each), show) for each in chosen)) for name, value, show in CURVES),
        width=WIDTH,
        panel=PANEL,
    )
    return Markup(html)  # noqa: S704 - the template escapes every value


def _curve(course: Sequence[CoursePoint], place: int) -> Curve:
    name, value, show = CURVES[place]
    top = 22 + (place - 1) * (PANEL + 28)
    most = max((n for each in course if (n := value(each)) is not None), default=None)
    seconds = max(1.0, (course[-1].at - course[0].at).total_seconds())
    line, area = list[str](), list[str]()
    for stretch in _stretches(course, value):
        dots = [
            (
                round(WIDTH * (at - course[0].at).total_seconds() / seconds, 1),
                round(top + PANEL * (1 - n / max(most or 0, 1)), 1),
            )
            for at, n in stretch
        ]
        if len(dots) == 1:  # a single moment is a short line
            (x, y) = dots[0]
            dots = [(max(0.0, x - 1), y), (min(WIDTH, x + 1), y)]
        path = " L".join(f"{x} {y}" for x, y in dots)
        line.append(f"M{path}")
        area.append(f"M{dots[0][0]} {top + PANEL} L{path} L{dots[-1][0]} {top + PANEL} Z")
    return Curve(name, _shown(most, show), top, " ".join(line), " ".join(area))


def _stretches(course: Sequence[CoursePoint], value: Value) -> list[list[tuple[datetime, int]]]:
    """Points that are near enough for a line between them: nothing is drawn where nobody told for long."""
    longest = max(GAP, 2.5 * apart(course))
    found: list[list[tuple[datetime, int]]] = []
    last: datetime | None = None
    for each in course:
        if (n := value(each)) is None:
            continue
        if last is None or (each.at - last).total_seconds() > longest:
            found.append([])
        found[-1].append((each.at, n))
        last = each.at
    return found


def _words(course: Sequence[CoursePoint], clock: Callable[[datetime], str]) -> str:
    told = [f"From {clock(course[0].at)} to {clock(course[-1].at)} UTC"]
    for name, value, show in CURVES:
        known = [n for each in course if (n := value(each)) is not None]
        first, last = _shown(value(course[0]), show), _shown(value(course[-1]), show)
        told.append(f"{name} {first} at first, {_shown(max(known, default=None), show)} at most, {last} at last")
    return "; ".join(told) + "."


def _chosen(course: Sequence[CoursePoint]) -> list[CoursePoint]:
    last = len(course) - 1
    places = dict.fromkeys(round(n * last / (COLUMNS - 1)) for n in range(COLUMNS))
    return [course[place] for place in places]


def _shown(value: int | None, show: Callable[[int], str]) -> str:
    return NOT_KNOWN if value is None else show(value)


def _clock(lasts: timedelta) -> Callable[[datetime], str]:
    form = "%H:%M:%S" if lasts < timedelta(hours=20) else "%m-%d %H:%M"
    return lambda at: at.strftime(form)


@cache
def _environment() -> Environment:
    return templates_of("kraft_runbook.evidence", str)
