"""Whether a task acts or rehearses is asked here, once: every operator on a cluster has the two as methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kraft_runbook.evidence.kinds import Rehearsed
from kraft_runbook.steps.run import Failed, NothingToDo, Run
from kraft_runbook_airflow.base.environment import is_dry_run
from kraft_runbook_airflow.base.journal import record_for, require_shared_state, told_to_a_person
from kraft_runbook_airflow.base.task_run import hand, run_of

Does = Callable[[Any, Run], Any]
"""What a task does, given Airflow's context and its run on the cluster as its file is now."""


class ActsOrRehearses:
    """Mixin of the operators on one cluster. In a dry run the run's cluster rehearses; a task that has more to leave
    out has a ``rehearse`` of its own.

    An error meant for a person fails the task at once, without a traceback or a retry.
    """

    cluster: str
    upstream_task_ids: set[str]
    get_flat_relative_ids: Callable[..., set[str]]
    log: Any

    def execute(self, context: Any) -> Any:
        return self.act_or_rehearse(context, act=self.act, rehearse=self.rehearse)

    def act_or_rehearse(self, context: Any, *, act: Does, rehearse: Does) -> Any:
        """For ``execute``, and for a method in which a deferred task goes on."""
        with told_to_a_person(context, self.cluster):
            dry = is_dry_run(context)
            if not dry and self.follows_a_record(context):
                require_shared_state(context)
            run = self.begin(context, dry=dry)
            try:
                answer = (rehearse if dry else act)(context, run)
            except NothingToDo as why:
                self._keep_listed(context, run, *self.get_flat_relative_ids(upstream=False))
                raise AirflowSkipException(str(why)) from None
            except Failed as why:
                raise AirflowFailException(str(why)) from None
            finally:
                run.claim.rest()
            self._keep_listed(context, run)
            return answer

    def _keep_listed(self, context: Any, run: Run, *left_out: str) -> None:
        ti = context["ti"]
        for task, acts in run.lists(ti.task_id, *left_out).items():
            record_for(self.cluster, ti.dag_id, ti.run_id, task, Rehearsed(acts=acts))

    def begin(self, context: Any, *, dry: bool) -> Run:
        """What this task has in hand: made once, of the cluster file as it is now. Raises Refused."""
        gone = str(context["params"].get("gone_controllers") or "")
        return run_of(context, hand(self.cluster, self.log.info, gone=gone, dry=dry))

    def act(self, context: Any, run: Run) -> Any:
        raise NotImplementedError

    def rehearse(self, context: Any, run: Run) -> Any:
        """As ``act``, where a cluster that rehearses is all that the task needs for it."""
        return self.act(context, run)

    def follows_a_record(self, context: Any) -> bool:
        """Whether an earlier task of the run has left a record for certain: what runs behind others runs because they
        succeeded.
        """
        return bool(self.upstream_task_ids)
