"""The steps from the observed phase to FINALIZED, in order: the changes in each node's configuration, and the rollback
from each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.errors import Refused
from kraft_runbook.migration.controller_files import controller_files
from kraft_runbook.migration.copy_forecast import COPY_AHEAD, copy_tuning
from kraft_runbook.migration.copy_tuning import SMALL, CopyTuning, Size
from kraft_runbook.migration.transitions import TABLE, Step
from kraft_runbook.migration.way_back import rollback_plan, way_back
from kraft_runbook.runbook.broker_files import NodeFile, broker_files
from kraft_runbook.runbook.differing_files import is_hidden
from kraft_runbook.runbook.way_back import RollbackPlan


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property of a configuration file. ``before`` or ``after`` is None where the file lacks it; sensitive values
    are ``<set>``.
    """

    key: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"+ {self.key}={self.after}"
        return f"- {self.key}={self.before}" if self.after is None else f"~ {self.key}={self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """One thing that happens, in order: to a node, or a gate or wait of the whole cluster (``node_id`` None)."""

    number: int
    does: str
    node_id: int | None = None
    config_file: str | None = None
    changes: tuple[PropertyChange, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of the table of transitions with all its actions, and the rollback from the phase in which it ends."""

    step: Step
    source: Phase
    target: Phase
    does: str
    reversible: bool
    actions: tuple[PlannedAction, ...]
    way_back: RollbackPlan


BROKER, CONTROLLER = "broker", "controller"


@dataclass(frozen=True, slots=True)
class FileOnHost:
    """A node's file against what is rendered for its mode: what a rendering would change. A broker's by their meaning
    (KRB-PRE-046), a controller's by their text. ``kind``: broker or controller; ``unread``: why that is not known.
    """

    kind: str
    node_id: int
    config_file: str
    changes: tuple[PropertyChange, ...] = ()
    unread: str = ""

    def render_lines(self) -> list[str]:
        same = " means the same as what is rendered" if self.kind == BROKER else " is as rendered"
        told = f": {self.unread}" if self.unread else "" if self.changes else same
        return [
            f"  {self.kind} {self.node_id}: {self.config_file}{told}",
            *(f"         {each}" for each in self.changes),
        ]


ONE_LOOK = "it takes two looks (kraft-runbook explain)"


@dataclass(frozen=True, slots=True)
class Plan:
    """From the observed phase to FINALIZED. ``way_back_now``: the rollback from the observed phase.

    ``copy``: the metadata copy's expected length and what is rendered for it; None once the copy is done. ``files``:
    the nodes' files, where the hosts were looked at.
    """

    cluster: str
    phase: Phase
    because: tuple[str, ...]
    steps: tuple[PlannedStep, ...]
    way_back_now: RollbackPlan
    copy: CopyTuning | Unread | None
    files: tuple[FileOnHost, ...] = ()

    def render_text(self) -> str:
        lines = [f"{self.cluster} is in {self.phase}: {'; '.join(self.because)}", ""]
        if not self.steps:
            final = self.phase is Phase.FINALIZED
            lines += ["Nothing is left to do: the migration is final." if final else "There is nothing to migrate.", ""]
        if self.files:
            lines += ["Files on the hosts, and what writing them anew would change:"]
            lines += [line for each in self.files for line in each.render_lines()]
            lines.append("")
        lines += _copy(self.copy)
        for step in self.steps:
            lines.append(
                f"{step.step.value}: {step.source} -> {step.target}{'' if step.reversible else ' (can not be undone)'}"
            )
            for action in step.actions:
                lines.append(f"  {action.number:>3}. {action.does}")
                lines += [f"         {change}" for change in action.changes]
            lines += [f"  Rollback from {step.target}: {_way_back(step.way_back)}", ""]
        return "\n".join([*lines, f"Rollback now: {_way_back(self.way_back_now)}"])


def _copy(copy: CopyTuning | Unread | None) -> list[str]:
    if copy is None:
        return []
    told = copy.render_lines() if was_read(copy) else (f"its length is not known: {copy.reason}",)
    return ["Metadata copy (Kafka handles no metadata change while it runs):", *(f"  - {line}" for line in told), ""]


def _way_back(plan: RollbackPlan) -> str:
    if not plan.possible:
        return f"{'not possible' if plan.known else 'not known'} ({plan.why})"
    return " then ".join(step.partition(":")[0] for step in plan.steps) or plan.why


def make_plan(seen: ClusterObservation, spec: ClusterSpec, *, hosts: bool = False) -> Plan:
    """The plan from here. It leaves out nodes that are already as a step makes them. ``hosts``: also the nodes'
    files; the observation has the hosts then. Raises Refused where the phase is unknown.
    """
    reading = detect_phase(seen)
    if reading.phase is Phase.UNKNOWN:
        raise Refused(
            f"there is no plan for {spec.name}: its phase is unknown ({'; '.join(reading.reasons)})",
            way_out="make the named parts readable, or resolve the contradiction; kraft-runbook explain says more",
        )
    numbers = iter(range(1, 10_000))
    tuning = copy_tuning(seen, spec)
    size = tuning.size if was_read(tuning) else SMALL
    steps = tuple(_steps(seen, spec, reading.phase, numbers, size))
    files = (*broker_files(seen, spec), *controller_files(seen, spec, reading.phase, size)) if hosts else ()
    return Plan(
        spec.name,
        reading.phase,
        reading.reasons,
        steps,
        way_back(seen, spec, dual_write_unread=ONE_LOOK),
        tuning if reading.phase in COPY_AHEAD else None,
        tuple(map(_on_host, files)),
    )


