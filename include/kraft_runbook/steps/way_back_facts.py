"""Facts that a rollback needs besides an observation: whether the hosts of controllers that are down answer, and
whether this tool may delete KRaft's znodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.handover import why_epoch_not_writable, why_not_deletable
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.steps.handle import Cluster


def examine_the_hosts_of_those_down(cluster: Cluster, seen: ClusterObservation) -> ClusterObservation:
    """The observation with the hosts of the controllers that are down. Each host must confirm that its controller is
    down, and be reachable to keep it stopped.
    """
    down = [c.id for c in seen.controllers.values() if c.running is False and c.id not in cluster.gone]
    return replace(seen, hosts=cluster.hosts(down)) if down else seen


def not_deletable(spec: ClusterSpec, *, secrets: Secrets) -> str | None:
    """Why this tool may not delete KRaft's znodes in ZooKeeper. None if it may, and if ZooKeeper can't be asked, which
    the plan reports.
    """
    return _asked(why_not_deletable, spec, secrets)


def epoch_not_writable(spec: ClusterSpec, *, secrets: Secrets) -> str | None:
    """Why this tool may not write /controller_epoch; None as above."""
    return _asked(why_epoch_not_writable, spec, secrets)


def _asked(why_not: Callable[[ZookeeperReader], str | None], spec: ClusterSpec, secrets: Secrets) -> str | None:
    try:
        with ZookeeperReader(spec.ensemble, secrets=secrets) as zookeeper:
            return why_not(zookeeper)
    except Unreachable:
        return None
