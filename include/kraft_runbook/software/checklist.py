"""The list of the software roll's checks, and how each asks every host."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraft_runbook.cluster.config_tables import ConfigTable, config_table
from kraft_runbook.cluster.feature_levels import NodeHost
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.runbook.check_results import Finding, settle
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.read_parts import needed
from kraft_runbook.software.roll import Rolled

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


def each_host(seen: ClusterObservation, judge: Callable[[NodeHost], Iterable[str | Unread]], fine: str) -> Finding:
    """Every node's host, judged one by one: what ``judge`` says is wrong there, or that it could not be read."""
    wrong, unread = [], []
    features = needed(seen.features)
    for node_id, host in features.hosts.items():
        who = features.who(node_id)
        for each in (host,) if isinstance(host, Unread) else judge(host):
            if isinstance(each, Unread):
                unread.append(f"{who}: {each.reason}")
            else:
                wrong.append(f"{who}: {each}")
    return settle(wrong, unread, fine)
