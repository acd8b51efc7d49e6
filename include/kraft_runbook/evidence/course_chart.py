"""A reassignment's course as a drawing, in words, and as a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from kraft_runbook.evidence.course import CoursePoint, apart
from kraft_runbook.evidence.curves import Curve, Figure, curves_as_html

GAP = 300.0
"""Seconds after which what was left is not known any more: the run says it at least every half a minute."""


def course_as_html(course: Sequence[CoursePoint]) -> Markup:
    """Empty for fewer than two points: nothing has a course yet."""
    if len(course) < 2:
        return Markup()
    return curves_as_html(
        [  # the first looks like the second
            Curve("partitions not as planned yet", [(each.at, each.partitions) for each in course], drawn=False),
            Curve("replicas still to be copied", [(each.at, each.replicas) for each in course]),
            Curve(
                "MB left of the copies under way",
                [(each.at, each.bytes_left) for each in course],
                lambda n: f"{n / 1e6:,.1f}",
            ),
        ],
        Figure("What was left", max(GAP, 2.5 * apart(course))),
    )
