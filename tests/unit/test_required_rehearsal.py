"""KRB-PRE-110: what the start gate asks of the last rehearsal, from the evidence alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC, a_controller, observation
from recording import RecordingCluster

from kraft_runbook import __version__
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.dashboard.runs_seen import run_seen
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.rehearsal_record import OnRecord, dag_of
from kraft_runbook.evidence.rehearsals import last_rehearsal, still_ahead, that_passed
from kraft_runbook.evidence.store import append_record, inspect_run, run_name
from kraft_runbook.io.own_code import version_of_code
from kraft_runbook.migration.ahead import is_behind
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.procedures.last_rehearsal import check_rehearsal
from kraft_runbook.rehearsal.required import CODE, judged
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict
from kraft_runbook.steps import migration_gates

NOW = datetime(2026, 3, 8, 4, 0, tzinfo=UTC)
WEEK = 7 * 86400.0
GOOD = Canary(
    verdict="PASSED",
    whole=True,
    reasons=(),
    rungs=(),
    measured={"copy": 6.5, "window": 1.2, "controller_rss": 400, "partitions": 20000, "tries": 2},
    cluster_file="f" * 64,
    kafka="3.9.2",
    tool="0.1.0",
    source="id",
    left_out=(),
    kept={},
)


LATELY = OnRecord("a-run", NOW - timedelta(days=2), GOOD)


def check(
    last: OnRecord | Unread | None = LATELY,
    *,
    within: float | None = WEEK,
    **now: Any,
) -> CheckResult:
    given = {"cluster_file": "f" * 64, "kafka": "3.9.2", "tool": "0.1.0", "source": "id"} | now
    return judged(last, cluster="prod", within=within, now=NOW, changes="3 topics new", **given)


def test_one_that_passed_lately_lets_the_migration_begin_and_shows_its_numbers() -> None:
    found = check()
    assert (found.code, found.verdict, found.severity) == (CODE, Verdict.PASS, Severity.BLOCKING)
    for shown in (
        "PASSED 2 d ago",
        "20,000 partitions",
        "copy 6.5 s",
        "400 MiB",
        "1.2 s",
        "2 tries to leave KRaft",
        "3 topics new",
    ):
        assert shown in found.evidence


@pytest.mark.parametrize(
    ("left_out", "measured", "shown"),
    [
        (("a: x", "b: y"), {"partitions": 5, "respelt": 1}, "5 partitions, 2 settings left out, 1 znode respelt on"),
        (("a: x",), {"partitions": 5, "respelt": 0}, "1 setting left out, 0 znodes respelt on the way back;"),
        ((), {"partitions": 5}, ": 5 partitions, 0 settings left out;"),
        ((), {}, ": no numbers;"),
    ],
    ids=["both", "none came back otherwise", "of an older record", "of one that has not ended"],
)
def test_what_differed_in_the_throwaway_is_shown_at_the_gate(
    left_out: tuple[str, ...], measured: dict[str, Any], shown: str
) -> None:
    told = replace(GOOD, left_out=left_out, measured=measured)
    assert shown in check(OnRecord("a-run", NOW - timedelta(days=2), told)).evidence


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"verdict": "FAILED", "reasons": ("FAILED: the copy died",)}, "its verdict is FAILED; FAILED: the copy died"),
        ({"verdict": "INCONCLUSIVE"}, "its verdict is INCONCLUSIVE"),
        ({"verdict": ""}, "its verdict is missing"),
        ({"verdict": "passed"}, "its verdict is passed"),
        ({"whole": False}, "did not finalize"),
        ({"cluster_file": "e" * 64}, "another cluster file"),
        ({"kafka": "3.9.1"}, "another Kafka version (3.9.1, now 3.9.2)"),
        ({"tool": "0.0.9"}, "another version of this tool"),
        ({"source": "other"}, "another cluster id"),
    ],
)
def test_any_other_blocks_with_its_reason(told: dict[str, Any], why: str) -> None:
    found = check(OnRecord("a-run", NOW - timedelta(days=2), replace(GOOD, **told)))
    assert found.blocks and why in found.evidence and "kraft-runbook rehearse --cluster prod" in found.fix


def test_one_that_is_too_old_blocks_and_so_does_one_of_tomorrow() -> None:
    assert "older than 7 d" in check(OnRecord("a-run", NOW - timedelta(days=8), GOOD)).evidence
    assert check(OnRecord("a-run", NOW + timedelta(days=1), GOOD)).blocks


def test_none_blocks_and_one_that_can_not_be_trusted_does_too() -> None:
    assert check(None).blocks
    broken = check(Unread("the evidence was altered"))
    assert broken.blocks and broken.verdict is Verdict.UNKNOWN


def test_one_of_another_commit_is_no_match(tmp_path: Path) -> None:
    """The version is 0.1.0 in every commit."""
    put(tmp_path, "one", replace(GOOD, tool=f"{__version__}+0123456789ab"), cluster=SPEC.name)
    found = check_rehearsal(SPEC, tmp_path, secrets=lambda _: "", source="id", now=datetime.now(UTC))
    assert f"another version of this tool (0.1.0+0123456789ab, now {version_of_code()})" in found.evidence


def test_an_id_that_was_not_read_is_no_match() -> None:
    assert "another cluster id (id, now not known)" in check(source=None).evidence


@pytest.mark.parametrize("last", [None, OnRecord("a-run", NOW, replace(GOOD, verdict="FAILED")), Unread("altered")])
def test_where_none_is_required_nothing_blocks_and_all_is_shown(last: OnRecord | Unread | None) -> None:
    found = check(last, within=None)
    assert not found.blocks and found.severity is Severity.WARNING and not found.passed


# -- on record ---------------------------------------------------------------------------------------------------------


def put(directory: Path, run: str, told: Canary, *, cluster: str = "prod", dag: str = "", **when: Any) -> str:
    dag = dag or dag_of(cluster)
    name = run_name(dag, run)
    body = {"cluster": cluster, "dag": dag, "run": run, "task": "rehearse", **told.body()}
    append_record(directory, name, body, **when)
    return name


def test_the_newest_on_record_is_the_last_and_the_newest_that_passed_another(tmp_path: Path) -> None:
    assert last_rehearsal(tmp_path, "prod", now=datetime.now(UTC)) is None
    first = put(tmp_path, "one", GOOD)
    second = put(tmp_path, "two", replace(GOOD, verdict="FAILED"))
    put(tmp_path, "three", GOOD, cluster="prod_2")
    last, passed = (
        last_rehearsal(tmp_path, "prod", now=datetime.now(UTC)),
        that_passed(tmp_path, "prod", now=datetime.now(UTC))[0],
    )
    assert isinstance(last, OnRecord)
    assert (last.run, last.told.verdict, passed.run) == (second, "FAILED", first)


def test_one_that_was_killed_is_no_longer_the_one_that_passed_before(tmp_path: Path) -> None:
    """It has the record of its beginning alone."""
    put(tmp_path, "one", GOOD)
    killed = put(tmp_path, "two", replace(GOOD, verdict="INCONCLUSIVE", reasons=("INCONCLUSIVE: it has not ended",)))
    last = last_rehearsal(tmp_path, "prod", now=datetime.now(UTC))
    assert isinstance(last, OnRecord) and last.run == killed
    assert check(last).blocks and "it has not ended" in check(last).evidence


def test_one_that_passed_in_the_future_hides_none_and_never_counts(tmp_path: Path) -> None:
    early = put(tmp_path, "of a clock that is ahead", GOOD, now=lambda: NOW + timedelta(days=1))
    only = last_rehearsal(tmp_path, "prod", now=NOW)
    assert isinstance(only, OnRecord) and only.run == early and "lies in the future" in check(only).evidence
    assert that_passed(tmp_path, "prod", now=NOW) == ()
    failed = put(tmp_path, "failed", replace(GOOD, verdict="FAILED"), now=lambda: NOW - timedelta(hours=1))
    last = last_rehearsal(tmp_path, "prod", now=NOW)
    assert isinstance(last, OnRecord) and last.run == failed


def test_one_of_a_clock_that_was_ahead_is_older_than_those_that_saw_it_there(tmp_path: Path) -> None:
    """Also once its time has come: the clock was corrected before the later one was recorded."""
    monday, thursday = NOW, NOW + timedelta(days=3)
    sunday = put(tmp_path, "sun", GOOD, now=lambda: NOW + timedelta(days=2))
    ahead = still_ahead(tmp_path, "prod", now=monday)
    assert ahead == (f"{sunday}/0",)
    short = put(tmp_path, "short", replace(GOOD, whole=False, ahead=ahead), now=lambda: monday)
    last = last_rehearsal(tmp_path, "prod", now=thursday)
    assert isinstance(last, OnRecord) and last.run == sunday, "a short one hides none"
    failed = put(tmp_path, "mon", replace(GOOD, verdict="FAILED", ahead=ahead), now=lambda: monday)
    last = last_rehearsal(tmp_path, "prod", now=thursday)
    assert isinstance(last, OnRecord) and last.run == failed
    assert [each.run for each in that_passed(tmp_path, "prod", now=thursday)] == [short]
    assert still_ahead(tmp_path, "prod", now=monday) == ()
    again = put(tmp_path, "sun", GOOD, now=lambda: thursday)
    last = last_rehearsal(tmp_path, "prod", now=thursday)
    assert isinstance(last, OnRecord) and last.run == again, "the run's task was cleared, and rehearsed anew"


def test_a_record_of_another_dag_or_cluster_is_none_of_this_clusters(tmp_path: Path) -> None:
    """Its file's name may begin alike: what the record says counts."""
    put(tmp_path, "x", GOOD, cluster="prod__east")
    put(tmp_path, "y", GOOD, dag="canary_migration__prod__other")
    assert last_rehearsal(tmp_path, "prod", now=datetime.now(UTC)) is None


