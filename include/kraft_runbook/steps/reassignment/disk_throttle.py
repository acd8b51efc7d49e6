"""The throttle of copies between the disks of a broker: set, changed while they go on, put back."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.procedures.move_between_disks import copy_settings, disk_rate, look_at_disks, set_disk_rate
from kraft_runbook.reassignment.disk_rates import own_rates
from kraft_runbook.reassignment.disk_way_back import back_over
from kraft_runbook.reassignment.disks import DiskMove, DiskPlan, DiskReading
from kraft_runbook.reassignment.throttles import EVERYWHERE, Leftover
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.asked_rate import PUT_BACK_DONE, SET, is_left_alone, rate_text, take_up_rate
from kraft_runbook.steps.reassignment.disks import BACK, PUTS_BACK, disk_runs, reading_of, require_signed_disks
from kraft_runbook.steps.reassignment.files import DISK_RATE, DISKS, DiskRate, RunFiles, files_of
from kraft_runbook.steps.reassignment.judged_rate import require_copies_end
from kraft_runbook.steps.reassignment.wanted import asks_how_fast
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)
PUT_BACK = Act("put the throttle of copies between disks back")


def throttle_disks(run: Run) -> dict[str, Any] | None:
    """Set the throttle that the form names, or a person since, once the former one is on disk. Raises Refused,
    Unreachable, StepFailed.
    """
    given = asks_how_fast(run).throttle
    rate = files_of(run).wanted_throttle(given)
    if rate is None:
        run.cluster.tell("No throttle is asked for")
        return None
    if run.cluster.rehearses:
        run.cluster.do(set_disk_rate, would=_would_throttle(rate))
        return None
    plan = files_of(run).disk_plan
    reading = reading_of(run, plan)
    require_signed_disks(run, plan, reading)
    if rate != given:  # a person wrote it since the plan was judged
        require_copies_end(run, (*reading.left, *reading.moving), rate)
    _throttle(run, rate)
    return {"bytes_a_second": rate}


def _would_throttle(rate: int) -> list[Act]:
    return [Act(f"throttle copies between disks to {rate_text(rate)}")]


def _throttle(run: Run, rate: int) -> None:
    files = files_of(run)
    note = files.disk_rate
    if note.rate is None:
        former = run.cluster.ask(disk_rate)
        for _, other in _notes(run):
            former = other.former if other.has_set(former) else former  # another run's own is nobody's former
        note = DiskRate(former)
    files.will_throttle_disks(note.and_then(rate))
    brokers = files.disk_plan.brokers
    for each in own_rates(run.cluster.ask(copy_settings, brokers)):
        log.warning("%s", each)
    run.cluster.do(set_disk_rate, str(rate), brokers, would=_would_throttle(rate))
    run.journal.record(Moves(what=SET, partitions=None, told=rate_text(rate)))


@dataclass(frozen=True, slots=True)
class OfDisks:
    """The throttle of a run's copies between disks (``asked_rate.Throttle``). ``still``: what is not there yet."""

    run: Run
    still: tuple[DiskMove, ...]

    @property
    def noted(self) -> int | None:
        return files_of(self.run).disk_rate.rate

    def stands(self, rate: int) -> bool:
        mine = files_of(self.run)
        others = [str(each) for files, other in _notes(self.run) if files != mine for each in other.ours]
        return is_left_alone(self.run.cluster.ask(disk_rate), rate, mine.disk_rate.former, others)

    def require_an_end(self, rate: int) -> None:
        require_copies_end(self.run, self.still, rate)

    def set(self, rate: int) -> None:
        _throttle(self.run, rate)


def change_disk_throttle(run: Run, still: Iterable[DiskMove], given: int | None) -> None:
    """While copies go on, or are left: set the rate that was asked for since, or the run's own where none is in
    force.
    """
    take_up_rate(run, OfDisks(run, tuple(still)), given)


def put_disk_throttle_back(run: Run) -> dict[str, Any] | None:
    """Whatever happened: the throttle becomes what it was, once none of the run's copies goes on. One that somebody
    else set meanwhile stays. A run that undoes another puts back that one's too. Raises Unreachable, StepFailed.
    """
    name = str(run.params.get("run") or "") if run.params.get("goal") == BACK else ""
    undone = next((each for each in disk_runs(run, DISK_RATE) if each.name == name), None)
    if run.cluster.rehearses:
        if _is_listed(run) or (undone is not None and undone.disk_rate.has_set(run.cluster.ask(disk_rate))):
            run.cluster.do(set_disk_rate, would=[PUT_BACK])
        return None
    found = _put_back(run, files_of(run))
    return (_put_back(run, undone) or found) if undone is not None else found


