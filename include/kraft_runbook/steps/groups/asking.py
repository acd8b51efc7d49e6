"""What the owner of the applications is asked, before the groups of a wave are moved and after that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kraft_runbook.groups.expiry import in_words
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.stayed import Act, Stayed
from kraft_runbook.io.group_claims import ANSWER_SECONDS
from kraft_runbook.procedures.play_group import application_of
from kraft_runbook.steps.groups.acts import begin_to_act, not_started, ready_to_start, require_signed
from kraft_runbook.steps.groups.wave import Wave, wave_of
from kraft_runbook.steps.run import Run

DONE = "Done"


@dataclass(frozen=True, slots=True)
class Question:
    """``seconds``: how long the answer may take."""

    text: str
    seconds: float


def question_for_owner(run: Run, *, starts: bool, number: int) -> Question | str:
    """What is asked of the wave with this number, or why nothing is. ``starts``: the applications are to be started on
    the other side; else they are to be stopped. Raises Refused.

    The stop is asked for always: who registers nowhere can't be seen. Only where this run has read the offsets at the
    stop by now is nobody asked. The start is not asked for where all members own and read by now.
    """
    wave = wave_of(run, number)
    if run.cluster.rehearses:
        run.cluster.tell(f"Dry run: nobody is asked to {'start' if starts else 'stop'} the applications")
        return "dry run"
    require_signed(run, wave.digest, wave.every, waits=True)
    asked = _to_start(run, wave) if starts else _to_stop(run, wave)
    if asked is None:
        run.cluster.tell("already done, or a playbook does it: nobody is asked")
        return "already done"
    begin_to_act(run)
    return asked


def _to_stop(run: Run, wave: Wave) -> Question | None:
    """None: the offsets of every group were read at the stop, or a playbook stops them."""
    plans = [each for each in wave.not_read(Act.STOP) if application_of(run.spec, each.group) is None]
    if not plans:
        return None
    members = "old members (ZooKeeper)" if wave.plan.direction is Direction.TO_KAFKA else "new members (Kafka)"
    return Question(
        f"Stop all {members} of these groups, in an orderly way, and see that their processes are gone. Some"
        " clients (Storm, Spark, and others that only store offsets) register nowhere: this tool can't see whether"
        f" they run. Then answer {DONE}. The run looks for itself whether anybody is left.\n\n{_names(plans)}",
        ANSWER_SECONDS,
    )


def _to_start(run: Run, wave: Wave) -> Question | None:
    """None: they have started. The offsets must be where they were written; a group where they are not stays."""
    plans = wave.stopped(Act.ASK_TO_START)
    missing = run.cluster.ask(not_started, plans)
    waiting = [each for each in plans if each.group in missing]
    if not waiting:
        return None
    done = ready_to_start(run, waiting, wave.files.written(wave.digest), others=len(waiting) < len(plans))
    wave.files.keep_stayed(wave.digest, [each.group for each in waiting], done.stayed)
    if not done.answers:
        return None  # the others have started
    seconds = min([ANSWER_SECONDS, *done.answers.values()])
    by_hand = (each for each in waiting if application_of(run.spec, each.group) is None)
    ready = [each for each in by_hand if each.group in done.answers]
    if not ready:
        return None  # playbooks start the others
    out = wave.files.stayed(wave.digest)
    to_kafka = wave.plan.direction is Direction.TO_KAFKA
    members = "new members (`KafkaConsumer`, the same group.id)" if to_kafka else "old members"
    expire = (
        ", long enough before Kafka's offsets of a group without members expire" if seconds < ANSWER_SECONDS else ""
    )
    return Question(
        f"Start the {members} of these groups, then answer {DONE}. This question ends in {in_words(seconds)}{expire}."
        " The offsets are in place; the run waits until the members own every partition and read on."
        f"\n\n{_names(ready)}" + _not_these({group: out[group] for group in wave.groups if group in out}),
        seconds,
    )


def _names(plans: Sequence[MovePlan]) -> str:
    return "\n".join(f"- `{each.group}`: {len(each.offsets)} partitions" for each in plans)


def _not_these(stayed: Mapping[str, Stayed]) -> str:
    if not stayed:
        return ""
    return "\n\nDo not start these, which were not moved:\n\n" + "\n".join(
        f"- `{group}`: {each.why}" for group, each in stayed.items()
    )
