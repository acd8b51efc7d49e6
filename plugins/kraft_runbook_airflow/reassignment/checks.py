"""What a reassignment looks at before it begins, in its preflight and at its gate."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.reassignment.checks import CHECKS
from kraft_runbook.reassignment.look import Look, ReassignmentSeen
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.gates import Examined
from kraft_runbook_airflow.base.journal import record, require_mirrored
from kraft_runbook_airflow.base.operators import ClusterOperator


def settled_look(spec: ClusterSpec, **how: Any) -> Look:
    return look_at_replicas(spec, secrets=airflow_secrets(), **how)


def see(spec: ClusterSpec, tell: Callable[[str], object]) -> ReassignmentSeen:
    """What the operation's checks judge."""
    return see_reassignment(spec, secrets=airflow_secrets(), tell=tell)


class CheckBeforeMoving(ClusterOperator):
    """Every check of the operation. One that blocks and does not pass fails the task."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        seen = see(spec, self.log.info)
        report = CHECKS.run(seen, spec, REASSIGNMENT.read(seen, spec).stage)
        self.log.info("%s", report.render_markdown())
        record(context, self.cluster, Checked(phase=detect_phase(seen.cluster).phase.value, checks=report.to_dict()))
        require_mirrored(context)
        if report.blocking:
            raise Refused(
                "there are reasons not to move replicas now:\n"
                + "\n".join(f"{c.code} {c.title}: {c.evidence}\n  What to do: {c.fix}" for c in report.blocking),
                way_out="correct what is named above and clear this task",
            )
        return {"passed": sum(each.passed for each in report.results)}

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        """The same: it changes nothing."""
        return self.act(context, spec)


def examine(spec: ClusterSpec, gate: str, tell: Callable[[str], object], gone: Collection[int] = ()) -> Examined:
    """What a gate's proof is made of: the cluster, the checks of that gate, the way back."""
    seen = see(spec, tell)
    checks = CHECKS.run(seen, spec, REASSIGNMENT.read(seen, spec).stage, gate=gate).results
    return Examined(seen.cluster, checks, REASSIGNMENT.way_back(seen.cluster, spec))
