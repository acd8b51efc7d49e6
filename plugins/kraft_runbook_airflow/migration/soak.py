"""The soak: health is watched all the time, parity proven again and again, for as long as the operator asked."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.evidence.kinds import TaskFailed
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.soak_watch import stretch_on_record
from kraft_runbook_airflow.base.journal import record
from kraft_runbook_airflow.migration.health_watch import HealthWatchTrigger
from kraft_runbook_airflow.migration.parity import ParityOperator

SHORTEST_WATCH = 12.0
"""Seconds; three looks, three seconds apart, fit in, so that even the shortest soak can find a broken check; and
Airflow has put away the deferred process before the trigger fires.
"""
PARITY_EVERY = timedelta(minutes=15)


class SoakOperator(ParityOperator):
    """Watch health in the triggerer for ``PARITY_EVERY`` or the rest of the soak, prove parity, and so on until the
    time is over.

    The last parity run comes after the time is over; its report is what the finalize gate shows.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ends_at = datetime.max.replace(tzinfo=UTC)

    def act(self, context: Any, run: Run) -> Any:
        phase = detect_phase(run.cluster.settled()).phase
        if phase is Phase.FINALIZED:
            self.log.info("already done: the cluster is finalized")
            return
        self.watch_until(datetime.now(UTC) + timedelta(minutes=_minutes(context)))

    def rehearse(self, context: Any, run: Run) -> Any:
        told = "Dry run: would soak for %g minutes, parity at least every %s"
        self.log.info(told, _minutes(context), PARITY_EVERY)

    def watch_until(self, ends_at: datetime) -> None:
        """Hand the wait to the triggerer; it comes back to prove parity."""
        seconds = max(SHORTEST_WATCH, min((ends_at - datetime.now(UTC)).total_seconds(), PARITY_EVERY.total_seconds()))
        self.log.info("Soaking until %s; parity again in %.0f s", ends_at.isoformat(timespec="seconds"), seconds)
        trigger = HealthWatchTrigger(self.cluster, time.time() + seconds)
        self.defer(trigger=trigger, method_name="after_watch", kwargs={"ends_at": ends_at.isoformat()})

    def after_watch(self, context: Any, event: dict[str, Any], ends_at: str) -> Any:
        """Resume after a stretch of watching: fail on what it found, else prove parity, and watch on where time is
        left.
        """
        if event.get("broken"):
            record(context, self.cluster, TaskFailed(error=f"the soak found the cluster unhealthy: {event['broken']}"))
            raise AirflowFailException(f"the soak found the cluster unhealthy: {event['broken']}")
        record(context, self.cluster, stretch_on_record(event, soak=ends_at, now=datetime.now(UTC)))
        self.ends_at = datetime.fromisoformat(ends_at)
        compared = self.act_or_rehearse(
            context, act=lambda context, run: self.compare(context, run, Phase.DUAL_WRITE), rehearse=self.rehearse
        )
        if not compared["final"]:
            self.watch_until(self.ends_at)
        return compared

    def is_final(self) -> bool:
        return datetime.now(UTC) >= self.ends_at


def _minutes(context: Any) -> float:
    return float(context["params"]["soak_minutes"])
