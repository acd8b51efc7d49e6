"""How a run ends: preferred leaders, the comparison with the plan, what is not done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.procedures.move_replicas import prefer_first_replicas
from kraft_runbook.reassignment.goals import drained_by, not_demoted, not_drained, on_disk_of_drained
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.verifying import verify
from kraft_runbook.steps.closing import why_they_failed
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.looks import patiently, settled_look
from kraft_runbook.steps.reassignment.signed import require_signed
from kraft_runbook.steps.reassignment.wanted import Asks, Wanted, forget_what_is_back
from kraft_runbook.steps.run import NothingToDo, Run

log = logging.getLogger(__name__)
Back = Callable[[Run], Sequence[str]]
"""The steps of the way back of a run that stopped."""
LOOKS = 30
"""One a second, until what was found is as it should be: leaders, ISRs and deletions take a moment."""


def elections(plan: ReassignmentPlan) -> tuple[Act, ...]:
    """The act of electing the first replicas of what the plan names."""
    return (Act(f"elect the first replica of {len(plan.target)} partitions"),)


def prefer_leaders(run: Run) -> dict[str, Any] | None:
    """Make the first replica of each moved partition its leader. It asks for the signature as every step that changes
    the cluster does: a task before it may have been marked successful by hand.
    """
    if run.cluster.rehearses:
        run.cluster.do(prefer_first_replicas, would=elections(files_of(run).plan()))
        return None
    _, reading, _ = patiently(run, lambda: require_signed(run))
    plan = files_of(run).plan()
    meant = [p for p in plan.target if p not in reading.gone]

    def elect() -> Mapping[TopicPartition, str] | None:
        look = settled_look(run.cluster, settings=False)
        return run.cluster.do(prefer_first_replicas, look, meant, would=elections(plan))

    refused = patiently(run, elect) or {}
    for partition, why in sorted(refused.items())[:20]:
        log.warning("%s was not elected: %s", partition, why)
    return {"refused": len(refused)}


def verify_plan(run: Run, *, asks: Asks) -> dict[str, Any] | None:
    """Compare what is with what was planned; looked at again until it holds, since leaders and ISRs take a moment.
    Partitions that came after the plan was made are named. A broker that was to be drained is asked itself what lies
    in its log directories. Raises StepFailed where something differs, and where anything lies on such a broker.
    """
    if run.cluster.rehearses:
        run.cluster.tell("Dry run: the plan would be verified")
        return None
    files = files_of(run)
    plan = files.plan()
    for _ in range(LOOKS):
        look = patiently(run, lambda: _look_by_ids(run, plan))
        reading = read_plan(plan, look.placement, known=files.known)
        target = {p: replicas for p, replicas in plan.target.items() if p not in reading.gone}
        found = verify(target, look.seen, look.placement.ongoing)
        if found.holds or not target:
            break
        run.cluster.pause(1)
    told = "\n".join([found.render_text(), *reading.because[1:]])
    run.cluster.tell(told)
    run.journal.record(Moves(what="verified", partitions=found.partitions, told=told))
    if target and not found.holds:
        raise StepFailed(found.render_text(), way_out="mend what is named, then clear this task")
    wanted = asks(run)
    if left := not_drained(wanted.goal, wanted.topics, look.placement.present):
        raise StepFailed(
            f"all is as planned, and {len(left)} partitions that came since lie on a broker that was to be"
            f" drained: {some(left)}",
            way_out="clear the task 'plan' with its downstream tasks: the rest is planned anew and signed for",
        )
    if led := not_demoted(wanted.goal, wanted.topics, look.seen):
        raise StepFailed(
            f"all is as planned, and a broker that was to be demoted leads {len(led)} partitions that came since:"
            f" {some(led, 5)}",
            way_out="clear the task 'plan' with its downstream tasks: the rest is planned anew and signed for",
        )
    _require_empty_directories(run, plan, wanted, look)
    forget_what_is_back(run, wanted)
    return {"partitions": found.partitions, "added_since": len(reading.added)}


def _require_empty_directories(run: Run, plan: ReassignmentPlan, wanted: Wanted, look: ReplicasLook) -> None:
    """A broker deletes what has left it in a moment, and is looked at again for it. Raises StepFailed where a drained
    one still holds what Metadata does not show, and where one that runs does not say.
    """
    for _ in range(LOOKS):
        disk = on_disk_of_drained(wanted.goal, wanted.topics, look.placement.present, look.logs)
        silent = sorted(look.placement.live & set(disk.unread))
        if not disk.hidden and not disk.strays and not silent:
            break
        run.cluster.pause(1)
        look = patiently(run, lambda: _look_by_ids(run, plan))
    if silent:
        why = "; ".join(look.unread.get(each, f"broker {each}") for each in silent)
        raise StepFailed(
            f"that it is drained is not proven: {why}",
            way_out="let the broker describe its log directories (DescribeLogDirs), or stop it; then clear this task",
        )
    for broker in disk.unread:
        log.warning("Broker %d does not run: that it is drained is Metadata's word", broker)
    for broker in sorted(look.logs.keys() & drained_by(wanted.goal)):
        for each in look.placement.directories.get(broker, ()):
            if each.error:
                log.warning("Broker %d can't read %s (%s): what lies there is not known", broker, each.path, each.error)
    if disk.strays:
        log.warning(
            "%d copies that are no replicas any more still lie on a drained broker: %s. Kafka deletes them, at its next"
            " start at the latest in KRaft mode; in ZooKeeper mode they stay, and are nobody's",
            len(disk.strays),
            some(disk.strays, 10),
        )
    if disk.hidden:
        raise StepFailed(
            f"a drained broker holds {len(disk.hidden)} partitions that Metadata does not show: {some(disk.hidden, 5)}",
            way_out="allow this tool's user to describe their topics (Describe on the topics), then clear the task"
            " 'plan' with its downstream tasks; where they were deleted, wait until the broker has removed them, and"
            " clear this task",
        )


def _look_by_ids(run: Run, plan: ReassignmentPlan) -> ReplicasLook:
    """With the ids of the plan's topics. Raises Unreachable where partitions of the plan move and are hidden."""
    look = settled_look(run.cluster, settings=False, deletions=True)
    look.require_shown(plan.target)
    return look.with_ids(run.cluster.ask(topic_ids, plan.topic_ids.keys())) if plan.topic_ids else look


