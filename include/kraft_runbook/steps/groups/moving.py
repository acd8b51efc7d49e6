"""What changes the groups of a wave: the fence, the offsets, the fence lifted; and the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.groups.expiry import Written
from kraft_runbook.groups.operation import Step, require_brokers_for_old_members
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.stayed import Act, render
from kraft_runbook.steps.groups.acts import Done, commit, fence, give_way, lift, require_signed
from kraft_runbook.steps.groups.files import files_of
from kraft_runbook.steps.groups.wave import Wave, wave_of
from kraft_runbook.steps.run import Run

ACTS: Mapping[Step, tuple[Act, Callable[..., Done[Any]]]] = {
    Step.FENCE: (Act.FENCE, fence),
    Step.COMMIT: (Act.COMMIT, commit),
    Step.LIFT_FENCE: (Act.LIFT_FENCE, lift),
}
LEFT_OUT: Mapping[Direction, Step] = {Direction.TO_KAFKA: Step.LIFT_FENCE, Direction.BACK: Step.FENCE}
"""What a direction does not need."""
OVER = "already done: every group of this wave has started on the other side"


def move_groups(run: Run, *, step: Step, number: int) -> dict[str, Any]:
    """Do one step for every group of the wave with this number, with the offsets that were read at the stop. What is so
    is left alone. A group that it refuses stays where it is, and the others go on. A rehearsal takes the offsets of
    now: nobody was stopped.
    """
    wave = wave_of(run, number)
    if LEFT_OUT[wave.plan.direction] == step:
        run.cluster.tell(f"{wave.plan.direction}: this step is not on the way")
        return {"groups": 0}
    number_of_act, act = ACTS[step]
    if run.cluster.rehearses:
        return {"groups": len(act(run, wave.planned(Act.STOP)).answers)}
    _require(run, wave)
    if wave.over:
        run.cluster.tell(OVER)
        return {"groups": 0, "stayed": []}
    plans = wave.stopped(number_of_act)
    began = run.cluster.now()
    commits = number_of_act is Act.COMMIT
    how = {"begun": wave.files.started(wave.digest)} if commits else {}
    done = act(run, plans, partial(give_way, run, partial(_require, run, wave)), **how)
    wave.files.keep_stayed(wave.digest, [each.group for each in plans], done.stayed)
    if commits and wave.plan.direction is Direction.TO_KAFKA:
        wave.files.keep_written(wave.digest, {group: Written(began, each.kept) for group, each in done.answers.items()})
    return {"groups": len(done.answers), "stayed": sorted(done.stayed)}


def _require(run: Run, wave: Wave) -> None:
    """What must hold before an act. Raises Refused."""
    require_signed(run, wave.digest, wave.every, waits=wave.over)
    if wave.plan.direction is Direction.BACK and not wave.over:
        require_brokers_for_old_members(run.cluster.settled())


def name_who_stayed(run: Run) -> dict[str, Any]:
    """After the last wave. Raises StepFailed where a group of the run stayed, and names each."""
    if run.cluster.rehearses:
        run.cluster.tell("Dry run: every group of the plan would be moved, or named here")
        return {}
    files = files_of(run)
    plan = files.plan()
    stayed = files.stayed(plan.digest)
    moved = len(plan.plans) - len(stayed)
    if stayed:
        run.cluster.tell(render(stayed))
        named = some((f"{group}: {each.why}" for group, each in stayed.items()), between="; ")
        raise StepFailed(
            f"{moved} groups were moved {plan.direction}, {len(stayed)} stayed and may be stopped now: {named}",
            way_out="do what the log says of each, then clear the task that it names, with its downstream tasks; or"
            " start the group again where it was: its fence is lifted by the way back alone",
        )
    started = files.started(plan.digest)
    if unseen := [each.group for each in plan.plans if each.group not in started]:
        raise StepFailed(
            f"nobody saw the members of {len(unseen)} groups read on the other side: {some(unseen)}",
            way_out="clear the 'started' task of their wave: marked successful by hand it has seen nothing",
        )
    return {"moved": moved}


def give_groups_back(run: Run) -> None:
    """Give back the claims on the run's groups, at its end. A run that has planned nothing has claimed none."""
    try:
        groups = [each.group for each in files_of(run).plan().plans]
    except Refused as error:
        run.cluster.tell(f"No claim on a group is given back: {error.problem}")
        return
    run.claim.give_back_groups(groups)
