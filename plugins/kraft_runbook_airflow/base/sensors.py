"""Sensors over the conditions of the core. They start in the triggerer and end there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.triggers.base import StartTriggerArgs

from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.operation import Operation


class ClusterSensor(BaseSensorOperator):
    """Waits until a condition holds, with a deadline and a message that says who or what is missing.

    ``first``: a condition that comes before and must go on holding, with its own deadline. ``step``: the step it
    belongs to, where a run may leave that out. ``operation``: whose the condition is. ``unless``: of
    the run's ``params``, in Jinja: where it is true, nothing is waited for.
    """

    template_fields: Sequence[str] = ("rehearse", "gone")
    ui_color = "#dfe8f6"
    start_trigger_args = StartTriggerArgs(
        trigger_cls="kraft_runbook_airflow.base.triggers.ClusterConditionTrigger",
        next_method="execute_complete",
        trigger_kwargs={},
    )
    start_from_trigger = True

    def __init__(
        self,
        *,
        cluster: str,
        operation: Operation,
        condition: Condition,
        deadline: float,
        node: int | None = None,
        first: tuple[Condition, float] | None = None,
        step: str | None = None,
        unless: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cluster = cluster
        self.operation = operation.name
        self.condition = condition.name
        self.deadline = deadline
        self.node = node
        self.first = None if first is None else [first[0].name, first[1]]
        without = [] if step is None else _goals_without(operation, step)
        left_out = "".join(
            f" or {each}" for each in (*(f"params.goal == '{goal}'" for goal in without), unless) if each
        )
        self.gone = (
            "{{ params.gone_controllers or '' }}" if step is not None else ""
        )  # only a rollback's form names them
        self.rehearse = f"{{{{ params.dry_run{left_out} }}}}"
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls="kraft_runbook_airflow.base.triggers.ClusterConditionTrigger",
            next_method="execute_complete",
            trigger_kwargs={
                "cluster": cluster,
                "condition": condition.name,
                "node_id": node,
                "deadline": deadline,
                "rehearse": self.rehearse,
                "first": self.first,
                "gone": self.gone,
                "operation": operation.name,
            },
        )

    def execute(self, context: Any) -> None:
        """Only where the scheduler can't start a trigger itself (``dag.test()``): defer to the same trigger."""
        from kraft_runbook_airflow.base.triggers import ClusterConditionTrigger

        self.defer(
            trigger=ClusterConditionTrigger(
                self.cluster,
                self.condition,
                self.node,
                self.deadline,
                self.rehearse,
                self.first,
                self.gone,
                self.operation,
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """Nothing is left to do: the trigger ended the task."""


def _goals_without(operation: Operation, step: str) -> list[str]:
    """The goals of a run back that leave this step out. A run back can end in any stage but the last."""
    ends = [stage.name for stage in operation.table.stages[:-1] if stage.end is not None]
    return [str(goal) for goal in ends if operation.table.leaves_out(step, goal)]
