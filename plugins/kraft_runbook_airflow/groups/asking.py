"""The owner of the applications stops and starts them, while the run waits without a worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.io.group_claims import ANSWER_SECONDS
from kraft_runbook.steps.groups.asking import DONE, question_for_owner
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.journal import record, told_to_a_person

GIVE_UP = "Give up"


class AskOwner(ActsOrRehearses, HITLOperator):
    """Ask for the applications of the wave's groups to be stopped, or started, and wait for the answer. The answer is
    not believed: what follows looks for itself.

    ``starts``: whether they are to be started on the other side; else they are to be stopped.
    """

    template_fields: Sequence[str] = ("subject", "body")

    def __init__(self, *, cluster: str, starts: bool, wave: int, **kwargs: Any) -> None:
        what = "start the applications on the other side" if starts else "stop the applications"
        super().__init__(
            subject=f"{cluster}: {what} (wave {wave})",
            options=[DONE, GIVE_UP],
            response_timeout=timedelta(seconds=ANSWER_SECONDS),
            **kwargs,
        )
        self.cluster = cluster
        self.starts = starts
        self.wave = wave

    def act(self, context: Any, run: Run) -> Any:
        asked = question_for_owner(run, starts=self.starts, number=self.wave)
        if isinstance(asked, str):
            return {"not_asked": asked}
        self.body, self.response_timeout = asked.text, timedelta(seconds=asked.seconds)
        return HITLOperator.execute(self, context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        by = str((event.get("responded_by_user") or {}).get("name") or "somebody")
        answer = super().execute_complete(context=context, event=event)
        done = event.get("chosen_options") == [DONE]
        said = f"{'started' if self.starts else 'stopped'}, says {by}" if done else f"given up by {by}"
        with told_to_a_person(context, self.cluster):
            record(context, self.cluster, Told(what=said, partitions=None))
        if not done:
            self.log.error("Given up by %s. The closing report says how to go on and how to go back.", by)
            raise AirflowFailException(said)
        return answer
