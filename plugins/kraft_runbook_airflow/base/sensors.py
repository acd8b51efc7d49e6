"""Sensors over the conditions of the core. They look in their worker for some seconds, then in the triggerer, and end
there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.unwritten import disk_in_words
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.recorded_wait import RecordedWait
from kraft_runbook_airflow.base.task_waits import wait_of_task
from kraft_runbook_airflow.base.triggers import ClusterConditionTrigger


class ClusterSensor(BaseSensorOperator):
    """Waits until a condition holds, with a deadline and a message that says who or what is missing.

    The first ``deadlines.before_deferral`` seconds of the cluster file are waited in the worker, since most waits are
    over by then; what is left, in the triggerer, which ends the task itself.

    ``first``: a condition that comes before and must go on holding, with its own deadline. ``step``: the step it
    belongs to, where a run may leave that out. ``operation``: whose the condition is. ``unless``: of
    the run's ``params``, in Jinja: where it is true, nothing is waited for.
    """

    template_fields: Sequence[str] = ("rehearse", "gone")
    ui_color = "#dfe8f6"

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

    def execute(self, context: Any) -> None:
        wait = wait_of_task(
            self.cluster,
            self.operation,
            self.condition,
            self.node,
            self.deadline,
            self.first,
            self.gone,
            task=context["ti"],
            log=self.log,
        )
        if str(self.rehearse).lower() == "true":
            wait.say_it_is_left_out()
            return
        if not self._held_soon(wait):
            self.defer(trigger=self.trigger(), method_name="execute_complete")

    def _held_soon(self, wait: RecordedWait) -> bool:
        """Whether the wait ended well within ``deadlines.before_deferral`` seconds. Raises AirflowFailException where
        it ended otherwise.
        """
        try:
            with disk_in_words():
                deadlines = wait.begin().deadlines
                ends = time.monotonic() + deadlines.before_deferral
                while time.monotonic() < ends:
                    if wait.look():
                        return True
                    time.sleep(deadlines.poll)
        except RunbookError as error:
            self.log.error("%s", error)
            raise AirflowFailException(error.problem) from None
        return False

    def trigger(self) -> ClusterConditionTrigger:
        """What goes on waiting in the triggerer."""
        return ClusterConditionTrigger(
            self.cluster,
            self.condition,
            self.node,
            self.deadline,
            self.rehearse,
            self.first,
            self.gone,
            self.operation,
        )

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """Nothing is left to do: the trigger ended the task."""


def _goals_without(operation: Operation, step: str) -> list[str]:
    """The goals of a run back that leave this step out. A run back can end in any stage but the last."""
    ends = [stage.name for stage in operation.table.stages[:-1] if stage.end is not None]
    return [str(goal) for goal in ends if operation.table.leaves_out(step, goal)]
