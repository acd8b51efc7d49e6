"""How many replicas were out of sync on each broker, by the lines of kept looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.unread import was_read
from kraft_runbook.dashboard.dag_names import cluster_of
from kraft_runbook.dashboard.kept_look import moment_of
from kraft_runbook.dashboard.look_files import read_lines
from kraft_runbook.evidence.run_report import RunReport
from kraft_runbook.evidence.sync_chart import POINTS, SyncPoint


def out_of_sync_in(state: Path, report: RunReport, *, goes_on: bool = False) -> tuple[SyncPoint, ...]:
    """While this run went; empty where no look of that time is kept any more. ``goes_on``: until now. The cluster is
    the one that the DAG is named for.
    """
    cluster = cluster_of(report.dag)
    if cluster is None or cluster != report.cluster or report.began is None or report.ended is None:
        return ()
    lines = read_lines(state, cluster)
    until = datetime.now(UTC) if goes_on else report.ended
    return sync_points(lines, report.began, until) if was_read(lines) else ()


def sync_points(lines: Iterable[Mapping[str, Any]], since: datetime, until: datetime) -> tuple[SyncPoint, ...]:
    """Of looks between these moments, in any order. Of looks that are close to each other the most counts."""
    found = sorted(
        (SyncPoint(at, _behind(line)) for line in lines if (at := moment_of(line)) and since <= at <= until),
        key=lambda point: point.at,
    )
    if len(found) <= POINTS:
        return tuple(found)
    apart = (found[-1].at - found[0].at) / POINTS
    stretches: dict[int, list[SyncPoint]] = {}
    for point in found:
        stretches.setdefault(min(int((point.at - found[0].at) / apart), POINTS - 1), []).append(point)
    return tuple(map(_joined, stretches.values()))


def _joined(points: Sequence[SyncPoint]) -> SyncPoint:
    behind: dict[int, int | None] = {}
    for point in points:
        for broker, count in point.out_of_sync.items():
            before = behind.get(broker)
            behind[broker] = count if before is None else max(before, count or 0)
    return SyncPoint(points[0].at, behind)


def _behind(line: Mapping[str, Any]) -> dict[int, int | None]:
    """Not read where the line does not say."""
    behind, modes = line.get("out_of_sync"), line.get("modes")
    if not isinstance(behind, dict):
        behind = dict.fromkeys(modes) if isinstance(modes, dict) else {}
    return {int(name): n if type(n) is int and n >= 0 else None for name, n in behind.items() if name.isdecimal()}
