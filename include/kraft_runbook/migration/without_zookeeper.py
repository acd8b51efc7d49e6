"""A cluster whose file names no ZooKeeper, in words: its state, what it waits for, and what an operator can do. Pure.

The cluster is in KRaft mode: created so, or migrated. Only brokers that a migration left behind concern a migration
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraft_runbook.cluster.birth import held_by_zookeeper
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import MIGRATING, Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.silent_nodes import name_silent
from kraft_runbook.runbook.conditions import Progress, first_missing
from kraft_runbook.runbook.health import broker_registered, name_ids, out_of_sync, quorum_whole
from kraft_runbook.runbook.lag import voters_behind

LEADERLESS = "The controller quorum has no leader: no topic, config, ACL or leader can change until it has one."
MEANS = {
    Phase.FINALIZED: (
        "The migration is final, and the cluster file names no ZooKeeper any more. There is nothing to migrate."
    ),
    Phase.KRAFT: "The cluster runs in KRaft mode, without ZooKeeper. There is nothing to migrate.",
    Phase.UNKNOWN: "The observation does not prove that this cluster runs without ZooKeeper, as its file says.",
}


def means(seen: ClusterObservation, phase: Phase) -> str:
    """What the phase means to an operator; where the quorum has no leader, that comes first."""
    return MEANS[phase] if _is_led(seen) or held_by_zookeeper(seen) else LEADERLESS


def health(seen: ClusterObservation, spec: ClusterSpec) -> tuple[str, ...]:
    """Leader, controllers, brokers, partitions: one line for each that was read."""
    running = sum(c.running is True for c in seen.controllers.values())
    lines = [f"{running} of {len(spec.controllers)} controllers run"]
    if was_read(seen.quorum):
        behind = voters_behind(seen, None, spec.controller_ids)
        caught_up = f"voter {name_ids(behind)} is behind" if behind else "every voter has caught up"
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


def waits(seen: ClusterObservation, earlier: ClusterObservation, spec: ClusterSpec) -> tuple[str, ...]:
    """What is missing for a healthy cluster; empty where nothing is."""
    if held_by_zookeeper(seen) or _is_migrating(seen):
        return ("an operator: what is named under Seen",)
    silent = name_silent(seen, earlier)
    told = [f"{silent} to answer: the port accepts connections, but no response comes"] if silent else []
    registered = [broker_registered(seen, spec, i, BrokerMode.KRAFT) for i in spec.broker_ids]
    in_sync = [
        first_missing(out_of_sync(seen, None, spec, i)) for i in spec.broker_ids if seen.brokers[i].running is True
    ]
    return tuple(dict.fromkeys([*told, *_missing((quorum_whole(seen, spec), *registered, *in_sync))]))


def forward(seen: ClusterObservation, earlier: ClusterObservation, spec: ClusterSpec, phase: Phase) -> tuple[str, ...]:
    """What an operator can do now: repair the cluster first; where there is nothing to repair, that there is nothing to
    migrate.
    """
    if phase is not Phase.FINALIZED and (held_by_zookeeper(seen) or _is_migrating(seen)):
        return ("name the ensemble under 'zookeeper' in the cluster file: every step is refused until then",)
    left = [b.id for b in seen.brokers.values() if was_read(b.mode) and b.mode is not BrokerMode.KRAFT]
    if left and phase is Phase.FINALIZED:
        return (
            (
                f"restart broker {name_ids(left)} in KRaft mode, one by one (docs/finalization.md): it is the only way"
                " left"
            ),
        )
    return tuple(_repairs(seen, earlier, spec)) or ("there is nothing to migrate",)


def _repairs(seen: ClusterObservation, earlier: ClusterObservation, spec: ClusterSpec) -> Iterator[str]:
    """Controllers first: without a majority of them no broker is registered, and no partition gets a leader."""
    controllers = [c.id for c in seen.controllers.values() if c.running is False]
    brokers = [b.id for b in seen.brokers.values() if b.running is False]
    if controllers:
        yield f"start controller {name_ids(controllers)} with its present configuration; its log says why it ended"
    if brokers:
        yield (
            f"{'then start' if controllers else 'start'} broker {name_ids(brokers)} in KRaft mode; its log says why it"
            " ended"
        )
    if silent := name_silent(seen, earlier):
        yield (
            f"look at {silent}: its process hangs or gets no CPU time. If it does not recover, end it and start it"
            " again"
        )
    if not _is_led(seen) and not controllers and not silent:
        addresses = ", ".join(each.address for each in spec.controllers)
        yield (
            "no controller is down: an election takes seconds. If there is no leader after that, look at the network"
            f" between {addresses}"
        )


def _is_led(seen: ClusterObservation) -> bool:
    """Whether a controller leads, as the quorum or that controller's own gauge says: the log may only have been read
    too slowly.
    """
    return was_read(seen.quorum) or any(was_read(c.metrics) and c.metrics.active for c in seen.controllers.values())


def _is_migrating(seen: ClusterObservation) -> bool:
    """Whether the log or a controller shows a migration that is under way."""
    recorded = seen.quorum.migration_state_record if was_read(seen.quorum) else None
    states = {c.metrics.zk_migration_state for c in seen.controllers.values() if was_read(c.metrics)}
    return not (states | {recorded}).isdisjoint(MIGRATING)


def _missing(progress: Iterable[Progress]) -> Iterator[str]:
    return (each.waiting_for.removeprefix("waiting for ") for each in progress if not each.done)
