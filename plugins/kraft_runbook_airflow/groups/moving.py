"""The tasks that change a group: the fence, the offsets, the fence lifted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kraft_runbook.groups.move_plan import Direction, MovePlan
from kraft_runbook.groups.operation import Step
from kraft_runbook.steps.group_moves import commit, fence, lift, require_signed
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.groups.files import files_of

ACTS: Mapping[Step, Callable[[Run, Sequence[MovePlan]], None]] = {
    Step.FENCE: fence,
    Step.COMMIT: commit,
    Step.LIFT_FENCE: lift,
}
LEFT_OUT: Mapping[Direction, Step] = {Direction.TO_KAFKA: Step.LIFT_FENCE, Direction.BACK: Step.FENCE}
"""What a direction does not need."""


class MoveGroups(ClusterOperator):
    """Do one step for every group, with the offsets that were read at the stop. What is so is left alone."""

    def __init__(self, *, step: Step, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = str(step)

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        files = files_of(context)
        plan = files.plan()
        if LEFT_OUT[plan.direction] == self.step:
            self.log.info("%s: this step is not on the way", plan.direction)
            return {"groups": 0}
        require_signed(run, plan.digest)
        plans = files.at_the_stop(plan.digest).plans
        ACTS[Step(self.step)](run, plans)
        return {"groups": len(plans)}

    def rehearse(self, context: Any, run: Run) -> None:
        """With the offsets of now: nobody was stopped."""
        plan = files_of(context).plan()
        if LEFT_OUT[plan.direction] != self.step:
            ACTS[Step(self.step)](run, plan.plans)
