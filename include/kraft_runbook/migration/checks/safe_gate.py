"""The safe gate: what must hold before brokers are restarted in KRaft mode, while they run in it, and before the
migration is finalized.

No single metric proves that the copy is complete and dual write runs. All these checks together do (measured on 3.9.2).
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerState,
    Unread,
    ZkMigrationState,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING, SOAK, check
from kraft_runbook.migration.unfinished_copy import migrating_brokers, one_controller
from kraft_runbook.runbook.check_results import BLOCKING, Finding, failed, passed, sample, settle, unknown
from kraft_runbook.runbook.lag import not_fetching, topics_apart, unwritten, voters_behind
from kraft_runbook.runbook.read_parts import broker_modes, split_read
from kraft_runbook.runbook.warm import WARM_FIX, controllers_are_warm

COPIED = {"dual_write", "finalize", SOAK}
"""The gates after the metadata copy."""


def _active(seen: ClusterObservation) -> ControllerState | Unread:
    if not was_read(seen.quorum):
        return seen.quorum
    return seen.active_controller or Unread(f"the quorum's leader {seen.quorum.leader_id} is not in the cluster file")


@check(
    "KRB-GATE-001",
    severity=BLOCKING,
    fix="wait for the metadata copy to end; look for KRaftMigrationDriver in the active controller's log",
    gates=COPIED,
)
def every_controller_shows_migration(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """ZkMigrationState is 1 (MIGRATION) on every controller.

    State 1 alone proves little: it is committed before ZooKeeper and the brokers are updated, and a controller on old
    data shows it at once.
    """
    found, unread = split_read("controller {}", {c.id: c.metrics for c in seen.controllers.values()})
    states = {i: metrics.zk_migration_state for i, metrics in found.items()}
    wrong = [
        f"controller {i} shows {'no state' if state is None else f'{state.value} ({state.name})'}"
        for i, state in states.items()
        if state is not ZkMigrationState.MIGRATION
    ]
    return settle(wrong, unread, f"{len(seen.controllers)} of {len(seen.controllers)} show it")


@check(
    "KRB-GATE-002",
    severity=BLOCKING,
    fix="find the broker that is not registered in its mode (kraft-runbook observe), and restart it",
    gates=COPIED,
)
def migrating_brokers_are_counted_as_expected(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """MigratingZkBrokerCount on the active controller is the number of brokers in migration mode.

    State 1 does not mean that every broker has registered: Kafka does not wait for a broker without any replica.
    """
    active = _active(seen)
    if not was_read(active):
        return unknown(active)
    if not was_read(active.metrics):
        return unknown(active.metrics)
    _, unread = broker_modes(seen)
    hybrid, count = migrating_brokers(seen, spec), active.metrics.migrating_zk_broker_count
    told = f"{hybrid} brokers are in migration mode, controller {active.id} counts {count}"
    return settle([told] if count != hybrid and not unread else [], unread, told)


@check(
    "KRB-GATE-003",
    severity=BLOCKING,
    fix="wait until ZooKeeper has caught up; if it does not, see KRB-DW-001",
    gates={"dual_write", "finalize"},
    twice=True,
)
def nothing_stays_unwritten(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None) -> Finding:
    """ZooKeeper was written up to what was committed at the look before.

    ZkWriteBehindLag does not show that: while metadata changes it is not 0 for long, and after dual write has stopped
    it stays 0. That each change arrived is for parity to show: Kafka leaves out the rest of a delta that deletes the
    last quota of a client id, an IP or a user's client id, and goes on.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    if earlier is None:
        return unknown("one look is not enough: it needs a second, later one", "look twice")
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    left = unwritten(seen.zookeeper, seen.quorum, earlier)
    active = _active(seen)
    lag = active.metrics.zk_write_behind_lag if was_read(active) and was_read(active.metrics) else None
    shown = "" if lag is None else f"; ZkWriteBehindLag is {lag} on the active controller"
    if left:
        return failed(left + shown) if was_read(earlier.quorum) else unknown(left)
    return passed(f"/migration is past the offset that was committed then{shown}")


