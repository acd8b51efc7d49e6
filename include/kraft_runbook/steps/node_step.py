"""One step of an operation on one node: a value says what it is, and one function takes it. Safe to kill and clear at
any point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Played
from kraft_runbook.gates.signatures import standing
from kraft_runbook.quorum.faults import session_timeout_ms
from kraft_runbook.runbook.changes import state_of, unread_now
from kraft_runbook.runbook.health import serves_unreached, unreached_unread
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.plays import Play
from kraft_runbook.runbook.transitions import Reading
from kraft_runbook.steps.handle import Cluster, Tell
from kraft_runbook.steps.run import Run

ENDED_WITHIN = 30.0
"""Seconds in which it is known of a node that it has ended, where the cluster file sets nothing longer."""
KNOWN_LATE = 5.0
"""Seconds from the end of a session until a look shows it."""
BROKER_SESSION = ("broker.session.timeout.ms", 9_000)
"""The controllers' property, and Kafka's default."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a step on a node goes by. ``params``: the run's form. ``began``: when the run left its first record, in
    seconds since the epoch; None in a rehearsal. ``companions``: the other brokers that are restarted together with
    this one. ``anew``: as its step's.
    """

    cluster: Cluster
    node: int
    seen: ClusterObservation
    reading: Reading
    params: Mapping[str, Any] = field(default_factory=dict)
    began: float | None = None
    companions: frozenset[int] = frozenset()
    anew: bool = False

    @property
    def together(self) -> frozenset[int]:
        """The nodes that are restarted together: this one and its companions."""
        return self.companions | {self.node}

    @property
    def spec(self) -> ClusterSpec:
        return self.cluster.spec

    @property
    def gone(self) -> frozenset[int]:
        return self.cluster.gone

    @property
    def tell(self) -> Tell:
        return self.cluster.tell

    @property
    def phase(self) -> Phase:
        return detect_phase(self.seen).phase


def passes_over_none(_: Look) -> None:
    """Every node has its turn."""
    return None


_nothing = passes_over_none


def never(_: Look) -> bool:
    """No node is excepted."""
    return False


def _no_more(_: Run, __: Look) -> None:
    """The playbook is all."""


@dataclass(frozen=True, slots=True)
class NodeStep:
    """A step of an operation's table, on one node.

    ``play``: what is played there. ``done``: why nothing is left to do on the node; None where something is.
    ``passed_over``: why the node has no turn here, in a rehearsal too: it is left for last, or not there. ``guard``:
    raises Refused where the step must not run now, though the table allows it. ``excepted``: whether this node may, and
    must, have the step in a stage in which the table refuses it or takes it for done. ``signed``: the digest of what
    the gate must have shown for this step, beside the gate's own signature. ``before``: what is done to the cluster
    right before the playbook, or would be. ``batched``: whether brokers may have it together, where the cluster file
    says so (``ClusterSpec.batches``). ``anew``: whether it stops the process also where this run has restarted it.
    """

    operation: Operation
    step: str
    play: Callable[[Look], Play]
    done: Callable[[Look], str | None] = _nothing
    passed_over: Callable[[Look], str | None] = passes_over_none
    guard: Callable[[Look], None] = _nothing
    excepted: Callable[[Look], bool] = never
    signed: Callable[[Look], str | None] = _nothing
    before: Callable[[Run, Look], None] = _no_more
    batched: bool = False
    anew: bool = False

    def why_done(self, look: Look) -> str | None:
        """Why nothing is left to do: on the node, or since the cluster lies beyond the step."""
        done = self.done(look) or self.passed_over(look)
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


def look_at(run: Run, step: NodeStep, node: int) -> Look:
    """A look at the cluster that is believed, for this step on this node (``_believed``)."""
    seen = _believed(run, step, node)
    first = next((datetime.fromisoformat(each.at).timestamp() for each in run.journal.records()), None)
    companions = run.spec.batch_of(node) - {node} if step.batched else frozenset()
    return Look(run.cluster, node, seen, step.operation.read(seen, run.spec), run.params, first, companions, step.anew)


def _believed(run: Run, step: NodeStep, node: int) -> ClusterObservation:
    """A settled look, and further ones while one leaves a question open; the last one answers both. What is not read is
    looked at again until ``deadlines.healthy_in_a_row`` looks in a row lacked it: one slow answer of any node must not
    end a roll. A node that serves behind a closed port is, until it would be known to have ended (``ended_within``).
    """
    spec, tries = run.spec, run.spec.deadlines.healthy_in_a_row - 1
    seen, left = run.cluster.settled(), tries
    shown: str | None = None
    until: float | None = None
    while True:
        unclear = _unclear(step.operation, seen, spec)
        shown = serves_unreached(seen, spec, node) or (shown if unreached_unread(seen, node) else None)
        if shown and until is None:
            until = run.cluster.now() + ended_within(spec, node)
        if unclear and left:
            left -= 1
            run.cluster.tell(f"looking again, this may be over in a moment: {'; '.join(unclear)}")
        elif shown and until is not None and run.cluster.now() < until:
            left = left if unclear else tries
            run.cluster.tell(f"node {node} refuses connections, and {shown}: waiting until it is known to have ended")
        else:
            return seen
        run.cluster.pause(spec.deadlines.poll)
        seen = run.cluster.observe()


def ended_within(spec: ClusterSpec, node: int) -> float:
    """Seconds in which it is known of this node that it has ended: a broker's session with the quorum or with ZooKeeper
    is over, and a controller that does not fetch counts as silent (``quorum_health.silent``).
    """
    key, default = BROKER_SESSION
    declared = [
        java_int(trim(controller_properties(spec, each, ControllerMode.KRAFT).get(key, "")))
        for each in spec.controllers
    ]
    sessions = [default if each is None else each for each in declared]
    in_zookeeper = session_timeout_ms(spec, node) if spec.zookeeper else 0
    return max(ENDED_WITHIN, max(*sessions, spec.quorum_health.silent, in_zookeeper) / 1000 + KNOWN_LATE)


def _require_reached(look: Look) -> None:
    """Where a node has ended, a step asks for no other before it starts that one: nothing is taken away. That its port
    refuses this machine does not prove it.
    """
    if shown := serves_unreached(look.seen, look.spec, look.node):
        raise Refused(
            f"node {look.node} refuses connections from here, and serves: {shown}",
            way_out="let this machine reach its port (the listener's address, a firewall). Where its service starts it"
            " again and again, or another process has its id, stop that. Where it has ended, start its service by hand."
            " Then clear this task;"
            f" node {look.node} was not touched",
        )


def _unclear(operation: Operation, seen: ClusterObservation, spec: ClusterSpec) -> Sequence[str]:
    """Why the look shows the operation no stage of its own, or which node it did not read."""
    reading = operation.read(seen, spec)
    shows_none = reading.stage in {each.name for each in operation.table.outside}
    return reading.reasons if shows_none else unread_now(state_of(seen))


def is_signed_for(run: Run, step: NodeStep) -> bool:
    """Whether the step needs its gate's signature: where the cluster file asks for one, and where this run was to be
    asked. An edit in the middle of a run frees it of nothing.
    """
    return step.operation.asks(step.gate, run.spec) or bool(standing(run.journal.records(), step.gate).digest)


def take_step(run: Run, step: NodeStep, node: int) -> dict[str, Any]:
    """Take the step on the node, or say why nothing is left to do. Raises Refused where the table, the gate or the
    step's guard does not let it; nothing was changed then. Raises StepFailed where the playbook fails. Where the run's
    cluster rehearses, so does this.
    """
    if run.cluster.rehearses:
        return rehearse_step(run, step, node)
    if unasked := _left_out(run, step):
        return unasked
    run.claim.take()
    run.claim.await_groups()
    look = look_at(run, step, node)
    done = step.why_done(look)
    if done:
        run.already_done(look.phase.value, step.step, done, node=node)
        return {"changed": [], "already_done": done}
    step.require_stage(look)
    if is_signed_for(run, step):
        run.signatures.require(step.operation, step.gate, look.seen, turn=look.together, exhibit=step.signed(look))
    step.guard(look)
    _require_reached(look)
    run.signatures.begins(step.gate)  # also where nobody is asked: nothing is played that could not go on record
    step.before(run, look)
    result = run.cluster.play(step.play(look))
    look.tell(f"{result.playbook} on node {node}: {', '.join(result.changed) or 'nothing to change'}")
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
    run.journal.record(played)
    return {"changed": list(result.changed), "seconds": seconds}


def rehearse_step(run: Run, step: NodeStep, node: int) -> dict[str, Any]:
    """Ansible's own rehearsal of the step on the node, with the difference that it would make to each file; or why the
    run would leave it out, as ``take_step``. Whether the table and the guard let it run is not asked: the steps before
    this one were rehearsed too, so that the cluster is not there yet.
    """
    if unasked := _left_out(run, step):
        return unasked
    seen = run.cluster.observe()
    look = Look(run.cluster, node, seen, step.operation.read(seen, run.spec), run.params)
    if done := step.why_done(look):
        look.tell(done)
        return {"changed": [], "already_done": done}
    step.before(run, look)
    run.cluster.play(step.play(look))
    return {"dry_run": True}


def _left_out(run: Run, step: NodeStep) -> dict[str, Any] | None:
    """What a task answers whose step this run was not asked for; None where it was."""
    unasked = step.operation.left_out(step.step, run.params)
    if not unasked:
        return None
    run.cluster.tell(unasked)
    return {"changed": [], "not_asked_for": unasked}
