"""What a step refuses though its phase would allow it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_runbook.errors import Refused
from kraft_runbook.observation import BrokerMode, MigrationZnode, Unread, was_read
from kraft_runbook.phases import Phase, detect_phase
from kraft_runbook_airflow.operators import ProvisionController, RestartBroker
from tests.unit.observations import SPEC, broker, observation

NO_QUORUM = Unread("no controller runs")


def provision() -> Any:
    return ProvisionController(task_id="provision", cluster="lab", node=101)


def test_a_stale_migration_znode_is_refused_before_a_controller_is_formatted() -> None:
    """Fresh controllers that find one erase every topic from ZooKeeper within two seconds (measured)."""
    seen = replace(observation(Phase.ZOOKEEPER), quorum=NO_QUORUM)
    assert was_read(seen.zookeeper)
    stale = replace(seen, zookeeper=replace(seen.zookeeper, migration=MigrationZnode(207, 102, 3, 5)))
    with pytest.raises(Refused, match="erase every topic") as refused:
        provision().guard({}, SPEC, stale)
    assert "zk_to_kraft_rollback__lab" in refused.value.way_out


def test_a_broker_left_in_migration_mode_is_refused_before_a_controller_is_formatted() -> None:
    """It would shut itself down when fresh controllers start at the former quorum's addresses (measured)."""
    seen = replace(broker(2, mode=BrokerMode.HYBRID)(observation(Phase.ZOOKEEPER)), quorum=NO_QUORUM)
    with pytest.raises(Refused, match="broker 2 is still in migration mode"):
        provision().guard({}, SPEC, seen)


def test_a_task_that_finds_nothing_to_do_still_removes_what_its_killed_try_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    left = tmp_path / "tmp" / "kraft-runbook-run-left"
    left.mkdir(parents=True)
    (left / ".alive").touch()
    provision().claim({"ti": SimpleNamespace(dag_id="d", run_id="one")})
    assert not left.exists()


def to_kraft(node: int) -> Any:
    return RestartBroker(task_id="restart", cluster="lab", node=node, mode=BrokerMode.KRAFT)


def test_a_broker_that_a_finalization_by_hand_left_behind_is_still_taken_to_kraft_mode() -> None:
    seen = broker(3, mode=BrokerMode.HYBRID)(observation(Phase.FINALIZED))
    reading = detect_phase(seen)
    assert reading.phase is Phase.FINALIZED
    assert to_kraft(3).already_done(SPEC, seen, reading) is None
    to_kraft(3).require_phase(reading, seen)
    to_kraft(3).guard({}, SPEC, seen)


def test_once_final_no_other_broker_is_touched() -> None:
    seen = observation(Phase.FINALIZED)
    reading = detect_phase(seen)
    assert "is in kraft mode" in (to_kraft(3).already_done(SPEC, seen, reading) or "")
    hybrid = RestartBroker(task_id="restart", cluster="lab", node=3, mode=BrokerMode.HYBRID)
    assert hybrid.already_done(SPEC, broker(3, mode=BrokerMode.HYBRID)(seen), reading)


def test_a_clean_start_is_not_refused() -> None:
    provision().guard({}, SPEC, replace(observation(Phase.ZOOKEEPER), quorum=NO_QUORUM))
