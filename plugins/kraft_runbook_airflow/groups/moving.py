"""The tasks that change a group: the fence, the offsets, the fence lifted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.groups.move_plan import Direction, MovePlan
from kraft_runbook.groups.operation import Step, require_brokers_for_old_members
from kraft_runbook.groups.stayed import Act, render
from kraft_runbook.steps.group_moves import Done, commit, fence, lift, require_signed
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.groups.files import files_of
from kraft_runbook_airflow.groups.wave import wave_of

ACTS: Mapping[Step, tuple[Act, Callable[[Run, Sequence[MovePlan]], Done[int]]]] = {
    Step.FENCE: (Act.FENCE, fence),
    Step.COMMIT: (Act.COMMIT, commit),
    Step.LIFT_FENCE: (Act.LIFT_FENCE, lift),
}
LEFT_OUT: Mapping[Direction, Step] = {Direction.TO_KAFKA: Step.LIFT_FENCE, Direction.BACK: Step.FENCE}
"""What a direction does not need."""


class MoveGroups(ClusterOperator):
    """Do one step for every group of a wave, with the offsets that were read at the stop. What is so is left alone. A
    group that it refuses stays where it is, and the others go on.
    """

    def __init__(self, *, step: Step, wave: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = str(step)
        self.wave = wave

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        wave = wave_of(context, run, self.wave)
        if LEFT_OUT[wave.plan.direction] == self.step:
            self.log.info("%s: this step is not on the way", wave.plan.direction)
            return {"groups": 0}
        if wave.over:
            self.log.info("already done: every group of this wave has started on the other side")
            return {"groups": 0, "stayed": []}
        require_signed(run, wave.digest, wave.every)
        if wave.plan.direction is Direction.BACK:
            require_brokers_for_old_members(run.cluster.settled())
        number, act = ACTS[Step(self.step)]
        plans = wave.stopped(number)
        began = run.cluster.now()
        done = commit(run, plans, wave.files.started(wave.digest)) if number is Act.COMMIT else act(run, plans)
        wave.files.keep_stayed(wave.digest, [each.group for each in plans], done.stayed)
        if number is Act.COMMIT:
            wave.files.keep_written(wave.digest, done.answers, began)
        return {"groups": len(done.answers), "stayed": sorted(done.stayed)}

    def rehearse(self, context: Any, run: Run) -> None:
        """With the offsets of now: nobody was stopped."""
        wave = wave_of(context, run, self.wave)
        if LEFT_OUT[wave.plan.direction] != self.step:
            ACTS[Step(self.step)][1](run, wave.planned(Act.STOP))


class NameWhoStayed(ClusterOperator):
    """After the last wave: fails where a group of the run stayed, and names each."""

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        files = files_of(context)
        plan = files.plan()
        stayed = files.stayed(plan.digest)
        moved = len(plan.plans) - len(stayed)
        if stayed:
            self.log.error("%s", render(stayed))
            named = "; ".join(f"{group}: {each.why}" for group, each in list(stayed.items())[:5])
            more = f"; and {len(stayed) - 5} more, which the log names" if len(stayed) > 5 else ""
            raise StepFailed(
                f"{moved} groups were moved {plan.direction}, {len(stayed)} stayed and may be stopped now:"
                f" {named}{more}",
                way_out="do what the log says of each, then clear the task that it names, with its downstream tasks; or"
                " start the group again where it was: its fence is lifted by the way back alone",
            )
        return {"moved": moved}

    def rehearse(self, context: Any, run: Run) -> None:
        self.log.info("Dry run: every group of the plan would be moved, or named here")


def give_groups_back(context: Any, run: Run) -> None:
    """Give back the claims on the run's groups, at its end. A run that has planned nothing has claimed none."""
    try:
        groups = [each.group for each in files_of(context).plan().plans]
    except Refused as error:
        run.cluster.tell(f"No claim on a group is given back: {error.problem}")
        return
    run.claim.give_back_groups(groups)
