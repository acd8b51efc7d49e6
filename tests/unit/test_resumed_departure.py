"""A departure from KRaft whose try was killed: what a later try can still say of it, and what it must not."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from evidence_runs import START, Run

from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.run_report import make_report
from kraft_runbook.evidence.text import render_text
from kraft_runbook.migration.leaving import Departure
from kraft_runbook.migration.resumed_departure import Elected, departure_in, resumed, unfinished


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


NOTED = Departure(
    began_at=START,
    fenced_at=START + after(3),
    drained_at=START + after(3.2),
    proven_at=START + after(3.4),
    high_watermark=641,
    migration_offset=640,
    touched_keys=7,
    deleted=("/migration", "/controller"),
    gone=(103,),
    controller_epoch=5,
    epoch_set=9,
)
"""As it is on record right before the deletion."""
FIRST = Elected(2, START + after(4.5), epoch=10)
LATER = START + after(90)


def taken_up(begun: Departure = NOTED, elected: Elected = FIRST) -> Departure:
    found = resumed(begun, elected, at=LATER)
    assert found is not None
    return found


def test_a_record_is_read_back_as_it_was_written() -> None:
    whole = replace(NOTED, known_at=LATER, raised=("orders-1 (version 7, epoch 11)",), election="orders-1 was given")
    assert departure_in(json.loads(json.dumps(whole.to_dict()))) == whole
    assert departure_in({"began_at": "yesterday", "gone": 7}) is None


def test_the_election_has_zookeepers_time_and_the_deletion_none() -> None:
    found = taken_up()
    assert (found.elected_at, found.controller, found.by_zookeepers_clock) == (FIRST.at, 2, ("elected_at",))
    assert found.deleted_at is None and found.resumed_at == LATER
    assert (found.fenced_at, found.touched_keys, found.gone) == (NOTED.fenced_at, 7, (103,))


def test_how_long_there_was_no_controller_lies_between_what_is_known() -> None:
    known = replace(taken_up(), known_at=LATER + after(1))
    assert (known.window_seconds, known.window_at_least, known.window_at_most) == (None, 1.5, 88.0)
    assert known.figures()[0] == "no metadata could be changed for at most 88.0 s"


def test_clocks_that_disagree_give_no_lower_bound() -> None:
    known = replace(taken_up(elected=replace(FIRST, at=START)), known_at=LATER)
    assert (known.window_at_least, known.window_at_most) == (None, 87.0)


def test_what_the_killed_try_had_on_record_stays_its_own() -> None:
    measured = replace(NOTED, deleted_at=START + after(4), elected_at=START + after(4.1), known_at=START + after(5))
    found = taken_up(measured)
    assert (found.deleted_at, found.elected_at, found.by_zookeepers_clock) == (
        measured.deleted_at,
        measured.elected_at,
        (),
    )
    assert (found.window_seconds, found.window_at_most) == (2.0, None)


@pytest.mark.parametrize("epoch", [9, 11], ids=["nobody", "another since"])
def test_a_deletion_that_nothing_shows_is_not_taken_for_one(epoch: int) -> None:
    """/controller_epoch is not the number of the election right after it."""
    assert resumed(NOTED, replace(FIRST, epoch=epoch), at=LATER) is None
    assert resumed(replace(NOTED, controller_epoch=None, epoch_set=None), FIRST, at=LATER) is None


def test_where_others_were_elected_since_the_first_election_has_no_time() -> None:
    recorded = replace(NOTED, deleted_at=START + after(4))
    found = taken_up(recorded, replace(FIRST, epoch=12))
    assert (found.elected_at, found.by_zookeepers_clock) == (None, ())


def test_where_no_number_was_set_the_election_has_the_next_one() -> None:
    assert taken_up(replace(NOTED, epoch_set=None), replace(FIRST, epoch=6)).elected_at == FIRST.at


def run_with(*departures: tuple[str, Departure]) -> Run:
    run = Run("zk_to_kraft_rollback__lab")
    for outcome, each in departures:
        run.write("leave_kraft", outcome, {"phase": "HYBRID", **json.loads(json.dumps(each.to_dict()))})
    return run


def test_the_last_departure_of_a_run_is_taken_up_until_all_of_it_is_on_record() -> None:
    assert unfinished(run_with().records) is None
    left = unfinished(run_with(("leaves_kraft", NOTED)).records)
    assert left is not None and (left.departure, left.phase) == (NOTED, "HYBRID")
    deleted = replace(NOTED, deleted_at=START + after(4))
    known = replace(deleted, known_at=START + after(5))
    whole = replace(known, election="orders-1 was given its first replica")
    for last, open_still in ((deleted, True), (known, True), (whole, False)):
        found = unfinished(run_with(("leaves_kraft", NOTED), ("left_kraft", last)).records)
        assert (found is not None) == open_still


def test_the_report_says_what_is_not_known_and_by_whose_clock_the_rest_is() -> None:
    known = replace(taken_up(), known_at=LATER + after(1), election="orders-1 was given its first replica")
    run = run_with(("leaves_kraft", NOTED), ("left_kraft", known))
    report = make_report("run", run.records, None)
    text, page = render_text(report), render_page(report, run.records, made_at=LATER)
    assert [each.summary for each in report.entries] == [
        "about to delete /migration, /controller",
        "no controller for at most 88.0 s, and at least 1.5 s; controller 103 counted as stopped on the operator's"
        " word",
    ]
    for shown in (text, page.replace("&#39;", "'")):
        assert "at most 88.0 s, and at least 1.5 s" in shown
        assert "a later one took over at 09:59:42" in shown
        assert "When the znodes were deleted is not known" in shown
        assert "By ZooKeeper's clock: elected" in shown
        assert "None s" not in shown


def test_a_try_that_was_killed_and_never_taken_up_has_no_window() -> None:
    """Nothing shows that it came to its deletion."""
    assert make_report("run", run_with(("leaves_kraft", NOTED)).records, None).windows == ()
