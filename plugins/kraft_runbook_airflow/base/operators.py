"""Operators that examine or change one cluster, whatever the operation: the claim and the preflight of a run."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Began, Checked
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.check_results import CheckResult, ChecksReport, Verdict
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.second_look import look_and_judge
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.journal import record, require_mirrored


class ClusterOperator(ActsOrRehearses, BaseOperator):
    """Base of the operators on one cluster."""

    template_fields: Sequence[str] = ()

    def __init__(self, *, cluster: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster = cluster


class ClaimOperator(ClusterOperator):
    """The first task of a run that changes a cluster: refuses while another such run is under way."""

    def act(self, context: Any, run: Run) -> None:
        record(context, self.cluster, Began(dry_run=False, host=socket.gethostname()))
        run.claim.take()
        self.log.info("This run alone may change cluster %s", self.cluster)

    def rehearse(self, context: Any, run: Run) -> None:
        record(context, self.cluster, Began(dry_run=True, host=socket.gethostname()))
        self.log.info("Dry run: nothing is changed, so the cluster is not claimed")


class PreflightOperator(ClusterOperator):
    """Every check of the operation that applies in the observed stage, with a deep read and the hosts examined. A
    failed or unknown blocking check fails the task.
    """

    def __init__(self, *, operation: Operation, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.operation = operation

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        return require_preflight(context, run, self.operation)


def look_by_checks(
    cluster: Cluster, operation: Operation, *, gate: str | None = None
) -> tuple[ClusterObservation, tuple[CheckResult, ...]]:
    """A deep look with every host, and what the operation's checks say of it: the preflight's, or a gate's."""

    def judge(seen: ClusterObservation, earlier: ClusterObservation | None) -> tuple[CheckResult, ...]:
        stage = operation.read(seen, cluster.spec).stage
        return operation.checks.run(seen, cluster.spec, stage, gate=gate, earlier=earlier).results

    return look_and_judge(
        cluster,
        judge,
        operation.checks,
        apart=cluster.spec.deadlines.poll,
        scope=Scope.FULL,
        with_hosts=True,
    )


def require_preflight(context: Any, run: Run, operation: Operation) -> dict[str, Any]:
    """Run the checks and put them on record. Raises Refused, with each reason not to start and its way out."""
    tell = run.cluster.tell
    seen, checks = look_by_checks(run.cluster, operation)
    reading = detect_phase(seen)
    tell(f"Phase {reading.phase}: {'; '.join(reading.reasons)}")
    report = ChecksReport(checks)
    tell(report.render_markdown())
    run.journal.record(Checked(phase=reading.phase.value, checks=report.to_dict()))
    require_mirrored(context)
    if report.blocking:
        named = "\n".join(f"{c.code} {c.title}: {c.evidence}\n  What to do: {c.fix}" for c in report.blocking)
        raise Refused(
            f"preflight found {len(report.blocking)} reason(s) not to start:\n{named}",
            way_out="correct what is named above and clear this task",
        )
    return {"phase": reading.phase.value, "passed": sum(c.verdict is Verdict.PASS for c in report.results)}
