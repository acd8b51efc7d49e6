"""One function a check. Importing this package fills the list in ``catalogue.CHECKS``."""

from kraft_runbook.migration.checks import (
    broker_calls,
    controller_callers,
    controller_logins,
    copy,
    finalization,
    hosts,
    identity,
    kraft_differs,
    listeners,
    producers,
    replicas,
    safe_gate,
    settings,
    software,
    stores,
    znodes,
    zookeeper,
)
from kraft_runbook.migration.checks.catalogue import CHECKS, render_catalogue
from kraft_runbook.runbook.check_results import CheckResult, ChecksReport, Severity, Verdict

__all__ = [
    "CHECKS",
    "CheckResult",
    "ChecksReport",
    "Severity",
    "Verdict",
    "broker_calls",
    "controller_callers",
    "controller_logins",
    "copy",
    "finalization",
    "hosts",
    "identity",
    "kraft_differs",
    "listeners",
    "safe_gate",
    "producers",
    "render_catalogue",
    "replicas",
    "settings",
    "software",
    "stores",
    "znodes",
    "zookeeper",
]