def _on_host(file: NodeFile) -> FileOnHost:
    lacks = "there is no such file" if file.missing else ""
    changes = tuple(
        each for each in _changes(file.held, file.wanted) if not is_hidden(each.key, each.before, each.after)
    )
    kind = BROKER if isinstance(file.node, Broker) else CONTROLLER
    return FileOnHost(kind, file.node.id, file.node.config_file, changes, file.unread or lacks)


def _steps(
    seen: ClusterObservation, spec: ClusterSpec, phase: Phase, numbers: Iterator[int], size: Size
) -> Iterator[PlannedStep]:
    """The step that led to this phase comes first while it still has something to do (an interrupted roll), then the
    rest.
    """
    if phase in (Phase.FINALIZED, Phase.KRAFT):
        return
    forward, ahead = TABLE.forward(), TABLE.forward_from(phase)
    begin = forward.index(ahead[0]) if ahead else len(forward)
    for place, edge in enumerate(forward):
        nodes = tuple(_node_actions(Step(edge.step), seen, spec, size))
        if place < begin - 1 or (place == begin - 1 and not nodes):
            continue
        actions = [
            *((text, None, None, ()) for text in edge.before),
            *nodes,
            *((text, None, None, ()) for text in edge.after),
        ]
        numbered = tuple(PlannedAction(next(numbers), *action) for action in actions)
        back = rollback_plan(Phase(edge.target))
        yield PlannedStep(
            Step(edge.step), Phase(edge.source), Phase(edge.target), edge.does, edge.reversible, numbered, back
        )


_Action = tuple[str, int | None, str | None, tuple[PropertyChange, ...]]


def _node_actions(step: Step, seen: ClusterObservation, spec: ClusterSpec, size: Size) -> Iterator[_Action]:
    match step:
        case Step.PROVISION_CONTROLLERS:
            for controller in spec.controllers:
                if seen.controllers[controller.id].running is not True:
                    changes = _changes(
                        None, controller_properties(spec, controller, ControllerMode.MIGRATION, also=size.properties)
                    )
                    yield (
                        (
                            f"controller {controller.id} on {controller.host}: write {controller.config_file}, format"
                            f" {controller.log_dir}, start {controller.service}"
                        ),
                        controller.id,
                        controller.config_file,
                        changes,
                    )
        case Step.ROLL_BROKERS_TO_HYBRID:
            for broker in spec.rolled:
                if seen.brokers[broker.id].mode not in (BrokerMode.HYBRID, BrokerMode.KRAFT):
                    yield _restart(spec, broker, BrokerMode.ZOOKEEPER, BrokerMode.HYBRID)
        case Step.ROLL_BROKERS_TO_KRAFT:
            for broker in spec.rolled:
                if seen.brokers[broker.id].mode != BrokerMode.KRAFT:
                    yield _restart(spec, broker, BrokerMode.HYBRID, BrokerMode.KRAFT)
        case _:
            for controller in _active_last(seen, spec):
                if seen.controllers[controller.id].mode != ControllerMode.KRAFT:
                    changes = _changes(
                        controller_properties(spec, controller, ControllerMode.MIGRATION, also=size.properties),
                        controller_properties(spec, controller, ControllerMode.KRAFT),
                    )
                    yield (
                        (
                            f"controller {controller.id} on {controller.host}: restart without the migration flag, wait"
                            " until it has caught up"
                        ),
                        controller.id,
                        controller.config_file,
                        changes,
                    )


def _restart(spec: ClusterSpec, broker: Broker, now: BrokerMode, then: BrokerMode) -> _Action:
    changes = _changes(broker_properties(spec, broker, now), broker_properties(spec, broker, then))
    does = (
        f"broker {broker.id} on {broker.host}: restart in {'migration' if then is BrokerMode.HYBRID else 'KRaft'} mode,"
        " wait until it is registered and in every ISR"
        f"{', then watch it as the canary' if spec.canary and spec.canary.broker == broker.id else ''}"
    )
    return does, broker.id, broker.config_file, changes


def _active_last(seen: ClusterObservation, spec: ClusterSpec) -> list[Controller]:
    leader = seen.quorum.leader_id if was_read(seen.quorum) else None
    return sorted(spec.controllers, key=lambda c: c.id == leader)


def _changes(before: Mapping[str, str] | None, after: Mapping[str, str]) -> tuple[PropertyChange, ...]:
    old = before or {}
    keys = [*old, *(k for k in after if k not in old)]
    return tuple(
        PropertyChange(k, _shown(k, old.get(k)), _shown(k, after.get(k))) for k in keys if old.get(k) != after.get(k)
    )


def _shown(key: str, value: str | None) -> str | None:
    return "<set>" if value is not None and is_sensitive(key) else value
