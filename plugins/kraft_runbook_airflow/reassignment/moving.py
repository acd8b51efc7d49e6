"""The task that moves replicas: no worker waits while data moves."""

from __future__ import annotations

from typing import Any

from kraft_runbook.steps.reassignment.moving import move_on, rehearse_moves
from kraft_runbook.steps.reassignment.wanted import Asks
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.reassignment.trigger import trigger_of


def look_again(task: ClusterOperator, context: Any, event: dict[str, Any]) -> Any:
    """From the beginning: the event says only that there is something to do. The ``resume`` of a task that moves."""
    task.log.info("%s", event["why"])
    return task.act_or_rehearse(context, act=task.act, rehearse=task.rehearse)


class MoveReplicas(ClusterOperator):
    """Start batch after batch. Cleared at any point it goes on with what is left."""

    resume = look_again

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        found = move_on(run, asks=self.asks)
        if isinstance(found, dict):
            return found
        self.defer(trigger=trigger_of(self.cluster, found), method_name="resume")
        raise AssertionError("defer raises")

    def rehearse(self, context: Any, run: Run) -> None:
        rehearse_moves(run, asks=self.asks)
