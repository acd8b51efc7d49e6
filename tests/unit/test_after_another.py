"""KRB-PRE-111: one cluster after the other, from the evidence alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from observations import SPEC, a_controller, observation
from pydantic import ValidationError
from recording import RecordingCluster

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.waves import After
from kraft_runbook.evidence.phases_on_record import phases_on_record
from kraft_runbook.evidence.seen_phases import Lost, PhasesOnRecord, SeenIn
from kraft_runbook.evidence.store import append_record, run_name
from kraft_runbook.migration.after_another import CODE, judged
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict
from kraft_runbook.steps import migration_gates

NOW = datetime(2026, 3, 8, 4, 0, tzinfo=UTC)
AFTER = After(cluster="small")


def seen(*found: tuple[float, Phase]) -> PhasesOnRecord:
    """Records by their age in days."""
    return PhasesOnRecord(tuple(SeenIn(NOW - timedelta(days=days), phase, "a-run") for days, phase in found))


def check(found: PhasesOnRecord, after: After = AFTER) -> CheckResult:
    told = judged(after, found, NOW)
    assert (told.code, told.severity) == (CODE, Severity.BLOCKING)
    assert told.fix or told.verdict is Verdict.PASS
    return told


@pytest.mark.parametrize("now_in", [Phase.FINALIZED, Phase.KRAFT])
def test_a_cluster_that_was_finalized_long_enough_ago_lets_the_next_begin(now_in: Phase) -> None:
    told = check(seen((9, Phase.DUAL_WRITE), (8, Phase.FINALIZED), (0.5, now_in)))
    assert told.verdict is Verdict.PASS
    assert f"small was last seen in {now_in}, 12 h ago" in told.evidence and "since 2026-02-28 04:00" in told.evidence


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ((), "no run of small is on record"),
        (((8, Phase.DUAL_WRITE),), "last seen in DUAL_WRITE, 8 d ago"),
        (((6, Phase.FINALIZED), (1, Phase.FINALIZED)), "6 d, and 7 d in FINALIZED is asked of it"),
        (((9, Phase.FINALIZED), (1, Phase.ZOOKEEPER)), "last seen in ZOOKEEPER"),
        (((9, Phase.FINALIZED), (3, Phase.HYBRID), (2, Phase.FINALIZED)), "2 d, and 7 d"),
    ],
)
def test_one_that_has_not_come_so_far_or_not_stayed_there_blocks(
    found: tuple[tuple[float, Phase], ...], why: str
) -> None:
    told = check(seen(*found))
    assert told.verdict is Verdict.FAIL and why in told.evidence


def test_the_way_out_says_when() -> None:
    assert "wait until 2026-03-09 04:00 UTC" in check(seen((6, Phase.FINALIZED))).fix


@pytest.mark.parametrize(
    ("phase", "verdict"), [(Phase.HYBRID, Verdict.FAIL), (Phase.DUAL_WRITE, Verdict.PASS), (Phase.KRAFT, Verdict.PASS)]
)
def test_a_further_phase_counts_an_earlier_one_does_not(phase: Phase, verdict: Verdict) -> None:
    found = seen((8, phase), (0.5, phase))
    assert check(found, After(cluster="small", phase="DUAL_WRITE")).verdict is verdict


def test_a_record_that_lies_in_the_future_is_no_proof() -> None:
    told = check(seen((8, Phase.FINALIZED), (-1, Phase.FINALIZED)))
    assert told.verdict is Verdict.UNKNOWN and "has not come yet" in told.evidence


@pytest.mark.parametrize(("days", "verdict"), [(9, Verdict.PASS), (1, Verdict.UNKNOWN)])
def test_a_file_that_was_lost_since_then_may_say_otherwise(days: int, verdict: Verdict) -> None:
    found = seen((8, Phase.FINALIZED), (0.5, Phase.FINALIZED))
    lost = PhasesOnRecord(found.seen, Lost(NOW - timedelta(days=days), "x can't be trusted"))
    assert check(lost).verdict is verdict


def of_id(days: float, phase: Phase, cluster_id: str | None) -> SeenIn:
    return SeenIn(NOW - timedelta(days=days), phase, "a-run", cluster_id)


def test_a_last_sight_that_is_older_than_a_day_tells_nothing_of_now() -> None:
    """The cluster may have been made anew since, or gone back."""
    told = check(seen((9, Phase.FINALIZED), (1.1, Phase.FINALIZED)))
    assert told.verdict is Verdict.UNKNOWN and "last seen in FINALIZED, 1.1 d ago" in told.evidence
    assert "trigger reassignment_watch__small" in told.fix
    assert check(seen((9, Phase.FINALIZED), (1.1, Phase.ZOOKEEPER))).verdict is Verdict.FAIL


def test_a_former_cluster_of_that_name_does_not_count() -> None:
    former = (of_id(99, Phase.DUAL_WRITE, "A"), of_id(98, Phase.FINALIZED, None))
    told = check(PhasesOnRecord((*former, of_id(2, Phase.KRAFT, "B"), of_id(0.5, Phase.KRAFT, "B"))))
    assert told.verdict is Verdict.FAIL and "2 d, and 7 d" in told.evidence
    told = check(PhasesOnRecord((*former, of_id(9, Phase.KRAFT, "B"), of_id(0.5, Phase.KRAFT, "B"))))
    assert told.verdict is Verdict.PASS and "with the cluster id B (on 2025-11-29 it was A)" in told.evidence
    told = check(PhasesOnRecord((*former, of_id(0.5, Phase.KRAFT, None))))
    assert told.verdict is Verdict.UNKNOWN and "its cluster id was last read 99 d ago" in told.evidence
    told = check(PhasesOnRecord((*former, of_id(0.6, Phase.KRAFT, None), of_id(0.5, Phase.KRAFT, "A"))))
    assert told.verdict is Verdict.PASS


def record(directory: Path, dag: str, cluster: str, phase: str, **more: object) -> Path:
    run = run_name(f"{dag}__{cluster}", "r")
    append_record(directory, run, {"cluster": cluster, "dag": f"{dag}__{cluster}", "run": "r", "phase": phase, **more})
    return directory / f"{run}.jsonl"


def test_the_records_of_that_cluster_s_own_runs_are_read(tmp_path: Path) -> None:
    record(tmp_path, "zk_to_kraft_migration", "small", "FINALIZED")
    record(tmp_path, "metadata_parity_check", "small", "UNKNOWN")
    record(tmp_path, "canary_migration", "small", "ZOOKEEPER")
    record(tmp_path, "quorum_watch", "small", "KRAFT")  # who controls it, or that is not known
    record(tmp_path, "zk_to_kraft_migration", "small-two", "ZOOKEEPER")
    found = phases_on_record(tmp_path, "small")
    assert [each.phase for each in found.seen] == [Phase.FINALIZED, Phase.UNKNOWN] and found.lost is None


def test_the_cluster_s_id_is_read_where_a_watch_or_a_proof_has_it(tmp_path: Path) -> None:
    record(tmp_path, "reassignment_watch", "small", "KRAFT", cluster_id="A")
    record(tmp_path, "zk_to_kraft_migration", "small", "ZOOKEEPER", proof={"state": {"cluster_id": "B"}})
    record(tmp_path, "rolling_restart", "small", "KRAFT", proof={"state": {"cluster_id": None}})
    assert [each.cluster_id for each in phases_on_record(tmp_path, "small").seen] == ["A", "B", None]


def test_an_altered_file_of_a_cluster_whose_name_ends_alike_is_not_this_one_s(tmp_path: Path) -> None:
    file = record(tmp_path, "zk_to_kraft_migration", "big__small", "ZOOKEEPER")
    file.write_text(file.read_text().replace("ZOOKEEPER", "FINALIZED"))
    assert phases_on_record(tmp_path, "small") == PhasesOnRecord(())


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / f"{run_name('zk_to_kraft_migration__small', 'r')}.jsonl").symlink_to(tmp_path / "gone")
    assert phases_on_record(tmp_path, "small").lost is not None


def test_one_that_shows_no_phase_now_does_not_let_the_next_begin() -> None:
    assert check(seen((9, Phase.FINALIZED), (1, Phase.UNKNOWN))).verdict is Verdict.UNKNOWN
    assert check(seen((9, Phase.FINALIZED), (2, Phase.UNKNOWN), (1, Phase.FINALIZED))).verdict is Verdict.PASS


def test_an_altered_file_is_told(tmp_path: Path) -> None:
    file = record(tmp_path, "zk_to_kraft_migration", "small", "ZOOKEEPER")
    file.write_text(file.read_text().replace("ZOOKEEPER", "FINALIZED"))
    found = phases_on_record(tmp_path, "small")
    assert found.seen == () and found.lost is not None and "can't be trusted" in found.lost.why


def test_without_a_directory_nothing_is_on_record(tmp_path: Path) -> None:
    assert phases_on_record(tmp_path / "none", "small") == PhasesOnRecord(())


@pytest.mark.parametrize(
    ("gate", "phase", "asks"),
    [
        (Gate.START, Phase.ZOOKEEPER, True),
        (Gate.START, Phase.PRE_MIGRATION, True),
        (Gate.DUAL_WRITE, Phase.HYBRID, False),
        (Gate.START, Phase.HYBRID, False),
        (Gate.START, Phase.DUAL_WRITE, False),
    ],
)
def test_the_start_gate_alone_asks_and_none_once_the_metadata_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate, phase: Phase, asks: bool
) -> None:
    """A controller that lost its disk then is provisioned behind that gate: the other cluster must not keep it out."""
    monkeypatch.setenv("KRAFT_RUNBOOK_EVIDENCE", str(tmp_path))
    spec = SPEC.model_copy(update={"after": AFTER, "rehearsal": None})
    seen = a_controller(103, running=False)(observation(phase))
    found = migration_gates.on_record(RecordingCluster(seen, spec=spec), gate, seen)
    assert [each.code for each in found] == ([CODE] if asks else [])


def test_a_directory_that_can_t_be_read_is_not_an_empty_one() -> None:
    def refuses() -> None:
        raise PermissionError("not yours")

    found = phases_on_record(SimpleNamespace(is_dir=lambda: True, iterdir=refuses), "small")  # type: ignore[arg-type]
    assert check(found).verdict is Verdict.UNKNOWN and "not yours" in check(found).evidence


def test_a_cluster_can_t_wait_for_itself() -> None:
    with pytest.raises(ValidationError, match=r"after.cluster: lab can't wait for itself"):
        ClusterSpec.model_validate(SPEC.model_dump() | {"after": {"cluster": SPEC.name, "for": "7d"}})


def test_a_phase_before_the_copy_is_none_to_wait_for() -> None:
    with pytest.raises(ValidationError):
        After.model_validate({"cluster": "small", "phase": "ZOOKEEPER"})
