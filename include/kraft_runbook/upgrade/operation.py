"""The rolling software upgrade and its way back, as a value."""

from __future__ import annotations

import kraft_runbook.upgrade.checks
import kraft_runbook.upgrade.class_checks
import kraft_runbook.upgrade.dynamic_checks
import kraft_runbook.upgrade.file_checks
import kraft_runbook.upgrade.old_clients  # noqa: F401 - each fills the list
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.upgrade.ahead import changes, is_behind, reading_of, way_back, what_happens_next
from kraft_runbook.upgrade.checklist import CHECKS
from kraft_runbook.upgrade.conditions import CONDITIONS
from kraft_runbook.upgrade.explain import explain
from kraft_runbook.upgrade.stages import TABLE


def _names_a_target(spec: ClusterSpec) -> bool:
    return spec.kafka.upgrade_to is not None


UPGRADE = Operation(
    name="upgrade_software",
    table=TABLE,
    checks=CHECKS,
    conditions=CONDITIONS,
    read=reading_of,
    way_back=way_back,
    changes=changes,
    ahead=what_happens_next,
    is_behind=is_behind,
    serves=_names_a_target,
    explains=explain,
    back="downgrade_software",
)
