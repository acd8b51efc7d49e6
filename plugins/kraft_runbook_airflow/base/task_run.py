"""A task's run, as the core's steps take it: the evidence, the signatures and the claim of Airflow's."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.dashboard.look_files import keep_look
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.evidence.store import state_directory
from kraft_runbook.procedures.kept_old_clients import keep_old_clients
from kraft_runbook.runbook.gone import named_as_gone
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.approvals import begins, require_confirmation
from kraft_runbook.steps.handle import Cluster, RehearsedCluster, Tell
from kraft_runbook.steps.run import Claim, Run
from kraft_runbook_airflow.base.claims import claim_of
from kraft_runbook_airflow.base.environment import airflow_secrets, cluster_spec
from kraft_runbook_airflow.base.journal import record, records_of, require_mirrored, run_file_name

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OfTask:
    """The ports of ``steps.run`` for one task. ``context``: Airflow's."""

    context: Any
    cluster: Cluster

    def record(self, what: Kind) -> None:
        record(self.context, self.cluster.spec.name, what)

    def records(self) -> tuple[EvidenceRecord, ...]:
        return records_of(self.context)

    def require_mirrored(self) -> None:
        require_mirrored(self.context)

    def require(
        self,
        operation: Operation,
        gate: str,
        seen: ClusterObservation,
        *,
        turn: Collection[int] = (),
        exhibit: str | None = None,
        under_way: bool = False,
    ) -> None:
        require_confirmation(run_with(self), operation, gate, seen, turn=turn, exhibit=exhibit, under_way=under_way)

    def begins(self, gate: str) -> None:
        begins(run_with(self), gate)

    def answer_of(self, task_id: str) -> Any:
        return self.context["ti"].xcom_pull(task_ids=task_id)

    @cached_property
    def claim(self) -> Claim:
        return claim_of(self.context, self.cluster)


def hand(name: str, tell: Tell, *, gone: str = "", dry: bool = False) -> Cluster:
    """The cluster of this name, as its file is now, in the hand of a task or a trigger. ``gone``: the controllers that
    the run's form names as gone for good, as it names them. In a ``dry`` run it only rehearses. Each look is kept for
    the dashboard, and what it counts of old clients. Raises RunbookError.
    """
    spec, state = cluster_spec(name), state_directory(os.environ)

    def keep(seen: ClusterObservation) -> None:
        keep_look(state, seen, log.warning)
        keep_old_clients(state, seen, log.warning)

    return (RehearsedCluster if dry else Cluster)(spec, airflow_secrets(), tell, named_as_gone(gone, spec), keep)


def run_of(context: Any, cluster: Cluster) -> Run:
    """Of the task that runs now."""
    return run_with(OfTask(context, cluster))


def run_with(ports: OfTask) -> Run:
    """Of the task that these ports are of."""
    ti = ports.context["ti"]
    name = run_file_name(ti.dag_id, ti.run_id)
    directory = state_directory(os.environ)
    return Run(ports.cluster, ports.context["params"], ports, ports, ports.claim, name, directory, ports.answer_of)
