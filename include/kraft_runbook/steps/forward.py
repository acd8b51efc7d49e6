"""The migration's steps on a node: a controller is provisioned, a broker restarted in another mode, a controller taken
out of migration mode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    ZkMigrationState,
    was_read,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.migration import plays
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.conditions import QUORUM_WHOLE
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook.procedures.copy_size import provisioning_size
from kraft_runbook.runbook.lost_disk import why_not_anew
from kraft_runbook.runbook.plays import Play
from kraft_runbook.steps.before_the_copy import require_controllers_may_write, require_replicas_as_in_zookeeper
from kraft_runbook.steps.dual_write import require_dual_write
from kraft_runbook.steps.guards import require_other_brokers, require_other_controllers_up
from kraft_runbook.steps.live_groups import require_no_live_groups
from kraft_runbook.steps.node_step import Look, NodeStep
from kraft_runbook.steps.registrations import require_registered
from kraft_runbook.steps.roll import left_for_last

log = logging.getLogger(__name__)

# -- a controller is provisioned ---------------------------------------------------------------------------------------


def _came_down(look: Look) -> bool:
    """Whether this controller is down after the metadata copy, with or without its disk. It is then provisioned as
    before, and catches up from the others.
    """
    return look.phase in DUAL_WRITING and look.seen.controllers[look.node].running is False


def _provisioned(look: Look) -> str | None:
    state = look.seen.controllers[look.node]
    if state.running is True and state.mode == ControllerMode.MIGRATION:
        return f"controller {look.node} runs in migration mode"
    return None


def _require_no_former_try(look: Look) -> None:
    seen = look.seen
    back = f"trigger zk_to_kraft_rollback__{look.spec.name}"
    if _came_down(look):
        unsafe = why_not_anew(seen, look.node)
        if unsafe:
            raise Refused(
                unsafe,
                way_out="start the others and let them catch up (kraft-runbook observe), then clear this task",
            )
    _require_no_quorum_that_was_left(look, back)
    if was_read(seen.quorum) or not was_read(seen.zookeeper):
        return
    stale = seen.zookeeper.migration
    if stale is not None and not stale.is_blank:
        raise Refused(
            f"/migration of an earlier try still exists (offset {stale.kraft_metadata_offset}): new controllers that"
            " find it erase every topic from ZooKeeper",
            way_out=f"{back}, which ends the earlier try, then clear this task",
        )
    migrating = seen.brokers_in(BrokerMode.HYBRID)
    running = [c.id for c in seen.controllers.values() if c.running is True]
    if migrating and not running:
        raise Refused(
            f"{nodes('broker', migrating, 'is')} still in migration mode of an earlier quorum and would shut"
            " down when new controllers start",
            way_out=f"{back}, which restarts {by_number(migrating, 'it', 'them')} in ZooKeeper mode, then clear this"
            " task",
        )


def _require_no_quorum_that_was_left(look: Look, back: str) -> None:
    """Controllers with a finished copy beside a ZooKeeper controller that leads: they were left by a rollback that has
    not set them aside, and run again. A copy that goes on is led by KRaft from its beginning.
    """
    zookeeper, copied = look.seen.zookeeper, (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION)
    if not was_read(zookeeper) or zookeeper.controller is None or zookeeper.controller.kraft_controller_epoch >= 0:
        return
    left = [
        each.id
        for each in look.seen.controllers.values()
        if was_read(each.metrics) and each.metrics.zk_migration_state in copied
    ]
    if left:
        raise Refused(
            f"{nodes('controller', left, 'runs')} with the log of a migration that was left: ZooKeeper leads",
            way_out=f"stop {by_number(left, 'it', 'them')}; {back}, which sets the controllers aside, then clear this"
            " task",
        )


def _provision(look: Look) -> Play:
    zookeeper = look.seen.zookeeper
    if not was_read(zookeeper) or zookeeper.cluster_id is None:
        raise Refused(
            "the cluster's id could not be read from ZooKeeper",
            way_out="make ZooKeeper reachable and clear this task",
        )
    size = look.cluster.ask(provisioning_size, look.node, tell=look.tell)
    led = zookeeper.controller is not None and zookeeper.controller.kraft_controller_epoch < 0
    anew = led and not was_read(look.seen.quorum)
    return plays.provision_controller(look.spec, look.node, zookeeper.cluster_id, size=size, anew=anew)


PROVISION = NodeStep(
    MIGRATION,
    Step.PROVISION_CONTROLLERS,
    play=_provision,
    done=_provisioned,
    guard=_require_no_former_try,
    excepted=_came_down,
)
"""Render, format with the cluster's own id, start."""

# -- a broker is restarted in another mode -----------------------------------------------------------------------------


def runs_in(mode: BrokerMode, look: Look) -> str | None:
    """Why nothing is left to do on a broker that should run in this mode; None if something is."""
    state = look.seen.brokers[look.node]
    return f"broker {look.node} is in {mode.value} mode" if state.running is True and state.mode == mode else None


def require_safe_restart(look: Look, *, others_in_sync: bool = True) -> None:
    """Raise Refused if stopping this broker could make partitions unavailable, or if an election could finalize the
    migration. A broker that has ended may be started in any case, since that stops nothing.
    """
    if look.seen.brokers[look.node].running is not False:
        require_other_brokers(look, in_sync=others_in_sync)
    without_flag = look.seen.controllers_in(ControllerMode.KRAFT)
    if without_flag and look.phase is not Phase.FINALIZED:
        raise Refused(
            f"{nodes('controller', without_flag, 'runs')} without the migration flag: the first time"
            f" {by_number(without_flag, 'it leads', 'one of them leads')}, the migration is final, in whatever mode the"
            " brokers are",
            way_out=f"restart {by_number(without_flag, 'it', 'them')} with zookeeper.metadata.migration.enable=true"
            " before one without it is elected, then clear this task",
        )


