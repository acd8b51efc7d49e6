"""A reassignment's course: what is kept of it, and how it is drawn and told."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from kraft_runbook.evidence.course import MOST, CoursePoint, and_then, course_of, course_to_list
from kraft_runbook.evidence.course_chart import GAP, course_as_html
from kraft_runbook.evidence.curves import COLUMNS
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.record import make_record
from kraft_runbook.evidence.run_report import make_report

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def point(seconds: float, left: int, bytes_left: int | None = 0) -> CoursePoint:
    return CoursePoint(BEGAN + timedelta(seconds=seconds), left, 2 * left, bytes_left)


def lines(html: str) -> list[str]:
    """The curves' paths: of replicas, then of bytes."""
    return re.findall(r'<path d="([^"]*)" style="fill: none', html)


@pytest.mark.parametrize("hours", [0.5, 7, 24 * 30])
def test_a_course_of_any_length_is_bounded_even_and_ends_with_what_was_said_last(hours: float) -> None:
    course: tuple[CoursePoint, ...] = ()
    count = int(hours * 120)
    for n in range(count):
        course = and_then(course, point(30 * n, count - n))
        assert len(course) <= MOST
    assert course[0] == point(0, count) and course[-1] == point(30 * (count - 1), 1)
    apart = [(b.at - a.at).total_seconds() for a, b in pairwise(course)]
    assert len(course) >= min(count, MOST / 2) - 1
    assert max(apart) <= max(30, 2 * hours * 3600 / (MOST / 2)), "else the line would be broken"
    assert course_of(json.loads(json.dumps(course_to_list(course)))) == course


def test_a_point_of_a_clock_that_was_ahead_goes() -> None:
    course = (point(0, 9), point(3600, 8))
    assert and_then(course, point(30, 7)) == (point(0, 9), point(30, 7))


def test_what_is_no_point_is_left_out() -> None:
    kept_one = {"at": BEGAN.isoformat(), "partitions": 2, "replicas": 3, "bytes_left": "?"}
    (kept,) = course_of([{}, {"at": "x"}, {**kept_one, "replicas": -1}, kept_one])
    assert kept == CoursePoint(BEGAN, 2, 3, None)


def test_the_drawing_the_words_and_the_table_say_the_same() -> None:
    html = course_as_html([point(0, 40, 0), point(30, 20, 80_000_000), point(60, 0, 0)])
    assert lines(html) == ["M0.0 22.0 L500.0 52.0 L1000.0 82.0", "M0.0 170.0 L500.0 110.0 L1000.0 170.0"]
    (words,) = re.findall('role="img" aria-label="([^"]*)"', html)
    assert words == (
        "From 03:04:05 to 03:05:05 UTC; partitions not as planned yet 40 at first, 40 at most, 0 at last;"
        " replicas still to be copied 80 at first, 80 at most, 0 at last;"
        " MB left of the copies under way 0.0 at first, 80.0 at most, 0.0 at last."
    )
    rows = re.findall(r'<th scope="row">([^<]*)</th>(.*?)</tr>', html)
    assert [(name, re.findall("<td[^>]*>([^<]*)", cells)) for name, cells in rows] == [
        ("partitions not as planned yet", ["40", "20", "0"]),
        ("replicas still to be copied", ["80", "40", "0"]),
        ("MB left of the copies under way", ["0.0", "80.0", "0.0"]),
    ]


def test_nothing_is_drawn_where_nobody_told_and_what_is_not_known_is_never_0() -> None:
    silent = 60 + 2 * GAP
    html = course_as_html([point(0, 9), point(60, 8, None), point(silent, 7, None), point(silent + 60, 6, 5)])
    replicas, of_bytes = lines(html)
    assert replicas.count("M") == 2
    assert of_bytes.count("M") == 2, "a single moment is drawn too"
    assert html.count(">not known<") == 2


def test_the_table_has_as_many_columns_as_a_page_has_room_for() -> None:
    html = course_as_html([point(30 * n, MOST - n) for n in range(MOST)])
    assert html.count('<th scope="col" class="n">') == COLUMNS


def test_the_evidence_page_draws_the_course_that_the_end_has_recorded() -> None:
    course = tuple(course_to_list([point(0, 9), point(60, 0)]))
    told = (Moves(what="started", partitions=9), Moves(what="ended", partitions=9, course=course))
    records = [make_record(None, {"task": "move", **each.body()}, at=BEGAN) for each in told[:1]]
    records.append(make_record(records[0], {"task": "move", **told[1].body()}, at=BEGAN))
    report = make_report("r", records, None)
    assert [len(each.course) for each in report.moves] == [0, 2]
    page = render_page(report, records, made_at=BEGAN)
    assert page.count('class="curves"') == 1
    assert "replicas still to be copied 18 at first, 18 at most, 0 at last" in page


@pytest.mark.parametrize("course", [(), (point(0, 1),)])
def test_one_moment_is_no_course(course: tuple[CoursePoint, ...]) -> None:
    assert course_as_html(course) == ""