def files_to_compare(run: Run) -> tuple[Path, Path]:
    """The plan and the assignment before it, without topics that were made anew since, as JSON files."""
    files = files_of(run)
    plan = files.plan()
    anew = plan.made_anew(run.cluster.ask(topic_ids, plan.topic_ids.keys())) if plan.topic_ids else frozenset()
    if not anew:
        return files.planned, files.before
    run.cluster.tell(f"{len(anew)} topics were made anew since, and are not compared: {some(sorted(anew), 5)}")
    return files.without_topics(anew)


PLANNED, TO_BE_CANCELLED, NOTHING_TO_DO = "planned", "to be cancelled", "nothing to do"
STARTED, ENDED = "started", "ended"
BEGINNINGS = frozenset({PLANNED, TO_BE_CANCELLED, NOTHING_TO_DO})


def leave_with_nothing_to_do(run: Run, why: str) -> NoReturn:
    """End the run well at this task: the cluster is as wanted. Raises NothingToDo."""
    run.journal.record(Moves(what=NOTHING_TO_DO, partitions=0, told=why))
    raise NothingToDo(why)


def nothing_to_do(run: Run) -> bool:
    """Whether the run's last beginning ended there."""
    return _since_it_began(run)[:1] == [NOTHING_TO_DO]


def stopped(
    run: Run, seen: ClusterObservation, failed: Iterable[str], undone: Iterable[str], back: Back | None = None
) -> str:
    """Where the run stopped, how to go on, and how to go back: by ``back``, or as the cluster shows."""
    to_go_back = (
        REASSIGNMENT.told_back(REASSIGNMENT.way_back(seen, run.spec), run.spec.name, "\n")
        if back is None
        else "\n".join(["To go back:", *back(run)])
    )
    return "\n".join(
        [
            "The run stopped.",
            *why_they_failed(run.journal.records(), failed),
            *(f"- {each}" for each in undone),
            "To go on: correct what is named above and clear the failed task.",
            to_go_back,
        ]
    )


def not_done(run: Run) -> tuple[str, ...]:
    """What the run's own records and the cluster show to be undone, whatever the states of its tasks say."""
    did, files = _since_it_began(run), files_of(run)
    if not did:
        return ("nothing was planned or listed",)
    found = []
    try:
        if files.throttles.rate is not None:
            found.append("throttles that this run has set are not put back")
        if did[0] == PLANNED:
            plan = files.plan()
            reading = read_plan(plan, _look_by_ids(run, plan).placement)
            if reading.stage is not PlanStage.AS_PLANNED:
                found.append(f"the plan is not carried out: {'; '.join(reading.because)}")
    except RunbookError as error:
        found.append(error.problem)
    if did[0] == TO_BE_CANCELLED and "cancelled" not in did:
        found.append("the listed reassignments are not cancelled")
    return tuple(found)


def has_started(run: Run) -> bool:
    """Whether moves of the run's present plan were started."""
    return STARTED in _since_it_began(run)


def begun_before_a_kill(run: Run, moving: Collection[str]) -> None:
    """Put on record that these of the plan's moves were started, where the task died before it said so."""
    if moving and not has_started(run):
        told = f"by a task that died: {some(moving, 5)}"
        run.journal.record(Moves(what=STARTED, partitions=len(moving), told=told))


def _since_it_began(run: Run) -> list[str]:
    """What the run did, from its last beginning on."""
    did = [told.what for _, told in of_kind(run.journal.records(), Moves)]
    last = max((at for at, what in enumerate(did) if what in BEGINNINGS), default=len(did))
    return did[last:]