@pytest.mark.parametrize("name", ["{} (1).jsonl", "{}.copy.jsonl", "{} copy.jsonl", "{}~.jsonl"])
def test_a_copy_beside_the_original_is_told_and_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    run = put(tmp_path, "sun", GOOD)
    copy = tmp_path / name.format(run)
    copy.write_text((tmp_path / f"{run}.jsonl").read_text().replace("PASSED", "FAILED"))
    last = last_rehearsal(tmp_path, "prod", now=datetime.now(UTC))
    assert isinstance(last, OnRecord) and last.told.verdict == "PASSED"
    assert f"{copy} is passed over" in caplog.text
    assert [each.run for each in that_passed(tmp_path, "prod", now=datetime.now(UTC))] == [run]


def test_evidence_that_was_altered_is_no_verdict(tmp_path: Path) -> None:
    run = put(tmp_path, "one", replace(GOOD, verdict="FAILED"))
    file = tmp_path / f"{run}.jsonl"
    file.write_text(file.read_text().replace('"verdict":"FAILED"', '"verdict":"PASSED"'))
    found = last_rehearsal(tmp_path, "prod", now=datetime.now(UTC))
    assert isinstance(found, Unread) and "can't be trusted" in found.reason
    put(tmp_path, "two", GOOD)
    later = last_rehearsal(tmp_path, "prod", now=datetime.now(UTC))
    assert isinstance(later, OnRecord) and later.told.verdict == "PASSED", "a later one that is whole counts"


