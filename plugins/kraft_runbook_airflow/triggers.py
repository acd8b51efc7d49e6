"""Waits that hold no worker: the triggerer observes the cluster until a condition of the core holds, N
times in a row.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.kinds import GaveUp, Reached, Waited
from kraft_runbook.migration.checks import CheckResult, Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.procedures.observe import observe
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook_airflow.disk_watch import DiskWatch
from kraft_runbook_airflow.environment import airflow_secrets, cluster_spec, state_directory
from kraft_runbook_airflow.journal import disk_in_words, record_for, require_shared, said_where_unwritten
from kraft_runbook_airflow.waiting import Wait
from kraft_runbook_airflow.way_back_facts import named_as_gone


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
        operation: str = MIGRATION.name,
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


LOOK_EVERY = 3.0
"""Seconds between two looks of the health watch."""
OVERTIME = 60.0
"""Seconds that the watch goes on behind its time for what blocks at its last looks, one thing after another: it does
not end well while something does.
"""


class HealthWatchTrigger(BaseTrigger):
    """Watches dual write until a moment; comes back at once with what broke. ``until``: seconds since the epoch.

    A check must fail or be unknown three times in a row before it counts: a leader election is not an outage. The
    controllers' files are read once a minute, and at the beginning; one that lacks the migration flag counts at once,
    since any restart would finalize.
    """

    def __init__(self, cluster: str, until: float) -> None:
        super().__init__()
        self.cluster = cluster
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {"cluster": self.cluster, "until": self.until}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            spec = cluster_spec(self.cluster)
        except RunbookError as error:
            yield TriggerEvent({"broken": str(error)})
            return
        on_disk = DiskWatch(spec)
        try:
            with disk_in_words():
                broken = await self._watch(spec, on_disk)
        except RunbookError as error:
            broken = str(error)
        finally:
            on_disk.stop()
        yield TriggerEvent({"broken": broken})

    async def _watch(self, spec: ClusterSpec, on_disk: DiskWatch) -> str | None:
        """What broke, as soon as it did; None when the time is over and nothing blocked at the last look: what did is
        looked at until it is certain.
        """
        bad: dict[str, int] = {}
        earlier = before = seen = await asyncio.to_thread(observe, spec, secrets=airflow_secrets())
        on_disk.look(seen)
        # once at least, also where a triggerer takes the watch over behind its time: what blocked before is known to
        # nobody
        while True:
            left = self.until - time.time()
            await asyncio.sleep((min(LOOK_EVERY, left) if left > 0 else LOOK_EVERY) + 0.1)
            before, seen = seen, await asyncio.to_thread(observe, spec, secrets=airflow_secrets())
            results = [
                *CHECKS.run(seen, spec, detect_phase(seen).phase, gate="soak", earlier=before).results,
                dual_write_liveness(earlier, seen),
            ]
            if (seen.observed_at - earlier.observed_at).total_seconds() > 2:
                earlier = seen
            bad = {r.code: bad.get(r.code, 0) + 1 for r in results if r.blocks}
            enough = 3 if left > -OVERTIME else 1
            worst = [*(r for r in results if bad.get(r.code, 0) >= enough), *on_disk.look(seen)]
            if worst:
                return _told(worst)
            self.log.info(
                "healthy: %d checks pass, %.0f s left",
                sum(r.verdict is Verdict.PASS for r in results),
                max(0.0, self.until - time.time()),
            )
            if time.time() >= self.until and not bad:
                break
        return _told(await on_disk.last_look(seen))


def _told(results: Iterable[CheckResult]) -> str | None:
    return "; ".join(f"{r.code} {r.title}: {r.evidence} What to do: {r.fix}" for r in results) or None
