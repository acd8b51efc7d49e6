"""The rollback's steps on a node: a broker is restarted one mode back, a controller's data is renamed."""

from __future__ import annotations

import logging
from functools import partial

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.errors import Refused
from kraft_runbook.migration import plays
from kraft_runbook.migration.leaving import gone_risk
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook.procedures.known_controller import knows_controller
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.forward import await_session_end, require_safe_restart, require_safe_start, runs_in
from kraft_runbook.steps.node_step import Look, NodeStep

log = logging.getLogger(__name__)

KNOWN_WITHIN = 120.0
"""Seconds that UpdateMetadata of the elected ZooKeeper controller may take to reach every broker (measured: below 1 s,
once 47).
"""


def _back(mode: BrokerMode, look: Look) -> Play:
    return plays.restart_broker(look.spec, look.node, mode, way_back=True, gone=look.gone)


def _back_in_hybrid(look: Look) -> str | None:
    mode = look.seen.brokers[look.node].mode
    if mode == BrokerMode.ZOOKEEPER:
        return f"broker {look.node} is in ZooKeeper mode, further back"
    if may_have_died_in_the_copy(look.seen) and mode != BrokerMode.KRAFT:
        return (
            f"nothing shows that the metadata copy was completed, so no broker left migration mode; broker {look.node}"
            " is restarted after leave_kraft"
        )
    return runs_in(BrokerMode.HYBRID, look)


BACK_TO_HYBRID = NodeStep(
    MIGRATION,
    Step.ROLL_BROKERS_BACK_TO_HYBRID,
    play=partial(_back, BrokerMode.HYBRID),
    done=_back_in_hybrid,
    guard=require_safe_start,
)
"""Restart a KRaft-mode broker in migration mode."""


def _require_known_controller(look: Look) -> None:
    """Raise Refused where a broker that runs does not know its ZooKeeper controller: its stop would hang for five
    minutes.
    """
    if look.seen.brokers[look.node].running is False:
        return
    if not was_read(look.seen.zookeeper) or look.seen.zookeeper.controller is None:
        raise Refused(
            "ZooKeeper names no controller",
            way_out="clear this task once a broker has been elected (kraft-runbook observe)",
        )
    controller = look.seen.zookeeper.controller.broker_id
    unknowing = look.cluster.ask(knows_controller, look.spec.broker(look.node), controller, within=KNOWN_WITHIN)
    if unknowing:
        raise Refused(
            unknowing,
            way_out=(
                "stop no broker that does not know its controller: it would hang for five minutes. Clear this task"
                " to check again"
            ),
        )


def _require_safe_return(look: Look, *, others_in_sync: bool = True) -> None:
    require_safe_restart(look, others_in_sync=others_in_sync)
    _require_known_controller(look)
    await_session_end(look, partial(_require_safe_return, others_in_sync=others_in_sync))


def _to_zookeeper(guard: partial[None]) -> NodeStep:
    return NodeStep(
        MIGRATION,
        Step.ROLL_BROKERS_TO_ZOOKEEPER,
        play=partial(_back, BrokerMode.ZOOKEEPER),
        done=partial(runs_in, BrokerMode.ZOOKEEPER),
        guard=guard,
    )


TO_ZOOKEEPER = _to_zookeeper(partial(_require_safe_return))
"""Restart a broker in ZooKeeper mode, once it knows its ZooKeeper controller."""

CUT_OFF_TO_ZOOKEEPER = _to_zookeeper(partial(_require_safe_return, others_in_sync=False))
"""The same of a broker that is cut off from its controller. What it leads comes back into sync only by its restart, so
there is nothing to wait for.
"""


def _set_aside_or_gone(look: Look) -> str | None:
    if look.node not in look.gone:
        return None
    log.warning("%s", gone_risk([look.node]))
    return f"controller {look.node} is gone with its host, as the trigger form says: nothing can be set aside there"


def _require_brokers_back(look: Look) -> None:
    not_back = [b.id for b in look.seen.brokers.values() if b.mode != BrokerMode.ZOOKEEPER]
    if not_back:
        raise Refused(
            f"{nodes('broker', not_back, 'is')} not proven to be back in ZooKeeper mode",
            way_out="finish its restart first; the controllers' data may still be needed",
        )


SET_ASIDE = NodeStep(
    MIGRATION,
    Step.SET_CONTROLLERS_ASIDE,
    play=lambda look: plays.set_controller_aside(look.node),
    done=_set_aside_or_gone,
    guard=_require_brokers_back,
)
"""Stop a controller where it runs, and give its data and configuration a name with the time. Only once every broker is
back in ZooKeeper mode.
"""
