"""The owner of the applications stops and starts them, while the run waits without a worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.groups.expiry import in_words
from kraft_runbook.groups.move_plan import Direction, MovePlan
from kraft_runbook.groups.stayed import Act, Stayed
from kraft_runbook.io.group_claims import ANSWER_SECONDS
from kraft_runbook.steps.group_moves import not_started, ready_to_start, require_signed
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.journal import record, told_to_a_person
from kraft_runbook_airflow.groups.wave import Wave, wave_of

DONE, GIVE_UP = "Done", "Give up"
SECONDS = ANSWER_SECONDS
"""How long an answer may take. To start the applications there is less time where Kafka's offsets expire soon."""


class AskOwner(ActsOrRehearses, HITLOperator):
    """Ask for the applications of the wave's groups to be stopped, or started, and wait for the answer. The answer is
    not believed: what follows looks for itself.

    The stop is asked for always: who registers nowhere can't be seen. Only where this run has read the offsets at the
    stop by now is nobody asked. The start is not asked for where all members own and read by now.

    ``starts``: whether they are to be started on the other side; else they are to be stopped.
    """

    template_fields: Sequence[str] = ("subject", "body")

    def __init__(self, *, cluster: str, starts: bool, wave: int, **kwargs: Any) -> None:
        what = "start the applications on the other side" if starts else "stop the applications"
        super().__init__(
            subject=f"{cluster}: {what} (wave {wave})",
            options=[DONE, GIVE_UP],
            response_timeout=timedelta(seconds=SECONDS),
            **kwargs,
        )
        self.cluster = cluster
        self.starts = starts
        self.wave = wave

    def act(self, context: Any, run: Run) -> Any:
        wave = wave_of(context, run, self.wave)
        require_signed(run, wave.digest, wave.every, waits=True)
        page = self._to_start(run, wave) if self.starts else self._to_stop(wave)
        if page is None:
            self.log.info("already done: nobody is asked")
            return {"not_asked": "already done"}
        self.body = page
        return HITLOperator.execute(self, context)

    def rehearse(self, context: Any, run: Run) -> dict[str, str]:
        wave_of(context, run, self.wave)
        self.log.info("Dry run: nobody is asked to %s the applications", "start" if self.starts else "stop")
        return {"not_asked": "dry run"}

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        by = str((event.get("responded_by_user") or {}).get("name") or "somebody")
        answer = super().execute_complete(context=context, event=event)
        chosen = event.get("chosen_options") or []
        said = f"{'started' if self.starts else 'stopped'}, says {by}"
        with told_to_a_person(context, self.cluster):
            record(context, self.cluster, Told(what=said if chosen == [DONE] else f"given up by {by}", partitions=None))
        if chosen != [DONE]:
            self.log.error("Given up by %s. The closing report says how to go on and how to go back.", by)
            raise AirflowFailException(f"given up by {by}")
        return answer

    def _to_stop(self, wave: Wave) -> str | None:
        """None: the offsets of every group were read at the stop."""
        kept = wave.files.kept(wave.digest)
        read = {each.group for each in kept.plans} if kept is not None else set()
        plans = [each for each in wave.planned(Act.STOP) if each.group not in read]
        if not plans:
            return None
        members = "old members (ZooKeeper)" if wave.plan.direction is Direction.TO_KAFKA else "new members (Kafka)"
        return (
            f"Stop all {members} of these groups, in an orderly way, and see that their processes are gone. Some"
            " clients (Storm, Spark, and others that only store offsets) register nowhere: this tool can't see whether"
            f" they run. Then answer {DONE}. The run looks for itself whether anybody is left.\n\n{_names(plans)}"
        )

    def _to_start(self, run: Run, wave: Wave) -> str | None:
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
        seconds = min([SECONDS, *done.answers.values()])
        self.response_timeout = timedelta(seconds=seconds)
        ready = [each for each in waiting if each.group in done.answers]
        out = {**wave.files.stayed(wave.digest)}
        old = wave.plan.direction is Direction.TO_KAFKA
        members = "new members (`KafkaConsumer`, the same group.id)" if old else "old members"
        since = (
            f"Kafka's offsets of a group without members expire: this question ends in {in_words(seconds)}. "
            if old
            else ""
        )
        return (
            f"Start the {members} of these groups, then answer {DONE}. {since}The offsets are in place; the run waits"
            f" until the members own every partition and read on.\n\n{_names(ready)}"
            + _not_these({group: out[group] for group in wave.groups if group in out})
        )


def _names(plans: Sequence[MovePlan]) -> str:
    return "\n".join(f"- `{each.group}`: {len(each.offsets)} partitions" for each in plans)


def _not_these(stayed: dict[str, Stayed]) -> str:
    if not stayed:
        return ""
    return "\n\nDo not start these, which were not moved:\n\n" + "\n".join(
        f"- `{group}`: {each.why}" for group, each in stayed.items()
    )
