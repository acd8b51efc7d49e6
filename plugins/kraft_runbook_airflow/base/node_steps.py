"""One step of an operation on one node: a value says what it is, and one function takes it. Safe to kill and clear at
any point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import AlreadyDone, Played
from kraft_runbook.gates.signatures import standing
from kraft_runbook.io.hosts import playbooks
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.plays import Play
from kraft_runbook.runbook.transitions import Reading
from kraft_runbook_airflow.base.approvals import begins, require_confirmation
from kraft_runbook_airflow.base.claims import take_claim
from kraft_runbook_airflow.base.environment import airflow_secrets
from kraft_runbook_airflow.base.gone import said_to_be_gone
from kraft_runbook_airflow.base.journal import record, records_of
from kraft_runbook_airflow.base.operators import ClusterOperator

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Look:
    """What a step on a node goes by. ``gone``: controllers whose hosts are gone for good, as the run's form says.
    ``params``: the whole form. ``began``: when the run left its first record, in seconds since the epoch; None in a
    rehearsal.
    """

    spec: ClusterSpec
    node: int
    seen: ClusterObservation
    reading: Reading
    gone: frozenset[int]
    tell: Tell
    params: Mapping[str, Any] = field(default_factory=dict)
    began: float | None = None

    @property
    def phase(self) -> Phase:
        return detect_phase(self.seen).phase


def _nothing(_: Look) -> None:
    return None


def _never(_: Look) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class NodeStep:
    """A step of an operation's table, on one node.

    ``play``: what is played there. ``done``: why nothing is left to do on the node; None where something is. ``guard``:
    raises Refused where the step must not run now, though the table allows it. ``excepted``: whether this node may, and
    must, have the step in a stage in which the table refuses it or takes it for done.
    """

    operation: Operation
    step: str
    play: Callable[[Look], Play]
    done: Callable[[Look], str | None] = _nothing
    guard: Callable[[Look], None] = _nothing
    excepted: Callable[[Look], bool] = _never

    def why_done(self, look: Look) -> str | None:
        """Why nothing is left to do: on the node, or since the cluster lies beyond the step."""
        done = self.done(look)
        if done or self.excepted(look):
            return done
        past = self.operation.table.already_past(self.step, look.reading.stage)
        return f"the cluster is in {look.reading.stage}, beyond {self.step}" if past else None

    def require_stage(self, look: Look) -> None:
        """Raise Refused where the table does not let the step run in the observed stage."""
        if not self.excepted(look):
            self.operation.table.require(self.step, look.reading)

    @property
    def gate(self) -> str:
        return self.operation.table.edge(self.step).gate


def look_at(context: Any, spec: ClusterSpec, step: NodeStep, node: int, tell: Tell) -> Look:
    """A settled look at the cluster, for this step on this node."""
    gone = said_to_be_gone(context, spec)
    seen = observe_settled(spec, secrets=airflow_secrets(), tell=tell, gone=gone)
    first = next((datetime.fromisoformat(each.at).timestamp() for each in records_of(context)), None)
    return Look(spec, node, seen, step.operation.read(seen, spec), gone, tell, context["params"], first)


def is_signed_for(context: Any, spec: ClusterSpec, step: NodeStep) -> bool:
    """Whether the step needs its gate's signature: where the cluster file asks for one, and where this run was to be
    asked. An edit in the middle of a run frees it of nothing.
    """
    return step.operation.asks(step.gate, spec) or bool(standing(records_of(context), step.gate).digest)


def take_step(context: Any, spec: ClusterSpec, step: NodeStep, node: int, tell: Tell) -> dict[str, Any]:
    """Take the step on the node, or say why nothing is left to do. Raises Refused where the table, the gate or the
    step's guard does not let it; nothing was changed then. Raises StepFailed where the playbook fails.
    """
    unasked = step.operation.left_out(step.step, context["params"])
    if unasked:
        tell(unasked)
        return {"changed": [], "not_asked_for": unasked}
    take_claim(context, spec)
    look = look_at(context, spec, step, node, tell)
    done = step.why_done(look)
    if done:
        tell(f"already done: {done}")
        record(context, spec.name, AlreadyDone(phase=look.phase.value, step=step.step, node_id=node, why=done))
        return {"changed": [], "already_done": done}
    step.require_stage(look)
    asks = is_signed_for(context, spec, step)
    if asks:
        require_confirmation(context, spec, step.operation, step.gate, look.seen, node=node)
    step.guard(look)
    if asks:
        begins(context, spec.name, step.gate)
    result = playbooks.play(spec, step.play(look), secrets=airflow_secrets(), on_event=tell)
    tell(f"{result.playbook} on node {node}: {', '.join(result.changed) or 'nothing to change'}")
    seconds = round((result.finished_at - result.started_at).total_seconds(), 1)
    played = Played(
        phase=look.phase.value,
        step=step.step,
        node_id=node,
        changed=result.changed,
        restarted=result.restarted,
        seconds=seconds,
        began_at=result.started_at,
        ended_at=result.finished_at,
    )
    record(context, spec.name, played)
    return {"changed": list(result.changed), "seconds": seconds}


def rehearse_step(context: Any, spec: ClusterSpec, step: NodeStep, node: int, tell: Tell) -> dict[str, Any]:
    """Ansible's own rehearsal of the step on the node, with the difference that it would make to each file."""
    unasked = step.operation.left_out(step.step, context["params"])
    if unasked:
        tell(unasked)
        return {"changed": [], "not_asked_for": unasked}
    seen = observe(spec, secrets=airflow_secrets())
    look = Look(
        spec, node, seen, step.operation.read(seen, spec), said_to_be_gone(context, spec), tell, context["params"]
    )
    result = playbooks.play(spec, step.play(look), secrets=airflow_secrets(), check=True, on_event=tell)
    tell(f"Dry run: {result.playbook} on node {node} would change: {', '.join(result.changed) or 'nothing'}")
    for diff in result.diffs:
        tell(diff.render())
    return {"dry_run": True}


class TakeStep(ClusterOperator):
    """Take one step of an operation on one node."""

    def __init__(self, *, step: NodeStep, node: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.node = node
        irreversible = step.operation.table.gate(step.gate).irreversible
        self.ui_color = "#f6d5d5" if irreversible else "#fde8c8"

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        return take_step(context, spec, self.step, self.node, self.log.info)

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        return rehearse_step(context, spec, self.step, self.node, self.log.info)
