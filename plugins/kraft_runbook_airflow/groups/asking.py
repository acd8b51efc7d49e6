"""The owner of the applications stops and starts them, while the run waits without a worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.groups.move_plan import Direction, MovePlan
from kraft_runbook.groups.stopped import still_there
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.procedures.watch_groups import Starting
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.journal import record, told_to_a_person
from kraft_runbook_airflow.groups.files import files_of

DONE, GIVE_UP = "Done", "Give up"
HOURS = 24.0
"""How long an answer may take: offsets of a group without members expire after offsets.retention.minutes, seven days
where nobody has changed that.
"""


class AskOwner(ActsOrRehearses, HITLOperator):
    """Ask for the applications of the run's groups to be stopped, or started, and wait for the answer. The answer is
    not believed: what follows looks for itself. Nobody is asked where it is so by now.

    ``starts``: whether they are to be started on the other side; else they are to be stopped.
    """

    template_fields: Sequence[str] = ("subject", "body")

    def __init__(self, *, cluster: str, starts: bool, **kwargs: Any) -> None:
        what = "start the applications on the other side" if starts else "stop the applications"
        super().__init__(
            subject=f"{cluster}: {what}",
            options=[DONE, GIVE_UP],
            response_timeout=timedelta(hours=HOURS),
            **kwargs,
        )
        self.cluster = cluster
        self.starts = starts

    def act(self, context: Any, run: Run) -> Any:
        files = files_of(context)
        plan = files.plan()
        plans = files.at_the_stop(plan.digest).plans if self.starts else plan.plans
        if self._is_so(run, plans):
            self.log.info("already done: nobody is asked")
            return {"not_asked": "already done"}
        self.body = self._page(plans)
        return HITLOperator.execute(self, context)

    def rehearse(self, context: Any, run: Run) -> dict[str, str]:
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

    def _is_so(self, run: Run, plans: Sequence[MovePlan]) -> bool:
        if self.starts:
            return not run.cluster.ask(_not_started, plans)
        looks = run.cluster.ask(look_at_groups, names=[each.group for each in plans])
        return len(looks) == len(plans) and not any(map(still_there, looks))

    def _page(self, plans: Sequence[MovePlan]) -> str:
        old = plans[0].direction is Direction.TO_KAFKA
        names = "\n".join(f"- `{each.group}`: {len(each.offsets)} partitions" for each in plans)
        if not self.starts:
            members = "old members (ZooKeeper)" if old else "new members (Kafka)"
            return (
                f"Stop all {members} of these groups, in an orderly way, and see that their processes are gone. Then"
                f" answer {DONE}. The run looks for itself whether anybody is left.\n\n{names}"
            )
        members = "new members (`KafkaConsumer`, the same group.id)" if old else "old members"
        since = "Offsets expire in Kafka while nobody is there. " if old else ""
        return (
            f"Start the {members} of these groups, then answer {DONE}. {since}The offsets are in place; the run waits"
            f" until the members own every partition and read on.\n\n{names}"
        )


def _not_started(spec: Any, plans: Sequence[MovePlan], *, secrets: Any) -> tuple[str, ...]:
    return Starting(spec, plans, secrets=secrets)()
