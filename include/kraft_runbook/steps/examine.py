"""What an operation's checks say of a cluster: before a run begins, and before each gate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.gates.proof import Exhibit, ParitySummary
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.check_results import CheckResult, ChecksReport, Verdict
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.way_back import RollbackPlan
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.second_look import look_and_judge

PREFLIGHT = "preflight.checks"
"""The task that makes an operation's preflight, and says whom or what the run is about."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What a gate's proof is made of: the cluster, the checks' answers, and the way back from here."""

    seen: ClusterObservation
    checks: tuple[CheckResult, ...]
    way_back: RollbackPlan
    exhibits: tuple[Exhibit, ...] = ()
    """What else is shown to the person and signed with the proof."""


class Examines(Protocol):
    """How an operation looks at a cluster before a gate."""

    def __call__(self, run: Run, gate: str) -> Examined: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """What else a gate's proof holds of this run: parity's summary, and what an earlier task made to be signed.
    ``by``: the task to clear where that does not hold.
    """

    parity: ParitySummary | None = None
    exhibits: tuple[Exhibit, ...] = ()
    by: str = "this task"


def look_by_checks(
    cluster: Cluster,
    operation: Operation,
    *,
    gate: str | None = None,
    earlier: ClusterObservation | None = None,
) -> tuple[ClusterObservation, tuple[CheckResult, ...]]:
    """A deep look with every host, and what the operation's checks say of it: the preflight's, or a gate's.
    ``earlier``: the look before, for checks that judge by two.
    """

    def judge(seen: ClusterObservation, earlier: ClusterObservation | None) -> tuple[CheckResult, ...]:
        stage = operation.read(seen, cluster.spec).stage
        return operation.checks.run(seen, cluster.spec, stage, gate=gate, earlier=earlier).results

    return look_and_judge(
        cluster,
        judge,
        operation.checks,
        apart=cluster.spec.deadlines.poll,
        earlier=earlier,
        scope=Scope.FULL,
        with_hosts=True,
    )


def examine_by_checks(
    operation: Operation, run: Run, gate: str, *, earlier: ClusterObservation | None = None
) -> Examined:
    """A deep look with every host, as the preflight has it, what the operation's checks say of it, and the way back
    from there. ``earlier``: as of ``look_by_checks``.
    """
    seen, checks = look_by_checks(run.cluster, operation, gate=gate, earlier=earlier)
    return Examined(seen, checks, operation.way_back(seen, run.spec, gone=run.cluster.gone))


def examines_by_checks(operation: Operation) -> Examines:
    """How a gate is looked at that needs no more than the operation's checks."""
    return partial(examine_by_checks, operation)


def examines_settled(operation: Operation) -> Examines:
    """How a gate is looked at that needs no host: what the cluster itself shows, once it has settled."""

    def examine(run: Run, gate: str) -> Examined:
        seen, spec = run.cluster.settled(), run.spec
        checks = operation.checks.run(seen, spec, operation.read(seen, spec).stage, gate=gate).results
        return Examined(seen, checks, operation.way_back(seen, spec))

    return examine


def require_preflight(run: Run, operation: Operation) -> dict[str, Any]:
    """Every check of the operation that applies in the observed stage, with a deep read and the hosts examined, on
    record. Raises Refused where one that blocks failed or is unknown, with each reason not to start and its way out.
    """
    tell = run.cluster.tell
    seen, checks = look_by_checks(run.cluster, operation)
    reading = detect_phase(seen)
    tell(f"Phase {reading.phase}: {'; '.join(reading.reasons)}")
    report = ChecksReport(checks)
    tell(report.render_markdown())
    run.journal.record(Checked(phase=reading.phase.value, checks=report.to_dict()))
    run.journal.require_mirrored()
    if report.blocking:
        raise Refused(
            f"preflight found {len(report.blocking)} reason(s) not to start:\n{in_words(report)}",
            way_out="correct what is named above and clear this task",
        )
    return {"phase": reading.phase.value, "passed": sum(c.verdict is Verdict.PASS for c in report.results)}


def in_words(report: ChecksReport) -> str:
    """What blocks, each with its way out."""
    return "\n".join(f"{c.code} {c.title}: {c.evidence}\n  What to do: {c.fix}" for c in report.blocking)
