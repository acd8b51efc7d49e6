"""A rollback's last full parity."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.phases import Phase, PhaseReading
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy, never_elected
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.migration.parity import ParityOperator


class ProveBeforeLeaving(ParityOperator):
    """The last full parity. Left out where there are no two stores to compare: before the copy, and after the cluster
    left KRaft.
    """

    def act(self, context: Any, run: Run) -> Any:
        return None if self.is_left_out(context) else super().act(context, run)

    def rehearse(self, context: Any, run: Run) -> Any:
        return None if self.is_left_out(context) else super().rehearse(context, run)

    def is_left_out(self, context: Any) -> bool:
        """Whether this run's goal leaves it out; said in the task's log."""
        unasked = MIGRATION.left_out(Step.LEAVE_KRAFT, context["params"])
        if unasked:
            self.log.info("%s", unasked)
        return unasked is not None

    def nothing_to_compare(self, run: Run, reading: PhaseReading) -> Any:
        seen = run.cluster.observe()
        if reading.phase is Phase.UNKNOWN and never_elected(seen):
            self.log.info("no controller leads, and nothing was copied: ZooKeeper is the only store")
            return None
        if may_have_died_in_the_copy(seen):
            self.log.info(
                "nothing shows that the metadata copy was completed: leave_kraft proves from the controllers' own logs"
                " that it was not"
            )
            return None
        if reading.phase in (Phase.PRE_MIGRATION, Phase.ZOOKEEPER):
            self.log.info("%s: ZooKeeper is the only store, there is nothing to compare", reading.phase)
            return None
        return super().nothing_to_compare(run, reading)