def test_a_later_short_one_hides_no_whole_one_and_is_shown(tmp_path: Path) -> None:
    whole = put(tmp_path, "one", GOOD)
    short = put(tmp_path, "two", replace(GOOD, whole=False, verdict="FAILED", reasons=("FAILED: the copy died",)))
    last = last_rehearsal(tmp_path, "prod", now=datetime.now(UTC))
    assert isinstance(last, OnRecord) and last.run == whole
    shown = check(replace(last, at=NOW - timedelta(hours=2)))
    assert shown.passed and f"FAILED: the copy died ({short})" in shown.evidence
    put(tmp_path, "three", GOOD)
    newest = last_rehearsal(tmp_path, "prod", now=datetime.now(UTC))
    assert isinstance(newest, OnRecord) and newest.short is None, (
        "an earlier short one says nothing of a later whole one"
    )


def test_where_there_are_short_ones_alone_the_newest_is_told(tmp_path: Path) -> None:
    put(tmp_path, "one", replace(GOOD, whole=False))
    last = last_rehearsal(tmp_path, "prod", now=datetime.now(UTC))
    assert isinstance(last, OnRecord) and "did not finalize" in check(last).evidence


def test_evidence_that_can_not_be_read_is_unread_until_a_later_whole_one(tmp_path: Path) -> None:
    put(tmp_path, "one", GOOD)
    second = put(tmp_path, "two", GOOD)

    class Anothers(type(tmp_path)):  # type: ignore[misc]
        """The second run's evidence is another user's."""

        def open(self, *how: Any, **more: Any) -> Any:
            if self.stem == second:
                raise PermissionError(13, "Permission denied", str(self))
            return super().open(*how, **more)

    found = last_rehearsal(Anothers(tmp_path), "prod", now=datetime.now(UTC))
    assert isinstance(found, Unread) and "Permission denied" in found.reason
    assert check(found).verdict is Verdict.UNKNOWN and check(found).blocks and not check(found, within=None).blocks
    later = put(tmp_path, "three", GOOD)
    last = last_rehearsal(Anothers(tmp_path), "prod", now=datetime.now(UTC))
    assert isinstance(last, OnRecord) and last.run == later


