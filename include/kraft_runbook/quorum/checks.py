"""The quorum judged: every check that applies where the cluster stands, and what blocks in words."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.quorum import broker_checks, quorum_checks, zookeeper_checks
from kraft_runbook.quorum.catalogue import QUORUM_CHECKS
from kraft_runbook.quorum.look import Series
from kraft_runbook.runbook.check_results import ChecksReport

__all__ = ["QUORUM_CHECKS", "broker_checks", "judge", "quorum_checks", "told", "zookeeper_checks"]


def judge(series: Series, spec: ClusterSpec) -> ChecksReport:
    """Every check that applies where the cluster stands."""
    return QUORUM_CHECKS.run(series, spec, series.now.mode)


def told(report: ChecksReport) -> Iterator[str]:
    """What blocks, a line each, with what to do."""
    for each in report.blocking:
        yield f"{each.code} {each.title}: {each.evidence} What to do: {each.fix}"
