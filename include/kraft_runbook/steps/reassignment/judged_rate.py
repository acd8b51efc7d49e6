"""Whether a throttle would ever let the moves end, and how many of them at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.procedures.move_between_disks import copy_settings, look_at_disks
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.disk_rates import (
    CopySettings,
    own_rates_of_copies_that_cannot_end,
    produced_into_copies,
)
from kraft_runbook.reassignment.disks import DiskMove
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.throttles import (
    Speeds,
    cannot_end,
    least_rate,
    most_at_once,
    own_rates_that_cannot_end,
)
from kraft_runbook.steps.reassignment.asked_rate import rate_text
from kraft_runbook.steps.reassignment.concurrency import AT_ONCE
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.looks import settled_look
from kraft_runbook.steps.reassignment.wanted import Wanted, asks_how_fast
from kraft_runbook.steps.run import Run

PRODUCED_SECONDS = 5.0
"""Between the two looks that tell what is produced."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Moves so many at once. ``slow``: why the rate would never let them end; ``own``: why rates that brokers have of
    their own would not. ``least``: bytes a second that the rate must be well above.
    """

    slow: tuple[str, ...]
    own: tuple[str, ...]
    least: float

    @property
    def reasons(self) -> tuple[str, ...]:
        return (*self.own, *self.slow)


def require_an_end(run: Run, plan: ReassignmentPlan, look: ReplicasLook, rate: int, wanted: Wanted) -> tuple[str, ...]:
    """Find how many copies at once, at a broker, catch up under this throttle with what is produced now, and keep that
    number where it is less than what the run may have at once (``RunFiles.most_at_once``). Says so then, and why. Moves
    that have ended don't count: no throttle holds for them. Raises Refused where not even one at a time would catch up,
    or what is copied now would not, since that goes on. ``look``: with the sizes of the plan's partitions, made just
    now; ``wanted``: how many copies, and how many bytes of them, a broker moves at once.
    """
    run.cluster.pause(PRODUCED_SECONDS)
    later = settled_look(run.cluster, sizes_of=list(plan.target), settings=False)
    own = run.cluster.ask(read_throttles, ()).of_brokers
    still = [move for move in plan.moves if not look.placement.holds(move)]
    copying = later.placement.copying
    of_all = later.speeds_since(look, still)
    of_moving = later.speeds_since(look, [move for move in still if move.partition in copying])

    def judged(produced: Speeds, read: Speeds, moves: int, most: int | None) -> Judged:
        at_once = produced, read, moves, most
        return Judged(cannot_end(rate, *at_once), own_rates_that_cannot_end(own, *at_once), least_rate(*at_once))

    return _keep_most(
        run, rate, wanted.most_moves, judged(*of_moving, len(still), None), lambda n: judged(*of_all, n, wanted.bytes)
    )


def require_copies_end(run: Run, moves: Collection[DiskMove], rate: int) -> tuple[str, ...]:
    """The same of copies between disks. What is produced into those replicas counts that a broker copies at the same
    time (``produced_into_copies``). Where a broker has a rate of its own, that one is judged, and not this one.
    """
    brokers = {each.broker for each in moves}
    before, at = run.cluster.ask(look_at_disks, brokers), run.cluster.now()
    run.cluster.pause(PRODUCED_SECONDS)
    after, seconds = run.cluster.ask(look_at_disks, brokers), run.cluster.now() - at
    settings = run.cluster.ask(copy_settings, brokers)

    def speeds(moves: Iterable[DiskMove]) -> Speeds:
        return produced_into_copies(moves, before, after, seconds, settings)

    moving = [each for each in moves if each.broker in after and each.partition in after[each.broker].future]
    of_all, of_moving = speeds(moves), speeds(moving)

    def judged(produced: Speeds, at_once: int) -> Judged:
        without = {b: each for b, each in produced.items() if settings.get(b, CopySettings()).rate is None}
        own = own_rates_of_copies_that_cannot_end(settings, produced, at_once)
        return Judged(cannot_end(rate, without, {}, at_once), own, least_rate(without, {}, at_once))

    most = asks_how_fast(run).most_moves
    of_moves = judged(of_moving, len(moving))
    return _keep_most(run, rate, most, of_moves, lambda n: judged(of_all, n), of_disks=True)


def _keep_most(
    run: Run, rate: int, most: int, moving: Judged, judged: Callable[[int], Judged], *, of_disks: bool = False
) -> tuple[str, ...]:
    """``moving``: what is copied now, all of it; ``judged``: what is left, so many at once at a broker."""
    found = 0 if moving.reasons else most_at_once(lambda moves: judged(moves).reasons, most)
    if not found:
        raise _refused(moving if moving.reasons else judged(1), max(moving.least, judged(most).least))
    files_of(run).keep_most_at_once(rate, found if found < most else None, of_disks=of_disks)
    if found == most:
        return ()
    why = some(judged(found + 1).reasons, between="; ")
    said = (
        f"at {rate_text(rate)} no more than {found} copies go on at once at each, instead of {most}: with more, {why}"
    )
    run.cluster.tell(said)
    run.journal.record(Moves(what=AT_ONCE, partitions=None, told=said))
    return (said,)


def _refused(judged: Judged, for_all: float) -> Refused:
    """``for_all``: bytes a second that a throttle must be well above for as many at once as the run may have."""
    problem = f"the throttle would never let it end: {some(judged.own or judged.slow, between='; ')}"
    if judged.own:
        return Refused(
            problem,
            way_out="remove what another tool left (kafka-configs --entity-type brokers --entity-name N --alter"
            " --delete-config), or raise it, then clear this task",
        )
    least, most = (f"{each / 1e6:,.1f} MB/s" for each in (judged.least, for_all))
    fewer = f"; above {least} fewer copies at once would end" if least != most else ""
    return Refused(problem, way_out=f"give a throttle well above {most}, or none{fewer}")
