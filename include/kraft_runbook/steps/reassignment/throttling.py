"""The throttles of a plan's moves: set, changed while they move, put back."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.evidence.kinds import Moves, Rehearsed, of_kind
from kraft_runbook.procedures.move_replicas import read_state, save_throttles_anew
from kraft_runbook.procedures.throttle_replication import (
    read_throttles,
    remove_throttles,
    require_swept,
    set_throttles,
)
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.stages import MOVE
from kraft_runbook.reassignment.throttles import cannot_end, least_rate, produced_into, read_from_leaders
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.files import RunFiles, files_of
from kraft_runbook.steps.reassignment.looks import settled_look
from kraft_runbook.steps.reassignment.signed import require_signed
from kraft_runbook.steps.reassignment.wanted import Asks
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)

PRODUCED_SECONDS = 5.0
"""Between the two looks that tell what is produced."""


PUT_BACK = Act("put throttles back")
THROTTLED = "throttle the moves to"


def throttled(rate: int) -> Act:
    """The act of setting this rate, in bytes a second a broker."""
    return Act(f"{THROTTLED} {rate / 1e6:g} MB/s a broker")


def require_an_end(run: Run, plan: ReassignmentPlan, look: Look, rate: int) -> None:
    """Raise Refused for a throttle under which the copies would never catch up with what is produced now. ``look``:
    with the sizes of the plan's partitions, made just now.
    """
    run.cluster.pause(PRODUCED_SECONDS)
    later = settled_look(run.cluster, sizes_of=list(plan.target), settings=False)
    grown = plan.moves, look.placement.sizes, later.placement.sizes, later.at - look.at
    produced = produced_into(*grown)
    read = read_from_leaders(*grown, later.seen)
    if reasons := cannot_end(rate, produced, read):
        least = least_rate(produced, read) / 1e6
        raise Refused(
            f"the throttle would never let it end: {'; '.join(reasons[:5])}",
            way_out=f"give a throttle well above {least:,.1f} MB/s, or none",
        )


def set_throttle(run: Run, *, asks: Asks) -> None:
    """Throttle the plan's moves, where the run asks for it. Raises Refused."""
    look = None if run.cluster.rehearses else require_signed(run)[0]
    files, given = files_of(run), asks(run).throttle
    rate = files.wanted_throttle(given)
    if rate is None:
        run.cluster.tell("No throttle is asked for")
    elif look is None:
        run.cluster.do(set_throttles, files.plan().moves, rate, would=[throttled(rate)])
    else:
        if rate != given:  # a person wrote it since the plan was judged
            require_an_end(run, files.plan(), look, rate)
        run.signatures.begins(MOVE)
        throttle(run, rate)


def throttle(run: Run, rate: int) -> None:
    """Set this rate for the moves of the run's plan; that it will be set is written down first, and where none of the
    run's is in force, what is set now is saved.
    """
    files = files_of(run)
    moves = files.plan().moves
    if files.throttles.rate is None:
        topics = {p.topic for p in read_state(files.saved).assignment} | {move.partition.topic for move in moves}
        save_throttles_anew(files.saved, run.cluster.ask(read_throttles, topics))
    files.will_throttle(RunThrottles.of(moves, rate))
    run.cluster.do(set_throttles, moves, rate, would=[throttled(rate)])
    run.journal.record(Moves(what="throttled", partitions=None, told=f"{rate / 1e6:g} MB/s a broker"))


def change_throttle(run: Run, look: Look, given: int | None) -> None:
    """While replicas move: set the rate that a person wrote since, or the run's own where none is in force. A rate that
    makes no sense, or would never let it end, stops nothing that moves: the rate in force stays, and the file says it
    again; where none is, the run's own is set. ``given``: the run's own, in bytes a second a broker.
    """
    files = files_of(run)
    in_force = files.throttles.rate
    try:
        rate = files.wanted_throttle(given)
        if rate is None or rate == in_force:
            return
        if in_force is not None or rate != given:
            require_an_end(run, files.plan(), look, rate)
    except Refused as refused:
        files.keep_throttle(in_force)
        rate = given if in_force is None else in_force
        stays = "there is none" if rate is None else f"it stays {rate / 1e6:g} MB/s a broker"
        log.warning("The throttle is not changed, %s: %s. What to do: %s", stays, refused.problem, refused.way_out)
        if rate is None or rate == in_force:
            return
    throttle(run, rate)


def put_throttles_back(run: Run) -> dict[str, Any]:
    """Whatever happened: throttles become what they were, and it is proven that none of the run's is left."""
    tell = run.cluster.tell
    if run.cluster.rehearses:
        acts = [act for _, told in of_kind(run.journal.records(), Rehearsed) for act in told.acts]
        if any(act.startswith(THROTTLED) for act in acts):
            run.cluster.do(remove_throttles, would=[PUT_BACK])
        else:
            tell("This run would set no throttle")
        return {"left": []}
    files = files_of(run)
    if files.throttles.rate is None:
        tell("This run set no throttle")
        return {"left": []}
    run.claim.take()
    topics = files.throttles.lists
    put_back(run, files)
    with suppress(Unreachable):  # it was to be said only; the throttles are back
        ongoing = settled_look(run.cluster, sizes_of=(), settings=False).placement.ongoing
        if moving := sorted(p for p in ongoing if p.topic in topics):
            named = ", ".join(map(str, moving[:10]))
            log.warning("%d partitions still move, without a throttle from now on: %s", len(moving), named)
    return {"left": []}


def put_back(run: Run, files: RunFiles) -> None:
    """Make throttles what they were before the run of these files set its own. What somebody else set since is named
    and stays. Raises StepFailed, with the names, where something of the run's is left.
    """
    saved, ours = read_state(files.saved), files.throttles
    left = run.cluster.do(remove_throttles, ours, saved.throttles, would=[PUT_BACK]) or ()
    run.journal.record(Moves(what="put back", partitions=None, told="; ".join(map(str, left))))
    mine = ours.among(left, saved.throttles)
    require_swept(mine)
    if others := [str(each) for each in left if each not in mine]:
        log.warning("%d throttles are set that this run did not set: %s", len(others), "; ".join(others[:20]))
    files.throttles_are_back()
