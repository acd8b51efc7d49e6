"""A cluster whose file names no ZooKeeper, in words: how it is, what it waits for, and what an operator can do. Pure.

It is in KRaft mode: born so, or migrated. Nothing here is about a migration, but for brokers that one left behind.
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

LEADERLESS = "No quorum of controllers leads: no topic, config, ACL or leader can change until one does."
MEANS = {
    Phase.FINALIZED: (
        "The migration is final, and the cluster file names no ZooKeeper any more. There is nothing to migrate."
    ),
    Phase.KRAFT: "The cluster runs in KRaft mode, without ZooKeeper. There is nothing to migrate.",
    Phase.UNKNOWN: "What was seen does not prove that this cluster does without ZooKeeper, as its file says.",
}


def means(seen: ClusterObservation, phase: Phase) -> str:
    """What the phase means to an operator, and first of all whether anything can be changed."""
    return MEANS[phase] if _is_led(seen) or held_by_zookeeper(seen) else LEADERLESS


def health(seen: ClusterObservation, spec: ClusterSpec) -> tuple[str, ...]:
    """Leader, controllers, brokers, partitions: one line each, of what was read."""
    running = sum(c.running is True for c in seen.controllers.values())
    lines = [f"{running} of {len(spec.controllers)} controllers run"]
    if was_read(seen.quorum):
        behind = voters_behind(seen, None, spec.controller_ids)
        caught_up = f"voter {name_ids(behind)} is behind" if behind else "every voter is caught up"
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
    """What keeps the cluster from being whole; empty where it is."""
    if held_by_zookeeper(seen) or _is_migrating(seen):
        return ("an operator: what is named under Seen",)
    silent = name_silent(seen, earlier)
    told = [f"{silent} to answer: the port accepts connections, and nothing comes back"] if silent else []
    registered = [broker_registered(seen, spec, i, BrokerMode.KRAFT) for i in spec.broker_ids]
    in_sync = [
        first_missing(out_of_sync(seen, None, spec, i)) for i in spec.broker_ids if seen.brokers[i].running is True
    ]
    return tuple(dict.fromkeys([*told, *_missing((quorum_whole(seen, spec), *registered, *in_sync))]))


def forward(seen: ClusterObservation, earlier: ClusterObservation, spec: ClusterSpec, phase: Phase) -> tuple[str, ...]:
    """What an operator can do now: first what mends the cluster; where nothing is to be mended, that nothing is to be
    migrated.
    """
    if phase is not Phase.FINALIZED and (held_by_zookeeper(seen) or _is_migrating(seen)):
        return (
            "name the ensemble under 'zookeeper' in the cluster file, and look again: every step is refused until then",
        )
    left = [b.id for b in seen.brokers.values() if was_read(b.mode) and b.mode is not BrokerMode.KRAFT]
    if left and phase is Phase.FINALIZED:
        return (
            (
                f"restart broker {name_ids(left)} in KRaft mode, one by one (docs/finalization.md): it is the only way"
                " left"
            ),
        )
    return tuple(_mending(seen, earlier, spec)) or ("nothing is to be migrated",)


def _mending(seen: ClusterObservation, earlier: ClusterObservation, spec: ClusterSpec) -> Iterator[str]:
    """Controllers first: without a majority of them no broker is registered, and no partition gets a leader."""
    controllers = [c.id for c in seen.controllers.values() if c.running is False]
    brokers = [b.id for b in seen.brokers.values() if b.running is False]
    if controllers:
        yield f"start controller {name_ids(controllers)} with the configuration that it has, its log says why it ended"
    if brokers:
        yield (
            f"{'then start' if controllers else 'start'} broker {name_ids(brokers)} in KRaft mode, its log says why it"
            " ended"
        )
    if silent := name_silent(seen, earlier):
        yield f"look at {silent}: its process hangs or is starved. End it and start it again if it does not come back"
    if not _is_led(seen) and not controllers and not silent:
        addresses = ", ".join(each.address for each in spec.controllers)
        yield (
            "no controller is down: an election is over in seconds; if this lasts, look at the network between"
            f" {addresses}"
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
