"""What lies behind a gate of the roll, and what a cluster may differ in from the proof meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.phases import FOR_GOOD, detect_phase
from kraft_runbook.cluster.spans import roughly
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.broker_batches import in_turn, turns
from kraft_runbook.runbook.canary import first_and_watched
from kraft_runbook.runbook.changes import UNREAD, By
from kraft_runbook.runbook.leaders_off import leaders_off
from kraft_runbook.runbook.operation import judged_by
from kraft_runbook.runbook.way_back import RollbackPlan, not_known
from kraft_runbook.software.conditions import target_version
from kraft_runbook.software.roll import Rolled, RollReading, order, read_roll_of
from kraft_runbook.software.stages import Gate
from kraft_runbook.software.way_back import level_beyond, software_way

NODE_SECONDS = 15
"""About how long one node takes, restart and waits: 18 restarts of a small cluster took 8 to 12 s each (measured)."""


def reading_of(seen: ClusterObservation, spec: ClusterSpec) -> RollReading:
    """Where the roll stands. UNKNOWN where ZooKeeper is not proven to be behind."""
    reading = read_roll_of(seen, spec.kafka.version, target_version(spec))
    phase = detect_phase(seen)
    if phase.phase not in FOR_GOOD:
        return RollReading(Rolled.UNKNOWN, (f"it is in {phase.phase}: {'; '.join(phase.reasons)}",), reading.on_new)
    return reading


def is_behind(gate: str, seen: ClusterObservation, spec: ClusterSpec) -> bool:
    """Whether every node runs what the gate is about already."""
    return reading_of(seen, spec).stage == (Rolled.NEW if gate == Gate.UP else Rolled.OLD)


def what_happens_next(
    gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str] = ()
) -> tuple[str, ...]:
    """The restarts behind the gate, as they lie ahead of this cluster."""
    return tuple(_restarts(seen, spec, back=gate == Gate.BACK))


def _restarts(seen: ClusterObservation, spec: ClusterSpec, *, back: bool) -> Iterator[str]:
    on_new = read_roll_of(seen, spec.kafka.version, target_version(spec)).on_new
    active = seen.active_controller
    leader = active.id if active else -1
    ordered = order([each.id for each in spec.rolled], spec.controller_ids, leader, both=spec.both_ids, back=back)
    ahead = [i for i in ordered if (i in on_new) == back]
    version = spec.kafka.version if back else target_version(spec)
    controllers = [i for i in ahead if i in seen.controllers]
    if controllers:
        both = [i for i in controllers if spec.has_both_roles(i)]
        once = f" ({nodes('node', both, 'is')} broker too, in one process, restarted once)" if both else ""
        yield (
            f"Restart {nodes('controller', controllers)}{once} on Kafka {version}, one by one, the active one last:"
            f" about {roughly(len(controllers) * NODE_SECONDS)}."
            f"{leaders_off(spec.upgrade_software.demote) if both else ''}"
        )
    brokers = [i for i in ahead if i in seen.brokers and i not in seen.controllers]
    if brokers:
        yield (
            f"Restart {nodes('broker', brokers)} on Kafka {version}, {in_turn(spec.roll)}: about"
            f" {roughly(turns(spec, brokers) * NODE_SECONDS)}."
            f"{leaders_off(spec.upgrade_software.demote)}"
            f"{'' if back else first_and_watched(spec, brokers)}"
        )
    yield "No feature level is changed."


def way_back(seen: ClusterObservation, spec: ClusterSpec, *, gone: Collection[int] = ()) -> RollbackPlan:
    """Whether the nodes can go back to the version before, and how. The answer is ``software_way``'s, as the
    software_back gate and ``kraft-runbook features`` have it. A look without hosts can say no by the level alone; a yes
    needs each node's disk.
    """
    reading = reading_of(seen, spec)
    if reading.stage is Rolled.UNKNOWN:
        return not_known(f"no stage of the roll is proven: {'; '.join(reading.reasons)}")
    if reading.stage is Rolled.OLD:
        return RollbackPlan(True, "every node runs the version before: nothing has to be undone", ())
    steps = tuple(each for each in _restarts(seen, spec, back=True) if each.startswith("Restart"))[::-1]
    way = software_way(seen, spec, spec.kafka)
    if isinstance(way, Unread):
        beyond = level_beyond(seen, spec.kafka.version)
        if beyond:
            told = f"{beyond}. kraft-runbook features --cluster {spec.name} says whether the level can be lowered"
            return RollbackPlan(False, told, ())
        return not_known(
            f"each node's disk and the levels of Kafka {spec.kafka.version} decide, and were not read ({way.reason})."
            f" kraft-runbook features --cluster {spec.name} reads them, as the {Gate.BACK} gate does",
            steps,
        )
    if way.closed:
        return RollbackPlan(False, way.why, ())
    if not way.open:
        return replace(not_known(way.why, steps), known=not way.unknown)
    return RollbackPlan(True, f"every node can start on Kafka {spec.kafka.version}", steps)


def _whose(before: Any, after: Any) -> By:
    if after[0] == UNREAD:
        return By.UNREAD  # the guard of a step refuses where it has to answer
    if after[0] is False:
        return By.OTHERS
    if before[0] is False:
        return By.THE_STEPS  # one that was down when the proof was made is among the first that they start
    return By.UNREAD if UNREAD in (before[1], after[1]) else By.OTHERS


changes = judged_by(_whose, _whose, of_phase=By.UNREAD)
"""How the cluster differs from a gate's proof. The roll restarts nodes and changes no mode."""
