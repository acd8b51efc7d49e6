"""What is there is saved, and replicas are moved batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraft_runbook.cluster.assignment import Move
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.signatures import standing
from kraft_runbook.procedures.look_at_replicas import look_at_plan
from kraft_runbook.procedures.move_replicas import save_state, start_next_batch
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.batches import batches, next_batch
from kraft_runbook.reassignment.stages import MOVE, PlanStage
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.signed import require_signed
from kraft_runbook.steps.reassignment.throttling import change_throttle
from kraft_runbook.steps.reassignment.waiting import WhileMoving
from kraft_runbook.steps.reassignment.wanted import Asks
from kraft_runbook.steps.run import Run


def moves_of(batch: Iterable[Move]) -> tuple[Act, ...]:
    """The acts of starting these moves."""
    return tuple(Act(f"move {m.partition}", (f"{list(m.present)} -> {list(m.target)}",)) for m in batch)


def save(run: Run) -> dict[str, Any] | None:
    """Keep the assignment and the throttles as they are, on disk, before anything changes. Raises Refused."""
    if run.cluster.rehearses:
        run.cluster.tell("Dry run: the present assignment would be saved")
        return None
    files = files_of(run)
    look, _, _ = require_signed(run)
    throttles = run.cluster.ask(read_throttles, {p.topic for p in look.seen})
    saved = save_state(files.saved, look, throttles)
    run.cluster.tell(f"Saved: {files.saved}")
    run.journal.record(Moves(what="saved", partitions=len(saved.assignment)))
    return {"run": files.name}


def move_on(run: Run, *, asks: Asks) -> WhileMoving | dict[str, Any]:
    """Start the next batch, of what is left. Returns the wait for what moves, and the task's answer where nothing is
    left. Raises Refused.
    """
    look, reading, seen = require_signed(run)
    files, wanted = files_of(run), asks(run)
    plan = files.plan()
    run.cluster.tell("; ".join(reading.because))
    if reading.stage is PlanStage.AS_PLANNED:
        run.journal.record(Moves(what="ended", partitions=len(reading.there)))
        return {"there": len(reading.there), "deleted_since": len(reading.gone)}
    if not standing(run.journal.records(), MOVE).begun:
        run.signatures.begins(MOVE)
    change_throttle(run, look, wanted.throttle)
    limits = wanted.limits(seen)
    next_ones = next_batch(plan, look.placement, limits)
    batch = run.cluster.do(start_next_batch, plan, look, limits, would=moves_of(next_ones)) or ()
    if batch:
        named = ", ".join(str(move.partition) for move in batch[:5])
        run.cluster.tell(f"Started {len(batch)} moves: {named}{' …' if len(batch) > 5 else ''}")
        run.journal.record(Moves(what="started", partitions=len(batch), told=named))
    return WhileMoving(files, limits, files.throttles.rate, look.placement.being_deleted)


def rehearse_moves(run: Run, *, asks: Asks) -> None:
    """Batch after batch, as if each had ended before the next."""
    plan, limits = files_of(run).plan(), asks(run).limits(run.cluster.observe())
    look, _ = run.cluster.ask(look_at_plan, plan)
    for batch in batches(plan, look.placement, limits):
        run.cluster.do(start_next_batch, plan, look, limits, would=moves_of(batch))
