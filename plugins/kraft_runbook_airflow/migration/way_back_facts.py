"""Facts that a rollback needs besides an observation: whether the hosts of controllers that are down answer, and
whether this tool may delete KRaft's znodes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.hosts.playbooks import gather_host_facts
from kraft_runbook.io.zookeeper.handover import why_epoch_not_writable, why_not_deletable
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook_airflow.base.environment import airflow_secrets


def examine_the_hosts_of_those_down(
    spec: ClusterSpec, seen: ClusterObservation, gone: Collection[int]
) -> ClusterObservation:
    """The observation with the hosts of the controllers that are down. Each host must confirm that its controller is
    down, and be reachable to keep it stopped.
    """
    down = [c.id for c in seen.controllers.values() if c.running is False and c.id not in gone]
    return replace(seen, hosts=gather_host_facts(spec, down)) if down else seen


def not_deletable(spec: ClusterSpec) -> str | None:
    """Why this tool may not delete KRaft's znodes in ZooKeeper. None if it may, and if ZooKeeper can't be asked, which
    the plan reports.
    """
    try:
        with ZookeeperReader(spec.ensemble, secrets=airflow_secrets()) as zookeeper:
            return why_not_deletable(zookeeper)
    except Unreachable:
        return None


def epoch_not_writable(spec: ClusterSpec) -> str | None:
    """Why this tool may not write /controller_epoch; None as above."""
    try:
        with ZookeeperReader(spec.ensemble, secrets=airflow_secrets()) as zookeeper:
            return why_epoch_not_writable(zookeeper)
    except Unreachable:
        return None
