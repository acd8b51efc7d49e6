"""The steps of a run that moves consumer groups, over all of its groups: one that fails keeps no other back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kraft_runbook.errors import Refused, RunbookError, StepFailed
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.signatures import standing
from kraft_runbook.groups.faults import name
from kraft_runbook.groups.move_plan import Direction, MovePlan, Without
from kraft_runbook.groups.operation import GROUPS, MOVE_GROUPS
from kraft_runbook.procedures.move_group import commit_group, fence_group, lift_group, stop_read, write_back_group
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.run import Run

T = TypeVar("T")


def require_signed(run: Run, digest: str) -> None:
    """The claim is this run's, and the gate was confirmed on this very plan. Once a step has begun to act the proof's
    age stops nobody. Raises Refused.
    """
    run.claim.take()
    run.signatures.require(GROUPS, MOVE_GROUPS, run.cluster.settled(), exhibit=digest, under_way=True)


def read_all(run: Run, plans: Sequence[MovePlan], without: Without | None, kept: Sequence[MovePlan]) -> list[MovePlan]:
    """Each plan with the offsets that its stopped members have left. ``kept``: what an earlier try has read. Raises
    Refused, naming every group that can't be moved as it was left.
    """
    earlier = {each.group: each for each in kept}
    found = _each(plans, lambda plan: run.cluster.ask(stop_read, plan, without, kept=earlier.get(plan.group)))
    for plan in found:
        run.cluster.tell(plan.render_text())
    run.journal.record(
        Moves(what="read at the stop", partitions=sum(len(p.offsets) for p in found), told=_named(found))
    )
    return found


def fence(run: Run, plans: Sequence[MovePlan]) -> None:
    """Fence every partition against old members; on the way back there is nothing to fence."""
    _act(run, plans, Direction.TO_KAFKA, fence_group, fences, "fenced")


def commit(run: Run, plans: Sequence[MovePlan]) -> None:
    """Write the offsets to the other side, and read them back."""
    _act(run, plans, Direction.TO_KAFKA, commit_group, offsets, "committed to Kafka")
    _act(run, plans, Direction.BACK, write_back_group, offsets, "written to ZooKeeper")


def lift(run: Run, plans: Sequence[MovePlan]) -> None:
    """Lift the fence: on the way back alone."""
    _act(run, plans, Direction.BACK, lift_group, fences, "lifted the fence")


def fences(plan: MovePlan) -> tuple[Act, ...]:
    """The acts of fencing the group, or of lifting its fence."""
    does = "fence" if plan.direction is Direction.TO_KAFKA else "lift the fence of"
    return (Act(f"{does} {len(plan.fences)} partitions of group {plan.group}", tuple(map(name, plan.fences))),)


def offsets(plan: MovePlan) -> tuple[Act, ...]:
    """The act of giving the group its offsets on the other side."""
    side = "Kafka" if plan.direction is Direction.TO_KAFKA else "ZooKeeper"
    lines = tuple(
        f"{name(o.partition)}: {'nothing' if o.replaces is None else o.replaces} -> "
        f"{'the end at the stop' if o.offset is None else o.offset}"
        for o in plan.offsets
    )
    return (Act(f"write {len(plan.offsets)} offsets of group {plan.group} to {side}", lines),)


def _act(
    run: Run,
    plans: Sequence[MovePlan],
    direction: Direction,
    act: Callable[..., int],
    would: Callable[[MovePlan], tuple[Act, ...]],
    what: str,
) -> None:
    ours = [each for each in plans if each.direction is direction]
    if not ours:
        return
    if not run.cluster.rehearses and not standing(run.journal.records(), MOVE_GROUPS).begun:
        run.signatures.begins(MOVE_GROUPS)
    changed: dict[str, int] = {}

    def one(plan: MovePlan) -> None:
        done = run.cluster.do(act, plan, would=would(plan))
        if done is not None:
            changed[plan.group] = done
            run.cluster.tell(f"{plan.group}: {what}, {done} partitions; {'already done' if not done else 'read back'}")

    try:
        _each(ours, one)
    finally:
        if changed:
            told = ", ".join(f"{group} ({n})" for group, n in changed.items())
            run.journal.record(Moves(what=what, partitions=sum(changed.values()), told=told))


def _each(plans: Iterable[MovePlan], act: Callable[[MovePlan], T]) -> list[T]:
    """Raises what a single group raised; of several groups StepFailed, or Refused where nothing was changed."""
    found: list[T] = []
    errors: list[RunbookError] = []
    for plan in plans:
        try:
            found.append(act(plan))
        except RunbookError as error:
            errors.append(error)
    if len(errors) == 1 and not found:
        raise errors[0]
    if errors:
        kind = Refused if not found and all(isinstance(each, Refused) for each in errors) else StepFailed
        raise kind(
            "; ".join(each.problem for each in errors[:5]) + (f"; and {len(errors) - 5} more" if errors[5:] else ""),
            way_out="; ".join(dict.fromkeys(each.way_out for each in errors[:5])),
        )
    return found


def _named(plans: Iterable[MovePlan]) -> str:
    return ", ".join(f"{each.group} ({len(each.offsets)} partitions)" for each in plans)
