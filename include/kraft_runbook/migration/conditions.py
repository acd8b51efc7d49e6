"""The conditions that the migration and its rollback wait for. Pure: an observation in, progress out, with the name of
who or what is missing.

The caller looks again and again, counts the observations that hold in a row, and keeps the deadline. Every condition
also holds where the cluster is already past it, so that a cleared task goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraft_runbook.cluster.birth import log_says_none
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMetrics,
    ControllerMode,
    ZkMigrationState,
    was_read,
)
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy as no_copy_shown
from kraft_runbook.migration.unfinished_copy import (
    UNTOLD,
    brokers_not_in_migration,
    copy_unfinished,
    end_untold,
    offset_unproven,
    one_controller,
)
from kraft_runbook.runbook.canary import canary_in
from kraft_runbook.runbook.conditions import DONE, Condition, Progress, Topics, by_name, first_missing
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

# -- the quorum --------------------------------------------------------------------------------------------------------


def quorum_ready(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Progress:
    """A leader, every voter caught up, every controller in migration mode and showing PRE_MIGRATION (or a
    later state).
    """
    lost = exited_controllers(seen, earlier)
    if lost:
        return lost
    metrics = {c.id: c.metrics for c in seen.controllers.values() if was_read(c.metrics)}
    if log_says_none(seen):
        return Progress(
            False,
            "the metadata log's ZkMigrationState is 0 (NONE): the quorum was formed without the migration flag",
            hopeless=True,
        )
    final = any(m.zk_migration_state is ZkMigrationState.POST_MIGRATION for m in metrics.values())
    unflagged = seen.controllers_in(ControllerMode.KRAFT)
    if unflagged and not final:
        return Progress(False, f"{nodes('controller', unflagged, 'runs')} without the migration flag", hopeless=True)
    return first_missing(
        unfinished_quorum(seen, spec, earlier),
        _states(
            seen, spec, {ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION}
        ),
    )


def controller_caught_up(
    seen: ClusterObservation, spec: ClusterSpec, node_id: int, *, earlier: ClusterObservation | None = None
) -> Progress:
    """This controller runs, the leader counts it as caught up, it is warm, and its metrics show a published state."""
    return exited_controllers(seen, earlier, only=node_id) or first_missing(
        unfinished_quorum(seen, spec, earlier, only=node_id), _published(seen, node_id)
    )


def _published(seen: ClusterObservation, node_id: int) -> Iterator[str]:
    metrics = seen.controllers[node_id].metrics
    if not was_read(metrics):
        yield f"waiting for the metrics of controller {node_id}: {metrics.reason}"
    elif metrics.zk_migration_state in (None, ZkMigrationState.NOT_PUBLISHED):
        yield f"waiting for controller {node_id} to publish its first image (ZkMigrationState is {_state(metrics)})"


def _states(seen: ClusterObservation, spec: ClusterSpec, wanted: set[ZkMigrationState]) -> Iterator[str]:
    """What keeps every controller from showing one of the wanted states."""
    names = " or ".join(f"{s.value} ({s.name})" for s in sorted(wanted))
    there = 0
    missing = []
    for i in spec.controller_ids:
        metrics = seen.controllers[i].metrics
        if was_read(metrics) and metrics.zk_migration_state in wanted:
            there += 1
        else:
            missing.append(
                f"controller {i} shows {_state(metrics)}"
                if was_read(metrics)
                else f"controller {i}'s metrics: {metrics.reason}"
            )
    if missing:
        yield (
            f"waiting for ZkMigrationState {names}: {there} of {len(spec.controller_ids)} show it; {'; '.join(missing)}"
        )


def _state(metrics: ControllerMetrics) -> str:
    state = metrics.zk_migration_state
    return "no ZkMigrationState" if state is None else f"{state.value} ({state.name})"


# -- the brokers -------------------------------------------------------------------------------------------------------


def broker_back_in_migration_mode(
    seen: ClusterObservation, spec: ClusterSpec, node_id: int, *, earlier: ClusterObservation | None = None
) -> Progress:
    """As ``broker_registered``, in a rollback: KRaft mode does not count. ZooKeeper mode counts, and so does any mode
    on a cluster that shows no completed copy.
    """
    if (
        seen.brokers[node_id].mode == BrokerMode.ZOOKEEPER
        or detect_phase(seen).phase in (Phase.ZOOKEEPER, Phase.PRE_MIGRATION)
        or no_copy_shown(seen)
    ):
        return DONE
    return broker_registered(seen, spec, node_id, BrokerMode.HYBRID, earlier=earlier, kraft_counts=False)


def broker_in_sync(
    seen: ClusterObservation, spec: ClusterSpec, node_id: int, *, earlier: ClusterObservation | None = None
) -> Progress:
    """The broker is in the ISR of each of its partitions, no partition is offline, and every broker knows the same
    topics, except those being created or deleted; then no coordinator loads (``runbook.coordinators``).

    Judged by the Metadata responses of all brokers, and the worst response counts: a broker that has just started may
    know no topic at all, which would look like being in sync.
    """
    if (no_copy_shown(seen) or _copy_under_way(seen)) and seen.brokers[node_id].mode != BrokerMode.KRAFT:
        # No ISR can change now, so waiting would keep a person from leaving a copy that hangs or died. The copy's own
        # condition asks again.
        return DONE
    lost = exited_broker(seen, earlier, node_id)
    if lost:
        return lost
    return in_sync_and_loaded(seen, earlier, spec, node_id)


def _copy_under_way(seen: ClusterObservation) -> bool:
    """Whether a KRaft controller has the controller role and has not yet copied everything: no ISR changes during that
    time (docs/copy.md).
    """
    if (
        detect_phase(seen).phase is not Phase.PRE_MIGRATION
        or not was_read(seen.zookeeper)
        or seen.zookeeper.controller is None
    ):
        return False
    return seen.zookeeper.controller.kraft_controller_epoch >= 0


# -- the copy and the end ----------------------------------------------------------------------------------------------


def metadata_copied(seen: ClusterObservation, earlier: ClusterObservation | None, spec: ClusterSpec) -> Progress:
    """The safe gate. The metric alone is not enough: state 1 is committed before ZooKeeper and the brokers are updated
    (0.5 to 2.4 s, measured on 501 partitions; longer with more).

    State 1 on every controller, every broker counted as migrating, no topic that stays on one side only, no partition
    out of sync, one controller on both sides, and ZooKeeper written up to what was committed at the look before.
    ZkWriteBehindLag does not count: it is not 0 for long while metadata changes, and it stays 0 after dual write has
    stopped.
    """
    metrics = [c.metrics for c in seen.controllers.values() if was_read(c.metrics)]
    if (
        metrics
        and len(metrics) == len(spec.controllers)
        and all(m.zk_migration_state is ZkMigrationState.POST_MIGRATION for m in metrics)
    ):
        return DONE
    for broker_id in spec.broker_ids:
        lost = exited_broker(seen, earlier, broker_id)
        if lost:
            return lost
    lost = exited_controllers(seen, earlier)
    if lost:
        return lost
    if end_untold(seen):
        return Progress(False, UNTOLD, hopeless=True)
    return first_missing(
        brokers_not_in_migration(seen, spec),
        _states(seen, spec, {ZkMigrationState.MIGRATION}),
        copy_unfinished(seen, earlier, spec),
    )


def ready_to_leave(seen: ClusterObservation, earlier: ClusterObservation | None) -> Progress:
    """What leaving KRaft needs: a leader, one controller on both sides, and ZooKeeper written up to what was committed
    at the look before. Controllers that are down are already fenced, and replicas out of sync do not prevent leaving.
    """
    if not was_read(seen.quorum):
        return Progress(False, f"waiting for a quorum leader: {seen.quorum.reason}")
    if not was_read(seen.zookeeper):
        return Progress(False, f"waiting for ZooKeeper: {seen.zookeeper.reason}")
    if seen.quorum.migration_state_record is not ZkMigrationState.MIGRATION:
        return Progress(False, "waiting for ZkMigrationState 1 (MIGRATION) in the metadata log")
    if end_untold(seen):
        return Progress(False, UNTOLD, hopeless=True)
    return first_missing(
        one_controller(seen.zookeeper, seen.quorum), offset_unproven(seen.zookeeper, seen.quorum, earlier)
    )


def finalized(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Progress:
    """ZkMigrationState 3 on every controller."""
    return exited_controllers(seen, earlier) or first_missing(_states(seen, spec, {ZkMigrationState.POST_MIGRATION}))


def copied(seen: ClusterObservation) -> dict[str, Any]:
    """What the evidence keeps of the metadata copy: begin, end, seconds and records, by the metadata log's time stamps.
    Empty where they can't be read any more.
    """
    span = seen.quorum.copy if was_read(seen.quorum) else None
    if span is None:
        return {}
    return {
        "copy": {"began_at": span.began_at, "ended_at": span.ended_at, "seconds": span.seconds, "records": span.records}
    }


# -- by name -----------------------------------------------------------------------------------------------------------

QUORUM_READY = Condition(
    "quorum_ready",
    "the controller quorum to be ready for the migration",
    lambda seen, spec, _, earlier: quorum_ready(seen, spec, earlier=earlier),
    keeps=unjudged,
    topics=Topics.NEVER,
)
QUORUM_LED = Condition(
    "quorum_led",
    "a majority of the controllers to run and elect a leader",
    lambda seen, *_: quorum_led(seen),
    topics=Topics.NEVER,
)
QUORUM_WHOLE = Condition(
    "quorum_whole",
    "every controller to run, to have caught up and to be warm",
    lambda seen, spec, _, earlier: quorum_whole(seen, spec, earlier=earlier),
    keeps=unjudged,
    topics=Topics.NEVER,
)
CONTROLLER_CAUGHT_UP = Condition(
    "controller_caught_up",
    "controller {id} to have caught up and to be warm",
    lambda seen, spec, node, earlier: controller_caught_up(seen, spec, node, earlier=earlier),
    keeps=unjudged,
    topics=Topics.NEVER,
)
BROKER_REGISTERED_AS_MIGRATING = Condition(
    "broker_registered_as_migrating",
    "broker {id} to register with the quorum as migrating",
    lambda seen, spec, node, earlier: broker_registered(seen, spec, node, BrokerMode.HYBRID, earlier=earlier),
    topics=Topics.NEVER,
)
BROKER_REGISTERED_IN_KRAFT = Condition(
    "broker_registered_in_kraft",
    "broker {id} to register with the quorum in KRaft mode",
    lambda seen, spec, node, earlier: broker_registered(seen, spec, node, BrokerMode.KRAFT, earlier=earlier),
    topics=Topics.NEVER,
)
BROKER_BACK_IN_MIGRATION_MODE = Condition(
    "broker_back_in_migration_mode",
    "broker {id} to register with the quorum as migrating again",
    lambda seen, spec, node, earlier: broker_back_in_migration_mode(seen, spec, node, earlier=earlier),
    topics=Topics.NEVER,
)
BROKER_IN_ZOOKEEPER_MODE = Condition(
    "broker_in_zookeeper_mode",
    "broker {id} to run in ZooKeeper mode",
    lambda seen, spec, node, earlier: broker_registered(seen, spec, node, BrokerMode.ZOOKEEPER, earlier=earlier),
    topics=Topics.NEVER,
)
BROKER_IN_SYNC = Condition(
    "broker_in_sync",
    "broker {id} to be in every ISR",
    lambda seen, spec, node, earlier: broker_in_sync(seen, spec, node, earlier=earlier),
)
METADATA_COPIED = Condition(
    "metadata_copied",
    "the metadata copy to end and dual write to run",
    lambda seen, spec, _, earlier: metadata_copied(seen, earlier, spec),
    keeps=copied,
    topics=Topics.LAST,
)
READY_TO_LEAVE = Condition(
    "ready_to_leave",
    "the active controller to write to ZooKeeper",
    lambda seen, spec, _, earlier: ready_to_leave(seen, earlier),
    topics=Topics.NEVER,
)
FINALIZED = Condition(
    "finalized",
    "every controller to show the migration as final",
    lambda seen, spec, _, earlier: finalized(seen, spec, earlier=earlier),
    topics=Topics.NEVER,
)

CANARY_HOLDS_AS_MIGRATING = canary_in(BrokerMode.HYBRID, {BrokerMode.HYBRID, BrokerMode.KRAFT})
CANARY_HOLDS_IN_KRAFT = canary_in(BrokerMode.KRAFT, {BrokerMode.KRAFT})

CONDITIONS = by_name(
    CANARY_HOLDS_AS_MIGRATING,
    CANARY_HOLDS_IN_KRAFT,
    QUORUM_READY,
    QUORUM_LED,
    QUORUM_WHOLE,
    CONTROLLER_CAUGHT_UP,
    BROKER_REGISTERED_AS_MIGRATING,
    BROKER_REGISTERED_IN_KRAFT,
    BROKER_BACK_IN_MIGRATION_MODE,
    BROKER_IN_ZOOKEEPER_MODE,
    BROKER_IN_SYNC,
    METADATA_COPIED,
    READY_TO_LEAVE,
    FINALIZED,
)
"""Every condition of the migration and its rollback, by the name that a sensor is given."""
