"""Where controllers should lead and none does: whether they died in the copy, and how a leader comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import LogsRead, Restored
from kraft_runbook.migration import conditions
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy, why_not_proven
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.way_back import quorum_is_lost
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.quorum_logs import read_logs
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.procedures.start_controllers import start_controllers
from kraft_runbook_airflow.base.approvals import begins, require_confirmation
from kraft_runbook_airflow.base.claims import take_claim
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.gone import said_to_be_gone
from kraft_runbook_airflow.base.journal import record
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.waiting import wait_for

Tell = Callable[[str], None]


class RestoreQuorum(ClusterOperator):
    """Where controllers should lead and none does, start those that are down, with the files they have, once all are
    proven to be in migration mode.

    Not where their own logs prove that they died in the copy before anything was acknowledged: they would copy again,
    and die again.
    """

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        seen = self._look(context, spec)
        lost = quorum_is_lost(seen)
        if not lost:
            self.log.info("already done: the quorum has a leader, or none is needed")
            return {"started": []}
        if died_in_the_copy(context, spec, seen, self.log.info):
            return {"started": [], "died_in_the_copy": True}
        return {"started": restore(context, spec, seen, lost, self.log.info)}

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        lost = quorum_is_lost(self._look(context, spec))
        self.log.info(
            "Dry run: would start the controllers, or read their logs where they may have died in the copy: %s", lost
        ) if lost else self.log.info("already done: the quorum has a leader, or none is needed")
        return {"dry_run": True}

    def _look(self, context: Any, spec: ClusterSpec) -> ClusterObservation:
        gone = said_to_be_gone(context, spec)
        return observe_settled(spec, secrets=airflow_secrets(), tell=self.log.info, gone=gone)


def died_in_the_copy(context: Any, spec: ClusterSpec, seen: ClusterObservation, tell: Tell) -> bool:
    """Whether the controllers' own logs prove that the copy was never committed. Ends those that still run, without
    a leader.

    Raises Refused without the gate's signature.
    """
    if not may_have_died_in_the_copy(seen):
        return False
    take_claim(context, spec)
    require_confirmation(context, spec, MIGRATION, Gate.ROLLBACK, seen)
    tell("nothing shows that the metadata copy was completed: reading the controllers' own logs")
    logs = read_logs(spec, stop=True, gone=said_to_be_gone(context, spec), tell=tell)
    why_not = why_not_proven(logs, spec.controller_ids)
    record(
        context,
        spec.name,
        LogsRead(phase=detect_phase(seen).phase.value, logs=tuple(map(str, logs)), why_not=why_not),
    )
    tell("\n".join(map(str, logs)))
    tell(why_not or "the copy was never committed: the quorum acknowledged nothing, and stays down")
    return why_not is None


def restore(context: Any, spec: ClusterSpec, seen: ClusterObservation, lost: str, tell: Tell) -> list[int]:
    """Start what is down and wait for a leader. Raises Refused without the gate's signature, StepFailed where no
    majority comes up.
    """
    take_claim(context, spec)
    require_confirmation(context, spec, MIGRATION, Gate.ROLLBACK, seen)
    begins(context, spec.name, Gate.ROLLBACK)
    tell(f"{lost}: starting the controllers that are down")
    gone = said_to_be_gone(context, spec)
    down = [
        c.id
        for c in observe(spec, secrets=airflow_secrets(), gone=gone).controllers.values()
        if c.running is not True and c.id not in gone
    ]
    started = list(start_controllers(spec, down, secrets=airflow_secrets(), tell=tell, gone=gone))
    wait_for(spec, conditions.QUORUM_LED, deadline=spec.deadlines.quorum, say=tell, gone=gone)
    record(context, spec.name, Restored(phase=detect_phase(seen).phase.value, why=lost, started=tuple(started)))
    return started
