"""An operation as a value: all that tasks, gates, waits, the preflight, the closing report and the command ask of it.

The generic rooms know no operation. Whoever adds one makes such a value, a DAG file in words, and the values of its
steps on a node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.changes import By, Change, Judge, State, changes_between
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.explanation import Explanation, explain_by_table
from kraft_runbook.runbook.transitions import Reading, Transitions
from kraft_runbook.runbook.way_back import RollbackPlan, in_words


class FindsWayBack(Protocol):
    """Whether and how the operation can be undone from here. ``gone``: controllers whose hosts are gone for good."""

    def __call__(self, seen: ClusterObservation, spec: ClusterSpec, *, gone: Collection[int] = ()) -> RollbackPlan: ...


class ReadsChanges(Protocol):
    """How the cluster differs from a proof of the gate, and whose each difference is. ``node``: whose turn it is."""

    def __call__(self, gate: str, was: State, now: State, turn: Collection[int]) -> Iterator[Change]: ...


def judged_by(of_broker: Judge, of_controller: Judge, *, of_phase: By) -> ReadsChanges:
    """Each change of a node is judged by what was seen of the node alone. ``of_phase``: whose a change of phase is."""

    def changes(gate: str, was: State, now: State, turn: Collection[int]) -> Iterator[Change]:
        return changes_between(
            was, now, turn=turn, of_broker=of_broker, of_controller=of_controller, of_phase=lambda: of_phase
        )

    return changes


class FindsWayOut(Protocol):
    """Says what to do where a wait is in vain. ``earlier``: an observation some seconds before."""

    def __call__(
        self, seen: ClusterObservation, spec: ClusterSpec, /, *, earlier: ClusterObservation | None = None
    ) -> tuple[str, ...]: ...


def no_way_out(
    seen: ClusterObservation, spec: ClusterSpec, /, *, earlier: ClusterObservation | None = None
) -> tuple[str, ...]:
    """What the wait itself says is all."""
    return ()


class Explains(Protocol):
    """A look in words. ``seen``: what the operation ``sees``; ``earlier``: the same some seconds before."""

    def __call__(self, seen: Any, spec: ClusterSpec, *, earlier: Any = None) -> Explanation: ...


class TellsAhead(Protocol):
    """What approving the gate lets happen, in order. ``back``: the steps of the way back."""

    def __call__(
        self, gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]
    ) -> tuple[str, ...]: ...


def _nothing_to_account(_: Sequence[Mapping[str, Any]]) -> None:
    return None


@dataclass(frozen=True, repr=False)
class Operation:
    """``name``: under which a deferred wait finds it again (``operations.OPERATIONS``).

    ``read``: the stage that an observation shows. ``checks``: what its preflight and gates check, by stage and gate.
    ``conditions``: what its waits wait for, by name. ``is_behind``: whether nothing that a gate guards is left to do,
    so that nobody is asked. ``serves``: whether a cluster file can have it. ``asks``: whether a gate asks a person in
    this cluster; a step behind one that does not needs no signature. ``unasked``: why a run with this trigger form
    leaves a step out. ``explains``: its own words for an observation, where the table's do not do. ``way_out``: what to
    do where a wait is in vain, in the words of ``explains``; empty: what the wait says is all. ``account``: what its
    closing report says besides, of the bodies of the run's records; None: nothing. ``back``: the DAG of its rollback,
    without the cluster's name; empty where the same run, or none, undoes it. ``back_mends``: whether that DAG itself
    ends what keeps a way back with steps from being possible. ``sees``: what ``read``, ``checks`` and ``explains`` are
    given: an observation, or a look of the operation's own that holds one (``procedures`` make it).
    """

    name: str
    table: Transitions
    checks: Checklist
    conditions: Mapping[str, Condition]
    read: Callable[[Any, ClusterSpec], Reading]
    way_back: FindsWayBack
    changes: ReadsChanges
    ahead: TellsAhead
    is_behind: Callable[[str, ClusterObservation, ClusterSpec], bool] = lambda gate, seen, spec: False
    serves: Callable[[ClusterSpec], bool] = lambda spec: True
    asks: Callable[[str, ClusterSpec], bool] = lambda gate, spec: True
    unasked: Callable[[str, Mapping[str, Any]], str | None] = lambda step, form: None
    explains: Explains | None = None
    way_out: FindsWayOut = no_way_out
    account: Callable[[Sequence[Mapping[str, Any]]], str | None] = _nothing_to_account
    back: str = ""
    back_mends: bool = False
    sees: type = ClusterObservation

    def __repr__(self) -> str:
        """Its name alone: Airflow writes it into each serialized DAG, where an address would make a new version of the
        DAG at every parse.
        """
        return f"Operation({self.name})"

    def left_out(self, step: str, form: Mapping[str, Any]) -> str | None:
        """Why a run with this trigger form leaves the step out; None where it does not."""
        goal = form.get("goal")
        if goal and self.table.leaves_out(step, goal):
            return f"not asked for: the goal of this run is {goal}"
        return self.unasked(step, form)

    def way_back_in_words(self, seen: ClusterObservation, spec: ClusterSpec, *, gone: Collection[int] = ()) -> str:
        """Whether and how it can be undone from here: its DAG and the steps, or that nothing is to undo."""
        return self.told_back(self.way_back(seen, spec, gone=gone), spec.name)

    def told_back(self, plan: RollbackPlan, cluster: str, between: str = " ") -> str:
        """The same of a plan of the way back. ``between``: what stands before each step."""
        dag = f"{self.back}__{cluster}" if self.back else ""
        return in_words(plan, dag, mends=self.back_mends, between=between)

    def explain(self, seen: Any, spec: ClusterSpec, *, earlier: Any = None) -> Explanation:
        """What the operation ``sees``, in words; a LIVE observation is enough. ``earlier``: the same some seconds
        before.
        """
        if self.explains:
            return self.explains(seen, spec, earlier=earlier)
        back = self.way_back(seen, spec)
        return explain_by_table(self.table, self.checks, self.read(seen, spec), back, seen, spec, earlier=earlier)
