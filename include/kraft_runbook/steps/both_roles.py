"""What is awaited after a controller's restart where the same process may be a broker too."""

from __future__ import annotations

from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.steps import demotions
from kraft_runbook.steps.run import Run


def comes_back(run: Run, node: int, *, controller: Condition, broker: Condition, in_sync: Condition) -> None:
    """Wait for a controller that was restarted: whole and warm. For one that is a broker too, also until it is
    registered and in every ISR; leaders that were taken off it come back then.
    """
    within = run.spec.deadlines
    run.cluster.wait_for(controller, deadline=within.quorum, node_id=node)
    if not run.spec.has_both_roles(node):
        return
    run.cluster.wait_for(broker, deadline=within.registration, node_id=node)
    run.cluster.wait_for(in_sync, deadline=within.in_sync, node_id=node)
    if run.cluster.rehearses or demotions.are_off(run, node):
        demotions.give_leaders_back(run, broker=node, left_out=lambda _: None)
