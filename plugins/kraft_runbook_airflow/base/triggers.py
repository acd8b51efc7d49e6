"""Waits that hold no worker: the triggerer observes the cluster until a condition of the core holds, N
times in a row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.unwritten import disk_in_words
from kraft_runbook_airflow.base.task_waits import wait_of_task


class ClusterConditionTrigger(BaseTrigger):
    """Waits for one condition of one cluster, or for two that must hold together. Ends the task itself: no worker is
    used while or after.

    ``rehearse``: in a dry run, and in a step that the run leaves out, say what would be waited for and end.
    ``deadline``: seconds since the task began to wait; a triggerer that is restarted goes on with what is left.
    ``node_id``, ``first``, ``gone`` and ``operation``: as of ``wait_of_task``.
    """

    def __init__(
        self,
        cluster: str,
        condition: str,
        node_id: int | None,
        deadline: float,
        rehearse: str | bool,
        first: Sequence[Any] | None,
        gone: str,
        operation: str,
    ) -> None:
        super().__init__()
        self.cluster = cluster
        self.condition = condition
        self.node_id = node_id
        self.deadline = deadline
        self.rehearse = rehearse
        self.first = first
        self.gone = gone
        self.operation = operation

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("cluster", "condition", "node_id", "deadline", "rehearse", "first", "gone", "operation")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        wait = wait_of_task(
            self.cluster,
            self.operation,
            self.condition,
            self.node_id,
            self.deadline,
            self.first,
            self.gone,
            task=self.task_instance,
            log=self.log,
        )
        if str(self.rehearse).lower() == "true":
            wait.say_it_is_left_out()
            yield TaskSuccessEvent()
            return
        try:
            with disk_in_words():
                spec = await asyncio.to_thread(wait.begin)
                while not await asyncio.to_thread(wait.look):
                    await asyncio.sleep(spec.deadlines.poll)
        except RunbookError as error:
            self.log.error("%s", error)
            yield TaskFailedEvent()
            return
        yield TaskSuccessEvent()
