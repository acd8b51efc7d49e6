"""The gate of the way back asks what would keep a broker down that it restarts, and nothing that only a copy asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from acted import NOTHING_LOST
from observations import SPEC, WHY, dual_writing, observation, tree, with_quorum
from recording import RecordingCluster, run_on

from kraft_runbook.cluster.observation import ClusterObservation, Consequence, Found
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.parity.dual_write import await_movement
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.procedures.kept_log_ends import check_log_ends
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.steps.migration_gates import examine
from kraft_runbook.steps.way_back_facts import epoch_not_writable, not_deletable

QUOTA = "/config/ips/%3A%3A1 (its name is neither an address nor a host's name)"


class Shown(RecordingCluster):
    """A cluster that goes on. The tree is there for a deep look alone."""

    def observe(self, scope: Scope = Scope.LIVE, **deep: Any) -> ClusterObservation:
        self.looks.append(deep)
        later = dual_writing(self.shown[0], 3 * len(self.looks) - 3)
        return later if scope is Scope.FULL else replace(later, zookeeper=replace(later.zookeeper, tree=WHY))  # type: ignore[type-var]


def blocking(seen: ClusterObservation) -> dict[str, str]:
    """What blocks at the gate, with its evidence."""
    lets = {not_deletable: None, epoch_not_writable: None}
    cluster = Shown(seen, answers={check_log_ends: NOTHING_LOST, await_movement: None, what_lies_behind: None, **lets})
    checks = examine(run_on(cluster), Gate.ROLLBACK).checks
    return {each.code: each.evidence for each in checks if each.blocks}


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_a_znode_that_keeps_a_restarted_broker_down_is_named_before_any_is_restarted(phase: Phase) -> None:
    seen = tree(faults={Consequence.BROKER_STAYS_DOWN: Found(1, (QUOTA,))})(observation(phase))
    assert blocking(seen) == {"KRB-GATE-012": f"a broker would not start: 1: {QUOTA}"}


def test_configs_that_zookeeper_can_t_hold_are_a_risk_of_the_way_back_and_no_obstacle() -> None:
    seen = with_quorum(kraft_only_configs=("groups orders",))(observation(Phase.HYBRID))
    assert blocking(seen) == {}
    plan = way_back(seen, SPEC)
    assert plan.possible
    assert any(risk.startswith("groups orders: ") and "KRB-PRE-067" in risk for risk in plan.risks)


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_what_only_a_copy_chokes_on_keeps_nobody_from_going_back(phase: Phase) -> None:
    faults = {
        each: Found(1, ("/config/x (a problem)",)) for each in Consequence if each is not Consequence.BROKER_STAYS_DOWN
    }
    assert blocking(tree(faults=faults)(observation(phase))) == {}
