"""Reading a person's answer back from Airflow itself.

In Airflow 3.3 a worker may read no human answer but that of its own task instance (execution API, ``hitlDetails``,
scope ``ti:self``), and its supervisor does not pass such a request on at all. The triggerer may: it is how Airflow's
own HITLTrigger learns of an answer. So the gate's confirmation begins in the triggerer, which asks, and goes on in a
worker. It does not defer from one: Airflow 3.3 fails a task whose trigger fires before the scheduler has seen the
deferring process end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from airflow.sdk.execution_time.hitl import get_hitl_detail_content_detail
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.store import evidence_directory, read_records
from kraft_runbook.gates.signatures import standing
from kraft_runbook_airflow.base.journal import run_file_name


class AnswerTrigger(BaseTrigger):
    """Fires at once, with what Airflow has on record of the answers that the evidence of its run names for a gate: by
    task instance.
    """

    def __init__(self, gate: str) -> None:
        super().__init__()
        self.gate = gate

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {"gate": self.gate}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        asked = await asyncio.to_thread(self._signed)
        yield TriggerEvent({each: await self._answer(each) for each in asked})

    def _signed(self) -> list[str]:
        """The task instances with an approval of the latest proof. None where the evidence can't be read: the
        confirmation says so itself.
        """
        ti = self.task_instance
        if ti is None:
            return []
        try:
            records = read_records(evidence_directory(os.environ), run_file_name(ti.dag_id, ti.run_id))
        except RunbookError as error:
            self.log.error("%s", error)
            return []
        return [each.task_instance for each in standing(records, self.gate).on_this_proof]

    async def _answer(self, task_instance: str) -> dict[str, Any]:
        try:
            answer = await sync_to_async(get_hitl_detail_content_detail)(ti_id=UUID(task_instance))
        except Exception as error:  # an answer that can't be read refuses the step, whatever the reason
            return {"unread": f"{type(error).__name__}: {error}"}
        user = answer.responded_by_user
        return {
            "chosen": list(answer.chosen_options or []),
            "by": user.name if user else None,
            "by_id": user.id if user else None,
            "at": answer.responded_at.isoformat() if answer.responded_at else None,
        }
