"""A drill before the migration beside one after it: the right two are taken, and text and picture say the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from kept_journal import Kept
from observations import SPEC, observation
from recording import run_on
from test_drill_course import ANSWERS, FORM, RecordingCluster

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.processor_time import Used
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import Drilled
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.quorum.before_after import KEPT, WHAT, KeptFault, draw, pair, pairs, told, with_new
from kraft_runbook.quorum.drill import account
from kraft_runbook.quorum.handover import Handover
from kraft_runbook.quorum.silences import CHANGES, Measured
from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook.steps import drill
from kraft_runbook.steps.account import account_of
from kraft_runbook.steps.kept_drills import file_of, keep, read_kept

FAULT = str(FORM["fault"])


def fault(run: str, phase: Phase, changes: float, name: str = FAULT) -> KeptFault:
    usual = Measured(60.0, {CHANGES: 0.7, "t-0": 0.9, "t-1": 1.0}, 100)
    return KeptFault(run, "2026-03-04T10:00:00", phase, name, usual, Measured(60.0, {CHANGES: changes, "t-0": 2.0}, 90))


BEFORE, AFTER = fault("one", Phase.ZOOKEEPER, 14.2), fault("two", Phase.FINALIZED, 1.4)


def test_the_last_of_each_mode_with_the_same_fault_are_taken() -> None:
    others = [fault("zero", Phase.ZOOKEEPER, 99.0), fault("three", Phase.KRAFT, 5.0, "another fault")]
    assert pair([*others, BEFORE, AFTER], FAULT) == (BEFORE, AFTER)
    assert pair([BEFORE], FAULT) is None
    assert pair([AFTER], FAULT) is None


def test_of_each_fault_both_sides_are_taken_or_the_one_that_waits_for_the_other() -> None:
    shutdown = fault("three", Phase.ZOOKEEPER, 3.0, "controlled shutdown of a broker")
    assert pairs([BEFORE, shutdown, AFTER]) == ([(BEFORE, AFTER)], [shutdown])
    assert pairs([AFTER, BEFORE]) == ([], [BEFORE]), "what was measured in KRaft mode belongs to an earlier migration"
    assert pairs([AFTER]) == ([], [])


def closing(tmp_path: Path, phase: Phase, *kept: KeptFault) -> tuple[str | None, Kept]:
    keep(tmp_path, SPEC.name, list(kept))
    journal = Kept()
    run = run_on(RecordingCluster(observation(phase)), journal, state=tmp_path)
    account_of(run, MIGRATION, phase)
    return account_of(run, MIGRATION, phase), journal


def test_the_migration_s_closing_report_shows_drills_of_both_sides_and_offers_those_that_miss_one(
    tmp_path: Path,
) -> None:
    shutdown = fault("three", Phase.ZOOKEEPER, 3.0, "controlled shutdown of a broker")
    text, journal = closing(tmp_path, Phase.FINALIZED, BEFORE, shutdown, AFTER)
    assert text is not None
    assert "14.2 s (0.7) in ZooKeeper mode, 1.4 s (0.7) in KRaft mode" in text
    assert f"quorum_drill__{SPEC.name} shows both side by side:" in text
    assert "controlled shutdown of a broker, in ZooKeeper mode at 2026-03-04T10:00:00: metadata changes silent" in text
    assert [each["picture"][:4] for each in journal.bodies] == ["<svg"], "on record once, though the task was cleared"


def test_on_the_way_back_and_in_other_operations_no_drill_is_shown(tmp_path: Path) -> None:
    text, journal = closing(tmp_path, Phase.ZOOKEEPER, BEFORE, AFTER)
    assert (text, journal.bodies) == (None, [])
    run = run_on(RecordingCluster(observation(Phase.FINALIZED)), Kept(), state=tmp_path)
    assert account_of(run, RESTARTS, Phase.FINALIZED) is None


def test_drills_that_can_not_be_read_do_not_fail_the_closing_report(tmp_path: Path) -> None:
    keep(tmp_path, SPEC.name, [BEFORE])
    file_of(tmp_path, SPEC.name).write_text("no JSON")
    run = run_on(RecordingCluster(observation(Phase.FINALIZED)), Kept(), state=tmp_path)
    assert "Whether drills were made before is not known" in str(account_of(run, MIGRATION, Phase.FINALIZED))


def test_the_text_names_both_and_what_is_usual() -> None:
    assert "metadata changes: 14.2 s (0.7) in ZooKeeper mode, 1.4 s (0.7) in KRaft mode" in told(BEFORE, AFTER)


def costing(fault: KeptFault, moved: float | None, spent: float, control: str) -> KeptFault:
    usual = replace(fault.baseline, processors=Used(60.0, {control: 1.0}))
    found = replace(
        fault.measured, handover=Handover(9, moved), processors=Used(120.0, {control: spent}), control=(control,)
    )
    return replace(fault, baseline=usual, measured=found)


def test_how_leaders_moved_and_what_control_used_are_shown_where_both_are_known() -> None:
    before, after = costing(BEFORE, 5.6, 12.0, "broker 1"), costing(AFTER, 0.3, 2.5, "controller 101")
    text = told(before, after)
    assert "the last leader moved: 5.6 s (0.0) in ZooKeeper mode, 0.3 s (0.0) in KRaft mode" in text
    assert "processors of who controls: 12.0 s (2.0) in ZooKeeper mode, 2.5 s (2.0) in KRaft mode" in text
    assert "5.6 ZooKeeper" in draw(before, after)
    text = told(costing(BEFORE, None, 12.0, "broker 1"), AFTER)
    assert "the last leader moved" not in text
    assert "processors of who controls in KRaft mode: not read (no host was asked)" in text


def test_the_picture_is_an_svg_with_both_figures() -> None:
    picture = draw(BEFORE, AFTER)
    texts = [each.text for each in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert "14.2 ZooKeeper" in texts and "1.4 KRaft" in texts


def test_a_fault_is_kept_once_and_no_more_than_some_are_kept(tmp_path: Path) -> None:
    assert with_new([BEFORE], [BEFORE, AFTER]) == [BEFORE, AFTER]
    many = [fault(str(n), Phase.KRAFT, 1.0) for n in range(KEPT + 5)]
    assert with_new([], many)[0].run == "5"
    keep(tmp_path, "lab", [BEFORE])
    assert keep(tmp_path, "lab", [BEFORE, AFTER]) == [BEFORE, AFTER] == read_kept(tmp_path, "lab")


@pytest.mark.parametrize("content", ['[{"run": 1}, 3]', "no JSON"])
def test_what_earlier_drills_measured_is_not_overwritten_where_it_can_not_be_read(tmp_path: Path, content: str) -> None:
    keep(tmp_path, "lab", [BEFORE])
    file_of(tmp_path, "lab").write_text(content)
    for act in (lambda: read_kept(tmp_path, "lab"), lambda: keep(tmp_path, "lab", [AFTER])):
        with pytest.raises(StepFailed, match="the numbers of earlier drills can't be read"):
            act()
    assert file_of(tmp_path, "lab").read_text() == content


def test_what_was_drilled_in_kraft_mode_before_belongs_to_an_earlier_migration() -> None:
    assert pair([AFTER, BEFORE], FAULT) is None and pair([BEFORE, AFTER], FAULT) == (BEFORE, AFTER)


def test_what_was_kept_before_more_was_measured_is_read() -> None:
    old = BEFORE.to_dict()
    for each in (old["baseline"], old["measured"]):
        for key in ("handover", "processors", "control"):
            del each[key]
    read = KeptFault.from_dict(old)
    assert read is not None and read.measured.silences == BEFORE.measured.silences and read.measured.handover is None


def test_a_fault_is_kept_in_the_phase_in_which_it_was_caused(tmp_path: Path) -> None:
    """The report may come later, when the cluster can't be read or has gone on."""
    kept = Kept()
    run = run_on(RecordingCluster(observation(Phase.FINALIZED), answers=ANSWERS), kept, state=tmp_path, **FORM)
    kept.record(Drilled(values=BEFORE.baseline.to_dict(), what="baseline", fault="none", node_id=None))
    found = BEFORE.measured.to_dict()
    kept.record(Drilled(values=found, what="fault", fault=FAULT, node_id=101, phase=Phase.ZOOKEEPER.value))
    drill.end(run)
    assert [each.phase for each in read_kept(tmp_path, SPEC.name)] == [Phase.ZOOKEEPER]


def test_the_report_of_the_second_drill_shows_both(tmp_path: Path) -> None:
    keep(tmp_path, SPEC.name, [BEFORE])
    kept = Kept()
    run = run_on(RecordingCluster(observation(Phase.FINALIZED), answers=ANSWERS), kept, state=tmp_path, **FORM)
    for what, found in (("baseline", BEFORE.baseline), ("fault", AFTER.measured)):
        kept.record(Drilled(values=found.to_dict(), what=what, fault=FAULT, node_id=101))
    drill.end(run)
    drill.end(run)  # cleared: kept once
    assert len(read_kept(tmp_path, SPEC.name)) == 2
    assert kept.bodies[-1]["picture"].startswith("<svg")
    report = account(kept.bodies)
    assert report is not None and report.count(WHAT) == 1
    assert "14.2 s (0.7) in ZooKeeper mode" in report
