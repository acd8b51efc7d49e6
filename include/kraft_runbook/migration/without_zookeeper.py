"""A cluster whose file names no ZooKeeper, in words: its state, what it waits for, and what an operator can do. Pure.

The cluster is in KRaft mode: created so, or migrated. Only brokers that a migration left behind concern a migration
here.
"""

from __future__ import annotations

from kraft_runbook.cluster.birth import held_by_zookeeper
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import MIGRATING, Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.conditions import Progress, first_missing
from kraft_runbook.runbook.health import broker_registered, out_of_sync, quorum_whole
from kraft_runbook.runbook.lag import voters_behind

WITHOUT_A_LEADER = "The controller quorum has no leader: no topic, config, ACL or leader can change until it has one."
MEANS = {
    Phase.FINALIZED: (
        "The migration is final, and the cluster file names no ZooKeeper any more. There is nothing to migrate."
    ),
    Phase.KRAFT: "The cluster runs in KRaft mode, without ZooKeeper. There is nothing to migrate.",
    Phase.UNKNOWN: "The observation does not prove that this cluster runs without ZooKeeper, as its file says.",
}


def health(seen: ClusterObservation, spec: ClusterSpec) -> tuple[str, ...]:
    """Leader, controllers, brokers, partitions: one line for each that was read."""
    running = sum(c.running is True for c in seen.controllers.values())
    lines = [f"{running} of {len(spec.controllers)} controllers run"]
    if was_read(seen.quorum):
        behind = voters_behind(seen, None, spec.controller_ids)
        caught_up = f"{nodes('voter', behind, 'is')} behind" if behind else "every voter has caught up"
        lines.insert(
            0, f"controller {seen.quorum.leader_id} leads the quorum in epoch {seen.quorum.leader_epoch}, {caught_up}"
        )
        live = sum(not r.fenced for i, r in seen.quorum.registrations.items() if i in spec.broker_ids)
        lines.append(f"{live} of {len(spec.brokers)} brokers are registered and not fenced")
    else:
        lines.append(f"{sum(b.running is True for b in seen.brokers.values())} of {len(spec.brokers)} brokers run")
    if was_read(seen.topics):
        found = seen.topics
        lines.append(
            f"{found.partition_count} partitions: {found.offline_count} offline, {found.under_replicated_count}"
            " under-replicated"
        )
    return tuple(lines)


def missing(seen: ClusterObservation, spec: ClusterSpec) -> tuple[Progress, ...]:
    """What a healthy cluster needs: a whole quorum, every broker registered, every broker that runs in sync."""
    registered = [broker_registered(seen, spec, i, BrokerMode.KRAFT) for i in spec.broker_ids]
    in_sync = [
        first_missing(out_of_sync(seen, None, spec, i)) for i in spec.broker_ids if seen.brokers[i].running is True
    ]
    return (quorum_whole(seen, spec), *registered, *in_sync)


def shows_zookeeper(seen: ClusterObservation) -> bool:
    """Whether the cluster uses ZooKeeper though its file names none, or is being migrated."""
    return bool(held_by_zookeeper(seen)) or _is_migrating(seen)


def is_led(seen: ClusterObservation) -> bool:
    """Whether a controller leads, as the quorum or that controller's own gauge says: the log may only have been read
    too slowly.
    """
    return was_read(seen.quorum) or any(was_read(c.metrics) and c.metrics.active for c in seen.controllers.values())


def _is_migrating(seen: ClusterObservation) -> bool:
    """Whether the log or a controller shows a migration that is under way."""
    recorded = seen.quorum.migration_state_record if was_read(seen.quorum) else None
    states = {c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)}
    return not (states | {recorded}).isdisjoint(MIGRATING)