def require_safe_start(look: Look) -> None:
    """The same, and wait for the end of a killed broker's session."""
    require_safe_restart(look)
    await_session_end(look, require_safe_restart)


def await_session_end(look: Look, guard: Callable[[Look], None]) -> None:
    """Wait until ZooKeeper has dropped the znode of a broker that was killed: one that is started in ZooKeeper or
    migration mode before that ends again at once, since its id is taken (``KafkaZkClient.registerBroker``).

    ``guard``: of the restart; asked anew where the host's service manager brings the broker up meanwhile.
    """
    seen, deadlines = look.seen, look.spec.deadlines
    if seen.brokers[look.node].running is not False:
        return
    for _ in range(int(deadlines.registration / deadlines.poll)):
        if seen.brokers[look.node].running is True:
            look.tell(f"broker {look.node} came up by itself, so what is asked before a broker is stopped is asked now")
            guard(replace(look, seen=seen))
            return
        if _has_no_znode(seen, look.node):
            return
        if seen is look.seen:
            look.tell(f"broker {look.node} has ended: waiting until its ZooKeeper session ends, which has its id")
        look.cluster.pause(deadlines.poll)
        seen = look.cluster.observe()


def _has_no_znode(seen: ClusterObservation, broker: int) -> bool:
    return was_read(seen.zookeeper) and broker not in seen.zookeeper.brokers


def _to_hybrid(look: Look) -> Play:
    return plays.restart_broker(look.spec, look.node, BrokerMode.HYBRID, finalized=look.phase is Phase.FINALIZED)


def _require_hybrid_is_safe(look: Look) -> None:
    require_safe_start(look)
    require_registered(look)
    require_controllers_may_write(look)
    require_replicas_as_in_zookeeper(look)


TO_HYBRID = NodeStep(
    MIGRATION,
    Step.ROLL_BROKERS_TO_HYBRID,
    play=_to_hybrid,
    done=lambda look: runs_in(BrokerMode.HYBRID, look),
    guard=_require_hybrid_is_safe,
)
"""Render the configuration of migration mode and restart the broker once, if it does not run with it already."""


def _left_behind(look: Look) -> bool:
    """Whether somebody finalized the migration by hand in the middle of the roll into KRaft mode, before this broker's
    turn.
    """
    return look.phase is Phase.FINALIZED and look.seen.brokers[look.node].mode != BrokerMode.KRAFT


def _require_the_way_back(look: Look) -> None:
    if _left_behind(look):
        log.error(
            "The migration was finalized while broker %d was in migration mode. KRaft mode is the only way left for it"
            " (docs/finalization.md)",
            look.node,
        )
    require_safe_restart(look)
    if look.phase in DUAL_WRITING:
        require_dual_write(look.cluster, look.seen)
        require_no_live_groups(look)


def _to_kraft(look: Look) -> Play:
    return plays.restart_broker(look.spec, look.node, BrokerMode.KRAFT, finalized=look.phase is Phase.FINALIZED)


TO_KRAFT = NodeStep(
    MIGRATION,
    Step.ROLL_BROKERS_TO_KRAFT,
    play=_to_kraft,
    done=lambda look: runs_in(BrokerMode.KRAFT, look),
    guard=_require_the_way_back,
    excepted=_left_behind,
    batched=True,
)
"""The same for KRaft mode, after a check that dual write is alive, and before the last broker that nobody consumes
through ZooKeeper.
"""

# -- a controller leaves migration mode --------------------------------------------------------------------------------


def remaining(seen: ClusterObservation) -> list[int]:
    """The controllers that are not proven to run without the migration flag."""
    return [c.id for c in seen.controllers.values() if c.mode != ControllerMode.KRAFT]


def _finalized(look: Look) -> str | None:
    state = look.seen.controllers[look.node]
    if state.running is True and state.mode == ControllerMode.KRAFT:
        return f"controller {look.node} runs without the migration flag"
    return None


def _require_brokers_in_kraft(look: Look) -> None:
    not_in_kraft = [b.id for b in look.seen.brokers.values() if b.mode != BrokerMode.KRAFT]
    if not_in_kraft:
        raise Refused(
            f"{nodes('broker', not_in_kraft, 'is')} not proven to be in KRaft mode",
            way_out="restart it in KRaft mode first; finalization would cut it off",
        )
    require_other_controllers_up(look)
    if look.seen.controllers[look.node].running is False:
        return  # this step's own try was ended between stop and start: nobody else starts it
    if not QUORUM_WHOLE.progress(look.seen, look.spec).done:  # a standby may be cold: elected, it could not lead yet
        look.cluster.wait_for(QUORUM_WHOLE, deadline=look.spec.deadlines.quorum)


FINALIZE = NodeStep(
    MIGRATION,
    Step.FINALIZE_CONTROLLERS,
    play=lambda look: plays.finalize_controller(look.spec, look.node),
    done=_finalized,
    passed_over=lambda look: left_for_last(look, remaining(look.seen)),
    guard=_require_brokers_in_kraft,
)
"""Restart one controller without the migration flag, the active one last. The approval is read again before each."""
