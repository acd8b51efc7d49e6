"""The end of finalization, which can't be undone: the active controller last, then ZooKeeper's secrets."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import AlreadyDone, SecretsRemoved
from kraft_runbook.io.hosts import playbooks
from kraft_runbook.migration import conditions
from kraft_runbook.migration.transitions import Step
from kraft_runbook.steps.forward import FINALIZE, remaining
from kraft_runbook.steps.node_step import take_step
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator


class FinalizeActiveController(ClusterOperator):
    """Restart the controllers that the first pass left: the active one, and any that led in between, the active one
    last.
    """

    ui_color = "#f6d5d5"

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        done = []
        while left := remaining(run.cluster.observe()):
            seen = run.cluster.wait_for(conditions.QUORUM_WHOLE, deadline=run.spec.deadlines.quorum)
            node = seen.next_controller(left)
            done.append(take_step(run, FINALIZE, node))
            run.cluster.wait_for(
                conditions.CONTROLLER_CAUGHT_UP,
                node_id=node,
                deadline=run.spec.deadlines.quorum,
            )
        if not done:  # another controller was elected in between, so none was left
            why = "every controller runs without the migration flag"
            self.log.info("already done: %s", why)
            phase = detect_phase(run.cluster.observe()).phase
            run.journal.record(AlreadyDone(phase=phase.value, step=Step.FINALIZE_CONTROLLERS.value, why=why))
        return {"restarted": done}

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        self.log.info("Dry run: the controller that is active then would be restarted last, in the same way")
        return {"dry_run": True}


class ForgetZookeeperSecrets(ClusterOperator):
    """Remove ZooKeeper's secrets from the hosts, once no process can need them again. Restarts nothing."""

    ui_color = "#fde8c8"

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        run.claim.take()
        self.require_finalized(run.cluster.observe())
        nodes = playbooks.forget_zookeeper_secrets(run.spec, on_event=self.log.info)
        self.log.info("ZooKeeper's secrets were removed from: %s", ", ".join(nodes) or "no host")
        run.journal.record(SecretsRemoved(nodes=tuple(nodes)))
        return {"nodes": list(nodes)}

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        nodes = playbooks.forget_zookeeper_secrets(run.spec, check=True, on_event=self.log.info)
        self.log.info("Dry run: would remove ZooKeeper's secrets from: %s", ", ".join(nodes) or "no host")
        return {"nodes": list(nodes)}

    def require_finalized(self, seen: ClusterObservation) -> None:
        """Raise Refused if a process could still need ZooKeeper's secrets."""
        reading = detect_phase(seen)
        left = remaining(seen)
        if reading.phase is not Phase.FINALIZED or left:
            named = (
                f"; controller {', '.join(map(str, left))} is not proven to run without the migration flag"
                if left
                else ""
            )
            raise Refused(
                f"the cluster is in {reading.phase}{named}, and a process that connects to ZooKeeper could not start"
                " again without ZooKeeper's secrets",
                way_out="finish the finalization, then clear this task",
            )
        behind = [b.id for b in seen.brokers.values() if b.mode != BrokerMode.KRAFT]
        if behind:
            raise Refused(
                f"broker {', '.join(map(str, behind))} is not proven to run in KRaft mode, and could not start"
                " again without ZooKeeper's secrets",
                way_out="restart it in KRaft mode (docs/finalization.md), then clear this task",
            )