def _is_listed(run: Run) -> bool:
    """Whether this dry run has listed a throttle, which the run would put back."""
    rate = files_of(run).wanted_throttle(asks_how_fast(run).throttle)
    return rate is not None and bool(set(map(str, _would_throttle(rate))).intersection(run.listed()))


def _put_back(run: Run, files: RunFiles) -> dict[str, Any] | None:
    if (note := files.disk_rate).rate is None:
        return None
    run.claim.take()
    reading = _reading_of_all(run, files)
    if reading.moving or reading.lost:  # a broker that is back goes on with its copies
        going_on = replace(reading, left=(), there=(), gone=(), foreign=())
        run.cluster.tell(f"The throttle stays while copies go on, or may: {going_on}")
        return {"left": len(reading.moving) or len(reading.left) or 1}
    if note.has_set(run.cluster.ask(disk_rate)):
        going = [other.rate for others, other in _notes(run) if others != files and _may_go_on(run, others)]
        former = str(going[-1]) if going else note.former
        run.cluster.do(set_disk_rate, former, would=[PUT_BACK])
    files.disk_throttle_is_back()
    run.journal.record(Moves(what=PUT_BACK_DONE, partitions=None, told=str(note.former)))
    return {"left": 0}


def disk_throttles_left(run: Run, set_now: Iterable[Leftover] = ()) -> list[str]:
    """In words: the throttles that runs on this cluster set for copies between disks, where none of them goes on. One
    that rests, since it is paused or not in its hours, keeps its own for its next copies. ``set_now``: of such copies,
    as the brokers show them: those of no run are named where no broker makes a copy, and no run rests: its next copies
    go by them.
    """
    found, notes = [], _notes(run)
    foreign = [t for t in set_now if t.where != EVERYWHERE or not any(note.has_set(t.value) for _, note in notes)]
    rests = any(files.resting for files in disk_runs(run, DISKS))
    if foreign and not rests and not any(logs.future for logs in run.cluster.ask(look_at_disks).values()):
        found = [f"a throttle of copies between disks without a copy: {each}" for each in foreign]
    for files, note in notes:
        if _goes_on(run, files) or not note.has_set(run.cluster.ask(disk_rate)):
            continue
        if why := files.resting:
            run.cluster.tell(f"Run {files.name} keeps its throttle for its next copies: {why}")
            continue
        found.append(
            f"a throttle of copies between disks without a copy: {note.rate}, set by run {files.name}:"
            f" clear its task 'carry_out.{PUTS_BACK[files.name.partition('__')[0]]}'"
        )
    return found


def _notes(run: Run) -> list[tuple[RunFiles, DiskRate]]:
    """Of each run on this cluster that has not put its throttle back. Another's that can't be read is told."""
    found = []
    for files in disk_runs(run, DISK_RATE):
        try:
            found.append((files, files.disk_rate))
        except Refused as unreadable:
            if files == files_of(run):
                raise
            run.cluster.tell(f"What run {files.name} set is not known: {unreadable.problem}")
    return found


def _may_go_on(run: Run, files: RunFiles) -> bool:
    """Whether copies of that run go on, or will once a broker is back; also where its plan can't be read."""
    reading = _reading_of_another(run, files)
    return reading is None or bool(reading.moving or reading.lost)


def _goes_on(run: Run, files: RunFiles) -> bool:
    reading = _reading_of_another(run, files)
    return reading is not None and bool(reading.moving)


def _reading_of_another(run: Run, files: RunFiles) -> DiskReading | None:
    """None where its plan is gone or was changed: that keeps no other run's throttle from being put back."""
    try:
        return _reading_of_all(run, files)
    except Refused as unreadable:
        run.cluster.tell(f"Whether copies of run {files.name} go on is not known: {unreadable.problem}")
        return None


def _reading_of_all(run: Run, files: RunFiles) -> DiskReading:
    """Where all stands that the run may copy, also by a plan before its present one: what goes on of that is its own.
    Raises Refused where a plan is gone or was changed.
    """
    all_plans = back_over(files.disk_plans)
    once = {(each.broker, each.partition, each.source, each.target): each for each in all_plans.moves}
    return reading_of(run, DiskPlan(str(all_plans), tuple(once.values()), topic_ids=all_plans.topic_ids))
