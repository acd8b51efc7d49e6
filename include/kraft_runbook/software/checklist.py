"""The list of the software roll's checks, and how each asks every host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kraft_runbook.cluster.config_tables import ConfigTable, config_table
from kraft_runbook.cluster.feature_levels import NodeHost
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.runbook.check_results import Finding, settle
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.read_parts import needed
from kraft_runbook.software.roll import Rolled, read_roll_of
from kraft_runbook.software.stages import Gate

EVERY_BROKER = "<default>"
"""Whose dynamic configuration is that of all brokers."""
CHECKS = Checklist()
"""Every check by its code. What holds for any cluster is taken over by its own code."""

WHOLE = (Rolled.OLD, Rolled.NEW, Rolled.UNKNOWN)
"""Where every node must be well. In a half-done roll one may be down: not coming up on its software is the very reason
to go back. There each step looks at the nodes besides its own.
"""


def both(spec: ClusterSpec) -> tuple[Software, ...]:
    return (spec.kafka, *([spec.kafka.upgrade_to] if spec.kafka.upgrade_to else []))


def crosses_into_4(spec: ClusterSpec) -> bool:
    """Whether the roll leads from Kafka 3 to a later one."""
    target = spec.kafka.upgrade_to
    return target is not None and release_of(spec.kafka.version) < (4, 0) <= release_of(target.version)


def taken_away(spec: ClusterSpec) -> ConfigTable | Unread:
    """What the roll's target takes no longer of what the version before it does. From one Kafka 4 to another that is
    little: what the running one reads over already, the roll does not change.
    """
    after, before = (config_table(each.version) for each in (both(spec)[-1], spec.kafka))
    if isinstance(after, Unread) or isinstance(before, Unread):
        return after if isinstance(after, Unread) else before
    return after.beyond(before)


def with_a_turn(seen: ClusterObservation, spec: ClusterSpec, gate: str | None) -> list[int]:
    """The nodes that have to be fit for a restart: every one, but in a half-done roll those alone that run and that
    this gate lets be restarted. One that is down may be the reason to go back, and what had its turn is not written
    again.
    """
    roll = read_roll_of(seen, spec.kafka.version, both(spec)[-1].version)
    if roll.stage is not Rolled.MIXED:
        return list(spec.node_ids)
    still = [i for i in spec.node_ids if (i in roll.on_new) == (gate == Gate.BACK)] if gate else []
    return [i for i in still if i not in down(seen)]


def down(seen: ClusterObservation) -> set[int]:
    """The nodes of which a port is closed."""
    closed = {each.id for each in seen.brokers.values() if each.running is False}
    return closed | {each.id for each in seen.controllers.values() if each.running is False}


def each_host(seen: ClusterObservation, judge: Callable[[NodeHost], Iterable[str | Unread]], fine: str) -> Finding:
    """Every node's host, judged one by one: what ``judge`` says is wrong there, or that it could not be read."""
    features = needed(seen.features)
    return _each(
        (
            (features.who(node_id), (host,) if isinstance(host, Unread) else judge(host))
            for node_id, host in features.hosts.items()
        ),
        fine,
    )


def each_file(spec: ClusterSpec, judge: Callable[[Mapping[str, str]], Iterable[str | Unread]], fine: str) -> Finding:
    """Every node's file, as the roll writes it before the restart, judged one by one. What lies on the host until then
    does not count: the other software never reads it.
    """
    return _each(((node.named, judge(kraft_properties(spec, node.id))) for node in spec.nodes), fine)


def _each(judged: Iterable[tuple[str, Iterable[str | Unread]]], fine: str) -> Finding:
    wrong, unread = [], []
    for who, said in judged:
        for each in said:
            if isinstance(each, Unread):
                unread.append(f"{who}: {each.reason}")
            else:
                wrong.append(f"{who}: {each}")
    return settle(wrong, unread, fine)
