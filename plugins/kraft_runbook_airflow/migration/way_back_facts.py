"""What the way back asks besides an observation: whether hosts answer for what is down, and whether this tool may
delete.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.hosts.playbooks import gather_host_facts
from kraft_runbook.io.zookeeper.handover import why_not_deletable
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook_airflow.base.environment import airflow_secrets


def examine_the_hosts_of_those_down(
    spec: ClusterSpec, seen: ClusterObservation, gone: Collection[int]
) -> ClusterObservation:
    """The same with the hosts of the controllers that are down: each must say so itself, and be there to keep it so."""
    down = [c.id for c in seen.controllers.values() if c.running is False and c.id not in gone]
    return replace(seen, hosts=gather_host_facts(spec, down)) if down else seen


def not_deletable(spec: ClusterSpec) -> str | None:
    """Why this tool may not delete what KRaft holds in ZooKeeper; None where it may, and where ZooKeeper can't be
    asked, which the plan says itself.
    """
    try:
        with ZookeeperReader(spec.ensemble, secrets=airflow_secrets()) as zookeeper:
            return why_not_deletable(zookeeper)
    except Unreachable:
        return None
