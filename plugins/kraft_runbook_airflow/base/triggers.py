"""Waits that hold no worker: the triggerer observes the cluster until a condition of the core holds, N
times in a row.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.kinds import GaveUp, Reached, Waited
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook_airflow.base.environment import cluster_spec, state_directory
from kraft_runbook_airflow.base.gone import named_as_gone
from kraft_runbook_airflow.base.journal import disk_in_words, record_for, require_shared, said_where_unwritten
from kraft_runbook_airflow.base.waiting import Wait


class ClusterConditionTrigger(BaseTrigger):
    """Waits for one condition of one cluster, or for two that must hold together. Ends the task itself: no worker is
    used before, while or after.

    ``rehearse``: in a dry run, and in a step that the run leaves out, say what would be waited for and end.
    ``deadline``: seconds since the task began to wait; a triggerer that is restarted goes on with what is left.
    ``node_id``: the broker or controller that the condition is about, where it is about one.
    ``first``: the condition that comes before, if any, and its deadline, which ``deadline`` goes on from.
    ``gone``: the controllers that the trigger form of a rollback names as gone with their hosts, as it names them.
    ``operation``: whose the conditions are; a wait that an earlier version began names none.
    """

    def __init__(
        self,
        cluster: str,
        condition: str,
        node_id: int | None = None,
        deadline: float = 60.0,
        rehearse: str | bool = False,
        first: Sequence[Any] | None = None,
        gone: str = "",
        operation: str = "migration",
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
        conditions = OPERATIONS[self.operation].conditions
        condition = conditions[self.condition]
        first = (conditions[self.first[0]], float(self.first[1])) if self.first else None
        if str(self.rehearse).lower() == "true":
            for each, deadline in (*([first] if first else []), (condition, self.deadline)):
                self.log.info(
                    "Not waiting (a dry run, or a step that this run leaves out): up to %.0f s for %s",
                    deadline,
                    each.describe(self.node_id),
                )
            yield TaskSuccessEvent()
            return
        try:
            with disk_in_words():
                await self._wait(condition, first)
        except RunbookError as error:
            self.log.error("%s", error)
            yield TaskFailedEvent()
            return
        yield TaskSuccessEvent()

    async def _wait(self, condition: Condition, first: tuple[Condition, float] | None) -> None:
        """Until the condition holds; how it ended goes on record. Raises RunbookError."""
        began = self._began()
        try:
            if self.task_instance is not None:
                require_shared(self.task_instance.dag_id, self.task_instance.run_id)
            spec = cluster_spec(self.cluster)
            wait = Wait(
                spec,
                condition,
                self.deadline,
                self.log.info,
                self.node_id,
                began,
                first,
                gone=named_as_gone(self.gone, spec),
            )
            while not await asyncio.to_thread(wait.look):
                await asyncio.sleep(spec.deadlines.poll)
        except RunbookError as error:
            with said_where_unwritten(self.log):
                await self._record(GaveUp, condition, began, str(error))
            raise
        if first and wait.first_held is not None:
            await self._record(Reached, first[0], began, "", seconds=wait.first_held)
        await self._record(Reached, condition, began, "", seen=wait.seen)

    def _began(self) -> float:
        """When this try of the task began to wait, in seconds since the epoch. Kept in a file, so that a restarted
        triggerer goes on with what is left.
        """
        ti = self.task_instance
        if ti is None:
            return time.time()
        file = state_directory() / "waits" / str(ti.id)
        file.parent.mkdir(exist_ok=True)
        if not file.exists():
            file.touch()
        return file.stat().st_mtime

    async def _record(
        self,
        kind: type[Waited],
        condition: Condition,
        began: float,
        error: str,
        *,
        seen: ClusterObservation | None = None,
        seconds: float | None = None,
    ) -> None:
        """``seconds``: how long it took; None where it ends now."""
        ti = self.task_instance
        if ti is not None:
            what = kind(
                values=condition.keeps(seen) if seen is not None else {},
                condition=condition.name,
                node_id=self.node_id,
                began_at=datetime.fromtimestamp(began, UTC),
                seconds=round(time.time() - began if seconds is None else seconds, 1),
                error=error,
            )
            await asyncio.to_thread(record_for, self.cluster, ti.dag_id, ti.run_id, ti.task_id, what)
            (state_directory() / "waits" / str(ti.id)).unlink(missing_ok=True)
