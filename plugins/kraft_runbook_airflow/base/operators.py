"""What the operators on one cluster have in common, and the first task of a run."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator

from kraft_runbook.evidence.kinds import Began
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.journal import record


class ClusterOperator(ActsOrRehearses, BaseOperator):
    """Base of the operators on one cluster."""

    template_fields: Sequence[str] = ()

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster = cluster


class BeginOperator(ClusterOperator):
    """The first task of a run that claims no whole cluster."""

    def act(self, context: Any, run: Run) -> None:
        record(context, self.cluster, Began(dry_run=False, host=socket.gethostname()))

    def rehearse(self, context: Any, run: Run) -> None:
        record(context, self.cluster, Began(dry_run=True, host=socket.gethostname()))


class ClaimOperator(ClusterOperator):
    """The first task of a run that changes a cluster: refuses while another such run is under way."""

    def act(self, context: Any, run: Run) -> None:
        record(context, self.cluster, Began(dry_run=False, host=socket.gethostname()))
        run.claim.take()
        self.log.info("This run alone may change cluster %s", self.cluster)

    def rehearse(self, context: Any, run: Run) -> None:
        record(context, self.cluster, Began(dry_run=True, host=socket.gethostname()))
        self.log.info("Dry run: nothing is changed, so the cluster is not claimed")
