"""What the roll waits for after each restart. That a process lives proves nothing: a broker on software that does not
know the level stays alive and never serves (measured).
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.canary import canary, never_known
from kraft_runbook.runbook.conditions import DONE, Condition, Progress, by_name, first_missing
from kraft_runbook.runbook.coordinators import in_sync_and_loaded
from kraft_runbook.runbook.health import (
    broker_registered,
    exited_broker,
    exited_controllers,
    quorum_whole,
    unfinished_quorum,
)
from kraft_runbook.runbook.warm import unjudged


def controller_runs(
    seen: ClusterObservation, spec: ClusterSpec, node_id: int, version: str, earlier: ClusterObservation | None
) -> Progress:
    """The controller shows the version, a leader answers, and it is caught up and warm."""
    lost = exited_controllers(seen, earlier, node_id)
    if lost:
        return lost
    shown = _shows(f"controller {node_id}", seen.controllers[node_id].software_version, version)
    return shown or first_missing(unfinished_quorum(seen, spec, earlier, node_id))


def broker_runs(
    seen: ClusterObservation, spec: ClusterSpec, node_id: int, version: str, earlier: ClusterObservation | None
) -> Progress:
    """The broker shows the version, and the quorum has it registered and unfenced."""
    lost = exited_broker(seen, earlier, node_id)
    if lost:
        return lost
    registered = broker_registered(seen, spec, node_id, BrokerMode.KRAFT, earlier=earlier)
    if not registered.done:
        return registered
    return _shows(f"broker {node_id}", seen.brokers[node_id].software_version, version) or DONE


def _shows(who: str, shown: object, version: str) -> Progress | None:
    if shown == version:
        return None
    now = f"it shows {shown}" if was_read(shown) else f"its version is not known: {getattr(shown, 'reason', shown)}"
    return Progress(False, f"waiting for {who} to run Kafka {version}: {now}", unread=not was_read(shown))


def target_version(spec: ClusterSpec) -> str:
    return spec.kafka.upgrade_to.version if spec.kafka.upgrade_to else "of kafka.upgrade_to (the file names none now)"


CONTROLLER_ON_TARGET = Condition(
    "controller_on_target",
    "controller {id} to run the target, be caught up and warm",
    lambda seen, spec, node, earlier: controller_runs(seen, spec, node, target_version(spec), earlier),
    keeps=unjudged,
)
CONTROLLER_ON_FORMER = Condition(
    "controller_on_former",
    "controller {id} to run the version before, be caught up and warm",
    lambda seen, spec, node, earlier: controller_runs(seen, spec, node, spec.kafka.version, earlier),
    keeps=unjudged,
)
BROKER_ON_TARGET = Condition(
    "broker_on_target",
    "broker {id} to run the target and be registered",
    lambda seen, spec, node, earlier: broker_runs(seen, spec, node, target_version(spec), earlier),
)
BROKER_ON_FORMER = Condition(
    "broker_on_former",
    "broker {id} to run the version before and be registered",
    lambda seen, spec, node, earlier: broker_runs(seen, spec, node, spec.kafka.version, earlier),
)
BROKER_REGISTERED = Condition(
    "broker_registered",
    "broker {id} to be registered",
    lambda seen, spec, node, earlier: (
        exited_broker(seen, earlier, node) or broker_registered(seen, spec, node, BrokerMode.KRAFT, earlier=earlier)
    ),
)
"""On whichever software."""
CONTROLLER_CAUGHT_UP = Condition(
    "controller_caught_up",
    "controller {id} to be caught up and warm",
    lambda seen, spec, node, earlier: (
        exited_controllers(seen, earlier, node) or first_missing(unfinished_quorum(seen, spec, earlier, node))
    ),
    keeps=unjudged,
)
QUORUM_WHOLE = Condition(
    "quorum_whole",
    "every controller to run, be caught up and warm",
    lambda seen, spec, _, earlier: quorum_whole(seen, spec, earlier=earlier),
    keeps=unjudged,
)
BROKER_IN_SYNC = Condition(
    "broker_in_sync",
    "broker {id} to be in every ISR",
    lambda seen, spec, node, earlier: (
        exited_broker(seen, earlier, node) or in_sync_and_loaded(seen, earlier, spec, node)
    ),
)

CANARY_HOLDS = canary(never_known)

CONDITIONS = by_name(
    CANARY_HOLDS,
    CONTROLLER_ON_TARGET,
    CONTROLLER_ON_FORMER,
    CONTROLLER_CAUGHT_UP,
    QUORUM_WHOLE,
    BROKER_REGISTERED,
    BROKER_ON_TARGET,
    BROKER_ON_FORMER,
    BROKER_IN_SYNC,
)
