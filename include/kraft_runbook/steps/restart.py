"""The steps of a rolling restart on a node, and the active controller's restart, which is the last of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Played, of_kind
from kraft_runbook.restart.checks import ALONE_WHILE, BROKER_CONTROLS, ONE_BY_ONE
from kraft_runbook.restart.conditions import QUORUM_LED, QUORUM_WHOLE
from kraft_runbook.restart.operation import RESTARTS, Step
from kraft_runbook.restart.plays import restart_node
from kraft_runbook.runbook.health import quorum_led
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.demotions import demotes
from kraft_runbook.steps.guards import require_other_brokers
from kraft_runbook.steps.node_step import Look, NodeStep
from kraft_runbook.steps.roll import active_one_last, left_for_last
from kraft_runbook.steps.run import Run


def _restart(look: Look) -> Play:
    return restart_node(look.node, look.phase, older_than=look.began)


def _not_provisioned(look: Look) -> str | None:
    """Why there is nothing to restart where no controller runs. Its host must say so too: an only controller that was
    stopped before the copy, as by a killed try of its own restart, shows the same phase.
    """
    if look.phase is not Phase.ZOOKEEPER:
        return None
    host = look.cluster.hosts([look.node])[look.node]
    unread = [part.reason for part in (host.config, host.formatted_cluster_id) if isinstance(part, Unread)]
    if unread:
        raise Refused(
            f"no controller runs, and whether controller {look.node} is provisioned could not be read: {unread[0]}",
            way_out="make its host readable (docs/hosts.md), or restart brokers only",
        )
    if host.config is not None and host.formatted_cluster_id is not None:
        raise Refused(
            f"no controller runs, though controller {look.node} is provisioned",
            way_out=f"start {look.spec.controller(look.node).service} on its host, then clear this task",
        )
    return "no controller is provisioned yet"


def _passed_over(look: Look) -> str | None:
    return left_for_last(look, look.spec.controller_ids) or _not_provisioned(look)


def _require_the_quorum(look: Look) -> None:
    """Wait until every controller runs and has caught up. One that has ended may be started in any case."""
    if look.seen.controllers[look.node].running is not False:
        look.cluster.wait_for(QUORUM_WHOLE, deadline=look.spec.deadlines.quorum)


def _require_the_other_brokers(look: Look) -> None:
    """They run and are in sync, and a controller leads: without one a restarted broker can't register. One that has
    ended may be started in any case: that takes nothing away.
    """
    if look.seen.brokers[look.node].running is False:
        return
    if look.companions and look.phase in BROKER_CONTROLS:
        raise Refused(f"{ALONE_WHILE} (phase {look.phase})", way_out=f"{ONE_BY_ONE}, then trigger a new run")
    if look.phase is not Phase.ZOOKEEPER and not quorum_led(look.seen).done:
        look = replace(look, seen=look.cluster.wait_for(QUORUM_LED, deadline=look.spec.deadlines.quorum))
    require_other_brokers(look)


CONTROLLER = NodeStep(
    RESTARTS, Step.RESTART_CONTROLLERS, play=_restart, passed_over=_passed_over, guard=_require_the_quorum
)
"""Restart a controller that is not the active one."""
ACTIVE_CONTROLLER = NodeStep(
    RESTARTS, Step.RESTART_CONTROLLERS, play=_restart, passed_over=_not_provisioned, guard=_require_the_quorum
)
BROKER = NodeStep(
    RESTARTS,
    Step.RESTART_BROKERS,
    play=_restart,
    guard=_require_the_other_brokers,
    before=demotes(lambda spec: spec.rolling_restart.demote),
    batched=True,
)


def restarts_no_brokers(run: Run) -> str | None:
    """Why, where this run was not asked for them."""
    return RESTARTS.left_out(Step.RESTART_BROKERS, run.params)


def restart_active_controller(run: Run) -> dict[str, Any]:
    """Restart the controllers that had no turn yet, the active one last: it was left out, and another may have been
    elected meanwhile.
    """
    unasked = RESTARTS.left_out(Step.RESTART_CONTROLLERS, run.params)
    if unasked:
        run.cluster.tell(unasked)
        return {"restarted": []}

    def left(_: ClusterObservation) -> list[int]:
        return [i for i in run.spec.controller_ids if i not in played(run)]

    done = active_one_last(run, ACTIVE_CONTROLLER, left, once=True)
    if played(run):  # also by a try that was killed before it saw it back
        run.cluster.wait_for(QUORUM_WHOLE, deadline=run.spec.deadlines.quorum)
    return {"restarted": [node for node, answer in done if answer.get("changed")]}


def played(run: Run) -> set[int | None]:
    """The controllers that tasks of this run have restarted, by its evidence."""
    found = of_kind(run.journal.records(), Played)
    return {told.node_id for _, told in found if told.step == Step.RESTART_CONTROLLERS}
