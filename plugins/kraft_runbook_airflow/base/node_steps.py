"""The tasks that take the core's steps: one on a node, or what the core does in an order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_runbook.steps.node_step import NodeStep, take_step
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.report import first_tasks_succeeded


class TakeStep(ClusterOperator):
    """Take one step of an operation on one node. Airflow shows the step's name as the operator's."""

    def __init__(self, *, step: NodeStep, node: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.node = node
        self.custom_operator_name = _in_words(step.step)
        irreversible = step.operation.table.gate(step.gate).irreversible
        self.ui_color = "#f6d5d5" if irreversible else "#fde8c8"

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        return take_step(run, self.step, self.node)


class TakeSteps(ClusterOperator):
    """Take steps in the core's order. ``does``: given the task's run, which in a dry run rehearses. ``changes``: the
    cluster. ``comes_always``: also where the run's first task failed, perhaps before its first line. Airflow shows what
    it does as the operator's name.
    """

    def __init__(
        self,
        *,
        does: Callable[[Run], Any],
        irreversible: bool = False,
        changes: bool = True,
        comes_always: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.does = does
        self.comes_always = comes_always
        self.custom_operator_name = _in_words(getattr(does, "func", does).__name__)
        if changes:
            self.ui_color = "#f6d5d5" if irreversible else "#fde8c8"

    def follows_a_record(self, context: Any) -> bool:
        return first_tasks_succeeded(context) if self.comes_always else super().follows_a_record(context)

    def act(self, context: Any, run: Run) -> Any:
        return self.does(run)


def _in_words(name: str) -> str:
    return name.replace("_", " ")
