"""What blocks is looked at again before a task fails for it: an election or a broker that has just started is over a
moment later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.runbook.check_results import CheckResult
from kraft_runbook.runbook.checklist import Checklist, Needs
from kraft_runbook.steps.handle import Cluster

Checks = tuple[CheckResult, ...]
Judge = Callable[[ClusterObservation, ClusterObservation | None], Checks]
"""The checks of an observation, and of the one before it where there is one."""


def look_and_judge(
    cluster: Cluster,
    judge: Judge,
    listed: Checklist,
    *,
    apart: float,
    earlier: ClusterObservation | None = None,
    **deep: Any,
) -> tuple[ClusterObservation, Checks]:
    """Observe as ``deep`` says and judge it; what blocks is looked at ``deadlines.healthy_in_a_row`` times in all,
    ``apart`` seconds from one to the next.

    Only what a quick look shows is looked at again: what lies on hosts and in each topic's znodes is nobody's moment.
    Once quick looks find nothing more, a deep one is the last word. ``listed``: where ``judge`` has its checks from.
    """
    looks = 1
    while True:
        seen = cluster.settled(**deep)
        checks = judge(seen, earlier)
        while (wrong := _momentary(checks, listed)) and looks < cluster.spec.deadlines.healthy_in_a_row:
            looks += 1
            cluster.tell(
                "looking again, this may be over in a moment: "
                + "; ".join(f"{each.code} {each.evidence}" for each in wrong)
            )
            before = cluster.observe()
            cluster.pause(apart)
            earlier = cluster.observe()
            if not _momentary(judge(earlier, before), listed):
                cluster.pause(apart)
                break
        else:
            return seen, checks


def _momentary(checks: Iterable[CheckResult], listed: Checklist) -> list[CheckResult]:
    """What blocks and may be over at the next look; what no list names is judged by two looks."""
    return [
        each for each in checks if each.blocks and (each.code not in listed or listed[each.code].needs is Needs.LIVE)
    ]
