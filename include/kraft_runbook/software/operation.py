"""The rolling software upgrade and its way back, as a value."""

from __future__ import annotations

import kraft_runbook.software.checks
import kraft_runbook.software.class_checks
import kraft_runbook.software.dynamic_checks
import kraft_runbook.software.file_checks
import kraft_runbook.software.oauth
import kraft_runbook.software.old_clients
import kraft_runbook.software.release_checks  # noqa: F401 - each fills the list
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.software.ahead import changes, is_behind, reading_of, way_back, what_happens_next
from kraft_runbook.software.checklist import CHECKS
from kraft_runbook.software.conditions import CONDITIONS
from kraft_runbook.software.explain import explain
from kraft_runbook.software.stages import TABLE


def _names_a_target(spec: ClusterSpec) -> bool:
    return spec.kafka.upgrade_to is not None


SOFTWARE = Operation(
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
