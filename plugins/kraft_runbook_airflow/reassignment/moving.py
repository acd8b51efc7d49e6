"""The tasks that save what is there, and move replicas batch by batch."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.signatures import standing
from kraft_runbook.procedures.move_replicas import save_state, start_next_batch
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.stages import MOVE, PlanStage
from kraft_runbook_airflow.base.approvals import begins
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.journal import record, records_of
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.reassignment.files import files_of
from kraft_runbook_airflow.reassignment.signed import require_signed
from kraft_runbook_airflow.reassignment.throttling import change_throttle
from kraft_runbook_airflow.reassignment.trigger import ReassignmentTrigger
from kraft_runbook_airflow.reassignment.wanted import Asks


class SaveState(ClusterOperator):
    """Keep the assignment and the throttles as they are, on disk, before anything changes."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        look, _, _ = require_signed(context, spec, self.log.info)
        throttles = read_throttles(spec, {p.topic for p in look.seen}, secrets=airflow_secrets())
        saved = save_state(files_of(context).saved, look, throttles)
        self.log.info("Saved: %s", files_of(context).saved)
        record(context, self.cluster, Moves(what="saved", partitions=len(saved.assignment)))
        return {"run": files_of(context).name}

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        self.log.info("Dry run: the present assignment would be saved")


class MoveReplicas(ClusterOperator):
    """Start batch after batch; no worker waits while data moves. Cleared at any point it goes on with what is left."""

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        look, reading, seen = require_signed(context, spec, self.log.info)
        files, wanted = files_of(context), self.asks(context)
        plan = files.plan()
        self.log.info("%s", "; ".join(reading.because))
        if reading.stage is PlanStage.AS_PLANNED:
            record(context, self.cluster, Moves(what="ended", partitions=len(reading.there)))
            return {"there": len(reading.there), "deleted_since": len(reading.gone)}
        if not standing(records_of(context), MOVE).begun:
            begins(context, self.cluster, MOVE)
        change_throttle(context, spec, look, wanted.throttle, self.log.warning)
        limits = wanted.limits(seen)
        batch = start_next_batch(spec, plan, look, limits, secrets=airflow_secrets())
        if batch:
            named = ", ".join(str(move.partition) for move in batch[:5])
            self.log.info("Started %d moves: %s%s", len(batch), named, " …" if len(batch) > 5 else "")
            record(context, self.cluster, Moves(what="started", partitions=len(batch), told=named))
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

    def rehearse(self, context: Any, spec: ClusterSpec) -> None:
        wanted = self.asks(context)
        self.log.info("Dry run: the plan would be carried out, %d moves a broker at once", wanted.moves)
