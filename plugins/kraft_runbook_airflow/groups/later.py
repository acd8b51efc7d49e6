"""Steps that wait without a worker: what the core looks at meanwhile, the triggerer looks at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from airflow.triggers.base import TriggerEvent

from kraft_runbook.errors import RunbookError
from kraft_runbook.steps.later import Later
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.toggles.waiting import WATCHES
from kraft_runbook_airflow.base.cluster_trigger import ClusterTrigger
from kraft_runbook_airflow.base.operators import ClusterOperator


class LaterTrigger(ClusterTrigger):
    """Fires once it is over, or the time is; with what was seen. ``watch``, ``given``, ``until``: as of ``Later``."""

    def __init__(self, cluster: str, watch: str, given: Mapping[str, Any], until: float) -> None:
        super().__init__(cluster, watch=watch, given=dict(given), until=until)
        self.watch, self.given, self.until = watch, given, until

    async def run(self) -> AsyncIterator[TriggerEvent]:
        looking, over = self.looking(), False
        while not over and time.time() < self.until:
            try:
                over = await asyncio.to_thread(lambda: looking.look(self.hand()))
            except RunbookError as error:
                self.log.warning("Not seen, looking again: %s", error.problem)
            if not over:
                await asyncio.sleep(looking.every)
        yield TriggerEvent({"over": over, **looking.told()})

    def looking(self) -> Any:
        return WATCHES[self.watch](**self.given)


class WaitLater(ClusterOperator):
    """Take a step that may ask for a wait, and goes on with what was seen then. ``does``: given the run, and what was
    seen; None: nothing was waited for yet. Cleared, it begins anew.
    """

    def __init__(self, *, does: Callable[[Run, Mapping[str, Any] | None], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.does = does
        self.custom_operator_name = getattr(does, "__name__", self.task_id).replace("_", " ")

    def act(self, context: Any, run: Run) -> Any:
        return self._answer_or_wait(run, None)

    def resume(self, context: Any, event: dict[str, Any]) -> Any:
        """Go on from what the trigger has seen."""

        def act(context: Any, run: Run) -> Any:
            return self._answer_or_wait(run, event)

        return self.act_or_rehearse(context, act=act, rehearse=act)

    def _answer_or_wait(self, run: Run, seen: Mapping[str, Any] | None) -> Any:
        found = self.does(run, seen)
        if isinstance(found, Later):
            trigger = LaterTrigger(self.cluster, found.watch, found.given, found.until)
            self.defer(trigger=trigger, method_name="resume")
        return found