def test_a_store_that_can_not_be_read_is_unread(tmp_path: Path) -> None:
    class Closed(type(tmp_path)):  # type: ignore[misc]
        def iterdir(self) -> Any:
            raise PermissionError(13, "Permission denied")

    assert isinstance(last_rehearsal(Closed(tmp_path), "prod", now=NOW), Unread)


def test_broken_evidence_of_a_cluster_whose_name_begins_alike_is_none_of_this_clusters(tmp_path: Path) -> None:
    put(tmp_path, "one", GOOD)
    others = put(tmp_path, "x", GOOD, cluster="prod__east")
    put(tmp_path, "x", GOOD, cluster="prod__east")
    file = tmp_path / f"{others}.jsonl"
    file.write_text(file.read_text().replace("PASSED", "FAILED"))
    assert isinstance(last_rehearsal(tmp_path, "prod", now=datetime.now(UTC)), OnRecord)


def test_broken_evidence_that_claims_to_be_another_clusters_is_still_broken(tmp_path: Path) -> None:
    own = put(tmp_path, "one", replace(GOOD, verdict="FAILED"))
    file = tmp_path / f"{own}.jsonl"
    file.write_text(file.read_text().replace('"canary_migration__prod"', '"canary_migration__prod__east"'))
    assert isinstance(last_rehearsal(tmp_path, "prod", now=datetime.now(UTC)), Unread)


@pytest.mark.parametrize("kept", [{"zxid": 1, "hashes": [], "read_later": {}}, {}])
def test_a_record_that_does_not_say_what_was_copied_breaks_no_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any]
) -> None:
    put(tmp_path, "one", replace(GOOD, kept=kept), cluster=SPEC.name)
    now = datetime.now(UTC)
    found = check_rehearsal(SPEC, tmp_path, secrets=lambda _: "", source="id", now=now)
    assert "the record does not say what was copied" in found.evidence


@pytest.mark.parametrize(("verdict", "good"), [("PASSED", True), ("FAILED", False), ("INCONCLUSIVE", None), ("", None)])
def test_the_dashboard_shows_a_rehearsal_as_good_where_it_passed_alone(
    tmp_path: Path, verdict: str, good: bool | None
) -> None:
    run = put(tmp_path, "one", replace(GOOD, verdict=verdict, reasons=("why",)))
    seen = run_seen(run, inspect_run(tmp_path, run).records, None)
    assert seen is not None
    assert (seen.fact.watch, seen.fact.good, seen.fact.outcome) == (True, good, f"rehearsal {verdict}; why")


# -- at the gate -------------------------------------------------------------------------------------------------------


AT_REST = observation(Phase.ZOOKEEPER)


def asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gate: Gate,
    seen: ClusterObservation = AT_REST,
    **settings: Any,
) -> tuple[CheckResult, ...]:
    """What the gate of the migration adds to its checks for a cluster with these settings."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    spec = SPEC.model_copy(update={"rehearsal": Rehearsal.model_validate(settings) if settings else None})
    cluster = RecordingCluster(seen, spec=spec, answers={check_rehearsal: check()})
    return migration_gates.on_record(cluster, gate, seen)


def test_the_start_gate_asks_where_one_is_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [each.code for each in asked(tmp_path, monkeypatch, Gate.START, required_within="7d")] == [CODE]
    assert asked(tmp_path, monkeypatch, Gate.FINALIZE, required_within="7d") == ()


@pytest.mark.parametrize(
    ("phase", "asks"), [(Phase.PRE_MIGRATION, True), (Phase.HYBRID, False), (Phase.DUAL_WRITE, False)]
)
def test_once_the_metadata_is_copied_no_rehearsal_keeps_a_controller_from_being_provisioned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: Phase, asks: bool
) -> None:
    """None could be made then: a KRaft controller holds /controller."""
    seen = a_controller(103, running=False)(observation(phase))
    assert not is_behind(Gate.START, seen), "the gate still guards its provisioning"
    found = asked(tmp_path, monkeypatch, Gate.START, seen, required_within="7d")
    assert [each.code for each in found] == ([CODE] if asks else [])


def test_where_none_is_required_it_shows_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(tmp_path, monkeypatch, Gate.START) == ()
    assert asked(tmp_path, monkeypatch, Gate.START, seats=2) == ()
    put(tmp_path / "evidence", "one", GOOD, cluster=SPEC.name)
    assert [each.code for each in asked(tmp_path, monkeypatch, Gate.START, seats=2)] == [CODE]