@check(
    "KRB-GATE-004",
    severity=BLOCKING,
    fix=(
        "do not go on: compare both sides (kraft-runbook parity); if the quorum has no topics, an old /migration made"
        " it skip the copy"
    ),
    gates=COPIED,
    twice=True,
)
def no_topic_is_on_one_side_alone(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None
) -> Finding:
    """ZooKeeper and the metadata log hold the same topics, by name, except those being created or deleted.

    That is the cheapest sign that this quorum made the copy. The two are read side by side, so a topic that was just
    created or deleted may be on one side only. A topic that is on one side only at two looks is missing on the other.
    """
    apart = topics_apart(seen, earlier)
    if not was_read(apart):
        return unknown(apart)
    if apart or not was_read(seen.topics_apart):
        return failed("; ".join(apart))
    return passed(f"{seen.topics_apart.in_quorum} in the quorum, {seen.topics_apart.in_zookeeper} in ZooKeeper")


@check(
    "KRB-PRE-067",
    severity=BLOCKING,
    fix=(
        "delete them and set none before the migration is final: kafka-configs --alter --entity-type TYPE --entity-name"
        " NAME --delete-config KEYS (--describe shows the keys); set them again after finalization"
    ),
    stages=DUAL_WRITING,
)
def nothing_is_configured_that_zookeeper_can_t_hold(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No client metrics and no group has a config while ZooKeeper is written.

    KRaft accepts such configs, and the active controller does not write them to ZooKeeper. The next controller to be
    elected first writes everything to ZooKeeper again. It throws an exception at any resource that is neither topic nor
    broker (KRaftMigrationZkWriter.handleConfigsSnapshot) and never goes on. From then on ZooKeeper is not written, and
    no rollback is possible.
    """
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    found = seen.quorum.kraft_only_configs
    return failed(f"the next election would end dual write: {sample(found)}") if found else passed("none has")


@check(
    "KRB-GATE-006",
    severity=BLOCKING,
    fix="do not go on: two controllers may be active; kraft-runbook explain shows the cluster's phase",
    gates=COPIED,
)
def one_controller_on_both_sides(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """/controller, /migration and the quorum name the same controller.

    They must name it in the same epoch too. A controller on old data also shows state 1, and may have the id that
    /migration names; this check tells it from a running migration.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    wrong = list(one_controller(seen.zookeeper, seen.quorum))
    return failed("; ".join(wrong)) if wrong else passed(f"controller {seen.quorum.leader_id}")


@check(
    "KRB-GATE-008",
    severity=BLOCKING,
    fix="restart the broker in its mode and wait until it is registered and unfenced",
    gates=COPIED,
)
def every_broker_is_registered(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every declared broker is registered with the quorum, unfenced, in migration or KRaft mode.

    The next step would cut off a broker that is not registered.
    """
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    wrong = []
    for broker_id in spec.broker_ids:
        found = seen.quorum.registrations.get(broker_id)
        mode = seen.brokers[broker_id].mode
        if found is None:
            wrong.append(f"broker {broker_id} is not registered")
        elif found.fenced:
            wrong.append(f"broker {broker_id} is fenced")
        elif was_read(mode) and found.is_migrating_zk_broker != (mode is BrokerMode.HYBRID):
            wrong.append(
                f"broker {broker_id} runs in {mode} mode and is registered as"
                f" {'migrating' if found.is_migrating_zk_broker else 'KRaft'}"
            )
    _, unread = broker_modes(seen)
    return settle(wrong, unread, f"{len(spec.brokers)} of {len(spec.brokers)} are")


@check(
    "KRB-GATE-014",
    severity=BLOCKING,
    fix="see in the broker's log why it does not fetch from the controllers, and restart it: its metadata is old",
    gates={"finalize", SOAK},
    twice=True,
)
def every_broker_follows_the_metadata_log(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None
) -> Finding:
    """Every broker in KRaft mode fetches the metadata log, and is not behind.

    A registration does not show that. A broker that lost its way to the leader still sends heartbeats, which go another
    way, and keeps the leaders and configurations that it knew (KAFKA-20514).
    """
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    _, unread = broker_modes(seen)
    return settle(not_fetching(seen, earlier), unread, f"controller {seen.quorum.leader_id} sends it to all of them")


@check(
    "KRB-GATE-009",
    severity=BLOCKING,
    fix="start the named controller, or wait until it has caught up",
    gates={"dual_write", "finalize", SOAK},
    twice=True,
)
def the_quorum_is_whole(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None) -> Finding:
    """The quorum has a leader, and every declared controller is a voter and has caught up.

    If one is behind, the next restart may leave no majority.
    """
    if not was_read(seen.quorum):
        return unknown(seen.quorum)
    offsets = {v.id: v.log_end_offset for v in seen.quorum.voters}
    wrong = [f"controller {i} is no voter" for i in spec.controller_ids if i not in offsets]
    wrong += [
        f"controller {i} is at offset {at} of {seen.quorum.high_watermark}"
        for i, at in voters_behind(seen, earlier, spec.controller_ids).items()
    ]
    return settle(wrong, [], f"leader {seen.quorum.leader_id}, {len(offsets)} voters caught up")


@check("KRB-QRM-003", severity=BLOCKING, fix=WARM_FIX, gates={"finalize"}, twice=True)
def every_controller_is_warm(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None
) -> Finding:
    """Every controller is warm: it has applied the metadata log, not only fetched it.

    DescribeQuorum's lag 0 is no proof. A restarted controller was elected 300,374 records behind in applying, and
    nobody led for up to 64 s (measured on 3.9.2 with 200,000 partitions). Warm: LastAppliedRecordOffset within 20
    records of the high watermark or past that of the look before, or LastAppliedRecordLagMs below 2,000.
    """
    return controllers_are_warm(seen, spec.controller_ids, earlier)


@check(
    "KRB-GATE-010",
    severity=BLOCKING,
    fix="do not go on; look in that node's log for the record that it could not apply. It counts since its start:"
    " restart it once the cause is gone",
    gates=COPIED,
)
def no_metadata_error(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No controller and no broker counts a metadata error.

    MetadataErrorCount of a controller counts records that could not be applied. A broker goes on without such a record
    (KAFKA-14114); its metadata-load-error-count and metadata-apply-error-count are looked at where the exporter passes
    them (docs/hosts.md).
    """
    wrong, unread = [], []
    for controller in seen.controllers.values():
        if not was_read(controller.metrics):
            unread.append(f"controller {controller.id}: {controller.metrics.reason}")
        elif controller.metrics.metadata_error_count is None:
            unread.append(f"controller {controller.id} shows no MetadataErrorCount")
        elif controller.metrics.metadata_error_count:
            wrong.append(f"controller {controller.id} counts {controller.metrics.metadata_error_count}")
    counted = {each.id: each.metrics.metadata_errors for each in seen.brokers.values() if was_read(each.metrics)}
    wrong += [f"broker {i} counts {errors}" for i, errors in counted.items() if errors]
    told = sum(errors is not None for errors in counted.values())
    return settle(wrong, unread, f"0 on every controller, and on {told} brokers that show it")


@check(
    "KRB-GATE-011",
    severity=BLOCKING,
    fix="restart the broker in KRaft mode first: finalization would cut it off",
    gates={"finalize"},
)
def every_broker_is_in_kraft_mode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker is in KRaft mode.

    After finalization a broker in migration mode can't come back.
    """
    modes, unread = split_read("broker {}", {b.id: b.mode for b in seen.brokers.values()})
    wrong = [f"broker {i} is in {mode} mode" for i, mode in modes.items() if mode is not BrokerMode.KRAFT]
    return settle(wrong, unread, f"{len(seen.brokers)} of {len(seen.brokers)} are")
