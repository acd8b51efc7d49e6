"""What every trigger that looks at a cluster is made of."""

from __future__ import annotations

from typing import Any

from airflow.triggers.base import BaseTrigger

from kraft_runbook.steps.handle import Cluster
from kraft_runbook_airflow.base.task_run import hand


class ClusterTrigger(BaseTrigger):
    """Looks at one cluster. ``given``: what else a triggerer makes it of, by the names that the subclass takes."""

    def __init__(self, cluster: str, **given: Any) -> None:
        super().__init__()
        self.cluster = cluster
        self._given = given

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {"cluster": self.cluster, **self._given}

    def hand(self) -> Cluster:
        """The cluster as its file is now. Raises RunbookError."""
        return hand(self.cluster, self.log.info)
