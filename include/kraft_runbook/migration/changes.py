"""Which changes of a cluster since a gate's proof are the work of the migration's own steps. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ControllerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.runbook.changes import UNREAD, By, Change, State, by_the_steps_if_read, changes_between

_BROKER_CHANGES: Mapping[str, frozenset[tuple[str, str]]] = {
    Gate.START: frozenset({(BrokerMode.ZOOKEEPER.value, BrokerMode.HYBRID.value)}),
    Gate.DUAL_WRITE: frozenset({(BrokerMode.HYBRID.value, BrokerMode.KRAFT.value)}),
    Gate.FINALIZE: frozenset(),
    Gate.ROLLBACK: frozenset(
        {
            (BrokerMode.KRAFT.value, BrokerMode.HYBRID.value),
            (BrokerMode.KRAFT.value, BrokerMode.ZOOKEEPER.value),
            (BrokerMode.HYBRID.value, BrokerMode.ZOOKEEPER.value),
        }
    ),
}
"""The mode changes (from, to) that the steps guarded by each gate make in a broker, all steps together."""

_BEHIND_THE_NEXT_GATE = frozenset(
    {(BrokerMode.ZOOKEEPER.value, BrokerMode.KRAFT.value), (BrokerMode.HYBRID.value, BrokerMode.KRAFT.value)}
)
"""Further allowed mode changes of a broker while a controller that lost its disk is provisioned again, which the start
gate guards.
"""


def changes(gate: str, was: State, now: State, turn: Collection[int]) -> Iterator[Change]:
    """How the cluster differs from the proof of a gate of the migration (``Operation.changes``)."""
    provisions = gate == Gate.START and any(str(each) in was["controllers"] for each in turn)
    later = _BEHIND_THE_NEXT_GATE if provisions else frozenset()
    return changes_between(
        was,
        now,
        turn=turn,
        of_broker=partial(_whose_broker, gate, _BROKER_CHANGES[gate] | later),
        of_controller=partial(_whose_controller, gate, now["phase"]),
        of_phase=partial(_whose_phase, gate, now["phase"]),
    )


def _whose_phase(gate: str, phase: str) -> By:
    """Never OTHERS: the table of transitions refuses a phase in which a step may not run, and the parts of the nodes
    show what changed the phase. Where every controller was down already when the rollback was proven, only the phase
    shows that a ZooKeeper controller has the controller role again.
    """
    return By.THE_STEPS if gate == Gate.ROLLBACK and phase == Phase.ZOOKEEPER else By.UNREAD


def _whose_broker(gate: str, made: frozenset[tuple[str, str]], before: Any, after: Any) -> By:
    (ran, mode), (runs, in_mode) = before, after
    if runs is not True:
        return By.OTHERS
    if UNREAD in (mode, in_mode):
        return By.UNREAD
    if ran is not True:  # a rollback may begin with brokers that are down, and goes on when a person has started them
        return By.UNREAD if gate == Gate.ROLLBACK else By.OTHERS
    return By.THE_STEPS if (mode, in_mode) in made else By.OTHERS


def _whose_controller(gate: str, phase: str, before: Any, after: Any) -> By:
    (ran, mode), (runs, in_mode) = before, after
    if gate == Gate.ROLLBACK:  # it starts those that are down, and stops and sets aside all
        return By.OTHERS if in_mode == ControllerMode.KRAFT.value else by_the_steps_if_read(before, after)
    if runs is not True:
        return By.OTHERS
    if in_mode == UNREAD:
        return By.UNREAD
    if gate == Gate.START:
        return By.THE_STEPS if ran is not True and in_mode == ControllerMode.MIGRATION.value else By.OTHERS
    if gate == Gate.FINALIZE:
        return (
            By.THE_STEPS
            if (mode, in_mode) == (ControllerMode.MIGRATION.value, ControllerMode.KRAFT.value)
            else By.OTHERS
        )
    # A finalization by hand in the middle of the roll leaves brokers behind. KRaft mode is the only way left for them.
    return By.UNREAD if phase == Phase.FINALIZED.value else By.OTHERS
