"""The steps that a gate of the migration guards: whether any is left to do, and what approving allows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spans import roughly
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.copy_forecast import COPY_AHEAD, copy_tuning
from kraft_runbook.migration.transitions import TABLE, Gate
from kraft_runbook.migration.way_back import BROKER_SECONDS, CONTROLLER_SECONDS
from kraft_runbook.runbook.broker_batches import in_turn, turns
from kraft_runbook.runbook.canary import first_and_watched


def is_behind(gate: str, seen: ClusterObservation) -> bool:
    """Whether nothing that this gate guards is left to do, so that nobody is asked.

    After the metadata copy, a controller that is down still counts as left to do: provisioning it again needs the start
    gate's signature, also in a run that began after the copy.
    """
    phase = detect_phase(seen).phase
    if (
        gate == Gate.START
        and phase in (Phase.HYBRID, Phase.DUAL_WRITE)
        and any(c.running is False for c in seen.controllers.values())
    ):
        return False
    if gate == Gate.START and phase is Phase.HYBRID:
        return not seen.brokers_in(BrokerMode.ZOOKEEPER) and not seen.brokers_of_unknown_mode()
    return TABLE.is_past_gate(gate, phase)


def what_happens_next(
    gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str] = ()
) -> tuple[str, ...]:
    """The steps that the gate allows and this cluster still needs: which nodes, and about how long. ``back``: the steps
    of a rollback.
    """
    match Gate(gate):
        case Gate.START:
            return tuple(_start(seen, spec))
        case Gate.DUAL_WRITE:
            return tuple(_restarts(seen, spec, BrokerMode.KRAFT, "KRaft mode"))
        case Gate.FINALIZE:
            return tuple(_finalization(seen))
        case Gate.ROLLBACK:
            return tuple(back)


def _start(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[str]:
    fresh = [c.id for c in seen.controllers.values() if not (c.running is True and c.mode == ControllerMode.MIGRATION)]
    if fresh:
        yield (
            f"Provision {nodes('controller', fresh)}: about {roughly(len(fresh) * CONTROLLER_SECONDS)}. No broker is"
            " touched."
        )
    yield from _restarts(seen, spec, BrokerMode.HYBRID, "migration mode")
    tuning = copy_tuning(seen, spec) if detect_phase(seen).phase in COPY_AHEAD else None
    if tuning is None:
        return
    size = (
        f"{tuning.partitions:,} partitions, {tuning.expected} expected"
        if was_read(tuning)
        else f"its length is not known: {tuning.reason}"
    )
    yield (
        f"Metadata copy: {size}. While it runs, Kafka handles no topic, leader or ISR change. Producing and consuming"
        " go on."
    )


def _restarts(seen: ClusterObservation, spec: ClusterSpec, mode: BrokerMode, named: str) -> Iterator[str]:
    ahead = [b.id for b in seen.brokers.values() if not (b.running is True and b.mode in (mode, BrokerMode.KRAFT))]
    if ahead:
        together = mode is BrokerMode.KRAFT
        count = turns(spec, ahead) if together else len(ahead)
        yield (
            f"Restart {nodes('broker', ahead)} in {named}, {in_turn(spec.roll if together else None)}."
            f" About {roughly(count * BROKER_SECONDS)} on a small cluster, longer with more partitions."
            f"{first_and_watched(spec, ahead)}"
        )


def _finalization(seen: ClusterObservation) -> Iterator[str]:
    ahead = [c.id for c in seen.controllers.values() if c.mode != ControllerMode.KRAFT]
    active = seen.active_controller
    last = f", the active one last (now {active.id})" if active else ", the active one last"
    yield "Parity is proven once more. If it is no MATCH, nothing is changed."
    if ahead:
        yield (
            f"Restart {nodes('controller', ahead)} without the migration flag, one by one{last}: about"
            f" {roughly(len(ahead) * CONTROLLER_SECONDS)}."
        )
    yield "ZooKeeper is no longer written. No broker is restarted."
