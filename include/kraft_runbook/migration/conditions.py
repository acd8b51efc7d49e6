"""What each wait of the runbook waits for. Pure: an observation in, progress out, with the name of who or what is missing.

The caller looks again and again, counts the observations that hold in a row, and keeps the deadline. Every condition also holds
where the cluster is already beyond it, so that a cleared task goes on from what is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMetrics,
    ControllerMode,
    QuorumState,
    ZkMigrationState,
    ZookeeperState,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.birth import log_says_none
from kraft_runbook.migration.lag import topics_apart, unaware_brokers, unwritten, voters_behind
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy as no_copy_shown
from kraft_runbook.migration.phases import Phase, detect_phase


@dataclass(frozen=True, slots=True)
class Progress:
    """Whether the condition holds, and if not, who or what is missing. ``hopeless``: waiting longer can't help."""

    done: bool
    waiting_for: str = ""
    hopeless: bool = False


DONE = Progress(True)


class Condition(StrEnum):
    """The waits of the runbook, by the name under which a sensor is given one."""

    QUORUM_READY = "quorum_ready"
    QUORUM_LED = "quorum_led"
    QUORUM_WHOLE = "quorum_whole"
    CONTROLLER_CAUGHT_UP = "controller_caught_up"
    BROKER_REGISTERED_AS_MIGRATING = "broker_registered_as_migrating"
    BROKER_REGISTERED_IN_KRAFT = "broker_registered_in_kraft"
    BROKER_BACK_IN_MIGRATION_MODE = "broker_back_in_migration_mode"
    BROKER_IN_ZOOKEEPER_MODE = "broker_in_zookeeper_mode"
    BROKER_IN_SYNC = "broker_in_sync"
    METADATA_COPIED = "metadata_copied"
    READY_TO_LEAVE = "ready_to_leave"
    FINALIZED = "finalized"

    def describe(self, node_id: int | None = None) -> str:
        """What is waited for, as a phrase."""
        return _PHRASES[self].format(id=node_id)


_PHRASES = {
    Condition.QUORUM_READY: "the controller quorum to be ready for the migration",
    Condition.QUORUM_LED: "a majority of the controllers to run and elect a leader",
    Condition.QUORUM_WHOLE: "every controller to run and be caught up",
    Condition.CONTROLLER_CAUGHT_UP: "controller {id} to be caught up",
    Condition.BROKER_REGISTERED_AS_MIGRATING: "broker {id} to register with the quorum as migrating",
    Condition.BROKER_REGISTERED_IN_KRAFT: "broker {id} to register with the quorum in KRaft mode",
    Condition.BROKER_BACK_IN_MIGRATION_MODE: "broker {id} to register with the quorum as migrating again",
    Condition.BROKER_IN_ZOOKEEPER_MODE: "broker {id} to run in ZooKeeper mode",
    Condition.BROKER_IN_SYNC: "broker {id} to be in every ISR",
    Condition.METADATA_COPIED: "the metadata to be copied and dual writes to flow",
    Condition.READY_TO_LEAVE: "the active controller to write to ZooKeeper",
    Condition.FINALIZED: "every controller to show the migration as final",
}


def evaluate(
    condition: Condition, seen: ClusterObservation, spec: ClusterSpec, *, node_id: int | None = None, earlier: ClusterObservation | None = None
) -> Progress:
    """Whether the condition holds. ``node_id``: the node it is about; ``earlier``: the observation before, where there is one."""
    match condition:
        case Condition.QUORUM_READY:
            return quorum_ready(seen, spec, earlier=earlier)
        case Condition.QUORUM_LED:
            return quorum_led(seen)
        case Condition.QUORUM_WHOLE:
            return quorum_whole(seen, spec, earlier=earlier)
        case Condition.METADATA_COPIED:
            return metadata_copied(seen, earlier, spec)
        case Condition.READY_TO_LEAVE:
            return ready_to_leave(seen, earlier)
        case Condition.FINALIZED:
            return finalized(seen, spec, earlier=earlier)
    if node_id is None:
        raise ValueError(f"{condition} is about one node: give its id")
    match condition:
        case Condition.CONTROLLER_CAUGHT_UP:
            return controller_caught_up(seen, spec, node_id, earlier=earlier)
        case Condition.BROKER_REGISTERED_AS_MIGRATING:
            return broker_registered(seen, spec, node_id, BrokerMode.HYBRID, earlier=earlier)
        case Condition.BROKER_REGISTERED_IN_KRAFT:
            return broker_registered(seen, spec, node_id, BrokerMode.KRAFT, earlier=earlier)
        case Condition.BROKER_BACK_IN_MIGRATION_MODE:
            return broker_back_in_migration_mode(seen, spec, node_id, earlier=earlier)
        case Condition.BROKER_IN_ZOOKEEPER_MODE:
            return broker_registered(seen, spec, node_id, BrokerMode.ZOOKEEPER, earlier=earlier)
        case Condition.BROKER_IN_SYNC:
            return broker_in_sync(seen, spec, node_id, earlier=earlier)


