"""The end at the stop of a group of which nobody is registered: it may have stopped long ago, or may run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from groups_seen_as import GROUP, look, zookeeper
from observations import SPEC

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.groups.look import GroupLook, LogBounds, Owner
from kraft_runbook.groups.move_plan import MovePlan, plan_move
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.planned_offsets import Beginning, Direction, MoveRefused, Obstacle, Origin
from kraft_runbook.groups.quiet import Quiet, quiet_at
from kraft_runbook.groups.stopped import read_at_the_stop, stop_is_unseen
from kraft_runbook.steps.groups.files import GroupFiles
from kraft_runbook.steps.groups.waiting import watch_of

T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)
TO_KAFKA, END = Direction.TO_KAFKA, Beginning.END_AT_THE_STOP
FENCE = Owner("fence", True)
FENCED, RUNS_OR_NOT = {T0: FENCE}, dict[Any, Owner]()


def at(offset: int, *ends: int, start: int = 0, owners: Any = RUNS_OR_NOT) -> GroupLook:
    """Of t-0 the group has an offset, of the others none. The log of t-0 ends at 100, those of the others at these."""
    logs: dict[int, Any] = {0: LogBounds(0, 100), **{n: LogBounds(start, end) for n, end in enumerate(ends, 1)}}
    return look(zookeeper(owners=owners, offsets={T0: offset}), logs={"t": logs})


def plan(seen: GroupLook, quiet: Quiet | None = None) -> MovePlan:
    found = plan_move(seen, TO_KAFKA, without=END, quiet=quiet)
    assert isinstance(found, MovePlan), found
    return found


def reason(found: Any) -> MoveRefused:
    ((refused),) = found
    assert isinstance(refused, MoveRefused) and refused.obstacle is Obstacle.FORM
    assert "has not seen the members stop: where the logs of t-1 ended" in refused.why
    assert "t-1=OFFSET" in refused.way_out
    return refused


def ends(found: Any) -> list[int | None]:
    assert isinstance(found, MovePlan), found
    return [each.offset for each in found.offsets]


def test_a_group_that_runs_is_read_where_the_logs_ended_at_its_stop() -> None:
    """Spark and Flink register nowhere: their stop is still to come."""
    signed = plan(at(50, 10))
    assert (
        "if no offset of the group moves until the stop, it is refused there, since nobody knows where the logs of t-1"
        in signed.render_text()
    )
    kept = Moves.from_dict(json.loads(json.dumps(Moves(TO_KAFKA, (signed,)).to_dict())))
    assert kept.plans == (signed,)
    assert stop_is_unseen(signed, at(50, 15)), "nobody has read on yet"
    moved = at(60, 20)
    assert not stop_is_unseen(signed, moved)
    quiet = quiet_at(moved, TO_KAFKA, None)
    later = at(60, 30)
    assert ends(read_at_the_stop(signed, later, END, quiet=quiet)) == [60, 20]
    assert ends(read_at_the_stop(plan(later, quiet), later, END, quiet=quiet)) == [60, 20], "planned anew"


def test_only_a_look_after_members_were_seen_to_read_tells_where_the_logs_ended(tmp_path: Path) -> None:
    """Else a plan that is made anew would take it for the stop."""
    files, seen = GroupFiles(tmp_path), [at(50, 20)]
    files.store(Moves(TO_KAFKA, (plan(at(50, 10)),)), "")
    hand: Any = SimpleNamespace(spec=SPEC, secrets=str)
    watch = watch_of(files, hand, "", [GROUP], 60.0, looks=lambda *_, **__: seen)
    assert watch() and files.quiet() == {}
    seen[:] = [at(60, 30)]
    assert watch() and files.quiet() == {GROUP: Quiet({T0: 60}, {T0: 100, T1: 30})}


def test_a_group_that_nobody_was_seen_to_read_may_have_stopped_before_the_plan() -> None:
    signed = plan(at(50, 10))
    later = at(50, 30)
    for quiet in (None, quiet_at(at(50, 20), TO_KAFKA, None)):
        reason(read_at_the_stop(signed, later, END, quiet=quiet))


def test_a_fenced_group_has_stopped_before_the_plan() -> None:
    reason(plan_move(at(50, 10, owners=FENCED), TO_KAFKA, without=END))
    assert ends(plan(at(50, owners=FENCED))) == [50], "it needs no end"


@pytest.mark.parametrize("owners", [FENCED, RUNS_OR_NOT])
@pytest.mark.parametrize("empty", [0, 7])
def test_of_a_log_that_is_empty_at_the_plan_all_is_read_that_comes(owners: Any, empty: int) -> None:
    signed = plan(at(50, empty, start=empty, owners=owners))
    assert dict(signed.unseen_stop) == {T1: empty}
    later = at(50, 30, 5, start=empty, owners=owners)
    later = replace(later, logs={"t": {**later.logs["t"], 2: LogBounds(0, 5)}})  # type: ignore[dict-item]
    quiet = quiet_at(later, TO_KAFKA, None)
    assert ends(read_at_the_stop(signed, later, END, quiet=quiet)) == [50, empty, 0], "t-2 came since"
    cut = at(50, 30, start=20, owners=owners)
    found = read_at_the_stop(signed, cut, END, quiet=quiet)
    assert ends(found) == [50, 20]
    assert isinstance(found, MovePlan) and found.offsets[1].origin is Origin.LOG_START


@pytest.mark.parametrize("owners", [FENCED, RUNS_OR_NOT])
def test_a_stop_that_this_run_has_seen_is_known_and_an_end_that_was_not_read_then_is_not(owners: Any) -> None:
    quiet = quiet_at(at(50, 200, owners=owners), TO_KAFKA, None)
    later = at(50, 5000, owners=owners)
    assert ends(read_at_the_stop(plan(later, quiet), later, END, quiet=quiet)) == [50, 200]
    without = look(later.zookeeper, logs={"t": {0: LogBounds(0, 100), 1: Unread("no leader")}})
    reason(plan_move(later, TO_KAFKA, without=END, quiet=quiet_at(without, TO_KAFKA, None)))


def test_who_reads_on_after_a_stop_that_this_run_has_seen_must_be_seen_to_stop_again() -> None:
    quiet = quiet_at(at(50, 200, owners=FENCED), TO_KAFKA, None)
    reason(plan_move(at(51, 5000, owners=FENCED), TO_KAFKA, without=END, quiet=quiet))
    signed = plan(at(51, 5000), quiet)
    reason(read_at_the_stop(signed, at(51, 6000), END, quiet=quiet))
