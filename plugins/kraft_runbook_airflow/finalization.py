"""The one step that can't be undone: the controllers leave migration mode, the active one last."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import AlreadyDone, SecretsRemoved
from kraft_runbook.io.hosts import playbooks
from kraft_runbook.migration import conditions, plays
from kraft_runbook.migration.transitions import Step
from kraft_runbook.procedures.observe import observe
from kraft_runbook.runbook.plays import Play
from kraft_runbook_airflow.environment import airflow_secrets, is_dry_run
from kraft_runbook_airflow.journal import record
from kraft_runbook_airflow.operators import ClusterOperator, HostStepOperator
from kraft_runbook_airflow.waiting import wait_for


class FinalizeController(HostStepOperator):
    """Restart one controller without the migration flag. The approval is read again before each one; the active one is
    left for last.
    """

    ui_color = "#f6d5d5"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(step=Step.FINALIZE_CONTROLLERS, **kwargs)

    def already_done(self, spec: ClusterSpec, seen: ClusterObservation, reading: PhaseReading) -> str | None:
        state = seen.controllers[self.node]
        if state.running is True and state.mode == ControllerMode.KRAFT:
            return f"controller {self.node} runs without the migration flag"
        if len(_remaining(seen)) > 1 and _is_active(seen, self.node):
            return f"left for last: controller {self.node} is the active one"
        return None

    def guard(self, context: Any, spec: ClusterSpec, seen: ClusterObservation) -> None:
        not_in_kraft = [b.id for b in seen.brokers.values() if b.mode != BrokerMode.KRAFT]
        if not_in_kraft:
            raise Refused(
                f"broker {', '.join(map(str, not_in_kraft))} is not proven to be in KRaft mode",
                way_out="roll it into KRaft mode first; finalizing now would cut it off",
            )
        down = [c.id for c in seen.controllers.values() if c.id != self.node and c.running is not True]
        if down or not was_read(seen.quorum):
            raise Refused(
                f"the quorum is not whole: controller {', '.join(map(str, down)) or 'leader'} does not answer",
                way_out="bring it back, then clear this task",
            )

    def play(self, spec: ClusterSpec, seen: ClusterObservation) -> Play:
        return plays.finalize_controller(spec, self.node)


class FinalizeActiveController(FinalizeController):
    """Restart what the first pass left: the active controller, and any that led in the meantime, the active
    one last.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(node=-1, **kwargs)

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        if is_dry_run():
            self.log.info("Dry run: the controller that is active then would be restarted last, in the same way")
            return {"dry_run": True}
        done = []
        while left := _remaining(observe(spec, secrets=airflow_secrets())):
            seen = wait_for(spec, conditions.QUORUM_WHOLE, deadline=spec.deadlines.quorum, say=self.log.info)
            self.node = min(left, key=lambda i: (_is_active(seen, i), i))
            done.append(super().act(context, spec))
            wait_for(
                spec,
                conditions.CONTROLLER_CAUGHT_UP,
                node_id=self.node,
                deadline=spec.deadlines.quorum,
                say=self.log.info,
            )
        if not done:  # another one was elected in the meantime, so that none was left for last
            why = "every controller runs without the migration flag"
            self.log.info("already done: %s", why)
            phase = detect_phase(observe(spec, secrets=airflow_secrets())).phase
            record(context, self.cluster, AlreadyDone(phase=phase.value, step=self.step.value, why=why))
        return {"restarted": done}


class ForgetZookeeperSecrets(ClusterOperator):
    """Take ZooKeeper's secrets off the hosts, once no process can need them again. Restarts nothing."""

    ui_color = "#fde8c8"

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        if not is_dry_run():
            self.claim(context)
            seen = observe(spec, secrets=airflow_secrets())
            reading = detect_phase(seen)
            left = _remaining(seen)
            if reading.phase is not Phase.FINALIZED or left:
                named = (
                    f"; controller {', '.join(map(str, left))} is not proven to run without the migration flag"
                    if left
                    else ""
                )
                raise Refused(
                    f"the cluster is in {reading.phase}{named}, and a process that speaks to ZooKeeper could not start"
                    " again without ZooKeeper's secrets",
                    way_out="finish the finalization, then clear this task",
                )
            behind = [b.id for b in seen.brokers.values() if b.mode != BrokerMode.KRAFT]
            if behind:
                raise Refused(
                    f"broker {', '.join(map(str, behind))} is not proven to run in KRaft mode, and could not start"
                    " again without ZooKeeper's secrets",
                    way_out="bring it into KRaft mode (docs/finalization.md), then clear this task",
                )
        nodes = playbooks.forget_zookeeper_secrets(spec, check=is_dry_run(), on_event=self.log.info)
        self.log.info(
            "%s: %s",
            "Dry run: would take ZooKeeper's secrets off" if is_dry_run() else "ZooKeeper's secrets are off",
            ", ".join(nodes) or "no host",
        )
        if not is_dry_run():
            record(context, self.cluster, SecretsRemoved(nodes=tuple(nodes)))
        return {"nodes": list(nodes)}


def _remaining(seen: ClusterObservation) -> list[int]:
    """The controllers that are not proven to run without the flag."""
    return [c.id for c in seen.controllers.values() if c.mode != ControllerMode.KRAFT]


def _is_active(seen: ClusterObservation, controller_id: int) -> bool:
    return was_read(seen.quorum) and seen.quorum.leader_id == controller_id
