"""The tasks that save what is there, and move replicas batch by batch."""

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
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.reassignment.files import files_of
from kraft_runbook_airflow.reassignment.signed import require_signed
from kraft_runbook_airflow.reassignment.throttling import change_throttle
from kraft_runbook_airflow.reassignment.trigger import ReassignmentTrigger
from kraft_runbook_airflow.reassignment.wanted import Asks


def moves_of(batch: Iterable[Move]) -> tuple[Act, ...]:
    """The acts of starting these moves."""
    return tuple(Act(f"move {m.partition}", (f"{list(m.present)} -> {list(m.target)}",)) for m in batch)


class SaveState(ClusterOperator):
    """Keep the assignment and the throttles as they are, on disk, before anything changes."""

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        look, _, _ = require_signed(context, run)
        throttles = run.cluster.ask(read_throttles, {p.topic for p in look.seen})
        saved = save_state(files_of(context).saved, look, throttles)
        self.log.info("Saved: %s", files_of(context).saved)
        run.journal.record(Moves(what="saved", partitions=len(saved.assignment)))
        return {"run": files_of(context).name}

    def rehearse(self, context: Any, run: Run) -> None:
        self.log.info("Dry run: the present assignment would be saved")


class MoveReplicas(ClusterOperator):
    """Start batch after batch; no worker waits while data moves. Cleared at any point it goes on with what is left."""

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        look, reading, seen = require_signed(context, run)
        files, wanted = files_of(context), self.asks(context)
        plan = files.plan()
        self.log.info("%s", "; ".join(reading.because))
        if reading.stage is PlanStage.AS_PLANNED:
            run.journal.record(Moves(what="ended", partitions=len(reading.there)))
            return {"there": len(reading.there), "deleted_since": len(reading.gone)}
        if not standing(run.journal.records(), MOVE).begun:
            run.signatures.begins(MOVE)
        change_throttle(context, run, look, wanted.throttle, self.log.warning)
        limits = wanted.limits(seen)
        next_ones = next_batch(plan, look.placement, limits)
        batch = run.cluster.do(start_next_batch, plan, look, limits, would=moves_of(next_ones)) or ()
        if batch:
            named = ", ".join(str(move.partition) for move in batch[:5])
            self.log.info("Started %d moves: %s%s", len(batch), named, " …" if len(batch) > 5 else "")
            run.journal.record(Moves(what="started", partitions=len(batch), told=named))
        self.defer(
            trigger=ReassignmentTrigger(
                self.cluster,
                files.name,
                [limits.partitions, limits.moves, limits.bytes],
                files.throttles.rate,
                sorted(look.placement.being_deleted),
            ),
            method_name="resume",
        )
        raise AssertionError("defer raises")

    def resume(self, context: Any, event: dict[str, Any]) -> Any:
        """Look again, from the beginning: the event says only that there is something to do."""
        self.log.info("%s", event["why"])
        return self.act_or_rehearse(context, act=self.act, rehearse=self.rehearse)

    def rehearse(self, context: Any, run: Run) -> None:
        """Batch after batch, as if each had ended before the next."""
        plan, limits = files_of(context).plan(), self.asks(context).limits(run.cluster.observe())
        look, _ = run.cluster.ask(look_at_plan, plan)
        for batch in batches(plan, look.placement, limits):
            run.cluster.do(start_next_batch, plan, look, limits, would=moves_of(batch))
