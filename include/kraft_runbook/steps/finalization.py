"""The end of finalization, which can't be undone: the active controller last, then ZooKeeper's secrets."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import SecretsRemoved
from kraft_runbook.migration import conditions
from kraft_runbook.migration.transitions import Step
from kraft_runbook.steps.forward import FINALIZE, remaining
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.roll import active_one_last
from kraft_runbook.steps.run import Run


def finalize_active_controller(run: Run) -> dict[str, Any]:
    """Restart the controllers that the first pass left: the active one, and any that led in between, the active one
    last.
    """
    within = run.spec.deadlines.quorum
    done = active_one_last(
        run,
        lambda _: FINALIZE,
        remaining,
        before=conditions.QUORUM_WHOLE,
        after=lambda node: run.cluster.wait_for(conditions.CONTROLLER_CAUGHT_UP, deadline=within, node_id=node),
    )
    if not done and not run.cluster.rehearses:  # another controller was elected in between, so none was left
        phase = detect_phase(run.cluster.observe()).phase
        why = "every controller runs without the migration flag"
        run.already_done(phase.value, Step.FINALIZE_CONTROLLERS.value, why)
    return {"restarted": [answer for _, answer in done]}


def forget_zookeeper_secrets(run: Run) -> dict[str, Any]:
    """Remove ZooKeeper's secrets from the hosts, once no process can need them again. Restarts nothing."""
    if not run.cluster.rehearses:
        run.claim.take()
        _see_it_finalized(run.cluster)
    nodes = run.cluster.forget_zookeeper_secrets()
    would = "would be" if run.cluster.rehearses else "were"
    run.cluster.tell(f"ZooKeeper's secrets {would} removed from: {', '.join(nodes) or 'no host'}")
    if not run.cluster.rehearses:
        run.journal.record(SecretsRemoved(nodes=tuple(nodes)))
    return {"nodes": list(nodes)}


def _see_it_finalized(cluster: Cluster) -> None:
    """By one of ``deadlines.healthy_in_a_row`` looks: a node that is short of time may not answer one of them. Raises
    as ``require_finalized``.
    """
    for left in reversed(range(cluster.spec.deadlines.healthy_in_a_row)):
        try:
            return require_finalized(cluster.settled())
        except Refused as refused:
            if not left:
                raise
            cluster.tell(f"looking again, this may be over in a moment: {refused.problem}")
            cluster.pause(cluster.spec.deadlines.poll)


def require_finalized(seen: ClusterObservation) -> None:
    """Raise Refused if a process could still need ZooKeeper's secrets."""
    reading = detect_phase(seen)
    left = remaining(seen)
    if reading.phase is not Phase.FINALIZED or left:
        named = f"; {nodes('controller', left, 'is')} not proven to run without the migration flag" if left else ""
        raise Refused(
            f"the cluster is in {reading.phase}{named}, and a process that connects to ZooKeeper could not start"
            " again without ZooKeeper's secrets",
            way_out="finish the finalization, then clear this task",
        )
    behind = [b.id for b in seen.brokers.values() if b.mode != BrokerMode.KRAFT]
    if behind:
        raise Refused(
            f"{nodes('broker', behind, 'is')} not proven to run in KRaft mode, and could not start"
            " again without ZooKeeper's secrets",
            way_out=f"restart {by_number(behind, 'it', 'them')} in KRaft mode (docs/finalization.md), then clear this"
            " task",
        )
