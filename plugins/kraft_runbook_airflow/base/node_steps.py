"""The task that takes a step on a node."""

from __future__ import annotations

from typing import Any

from kraft_runbook.steps.node_step import NodeStep, rehearse_step, take_step
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator


class TakeStep(ClusterOperator):
    """Take one step of an operation on one node."""

    def __init__(self, *, step: NodeStep, node: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.node = node
        irreversible = step.operation.table.gate(step.gate).irreversible
        self.ui_color = "#f6d5d5" if irreversible else "#fde8c8"

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        return take_step(run, self.step, self.node)

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        return rehearse_step(run, self.step, self.node)
