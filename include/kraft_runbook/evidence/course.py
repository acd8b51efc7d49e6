"""How a reassignment went: what was left of it at each moment. Its run keeps it while it moves replicas, and records it
at the end. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kraft_runbook.evidence.body import Body, moment, whole

MOST = 240
"""Points that are kept of a course, however long it takes: some 20 kB."""


@dataclass(frozen=True, slots=True)
class CoursePoint:
    """``partitions``: of the plan, that are not as planned yet. ``replicas``: that are still to be copied for them;
    one that is in sync is copied. ``bytes_left``: of the copies that were being made then, so not of the batches that
    had not begun; None: a broker did not say, or none was asked.
    """

    at: datetime
    partitions: int
    replicas: int
    bytes_left: int | None


def and_then(course: Sequence[CoursePoint], point: CoursePoint) -> tuple[CoursePoint, ...]:
    """The course with its next point. It always ends with that; a point that lies too close to the one before goes,
    and every second one where there are more than ``MOST``. What lies after ``point`` is of a clock that was ahead.
    """
    kept = [each for each in course if each.at < point.at]
    if len(kept) > 1 and (point.at - kept[-2].at).total_seconds() < apart((*kept, point)):
        kept.pop()
    if len(kept) >= MOST:
        kept = kept[::2]
    return (*kept, point)


def apart(course: Sequence[CoursePoint]) -> float:
    """Seconds between two points of a whole course that is as long as this one; between some lie twice as many."""
    return (course[-1].at - course[0].at).total_seconds() / (MOST / 2)


def course_to_list(course: Iterable[CoursePoint]) -> list[dict[str, Any]]:
    """As JSON has it; ``course_of`` reads it."""
    return [
        {
            "at": each.at.isoformat(timespec="seconds"),
            "partitions": each.partitions,
            "replicas": each.replicas,
            "bytes_left": each.bytes_left,
        }
        for each in course
    ]


def course_of(points: Iterable[Body]) -> tuple[CoursePoint, ...]:
    """In the order of their times; what is no point is left out, such as one that has less than nothing left."""
    found = [
        CoursePoint(at, partitions, replicas, _count(each, "bytes_left"))
        for each in points
        if (at := moment(each, "at"))
        and (partitions := _count(each, "partitions")) is not None
        and (replicas := _count(each, "replicas")) is not None
    ]
    return tuple(sorted(found, key=lambda each: each.at))


def _count(point: Body, key: str) -> int | None:
    value = whole(point, key)
    return value if value is not None and value >= 0 else None
