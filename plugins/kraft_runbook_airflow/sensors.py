"""Sensors over the conditions of the core. They start in the triggerer and end there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.triggers.base import StartTriggerArgs

from kraft_runbook.conditions import Condition


class ClusterSensor(BaseSensorOperator):
    """Waits until a condition holds, with a deadline and a message that says who or what is missing."""

    template_fields: Sequence[str] = ("rehearse",)
    ui_color = "#dfe8f6"
    start_trigger_args = StartTriggerArgs(
        trigger_cls="kraft_runbook_airflow.triggers.ClusterConditionTrigger", next_method="execute_complete", trigger_kwargs={}
    )
    start_from_trigger = True

    def __init__(self, *, cluster: str, condition: Condition, deadline: float, node: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster = cluster
        self.condition = condition.value
        self.deadline = deadline
        self.node = node
        self.rehearse = "{{ params.dry_run }}"
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls="kraft_runbook_airflow.triggers.ClusterConditionTrigger",
            next_method="execute_complete",
            trigger_kwargs={"cluster": cluster, "condition": condition.value, "node_id": node, "deadline": deadline, "rehearse": self.rehearse},
        )

    def execute(self, context: Any) -> None:
        """Only where the scheduler can't start a trigger itself (``dag.test()``): defer to the same trigger."""
        from kraft_runbook_airflow.triggers import ClusterConditionTrigger

        self.defer(
            trigger=ClusterConditionTrigger(self.cluster, self.condition, self.node, self.deadline, self.rehearse),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """Nothing is left to do: the trigger ended the task."""
