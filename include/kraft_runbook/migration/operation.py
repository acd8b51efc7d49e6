"""The migration off ZooKeeper and its way back, as a value."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import PhaseReading, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.ahead import is_behind, what_happens_next
from kraft_runbook.migration.changes import changes
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.conditions import CONDITIONS
from kraft_runbook.migration.copy_account import copy_account
from kraft_runbook.migration.explain import explain
from kraft_runbook.migration.situations import way_out
from kraft_runbook.migration.transitions import TABLE
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.runbook.operation import Operation


def _read(seen: ClusterObservation, _: ClusterSpec) -> PhaseReading:
    return detect_phase(seen)


def _is_behind(gate: str, seen: ClusterObservation, _: ClusterSpec) -> bool:
    return is_behind(gate, seen)


def _has_zookeeper(spec: ClusterSpec) -> bool:
    """After finalization a file may drop it."""
    return spec.zookeeper is not None


MIGRATION = Operation(
    name="migration",
    table=TABLE,
    checks=CHECKS,
    conditions=CONDITIONS,
    read=_read,
    way_back=way_back,
    changes=changes,
    ahead=what_happens_next,
    is_behind=_is_behind,
    serves=_has_zookeeper,
    explains=explain,
    way_out=way_out,
    account=copy_account,
    back="zk_to_kraft_rollback",
    back_mends=True,
)
