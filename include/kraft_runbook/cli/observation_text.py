"""An observation in words, node by node."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, unread_parts, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.migration.eligibility import not_eligible, zookeeper_behind, zookeeper_write_ms


def observation_text(seen: ClusterObservation) -> str:
    """What ``observe`` prints."""
    reading = detect_phase(seen)
    lines = [
        f"{seen.cluster} is in {reading.phase}: {'; '.join(reading.reasons)}",
        f"read in {seen.took_seconds:.2f} s",
        "",
    ]
    for broker in seen.brokers.values():
        state = (
            broker.closed
            if broker.running is False
            else f"{broker.mode} mode"
            if was_read(broker.mode)
            else f"unread: {broker.mode.reason}"
        )
        lag = f", {broker.metrics.under_replicated_partitions} under-replicated" if was_read(broker.metrics) else ""
        lines.append(f"broker {broker.id}: {state}{lag}")
    for controller in seen.controllers.values():
        state = (
            "does not run"
            if controller.running is False
            else f"{controller.mode} mode"
            if was_read(controller.mode)
            else f"unread: {controller.mode.reason}"
        )
        metrics = controller.metrics
        shown = ""
        if was_read(metrics):
            shown = "" if metrics.zk_migration_state is None else f", ZkMigrationState {metrics.zk_migration_state}"
            shown += ", active" if metrics.active else ""
        lines.append(f"controller {controller.id}: {state}{shown}")
    if was_read(seen.zookeeper):
        holder = seen.zookeeper.controller
        lines.append(
            f"ZooKeeper: cluster {seen.zookeeper.cluster_id}, {seen.zookeeper.topic_count} topics, /controller"
            f" {holder.broker_id if holder else 'is not there'}"
        )
    if was_read(seen.quorum):
        lines.append(
            f"quorum: leader {seen.quorum.leader_id}, epoch {seen.quorum.leader_epoch}, high watermark"
            f" {seen.quorum.high_watermark}"
        )
    behind = zookeeper_behind(seen)
    if behind is not None:
        lines.append(f"ZooKeeper is {behind} records behind the quorum")
    took = zookeeper_write_ms(seen)
    if took is not None:
        lines.append(f"99 % of the changes took less than {took:.0f} ms to write to ZooKeeper")
    if reading.phase is not Phase.ZOOKEEPER:  # there no broker is in migration mode yet
        lines += [
            f"{each.role} {each.node_id} is not ready for the migration: {each.reason.told}"
            for each in not_eligible(seen)
        ]
    lines += [f"broker {i} is live and not in the cluster file" for i in sorted(seen.undeclared_brokers)]
    lines += [f"controller {i} votes and is not in the cluster file" for i in sorted(seen.undeclared_controllers)]
    unread = unread_parts(seen)
    return "\n".join([*lines, *(["", "could not be read:", *(f"  {part}" for part in unread)] if unread else [])])
