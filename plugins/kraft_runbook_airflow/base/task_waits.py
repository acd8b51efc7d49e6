"""The wait of one of Airflow's tasks: some seconds in the task's worker, then in the triggerer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraft_runbook.evidence.kind import Kind
from kraft_runbook.steps.recorded_wait import RecordedWait
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.journal import record_for, require_shared
from kraft_runbook_airflow.base.task_run import hand


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """``steps.recorded_wait.Waiter``. ``task``: Airflow's task instance."""

    cluster: str
    task: Any

    @property
    def file(self) -> Path:
        return state_directory() / "waits" / str(self.task.id)

    def record(self, what: Kind) -> None:
        record_for(self.cluster, self.task.dag_id, self.task.run_id, self.task.task_id, what)

    def require_shared(self) -> None:
        require_shared(self.task.dag_id, self.task.run_id)


def wait_of_task(
    cluster: str,
    operation: str,
    condition: str,
    node_id: int | None,
    deadline: float,
    first: Sequence[Any] | None,
    gone: str,
    *,
    task: Any,
    log: Any,
) -> RecordedWait:
    """``gone``: the controllers that the trigger form of a rollback names as gone with their hosts, as it names them.
    ``task``: Airflow's task instance, if any. The others: as of ``RecordedWait``.
    """
    return RecordedWait(
        operation,
        condition,
        node_id,
        deadline,
        first,
        hand=lambda: hand(cluster, log.info, gone=gone),
        waiter=None if task is None else WaitingTask(cluster, task),
        log=log,
    )
