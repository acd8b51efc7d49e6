"""Whether a task acts or rehearses is asked here, once: every operator on a cluster has the two as methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook_airflow.base.environment import cluster_spec, is_dry_run
from kraft_runbook_airflow.base.journal import require_shared_state, told_to_a_person

Does = Callable[[Any, ClusterSpec], Any]
"""What a task does, given Airflow's context and the cluster file as it is now."""


class ActsOrRehearses:
    """Mixin of the operators on one cluster. In a dry run ``rehearse`` says what ``act`` would do, and changes nothing.

    An error meant for a person fails the task at once, without a traceback or a retry.
    """

    cluster: str
    upstream_task_ids: set[str]

    def execute(self, context: Any) -> Any:
        return self.act_or_rehearse(context, act=self.act, rehearse=self.rehearse)

    def act_or_rehearse(self, context: Any, *, act: Does, rehearse: Does) -> Any:
        """For ``execute``, and for a method in which a deferred task goes on."""
        with told_to_a_person(context, self.cluster):
            if is_dry_run():
                return rehearse(context, cluster_spec(self.cluster))
            if self.follows_a_record(context):
                require_shared_state(context)
            return act(context, cluster_spec(self.cluster))

    def act(self, context: Any, spec: ClusterSpec) -> Any:
        raise NotImplementedError

    def rehearse(self, context: Any, spec: ClusterSpec) -> Any:
        raise NotImplementedError

    def follows_a_record(self, context: Any) -> bool:
        """Whether an earlier task of the run has left a record for certain: what runs behind others runs because they
        succeeded.
        """
        return bool(self.upstream_task_ids)
