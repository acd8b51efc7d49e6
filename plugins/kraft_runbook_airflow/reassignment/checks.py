"""What a reassignment looks at before it begins, in its preflight and at its gate."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.io.zookeeper.reassignment_znodes import read_reassignment_znodes
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.checks import check_before_moving
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.runbook.check_results import CheckResult, ChecksReport
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.gates import Examined
from kraft_runbook_airflow.base.journal import record, require_mirrored
from kraft_runbook_airflow.base.operators import ClusterOperator


def settled_look(spec: ClusterSpec, **how: Any) -> Look:
    return look_at_replicas(spec, secrets=airflow_secrets(), **how)


def checked(
    spec: ClusterSpec, tell: Callable[[str], object]
) -> tuple[Look, ClusterObservation, tuple[CheckResult, ...]]:
    """A look, and every check of it."""
    seen = observe_settled(spec, secrets=airflow_secrets(), tell=tell, scope=Scope.LIVE)
    look = settled_look(spec)
    throttles = read_throttles(spec, {p.topic for p in look.seen}, secrets=airflow_secrets())
    modes = {broker.mode for broker in seen.brokers.values() if was_read(broker.mode)}
    faulty = None
    if spec.zookeeper is not None and modes != {BrokerMode.KRAFT}:
        faulty = read_reassignment_znodes(spec, secrets=airflow_secrets(), lists=True).faulty_lists
    return look, seen, check_before_moving(look, seen, throttles, faulty)


class CheckBeforeMoving(ClusterOperator):
    """Every check of the operation. One that blocks and does not pass fails the task."""

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        _, seen, checks = checked(spec, self.log.info)
        report = ChecksReport(checks)
        self.log.info("%s", report.render_markdown())
        record(context, self.cluster, Checked(phase=detect_phase(seen).phase.value, checks=report.to_dict()))
        require_mirrored(context)
        if report.blocking:
            raise Refused(
                "there are reasons not to move replicas now:\n"
                + "\n".join(f"{c.code} {c.title}: {c.evidence}\n  What to do: {c.fix}" for c in report.blocking),
                way_out="correct what is named above and clear this task",
            )
        return {"passed": sum(each.passed for each in checks)}

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        """The same: it changes nothing."""
        return self.act(context, spec)


def examine(spec: ClusterSpec, gate: str, tell: Callable[[str], object], gone: Collection[int] = ()) -> Examined:
    """What a gate's proof is made of: the cluster, the checks, the way back."""
    _, seen, checks = checked(spec, tell)
    return Examined(seen, checks, REASSIGNMENT.way_back(seen, spec))
