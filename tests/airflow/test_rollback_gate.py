"""The gate of the way back asks what would keep a broker down that it restarts, and nothing that only a copy asks."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from acted import NOTHING_LOST

from kraft_runbook.cluster.observation import ClusterObservation, Consequence, Found
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.procedures.observe import Scope
from kraft_runbook_airflow.base import second_look
from kraft_runbook_airflow.migration import gate_looks as migration_gates
from tests.unit.observations import SPEC, WHY, dual_writing, observation, tree, with_quorum

QUOTA = "/config/ips/%3A%3A1 (its name is neither an address nor a host's name)"


def blocking(monkeypatch: pytest.MonkeyPatch, seen: ClusterObservation) -> dict[str, str]:
    """What blocks at the gate, with its evidence. The tree is there for a deep look alone."""

    def look(*_: Any, scope: Scope = Scope.LIVE, **__: Any) -> ClusterObservation:
        later = dual_writing(seen, 3)
        return later if scope is Scope.FULL else replace(later, zookeeper=replace(later.zookeeper, tree=WHY))  # type: ignore[type-var]

    monkeypatch.setattr(migration_gates, "observe_settled", lambda *_, **__: seen)
    for name in ("observe_settled", "observe"):
        monkeypatch.setattr(second_look, name, look)
    for module in (migration_gates, second_look):
        monkeypatch.setattr(module, "airflow_secrets", lambda: None)
    monkeypatch.setattr(second_look, "time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.setattr(migration_gates, "check_log_ends", lambda *_, **__: NOTHING_LOST)
    monkeypatch.setattr(migration_gates, "await_movement", lambda *_, **__: None)
    monkeypatch.setattr(migration_gates, "what_lies_behind", lambda *_, **__: None)
    monkeypatch.setattr(migration_gates, "not_deletable", lambda *_, **__: None)
    monkeypatch.setattr(migration_gates, "epoch_not_writable", lambda *_, **__: None)
    checks = migration_gates.examine(SPEC, Gate.ROLLBACK, print).checks
    return {each.code: each.evidence for each in checks if each.blocks}


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_a_znode_that_keeps_a_restarted_broker_down_is_named_before_any_is_restarted(
    monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    seen = tree(faults={Consequence.BROKER_STAYS_DOWN: Found(1, (QUOTA,))})(observation(phase))
    assert blocking(monkeypatch, seen) == {"KRB-GATE-012": f"a broker would not start: 1: {QUOTA}"}


def test_configs_that_zookeeper_can_t_hold_are_a_risk_of_the_way_back_and_no_obstacle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = with_quorum(kraft_only_configs=("groups orders",))(observation(Phase.HYBRID))
    assert blocking(monkeypatch, seen) == {}
    plan = way_back(seen, SPEC)
    assert plan.possible
    assert any(risk.startswith("groups orders: ") and "KRB-PRE-067" in risk for risk in plan.risks)


@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_what_only_a_copy_chokes_on_keeps_nobody_from_going_back(monkeypatch: pytest.MonkeyPatch, phase: Phase) -> None:
    faults = {
        each: Found(1, ("/config/x (a problem)",)) for each in Consequence if each is not Consequence.BROKER_STAYS_DOWN
    }
    assert blocking(monkeypatch, tree(faults=faults)(observation(phase))) == {}
