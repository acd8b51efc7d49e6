"""Every operation, by its name: for the command, and for waits that go on after a restart of the triggerer."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kraft_runbook.brokers.operation import UNREGISTERING
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.groups.checks import GROUP_CHECKS
from kraft_runbook.groups.operation import GROUPS
from kraft_runbook.groups.toggles.operation import TOGGLES
from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.migration import after_another, kept_ends
from kraft_runbook.migration.checks import liveness
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, DUAL_WRITING, SOAK, render_catalogue
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.parity.standstill import CURE
from kraft_runbook.quorum.care import QUORUM_CARE
from kraft_runbook.quorum.checks import QUORUM_CHECKS
from kraft_runbook.quorum.drill import QUORUM_DRILL
from kraft_runbook.quorum.look import Mode
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.rehearsal import required
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.runbook.check_results import BLOCKING, Finding
from kraft_runbook.runbook.checklist import Check, Checklist, Needs
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

OF_GATES = Checklist()
"""What the gates of the migration ask that no single observation shows. It is asked where it is read
(``steps.migration_gates``), so that these entries are never run.
"""


def _of_gates(
    code: str, title: str, gates: Collection[str], needs: Needs, why: str, fix: str, stages: frozenset[Phase] | None
) -> None:
    def never(*_: object) -> Finding:
        raise AssertionError(f"{code} is not asked of an observation")

    gated = frozenset(map(str, gates))
    OF_GATES.take(Check(code, title, BLOCKING, None, gated, needs, fix, why, never), stages=stages)


_of_gates(
    liveness.CODE,
    liveness.TITLE,
    (Gate.DUAL_WRITE, Gate.FINALIZE, Gate.ROLLBACK, SOAK),
    Needs.TWO_LOOKS,
    "/migration must keep up with the metadata log from one look to the next. Dual write can stop while"
    " ZkMigrationState (1), ZkWriteBehindLag (0) and the logs look healthy. It is asked too before each broker's"
    " restart in dual write, and by the watch of the way back.",
    CURE,
    DUAL_WRITING,
)
_of_gates(
    kept_ends.CODE,
    kept_ends.TITLE,
    (Gate.START, Gate.DUAL_WRITE, Gate.FINALIZE, Gate.ROLLBACK),
    Needs.ON_RECORD,
    "The start gate keeps the end of every partition's log; each later gate compares. A partition that begins anew"
    " loses acknowledged records, whatever made it so. At the rollback's gate it only warns.",
    "restart nothing more. Look on the brokers' hosts for these partitions' directories whose names end in -stray, and"
    " save them; the answer says what else",
    None,
)
_of_gates(
    required.CODE,
    required.TITLE,
    (Gate.START,),
    Needs.ON_RECORD,
    "It must have gone through finalization, with this cluster file, these versions and this cluster. It blocks where"
    " the file has rehearsal.required_within; else it only warns.",
    "trigger canary_migration__<cluster>, or run kraft-runbook rehearse --cluster <cluster> (docs/rehearsal.md)",
    BEFORE_THE_COPY,
)
_of_gates(
    after_another.CODE,
    after_another.TITLE,
    (Gate.START,),
    Needs.ON_RECORD,
    "Asked where the cluster file names another cluster under after. Nothing is asked of that cluster's servers: the"
    " evidence of its runs tells.",
    "migrate the other cluster first, or correct 'after' in the cluster file",
    BEFORE_THE_COPY,
)


def render_checks() -> str:
    """docs/checks.md: the checks of the migration, then what its gates and each further operation check besides, and
    those of consumer groups and of the quorum.
    """
    told = set(MIGRATION.checks)
    lines = ["# What do the gates of the migration ask besides?", "", *OF_GATES.render(Phase)]
    for operation in OPERATIONS.values():
        own = operation.checks.without(told)
        if own:
            lines += [f"# What does {operation.name.replace('_', ' ')} check besides?", ""]
            lines += own.render(stage.name for stage in operation.table.stages)
        told |= set(own)
    lines += ["# What does groups scan check?", "", *GROUP_CHECKS.render(())]
    lines += ["# What does quorum check besides?", "", *QUORUM_CHECKS.without(told).render(Mode)]
    return render_catalogue(lines)
