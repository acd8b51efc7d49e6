"""A task's run, as the core's steps take it: the evidence, the signatures and the claim of Airflow's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.handle import Cluster, RehearsedCluster, Tell
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.approvals import begins, require_confirmation
from kraft_runbook_airflow.base.claims import claim_cluster, take_claim
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.journal import record, records_of


@dataclass(frozen=True, slots=True)
class OfTask:
    """The three ports of ``steps.run`` for one task. ``context``: Airflow's."""

    context: Any
    spec: ClusterSpec

    def record(self, what: Kind) -> None:
        record(self.context, self.spec.name, what)

    def records(self) -> tuple[EvidenceRecord, ...]:
        return records_of(self.context)

    def require(
        self,
        operation: Operation,
        gate: str,
        seen: ClusterObservation,
        *,
        node: int | None = None,
        exhibit: str | None = None,
        under_way: bool = False,
    ) -> None:
        require_confirmation(
            self.context, self.spec, operation, gate, seen, node=node, exhibit=exhibit, under_way=under_way
        )

    def begins(self, gate: str) -> None:
        begins(self.context, self.spec.name, gate)

    def take(self) -> None:
        take_claim(self.context, self.spec)

    def renew(self) -> None:
        claim_cluster(self.context, self.spec)


def run_of(context: Any, spec: ClusterSpec, tell: Tell, *, gone: frozenset[int], dry: bool) -> Run:
    """Of the task that runs now; in a ``dry`` run its cluster only rehearses."""
    cluster = (RehearsedCluster if dry else Cluster)(spec, airflow_secrets(), tell, gone)
    ports = OfTask(context, spec)
    return Run(cluster, context["params"], ports, ports, ports)
