"""The steps of a run that moves consumer groups, over all of its groups: one that fails keeps no other back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, RunbookError, StepFailed, Unreachable
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.signatures import standing
from kraft_runbook.groups.expiry import Retention, Written, require_still_kept
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.operation import GROUPS, MOVE_GROUPS
from kraft_runbook.groups.partitions import name
from kraft_runbook.groups.planned_offsets import Direction, Without
from kraft_runbook.groups.quiet import Quiet
from kraft_runbook.groups.silence import static_left
from kraft_runbook.groups.stayed import Act, Stayed
from kraft_runbook.io.group_claims import Acts
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.move_group import (
    Committed,
    NotSeen,
    commit_group,
    fence_group,
    lift_group,
    remove_static_group,
    require_in_place,
    stop_read,
    write_back_group,
)
from kraft_runbook.procedures.offsets_retention import read_offsets_retention
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.procedures.watch_groups import Looks, Starting
from kraft_runbook.steps.claim_of_run import BUSY_SECONDS
from kraft_runbook.steps.handle import Act as Change
from kraft_runbook.steps.run import Run

T = TypeVar("T")
Between = Callable[[], None]
"""What is asked between two groups. It raises where the others must not follow."""


def nothing() -> None:
    """Nothing is asked."""


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """``answers``: of the groups for which it is done; ``stayed``: the others, with what refused them."""

    answers: dict[str, T]
    stayed: dict[str, Stayed]


LOOK_SECONDS = 5.0


def claim_groups(run: Run, groups: Sequence[str], *, waits: bool = False) -> None:
    """Take the claims on these groups, once no other run acts on the cluster: a migration that soaks, or waits for a
    person, holds the cluster's claim and does not act. ``waits``: this run only waits and looks, whoever acts. Raises
    Refused.
    """
    ends = run.cluster.now() + BUSY_SECONDS
    while True:
        try:
            return run.claim.take_groups(groups, waits=waits)
        except Acts as busy:
            if run.cluster.now() >= ends:
                raise
            run.cluster.tell(f"Waiting: {busy.problem}")
            run.cluster.pause(LOOK_SECONDS)


def require_signed(
    run: Run, digest: str, groups: Sequence[str], *, waits: bool = False, played: str | None = None
) -> None:
    """The claims on these groups are this run's, and the gate was confirmed on this very plan. Once a step has begun to
    act the proof's age stops nobody. ``waits``: as of ``claim_groups``. ``played``: the digest of the playbooks, where
    some are played: it was confirmed on them too. Raises Refused.
    """
    claim_groups(run, groups, waits=waits)
    seen = run.cluster.settled()
    for exhibit in (digest, played):
        if exhibit is not None:
            run.signatures.require(GROUPS, MOVE_GROUPS, seen, exhibit=exhibit, under_way=True)


def begin_to_act(run: Run) -> None:
    """Put on record that the run begins to act, where it has not: before the owner is asked to stop or to start, before
    a playbook is played, and before an act on a group. However long the owner takes, the proof's age stops nobody then.
    """
    if not run.cluster.rehearses and not standing(run.journal.records(), MOVE_GROUPS).begun:
        run.signatures.begins(MOVE_GROUPS)


def give_way(run: Run, again: Callable[[], None]) -> None:
    """Between two groups: where a node's task of another run waits for this one, let it go first. ``again``: takes the
    claims anew and asks what must hold before an act. A moment without ZooKeeper is waited for, as long as for a node.
    Raises what ``again`` raises.
    """
    ends, rests = run.cluster.now() + BUSY_SECONDS, False
    while True:
        try:
            if not rests:
                rests = _rests(run)
            return again() if rests else None
        except Refused:
            raise
        except RunbookError as unseen:
            if run.cluster.now() >= ends:
                raise
            run.cluster.tell(f"The next group waits: {unseen.problem}")
            run.cluster.pause(LOOK_SECONDS)


def _rests(run: Run) -> bool:
    """Whether this run has stepped back for another that acts on a node."""
    try:
        run.claim.refuse_while_cluster_acts()
    except Acts as busy:
        run.cluster.tell(f"The next group waits: {busy.problem}")
        run.claim.rest()
        return True
    return False


def read_all(
    run: Run,
    plans: Sequence[MovePlan],
    without: Without | None,
    kept: Sequence[MovePlan],
    quiet: Mapping[str, Quiet] | None = None,
) -> Done[MovePlan]:
    """Each plan with the offsets that its stopped members have left. ``kept``: what an earlier try has read; ``quiet``:
    by group, where the logs ended when its members had stopped. Raises where no group can be moved as it was left.
    """
    earlier, ends = {each.group: each for each in kept}, quiet or {}

    def one(plan: MovePlan) -> MovePlan:
        return run.cluster.ask(stop_read, plan, without, kept=earlier.get(plan.group), quiet=ends.get(plan.group))

    done = each_of(plans, one, Act.STOP)
    found = list(done.answers.values())
    for plan in found:
        run.cluster.tell(plan.render_text())
    run.journal.record(
        Moves(what="read at the stop", partitions=sum(len(p.offsets) for p in found), told=_named(found))
    )
    return told(run, done)


def remove_static(run: Run, plans: Sequence[MovePlan], claimed: Sequence[str]) -> None:
    """Remove the static members that stopped processes have left. What can't be removed is said and waited for, and so
    is a task of another run that acts. ``plans``: back to ZooKeeper, of groups whose new members were stopped by their
    owner or a playbook for this very step. ``claimed``: the groups of this run, whose claims it renews.
    """
    for number, plan in enumerate(plans):
        try:
            if number == 0:
                run.claim.take_groups(claimed)
                begin_to_act(run)
            else:
                run.claim.refuse_while_cluster_acts()
        except Acts as busy:
            run.cluster.tell(f"Static members are removed later: {busy.problem}")
            run.claim.rest()
            return
        try:
            removed = run.cluster.do(remove_static_group, plan, would=())
        except RunbookError as error:
            run.cluster.tell(
                f"{plan.group}: static members stay for their session.timeout.ms: {error.problem}."
                f" What to do: {error.way_out}"
            )
            continue
        if removed:
            run.cluster.acts.append(_removal(plan.group))
            run.cluster.tell(
                f"{plan.group}: {removed} static members of stopped processes were removed from Kafka's group"
            )
            run.journal.record(Moves(what="static members removed", partitions=None, told=f"{plan.group} ({removed})"))


def rehearse_static(run: Run, plans: Sequence[MovePlan]) -> None:
    """In a rehearsal, of the same groups: list the removal of those static members that a look shows now."""
    for look in run.cluster.ask(look_at_groups, names=[each.group for each in plans]):
        if names := static_left(look):
            run.cluster.do(remove_static_group, would=(_removal(look.name, names),))


def _removal(group: str, names: Sequence[str] = ()) -> Change:
    return Change(f"remove the static members of group {group} that are left alone in it", tuple(names))


def fence(run: Run, plans: Sequence[MovePlan], between: Between = nothing) -> Done[Any]:
    """Fence every partition against old members; on the way back there is nothing to fence."""
    return _act(run, plans, Direction.TO_KAFKA, Act.FENCE, fence_group, fences, "fenced", between)


def commit(run: Run, plans: Sequence[MovePlan], between: Between = nothing, begun: Collection[str] = ()) -> Done[Any]:
    """Write the offsets to the other side, and read them back. The answer of a group is Committed.
    ``begun``: the groups that this run has seen start.
    """

    def how(plan: MovePlan) -> dict[str, Any]:
        return {"begun": True} if plan.group in begun else {}

    to = Direction.TO_KAFKA
    to_kafka = _act(run, plans, to, Act.COMMIT, commit_group, offsets, "committed to Kafka", between, how)
    back = _act(run, plans, Direction.BACK, Act.COMMIT, write_back_group, offsets, "written to ZooKeeper", between)
    return Done({**to_kafka.answers, **back.answers}, {**to_kafka.stayed, **back.stayed})


def lift(run: Run, plans: Sequence[MovePlan], between: Between = nothing) -> Done[Any]:
    """Lift the fence: on the way back alone."""
    return _act(run, plans, Direction.BACK, Act.LIFT_FENCE, lift_group, fences, "lifted the fence", between)


def ready_to_start(run: Run, plans: Sequence[MovePlan], written: Mapping[str, Written], *, others: bool) -> Done[float]:
    """Whether the offsets are where they were written; the answer is in how many seconds the members must have started.
    ``written``: by group, the commit of its offsets. ``others``: whether further groups
    of the wave have started. Raises where no group is ready, and none has started.
    """
    retention = _retention(run, plans, written)

    def one(plan: MovePlan) -> float:
        run.cluster.ask(require_in_place, plan)
        return _left(retention, plan, written, run.cluster.now())

    return told(run, each_of(plans, one, Act.ASK_TO_START, others=others))


def time_to_start(run: Run, plans: Sequence[MovePlan], written: Mapping[str, Written]) -> Done[float]:
    """In how many seconds the members of each group must have started. A group for which that is over stays."""
    retention = _retention(run, plans, written)
    return each_of(plans, lambda plan: _left(retention, plan, written, run.cluster.now()), Act.START, others=True)


def still_in_place(run: Run, plans: Sequence[MovePlan], *, others: bool) -> Done[None]:
    """Whether the offsets are still there, while members start. A group that can't be read at this moment is waited
    for. ``others``: as of ``ready_to_start``. Raises where those of no group are there, and none has started.
    """

    def one(plan: MovePlan) -> None:
        try:
            run.cluster.ask(require_in_place, plan, begun=True)
        except (NotSeen, Unreachable) as error:
            run.cluster.tell(f"{plan.group}: not known at this moment, and waited for: {error.problem}")

    return each_of(plans, one, Act.START, others=others)


def _retention(run: Run, plans: Sequence[MovePlan], written: Mapping[str, Written]) -> Retention | None:
    """None where no offsets expire by it: on the way back, and of groups that had members in Kafka before."""
    commits = (written.get(each.group) for each in plans if each.direction is Direction.TO_KAFKA)
    if not any(each is not None and not each.kept for each in commits):
        return None
    retention: Retention = run.cluster.ask(read_offsets_retention)
    run.cluster.tell(retention.told())
    return retention


def _left(retention: Retention | None, plan: MovePlan, written: Mapping[str, Written], now: float) -> float:
    if plan.direction is Direction.BACK:
        return float("inf")
    return require_still_kept(plan.group, retention, written.get(plan.group), now)


def not_started(
    spec: ClusterSpec,
    plans: Sequence[MovePlan],
    *,
    secrets: Secrets,
    begun: bool = False,
    looks: Looks = look_at_groups,
) -> Mapping[str, str]:
    """The groups whose members do not own all partitions and read on yet, each with what is missing. ``begun``: this
    run has seen them start: that a log can't be read now is no reason to doubt it.
    """
    starting = Starting(spec, plans, secrets=secrets, looks=looks)
    starting()
    missing = {group: seen for group, seen in starting.seen.items() if seen.missing}
    return {group: "; ".join(seen.missing) for group, seen in missing.items() if not (begun and seen.unread)}


def told(run: Run, done: Done[T]) -> Done[T]:
    """The same, with the groups that stayed on record."""
    for group, why in done.stayed.items():
        run.cluster.tell(f"{group} stays: {why.why}. What to do: {why.way_out}")
        run.journal.record(Moves(what="stayed", partitions=None, told=f"{group}: {why.why}; {why.way_out}"))
    return done


def fences(plan: MovePlan) -> tuple[Change, ...]:
    """The acts of fencing the group, or of lifting its fence."""
    does = "fence" if plan.direction is Direction.TO_KAFKA else "lift the fence of"
    return (Change(f"{does} {len(plan.fences)} partitions of group {plan.group}", tuple(map(name, plan.fences))),)


def offsets(plan: MovePlan) -> tuple[Change, ...]:
    """The act of giving the group its offsets on the other side."""
    side = "Kafka" if plan.direction is Direction.TO_KAFKA else "ZooKeeper"
    lines = tuple(
        f"{name(o.partition)}: {'nothing' if o.replaces is None else o.replaces} -> "
        f"{'the end at the stop' if o.offset is None else o.offset}"
        for o in plan.offsets
    )
    return (Change(f"write {len(plan.offsets)} offsets of group {plan.group} to {side}", lines),)


def _act(
    run: Run,
    plans: Sequence[MovePlan],
    direction: Direction,
    number: Act,
    act: Callable[..., Any],
    would: Callable[[MovePlan], tuple[Change, ...]],
    what: str,
    between: Between,
    how: Callable[[MovePlan], dict[str, Any]] = lambda plan: {},
) -> Done[Any]:
    ours = [each for each in plans if each.direction is direction]
    if not ours:
        return Done({}, {})
    begin_to_act(run)
    changed: dict[str, int] = {}
    others: list[str] = []

    def one(plan: MovePlan) -> Any:
        done = run.cluster.do(act, plan, would=would(plan), **how(plan))
        if done is not None:
            many, since = (done.changed, done.since) if isinstance(done, Committed) else (done, ())
            changed[plan.group] = many
            run.cluster.tell(
                "; ".join([f"{plan.group}: {what}, {many} partitions", "read back" if many else "already done", *since])
            )
            others.extend(f"{plan.group}: {each}" for each in since)
        return done

    try:
        return told(run, each_of(ours, one, number, between=between))
    finally:
        if changed:
            every = ", ".join(f"{group} ({n})" for group, n in changed.items())
            told_all = "; ".join([every, *others])
            run.journal.record(Moves(what=what, partitions=sum(changed.values()), told=told_all))


def each_of(
    plans: Sequence[MovePlan],
    act: Callable[[MovePlan], T],
    number: Act,
    *,
    others: bool = False,
    between: Between = nothing,
) -> Done[T]:
    """What is refused for one group keeps no other back; what ``between`` refuses keeps all that would follow.
    ``others``: whether further groups of the wave go on. Where none does and all are refused, raises what a single
    group raised; of several groups Refused where nothing was changed, else StepFailed.
    """
    found: dict[str, T] = {}
    errors: dict[str, RunbookError] = {}
    for tried, plan in enumerate(plans):
        try:
            if tried:
                between()
        except RunbookError as error:
            errors |= {each.group: error for each in plans[tried:]}
            break
        try:
            found[plan.group] = act(plan)
        except RunbookError as error:
            errors[plan.group] = error
    if errors and not found and not others:
        raise of_all(list(errors.values()))
    return Done(found, {group: Stayed.of(number, error) for group, error in errors.items()})


def of_all(errors: Sequence[RunbookError]) -> RunbookError:
    """One error for those of all groups."""
    if len(errors) == 1:
        return errors[0]
    kind = Refused if all(isinstance(each, Refused) for each in errors) else StepFailed
    return kind(
        some((each.problem for each in errors), between="; "),
        way_out="; ".join(dict.fromkeys(each.way_out for each in errors[:5])),
    )


def _named(plans: Iterable[MovePlan]) -> str:
    return ", ".join(f"{each.group} ({len(each.offsets)} partitions)" for each in plans)
