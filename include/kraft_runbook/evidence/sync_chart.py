"""Replicas out of sync per broker over time, as a drawing, in words, and as a table. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.evidence.curves import Curve, Figure, curves_as_html

MOST = 40
"""Brokers that are drawn: those that had the most replicas out of sync."""
POINTS = 240
"""That are made of looks, however long they took."""
GAP = 60.0
"""Seconds after which a look no longer tells how things are, in a short time; in a long one, so long as three points
take.
"""


@dataclass(frozen=True, slots=True)
class SyncPoint:
    """Replicas that are not in their ISR, by the broker on which they are; None: not read. A broker that is not named
    is in sync.
    """

    at: datetime
    out_of_sync: Mapping[int, int | None]


def sync_as_html(points: Sequence[SyncPoint], most: int = MOST) -> Markup:
    """Empty where every broker was in sync at each look that could be read."""
    worst: dict[int, int] = {}
    for point in points:
        for broker, count in point.out_of_sync.items():
            worst[broker] = max(worst.get(broker, 0), count or 0)
    ranked = sorted((each for each in worst if worst[each]), key=lambda each: (-worst[each], each))
    if not ranked:
        return Markup()
    curves = [
        Curve(f"broker {each}", [(point.at, point.out_of_sync.get(each, 0)) for point in points])
        for each in sorted(ranked[:most])
    ]
    left = ranked[most:]
    gap = max(GAP, 3 * (points[-1].at - points[0].at).total_seconds() / POINTS)
    also = f"; not shown, with fewer: {nodes('broker', sorted(left))}" if left else ""
    return curves_as_html(curves, Figure(f"Most replicas out of sync{also}", gap, peaks=True, low=True))
