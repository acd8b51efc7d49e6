"""A task's run in a test: the cluster records, the evidence and the signatures are the project's own."""

from __future__ import annotations

from typing import Any

from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.task_run import OfTask, run_with


class Claimed(OfTask):
    """The claim is this run's."""

    @property
    def claim(self) -> Any:
        return self

    def take(self) -> None:
        pass

    def await_groups(self) -> None:
        pass

    def renew(self) -> None:
        pass

    def rest(self) -> None:
        pass

    def take_groups(self, groups: Any, *, waits: bool = False) -> None:
        self.context["ti"].claimed = list(groups)

    def refuse_while_cluster_acts(self) -> None:
        pass

    def give_back_groups(self, groups: Any) -> None:
        self.context["ti"].given_back = list(groups)

    def give_back(self) -> None:
        self.context["ti"].given_back = ["claim"]


class Signed(Claimed):
    """Everything is signed."""

    def require(self, *_: Any, **__: Any) -> None:
        pass


def run_in(context: Any, cluster: Cluster, ports: type[OfTask] = Claimed) -> Run:
    """The run of the task with this context."""
    return run_with(ports(context, cluster))