# -- the quorum ---------------------------------------------------------------------------------------------------------


def quorum_ready(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Progress:
    """A leader, every voter caught up, every controller in migration mode and showing PRE_MIGRATION (or a later state)."""
    lost = _exited_controllers(seen, earlier)
    if lost:
        return lost
    metrics = {c.id: c.metrics for c in seen.controllers.values() if was_read(c.metrics)}
    if log_says_none(seen):
        return Progress(False, "the metadata log's ZkMigrationState is 0 (NONE): its quorum was formed without the migration flag", hopeless=True)
    final = any(m.zk_migration_state is ZkMigrationState.POST_MIGRATION for m in metrics.values())
    unflagged = [c.id for c in seen.controllers.values() if c.mode == ControllerMode.KRAFT]
    if unflagged and not final:
        return Progress(False, f"controller {_ids(unflagged)} runs without the migration flag", hopeless=True)
    return _first(
        _unfinished_quorum(seen, spec, earlier),
        _states(seen, spec, {ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION}),
    )


def quorum_led(seen: ClusterObservation) -> Progress:
    """A leader answers: a majority runs."""
    if was_read(seen.quorum):
        return DONE
    down = [c.id for c in seen.controllers.values() if c.running is not True]
    told = f"waiting for a quorum leader: {seen.quorum.reason}"
    return Progress(False, f"{told}; controller {_ids(down)} does not run" if down else told)


def quorum_whole(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Progress:
    """A leader, and every declared controller runs and is caught up."""
    return _exited_controllers(seen, earlier) or _first(_unfinished_quorum(seen, spec, earlier))


def controller_caught_up(seen: ClusterObservation, spec: ClusterSpec, node_id: int, *, earlier: ClusterObservation | None = None) -> Progress:
    """This controller runs, the leader knows it as caught up, and its metrics show a published state."""
    return _exited_controllers(seen, earlier, only=node_id) or _first(_unfinished_quorum(seen, spec, earlier, only=node_id), _published(seen, node_id))


def _unfinished_quorum(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None, only: int | None = None) -> Iterator[str]:
    ids = spec.controller_ids if only is None else (only,)
    running = [i for i in ids if seen.controllers[i].running is True]
    for i in ids:
        state = seen.controllers[i].running
        if not was_read(state):
            yield f"waiting for controller {i} to answer: {state.reason}"
        elif not state:
            yield f"waiting for controller {i} to accept connections: {len(running)} of {len(ids)} do"
    if not was_read(seen.quorum):
        yield f"waiting for a quorum leader: {seen.quorum.reason}"
        return
    voters = {v.id: v.log_end_offset for v in seen.quorum.voters}
    missing = [i for i in ids if i not in voters]
    if missing:
        yield f"controller {_ids(missing)} is not among the quorum's voters ({_ids(voters)})"
    behind = voters_behind(seen, earlier, ids)
    if behind:
        done = len(ids) - len(behind)
        lag = ", ".join(f"{i} at {at}" for i, at in behind.items())
        yield f"waiting for voter {_ids(behind)} to catch up with offset {seen.quorum.high_watermark} ({lag}): {done} of {len(ids)} caught up"


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
            missing.append(f"controller {i} shows {_state(metrics)}" if was_read(metrics) else f"controller {i}'s metrics: {metrics.reason}")
    if missing:
        yield f"waiting for ZkMigrationState {names}: {there} of {len(spec.controller_ids)} show it; {'; '.join(missing)}"


def _state(metrics: ControllerMetrics) -> str:
    state = metrics.zk_migration_state
    return "no ZkMigrationState" if state is None else f"{state.value} ({state.name})"


# -- the brokers --------------------------------------------------------------------------------------------------------


def broker_registered(
    seen: ClusterObservation, spec: ClusterSpec, node_id: int, mode: BrokerMode, *, earlier: ClusterObservation | None = None, kraft_counts: bool = True
) -> Progress:
    """The broker runs in the mode and the quorum knows it so, unfenced. ``kraft_counts``: on the way forward KRAFT is beyond HYBRID."""
    lost = _exited_broker(seen, earlier, node_id)
    if lost:
        return lost
    wanted = (mode, BrokerMode.KRAFT) if mode is BrokerMode.HYBRID and kraft_counts else (mode,)
    state = seen.brokers[node_id]
    if state.running is True and was_read(state.mode) and state.mode in wanted and _is_registered(seen, node_id, state.mode):
        return DONE
    there = sum(1 for b in seen.brokers.values() if was_read(b.mode) and b.mode in wanted and _is_registered(seen, b.id, b.mode))
    now = f"it is in {state.mode} mode" if was_read(state.mode) else state.mode.reason
    if mode is BrokerMode.ZOOKEEPER:
        return Progress(False, f"waiting for broker {node_id} to run in ZooKeeper mode: {there} of {len(spec.brokers)} do; {now}")
    as_what = "as migrating" if mode is BrokerMode.HYBRID else "in KRaft mode"
    if was_read(seen.quorum) and node_id in seen.quorum.registrations and seen.quorum.registrations[node_id].fenced:
        now += ", its registration is fenced (where that lasts, restart this broker by hand: docs/reliability.md)"
    elif not was_read(seen.quorum):
        now += f"; the quorum: {seen.quorum.reason}"
    return Progress(False, f"waiting for broker {node_id} to register {as_what}: {there} of {len(spec.brokers)} seen; {now}")


def broker_back_in_migration_mode(seen: ClusterObservation, spec: ClusterSpec, node_id: int, *, earlier: ClusterObservation | None = None) -> Progress:
    """As ``broker_registered``, on the way back: KRaft mode does not count; further back does, and so does a cluster that shows no copy to come back from."""
    if seen.brokers[node_id].mode == BrokerMode.ZOOKEEPER or detect_phase(seen).phase in (Phase.ZOOKEEPER, Phase.PRE_MIGRATION) or no_copy_shown(seen):
        return DONE
    return broker_registered(seen, spec, node_id, BrokerMode.HYBRID, earlier=earlier, kraft_counts=False)


def _is_registered(seen: ClusterObservation, node_id: int, mode: BrokerMode) -> bool:
    """Whether ZooKeeper (for its own brokers) or the quorum has the broker, live, in this mode."""
    if mode is BrokerMode.ZOOKEEPER:
        return was_read(seen.zookeeper) and node_id in seen.zookeeper.brokers
    if not was_read(seen.quorum) or node_id not in seen.quorum.registrations:
        return False
    found = seen.quorum.registrations[node_id]
    return not found.fenced and found.is_migrating_zk_broker == (mode is BrokerMode.HYBRID)


def broker_in_sync(seen: ClusterObservation, spec: ClusterSpec, node_id: int, *, earlier: ClusterObservation | None = None) -> Progress:
    """The broker is in the ISR of each of its partitions, no partition is offline, and every broker knows the same topics, but for those that come and go.

    Judged by the Metadata answers of all brokers, the worst of them counting: one that has just started may know of no topic
    at all, which would look like being in sync.
    """
    if (no_copy_shown(seen) or _copy_under_way(seen)) and seen.brokers[node_id].mode != BrokerMode.KRAFT:
        return DONE  # nobody could take a replica back now: waiting would keep a copy that hangs, or died, from being left; the copy's own wait asks again
    lost = _exited_broker(seen, earlier, node_id)
    if lost:
        return lost
    return _first(_out_of_sync(seen, earlier, spec, node_id))


def _copy_under_way(seen: ClusterObservation) -> bool:
    """Whether a KRaft controller has taken the office and not yet copied everything: no ISR changes meanwhile (docs/copy.md)."""
    if detect_phase(seen).phase is not Phase.PRE_MIGRATION or not was_read(seen.zookeeper) or seen.zookeeper.controller is None:
        return False
    return seen.zookeeper.controller.kraft_controller_epoch >= 0


def _out_of_sync(seen: ClusterObservation, earlier: ClusterObservation | None, spec: ClusterSpec, node_id: int) -> Iterator[str]:
    topics = seen.topics
    if not was_read(topics):
        yield f"waiting for the partitions' state: {topics.reason}"
        return
    if node_id not in topics.live_broker_ids:
        yield f"waiting for broker {node_id} to be known to all brokers: {len(topics.live_broker_ids)} of {len(spec.brokers)} are"
    silent = [i for i in spec.broker_ids if i not in topics.topics_known_by_broker]
    if silent:
        yield f"waiting for broker {_ids(silent)} to answer Metadata"
    unaware = list(unaware_brokers(topics, earlier))
    if unaware:
        yield f"waiting for every broker to know all topics ({'; '.join(unaware)})"
    if topics.offline_count:
        yield f"waiting for {topics.offline_count} offline partitions: {', '.join(topics.offline[:5])}"
    lagging = topics.out_of_sync_by_broker.get(node_id, 0)
    if lagging:
        yield f"waiting for broker {node_id} to be in sync: out of the ISR of {lagging} partitions"


# -- the copy and the end -----------------------------------------------------------------------------------------------


def metadata_copied(seen: ClusterObservation, earlier: ClusterObservation | None, spec: ClusterSpec) -> Progress:
    """The safe gate, never the metric alone: state 1 is committed before ZooKeeper and the brokers know (0.5-2.4 s, longer at scale).

    State 1 on every controller, every broker counted as migrating, no topic that stays on one side alone, no partition out of sync,
    one controller on both sides, and ZooKeeper written up to what was committed at the look before. Not ZkWriteBehindLag 0: it
    never is for long where metadata changes all the time, and it always is where dual write has died.
    """
    metrics = [c.metrics for c in seen.controllers.values() if was_read(c.metrics)]
    if metrics and len(metrics) == len(spec.controllers) and all(m.zk_migration_state is ZkMigrationState.POST_MIGRATION for m in metrics):
        return DONE
    for broker_id in spec.broker_ids:
        lost = _exited_broker(seen, earlier, broker_id)
        if lost:
            return lost
    lost = _exited_controllers(seen, earlier)
    if lost:
        return lost
    return _first(_brokers_not_in_migration(seen, spec), _states(seen, spec, {ZkMigrationState.MIGRATION}), _copy_unfinished(seen, earlier))


def ready_to_leave(seen: ClusterObservation, earlier: ClusterObservation | None) -> Progress:
    """What leaving KRaft needs of the quorum, and no more: a leader, one controller on both sides, and ZooKeeper written up to what was committed at the
    look before. Controllers that are down are fenced already, and replicas out of sync are no reason to stay.
    """
    if not was_read(seen.quorum):
        return Progress(False, f"waiting for a quorum leader: {seen.quorum.reason}")
    if not was_read(seen.zookeeper):
        return Progress(False, f"waiting for ZooKeeper: {seen.zookeeper.reason}")
    if seen.quorum.migration_state_record is not ZkMigrationState.MIGRATION:
        return Progress(False, "waiting for ZkMigrationState 1 (MIGRATION) in the metadata log")
    return _first(one_controller(seen.zookeeper, seen.quorum), _offset_unproven(seen.zookeeper, earlier))


def _brokers_not_in_migration(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[str]:
    missing = [i for i in spec.broker_ids if seen.brokers[i].mode not in (BrokerMode.HYBRID, BrokerMode.KRAFT)]
    if missing:
        there = len(spec.brokers) - len(missing)
        yield f"waiting for broker {_ids(missing)} to run in migration mode: {there} of {len(spec.brokers)} do"


def _copy_unfinished(seen: ClusterObservation, earlier: ClusterObservation | None) -> Iterator[str]:
    if not was_read(seen.quorum):
        yield f"waiting for the quorum: {seen.quorum.reason}"
        return
    if not was_read(seen.zookeeper):
        yield f"waiting for ZooKeeper: {seen.zookeeper.reason}"
        return
    yield from _active_unfinished(seen)
    yield from one_controller(seen.zookeeper, seen.quorum)
    if not was_read(seen.topics):
        yield f"waiting for the partitions' state: {seen.topics.reason}"
    elif seen.topics.under_replicated_count or seen.topics.offline_count:
        yield f"waiting for {seen.topics.under_replicated_count} under-replicated and {seen.topics.offline_count} offline partitions"
    yield from _unwritten(seen, seen.zookeeper, earlier)


def _active_unfinished(seen: ClusterObservation) -> Iterator[str]:
    active = seen.active_controller
    if active is None:
        yield "the quorum's leader is not in the cluster file"
        return
    if not was_read(active.metrics):
        yield f"waiting for the metrics of active controller {active.id}: {active.metrics.reason}"
        return
    hybrid = len(seen.brokers_in(BrokerMode.HYBRID))
    if active.metrics.migrating_zk_broker_count != hybrid:
        yield f"waiting for MigratingZkBrokerCount {hybrid}: active controller {active.id} shows {active.metrics.migrating_zk_broker_count}"


def one_controller(zookeeper: ZookeeperState, quorum: QuorumState) -> Iterator[str]:
    """What contradicts that /controller, /migration and the quorum name the same controller."""
    leader = quorum.leader_id
    if zookeeper.controller is None or zookeeper.controller.broker_id != leader or zookeeper.controller.kraft_controller_epoch < 0:
        holder = "nobody" if zookeeper.controller is None else str(zookeeper.controller.broker_id)
        yield f"/controller names {holder}, the quorum's leader is {leader}"
    if zookeeper.migration is None or zookeeper.migration.kraft_controller_id != leader:
        holder = "does not exist" if zookeeper.migration is None else f"names {zookeeper.migration.kraft_controller_id}"
        yield f"/migration {holder}, the quorum's leader is {leader}"


def _unwritten(seen: ClusterObservation, zookeeper: ZookeeperState, earlier: ClusterObservation | None) -> Iterator[str]:
    """ZooKeeper must have been written up to what was committed when the cluster was last looked at, and no topic may stay apart."""
    yield from _offset_unproven(zookeeper, earlier)
    if earlier is None:
        return
    apart = topics_apart(seen, earlier)
    if not was_read(apart):
        yield f"waiting for all topics: {apart.reason}"
    elif apart:
        yield f"waiting for all topics: {'; '.join(apart)}"


def _offset_unproven(zookeeper: ZookeeperState, earlier: ClusterObservation | None) -> Iterator[str]:
    left = unwritten(zookeeper, earlier) if earlier is not None else None
    if earlier is None:
        yield "waiting for a second look, to see /migration advance"
    elif left:
        yield f"waiting for ZooKeeper to be written: {left}"


def finalized(seen: ClusterObservation, spec: ClusterSpec, *, earlier: ClusterObservation | None = None) -> Progress:
    """ZkMigrationState 3 on every controller."""
    return _exited_controllers(seen, earlier) or _first(_states(seen, spec, {ZkMigrationState.POST_MIGRATION}))


# -- shared -------------------------------------------------------------------------------------------------------------


def _exited_broker(seen: ClusterObservation, earlier: ClusterObservation | None, node_id: int) -> Progress | None:
    return _exited(f"broker {node_id}", lambda o: o.brokers[node_id].running, seen, earlier)


def _exited_controllers(seen: ClusterObservation, earlier: ClusterObservation | None, only: int | None = None) -> Progress | None:
    for node_id in seen.controllers if only is None else (only,):
        lost = _exited(f"controller {node_id}", lambda o, i=node_id: o.controllers[i].running, seen, earlier)  # type: ignore[misc]
        if lost:
            return lost
    return None


def _exited(who: str, running: Callable[[ClusterObservation], object], seen: ClusterObservation, earlier: ClusterObservation | None) -> Progress | None:
    """Refused twice in a row: its port was open when it was started, so the process has ended. Once may be a restart by hand."""
    if running(seen) is not False:
        return None
    hopeless = earlier is not None and running(earlier) is False
    told = f"{who}'s process has ended: its port refuses connections; its log says why" if hopeless else f"waiting for {who}: its port refuses connections"
    return Progress(False, told, hopeless=hopeless)


def _first(*missing: Iterable[str]) -> Progress:
    """Done when nothing is missing, else the first thing that is (the rest usually follows from it)."""
    for group in missing:
        for text in group:
            return Progress(False, text)
    return DONE


def _ids(ids: Iterable[int]) -> str:
    return ", ".join(str(i) for i in sorted(ids))
