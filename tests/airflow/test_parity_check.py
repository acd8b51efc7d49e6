"""The scheduled check: what changed may clear, only everything may accuse."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from recording import RecordingCluster, run_on

from kraft_runbook.cluster.phases import Phase, PhaseReading
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.parity.comparison import Obstacle, ParityReport, make_report
from kraft_runbook.parity.dual_write import NoProof
from kraft_runbook.parity.report_file import read_report, write_report
from kraft_runbook.parity.since import compare_since
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.migration.parity import ParityOperator
from kraft_runbook_airflow.migration.parity_check import ParityCheck

NOW = datetime(2026, 3, 4, 10, 0, 0, tzinfo=UTC)


def report(*, against: str, obstacles: tuple[Obstacle, ...] = ()) -> ParityReport:
    return make_report(
        cluster="lab",
        against=against,
        both=Counter({Kind.TOPIC: 3}),
        differences=(),
        undecoded=(),
        obstacles=obstacles,
        migration_offset=7,
        end_offset=9,
        migration_epoch=1,
        leader_id=101,
        leader_epoch=1,
        rounds=1,
        started_at=NOW,
        finished_at=NOW,
        notes=(),
    )


TASK = SimpleNamespace(dag_id="d", run_id="r", task_id="parity")


class Check:
    """One task whose two ways to compare are played: ``changed`` is what the short one gives or raises. ``asked``: what
    was done, in order.
    """

    def __init__(self, changed: ParityReport | Exception, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        full = directory / "full.json"
        write_report(full, report(against="ZooKeeper"))

        def since(proven: Path) -> ParityReport:
            assert proven == directory / "baselines" / "lab"  # where the last full MATCH left it
            self.asked.append("what changed")
            if isinstance(changed, Exception):
                raise changed
            return changed

        def compare(*_: Any) -> dict[str, Any]:
            self.asked.append("everything")
            return {"verdict": "MATCH", "report": str(full)}

        monkeypatch.setattr(ParityOperator, "compare", compare)
        monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(directory))
        self.cluster = RecordingCluster(answers={compare_since: since})

    def recorded(self) -> list[dict[str, Any]]:
        return [dict(each.body) for each in records_of({"ti": TASK})]

    def run(self, *, phase: Phase = Phase.DUAL_WRITE, full: bool = False) -> dict[str, Any]:
        context = {"params": {"full": full}, "ti": TASK}
        return ParityCheck(task_id="parity", cluster="lab").compare(context, run_on(self.cluster, full=full), phase)


CHANGED = report(against="ZooKeeper, as far as it was touched")


def test_what_changed_is_enough_while_it_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check(CHANGED, tmp_path, monkeypatch)
    compared = check.run()
    assert check.asked == ["what changed"]
    assert read_report(Path(compared["report"])) == CHANGED
    assert check.recorded()[0]["verdict"] == "MATCH"


def test_everything_is_compared_where_nothing_was_proven_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check(NoProof("there is no proven state", way_out="run a full comparison"), tmp_path, monkeypatch)
    check.run()
    assert check.asked == ["what changed", "everything"]


def test_only_everything_accuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = report(
        against="ZooKeeper, as far as it was touched", obstacles=(Obstacle("the log is gone", "run again"),)
    )
    check = Check(unsure, tmp_path, monkeypatch)
    check.run()
    assert check.asked == ["what changed", "everything"]


def test_a_run_may_ask_for_everything_and_a_finalized_cluster_has_no_changes_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = Check(CHANGED, tmp_path, monkeypatch)
    check.run(full=True)
    check.run(phase=Phase.FINALIZED)
    assert check.asked == ["everything", "everything"]


def test_a_phase_without_two_stores_is_skipped_and_an_unknown_one_is_not() -> None:
    check = ParityCheck(task_id="parity", cluster="lab")
    with pytest.raises(AirflowSkipException, match="ZOOKEEPER"):
        check.nothing_to_compare(run_on(RecordingCluster()), PhaseReading(Phase.ZOOKEEPER, ()))
    with pytest.raises(AirflowFailException, match="UNKNOWN"):
        check.nothing_to_compare(run_on(RecordingCluster()), PhaseReading(Phase.UNKNOWN, ("nobody answers",)))
