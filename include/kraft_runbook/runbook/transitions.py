"""The one table of an operation: its stages, what leads from one to the next, and the gates between them.

The DAGs, the plan, refusals, explain, the closing report and the docs read every fact about a step, a stage or a gate
here. No variable, XCom or file remembers a stage: each operation derives it from an observation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.runbook.conditions import Condition


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a cluster. ``means``: its meaning to an operator.

    ``end``: the last words of a run that ends here; None if no run does. ``also_reached_in``: other stages in which
    such a run has reached its goal. ``refuses``: the way out of every step that is refused here; empty if the table
    gives it.
    """

    name: str
    means: str
    end: Callable[[ClusterSpec], str] | None = None
    also_reached_in: frozenset[str] = frozenset()
    refuses: str = ""


@dataclass(frozen=True, slots=True)
class GateTerms:
    """The terms of a gate: the question to a person, what approving does, and the proof that it needs.

    ``needs_parity``: a full comparison that was a MATCH. ``proven_again``: the task that compares once more after the
    last signature. ``checked``: whether its proof must hold checks. ``next``: what the cluster waits for when only this
    signature is missing. ``goes_back``: the gate guards the rollback itself, which must be possible; controllers may
    start and stop before the confirmation. ``loses``: what a rollback loses, for the page. ``without_parity``: the
    page's words on parity if none was measured; empty: none.
    """

    name: str
    asks: str
    means: str
    next: str = ""
    needs_parity: bool = False
    proven_again: str | None = None
    checked: bool = True
    irreversible: bool = False
    goes_back: bool = False
    loses: str = ""
    without_parity: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A step from one stage to another. It may start in ``source``, and resume in ``source`` or ``target``.

    ``gate``: the gate whose signature it needs. ``waits``: the conditions that it waits for, of each node or of the
    cluster. ``before``, ``after``: what a plan shows around the nodes' actions.
    """

    step: str
    source: str
    target: str
    gate: str
    does: str
    waits: tuple[Condition, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    reversible: bool = True

    @property
    def may_run_in(self) -> frozenset[str]:
        return frozenset({self.source, self.target})


class Reading(Protocol):
    """The observed stage, and why."""

    @property
    def stage(self) -> str: ...

    @property
    def reasons(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Transitions:
    """``stages``: in the order of the operation. ``outside``: stages that no step leads to, such as the stage of an
    observation that proves none. ``at_rest``: why nothing has to be undone in the first stage.
    """

    stages: tuple[Stage, ...]
    outside: tuple[Stage, ...]
    at_rest: str
    gates: tuple[GateTerms, ...]
    edges: tuple[Edge, ...]

    def stage(self, name: str) -> Stage:
        return next(each for each in (*self.stages, *self.outside) if each.name == name)

    def gate(self, name: str) -> GateTerms:
        return next(each for each in self.gates if each.name == name)

    def edge(self, step: str) -> Edge:
        return next(each for each in self.edges if each.step == step)

    def _place(self, stage: str) -> int:
        return [each.name for each in self.stages].index(stage)

    def _is_on_the_way(self, stage: str) -> bool:
        return any(each.name == stage for each in self.stages)

    def is_forward(self, edge: Edge) -> bool:
        return self._place(edge.target) > self._place(edge.source)

    def forward(self) -> tuple[Edge, ...]:
        """Every edge of the way forward, in order."""
        return tuple(each for each in self.edges if self.is_forward(each))

    def forward_from(self, stage: str) -> tuple[Edge, ...]:
        """The steps that lead from this stage towards the last."""
        return tuple(each for each in self.forward() if each.source == stage)

    def back_from(self, stage: str) -> tuple[Edge, ...]:
        """The steps that lead from this stage towards the first."""
        return tuple(
            each for each in self.edges if each.source == stage and self._place(each.target) < self._place(stage)
        )

    def way_back(self, stage: str) -> tuple[Edge, ...]:
        """The steps from this stage to the first, and those that finish there without changing the stage; none from a
        stage outside the way.
        """
        if not self._is_on_the_way(stage):
            return ()
        return (*self._down(stage), *(each for each in self.edges if each.source == each.target))

    def _down(self, stage: str) -> tuple[Edge, ...]:
        edges = self.back_from(stage)
        return (edges[0], *self._down(edges[0].target)) if edges else ()

    def already_past(self, step: str, stage: str) -> bool:
        """Whether the cluster is past the step's target, in the step's direction, so that nothing of the step is left
        to do.
        """
        if not self._is_on_the_way(stage):
            return False
        edge = self.edge(step)
        here, target = self._place(stage), self._place(edge.target)
        return here > target if self.is_forward(edge) else here < target

    def leaves_out(self, step: str, goal: str) -> bool:
        """Whether a run back to the goal leaves this step out, since the step leads past the goal. Raises ValueError
        for a goal that is none of ``stages``.
        """
        edge = self.edge(step)
        return not self.is_forward(edge) and self._place(edge.target) < self._place(goal)

    def guarded_by(self, gate: str) -> tuple[Edge, ...]:
        """The steps that need this gate's signature, in order."""
        return tuple(each for each in self.edges if each.gate == gate)

    def is_past_gate(self, gate: str, stage: str) -> bool:
        """Whether the cluster is past every step that the gate guards."""
        return all(self.already_past(each.step, stage) for each in self.guarded_by(gate))

    def opens(self, edge: Edge) -> GateTerms | None:
        """The gate right before this edge; None if its signature was asked for before an earlier edge."""
        return self.gate(edge.gate) if self.guarded_by(edge.gate)[0] is edge else None

    def awaited(self, stage: str) -> Iterator[Condition | str]:
        """What the operation waits for in this stage: first the conditions of the step that led here, then the
        signature before the next step, or that step's conditions.
        """
        for edge in (each for each in self.forward() if each.target == stage):
            yield from edge.waits
        for edge in self.forward_from(stage):
            gate = self.opens(edge)
            if gate:
                yield gate.next
            else:
                yield from edge.waits

    def require(self, step: str, reading: Reading) -> Edge:
        """The step's edge, if it may run in the observed stage. Raises Refused, naming the stage and the way out."""
        edge = self.edge(step)
        if reading.stage in edge.may_run_in:
            return edge
        raise Refused(
            f"{step} runs from {edge.source} to {edge.target}; the cluster is in {reading.stage}"
            f" ({'; '.join(reading.reasons)})",
            way_out=self._way_out(edge, self.stage(reading.stage)),
        )

    def _way_out(self, edge: Edge, stage: Stage) -> str:
        if stage.refuses:
            return stage.refuses
        forward = self.is_forward(edge)
        if self.already_past(edge.step, stage.name):
            ahead = self.forward_from(stage.name) if forward else self.back_from(stage.name)
            return "this step's work is already done" + (
                f"; continue with {' or '.join(each.step for each in ahead)}" if ahead else ""
            )
        if not forward:
            return (
                f"from {stage.name} the way back begins with"
                f" {', '.join(each.step for each in self.back_from(stage.name)) or f'nothing: {self.at_rest}'}"
            )
        before = [each.step for each in self.edges if each.target == edge.source and each.source != each.target]
        return f"first reach {edge.source}" + (f" ({' or '.join(before)})" if before else "")
