"""Every operation, by its name: for the command, and for waits that go on after a restart of the triggerer."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.brokers.operation import UNREGISTERING
from kraft_runbook.groups.checks import GROUP_CHECKS
from kraft_runbook.groups.operation import GROUPS
from kraft_runbook.groups.toggles.operation import TOGGLES
from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.migration.checks.catalogue import render_catalogue
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.quorum.care import QUORUM_CARE
from kraft_runbook.quorum.checks import QUORUM_CHECKS
from kraft_runbook.quorum.drill import QUORUM_DRILL
from kraft_runbook.quorum.look import Mode
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.software.operation import SOFTWARE

OPERATIONS: Mapping[str, Operation] = {
    each.name: each
    for each in (
        MIGRATION,
        RESTARTS,
        LEVELS,
        SOFTWARE,
        REASSIGNMENT,
        GROUPS,
        TOGGLES,
        QUORUM_DRILL,
        QUORUM_CARE,
        UNREGISTERING,
    )
}


def render_checks() -> str:
    """docs/checks.md: the checks of the migration, then what each further operation checks besides, and
    those of consumer groups and of the quorum.
    """
    lines: list[str] = []
    told = set(MIGRATION.checks)
    for operation in OPERATIONS.values():
        own = operation.checks.without(told)
        if own:
            lines += [f"# What does {operation.name.replace('_', ' ')} check besides?", ""]
            lines += own.render(stage.name for stage in operation.table.stages)
        told |= set(own)
    lines += ["# What does groups scan check?", "", *GROUP_CHECKS.render(())]
    lines += ["# What does quorum check besides?", "", *QUORUM_CHECKS.without(told).render(Mode)]
    return render_catalogue(lines)
