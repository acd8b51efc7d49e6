"""One function a check. Importing this package fills the list in ``registry.CHECKS``."""

from kraft_runbook.checks import (
    broker_calls,
    copy,
    finalization,
    hosts,
    identity,
    listeners,
    migration,
    producers,
    settings,
    software,
    znodes,
    zookeeper,
)
from kraft_runbook.checks.model import CheckResult, ChecksReport, Severity, Verdict
from kraft_runbook.checks.registry import CHECKS, render_catalogue, run_checks

__all__ = [
    "CHECKS",
    "CheckResult",
    "ChecksReport",
    "Severity",
    "Verdict",
    "broker_calls",
    "copy",
    "finalization",
    "hosts",
    "identity",
    "listeners",
    "migration",
    "producers",
    "render_catalogue",
    "run_checks",
    "settings",
    "software",
    "znodes",
    "zookeeper",
]
