"""Where a migration's seconds go: every second of a report is in one row."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.steps import BETWEEN, by_kind, main

SECONDS = {
    "preflight.checks": 2.0,
    "gate_start.prove": 1.5,
    "gate_start.approve": 1.0,
    "gate_start.approve_second": 0.1,
    "gate_start.confirm": 4.0,
    "provision_controllers.controller_101.provision": 5.0,
    "provision_controllers.quorum_ready": 2.0,
    "roll_brokers_to_hybrid.broker_1.restart": 6.0,
    "roll_brokers_to_hybrid.broker_1.in_sync": 2.0,
    "await_metadata_copy": 3.0,
    "parity_in_hybrid": 7.0,
    "soak": 22.0,
    "gate_finalize.parity_again": 7.5,
    "finalize_controllers.active_controller_last.restart": 6.5,
    "finalize_controllers.controller_101.caught_up": 1.5,
    "finalize_controllers.finalized": 2.5,
    "closing_report": 0.4,
}


def test_each_task_is_of_one_kind_and_the_rest_lies_between() -> None:
    steps = [{"task": task, "state": "success", "seconds": seconds} for task, seconds in SECONDS.items()]
    found = by_kind({"steps": steps, "seconds": {"migration": 80.0}})
    assert found["waits"] == (5, 11.0)
    assert found["restarts of brokers"] == (1, 6.0)
    assert found["restarts of controllers"] == (1, 6.5)
    assert found["comparisons"] == (2, 14.5)
    assert found["gates: answers"] == (2, pytest.approx(1.1))
    assert next(iter(found)) == "the soak, its comparison included" and list(found)[-1] == BETWEEN
    assert sum(seconds for _, seconds in found.values()) == pytest.approx(80.0)
    assert sum(tasks for tasks, _ in found.values()) == len(SECONDS)


def test_without_a_report_it_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--report", str(tmp_path / "none.json")]) == 1
    assert "make demo" in capsys.readouterr().err
