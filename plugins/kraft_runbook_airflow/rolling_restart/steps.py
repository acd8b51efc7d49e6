"""The steps of a rolling restart on a node, and the task that restarts the active controller last."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Played, of_kind
from kraft_runbook.procedures.observe import observe
from kraft_runbook.rolling_restart.conditions import CONTROLLER_BACK, QUORUM_WHOLE
from kraft_runbook.rolling_restart.operation import ROLLING_RESTART, Step
from kraft_runbook.rolling_restart.plays import restart_node
from kraft_runbook.runbook.plays import Play
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.guards import require_other_brokers_in_sync, require_other_brokers_up
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.base.node_steps import Look, NodeStep, take_step
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.waiting import wait_for


def _restart(look: Look) -> Play:
    return restart_node(look.node, look.phase, older_than=look.began)


def _not_provisioned(look: Look) -> str | None:
    return "no controller is provisioned yet" if look.phase is Phase.ZOOKEEPER else None


def _left_for_last(look: Look) -> str | None:
    quorum = look.seen.quorum
    if was_read(quorum) and quorum.leader_id == look.node and len(look.spec.controllers) > 1:
        return f"left for last: controller {look.node} is the active one"
    return _not_provisioned(look)


def _require_the_quorum(look: Look) -> None:
    """Wait until every controller runs and has caught up. One that has ended may be started in any case."""
    if look.seen.controllers[look.node].running is not False:
        wait_for(look.spec, QUORUM_WHOLE, deadline=look.spec.deadlines.quorum, say=look.tell)


def _require_the_other_brokers(look: Look) -> None:
    """One that has ended may be started in any case: that takes nothing away."""
    if look.seen.brokers[look.node].running is not False:
        require_other_brokers_up(look)
        require_other_brokers_in_sync(look)


CONTROLLER = NodeStep(
    ROLLING_RESTART, Step.RESTART_CONTROLLERS, play=_restart, done=_left_for_last, guard=_require_the_quorum
)
"""Restart a controller that is not the active one."""
ACTIVE_CONTROLLER = NodeStep(
    ROLLING_RESTART, Step.RESTART_CONTROLLERS, play=_restart, done=_not_provisioned, guard=_require_the_quorum
)
BROKER = NodeStep(ROLLING_RESTART, Step.RESTART_BROKERS, play=_restart, guard=_require_the_other_brokers)


class RestartActiveController(ClusterOperator):
    """Restart the controllers that had no turn yet, the active one last: it was left out, and another may have been
    elected meanwhile.
    """

    ui_color = "#fde8c8"

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        restarted: list[int] = []
        while left := self.left(context, spec, restarted):
            quorum = observe(spec, secrets=airflow_secrets()).quorum
            leader = quorum.leader_id if was_read(quorum) else None
            node = min(left, key=lambda i: (i == leader, i))
            taken = take_step(context, spec, ACTIVE_CONTROLLER, node, self.log.info)
            restarted.append(node)
            if "seconds" in taken:
                wait_for(spec, CONTROLLER_BACK, node_id=node, deadline=spec.deadlines.quorum, say=self.log.info)
        return {"restarted": restarted}

    def left(self, context: Any, spec: ClusterSpec, had_a_turn: list[int]) -> list[int]:
        """The controllers that no task of this run has restarted, by its evidence."""
        played = {
            told.node_id for _, told in of_kind(records_of(context), Played) if told.step == Step.RESTART_CONTROLLERS
        }
        return [i for i in spec.controller_ids if i not in played and i not in had_a_turn]

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        self.log.info("Dry run: the controller that is active then would be restarted last, in the same way")
        return {"dry_run": True}
