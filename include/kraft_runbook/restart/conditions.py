"""What a rolling restart waits for: the quorum whole, the broker registered as before and in every ISR. Pure."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.canary import canary, never_known
from kraft_runbook.runbook.conditions import DONE, Condition, Progress, by_name, first_missing
from kraft_runbook.runbook.coordinators import in_sync_and_loaded
from kraft_runbook.runbook.health import (
    broker_registered,
    exited_broker,
    exited_controllers,
    quorum_led,
    quorum_whole,
    unfinished_quorum,
)
from kraft_runbook.runbook.warm import unjudged


def _controller_back(
    seen: ClusterObservation, spec: ClusterSpec, node: int, earlier: ClusterObservation | None
) -> Progress:
    """Where no controller is provisioned, none was restarted."""
    if detect_phase(seen).phase is Phase.ZOOKEEPER:
        return DONE
    return exited_controllers(seen, earlier, only=node) or first_missing(
        unfinished_quorum(seen, spec, earlier, only=node)
    )


def _broker_back(
    seen: ClusterObservation, spec: ClusterSpec, node: int, earlier: ClusterObservation | None
) -> Progress:
    """Registered, unfenced, in the mode that it runs in: a restart changes none."""
    mode = seen.brokers[node].mode
    if was_read(mode):
        return broker_registered(seen, spec, node, mode, earlier=earlier, kraft_counts=False)
    told = f"waiting for broker {node} to answer: {mode.reason}"
    return exited_broker(seen, earlier, node) or Progress(False, told, unread=True)


def _in_sync(seen: ClusterObservation, spec: ClusterSpec, node: int, earlier: ClusterObservation | None) -> Progress:
    return exited_broker(seen, earlier, node) or in_sync_and_loaded(seen, earlier, spec, node)


QUORUM_LED = Condition("quorum_led", "a controller to lead the quorum", lambda seen, *_: quorum_led(seen))
QUORUM_WHOLE = Condition(
    "quorum_whole",
    "every controller to run, to have caught up and to be warm",
    lambda seen, spec, _, earlier: quorum_whole(seen, spec, earlier=earlier),
    keeps=unjudged,
)
CONTROLLER_BACK = Condition(
    "controller_back", "controller {id} to have caught up and to be warm", _controller_back, keeps=unjudged
)
BROKER_BACK = Condition("broker_back", "broker {id} to register again", _broker_back)
BROKER_IN_SYNC = Condition("broker_in_sync", "broker {id} to be in every ISR", _in_sync)

CANARY_HOLDS = canary(never_known)

CONDITIONS = by_name(CANARY_HOLDS, QUORUM_LED, QUORUM_WHOLE, CONTROLLER_BACK, BROKER_BACK, BROKER_IN_SYNC)
