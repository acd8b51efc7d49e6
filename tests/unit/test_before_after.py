"""A drill before the migration beside one after it: the right two are taken, and text and picture say the same."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from kept_journal import Kept
from observations import SPEC, observation
from recording import run_on
from test_drill_course import ANSWERS, FORM, RecordingCluster

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import Drilled
from kraft_runbook.quorum.before_after import KEPT, WHAT, KeptFault, draw, pair, told, with_new
from kraft_runbook.quorum.drill import account
from kraft_runbook.quorum.silences import CHANGES, Measured
from kraft_runbook.steps import drill
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


def test_the_text_names_both_and_what_is_usual() -> None:
    assert "metadata changes: 14.2 s (0.7) in ZooKeeper mode, 1.4 s (0.7) in KRaft mode" in told(BEFORE, AFTER)


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
        with pytest.raises(StepFailed, match="what earlier drills measured can't be read"):
            act()
    assert file_of(tmp_path, "lab").read_text() == content


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
