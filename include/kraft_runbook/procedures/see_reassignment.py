"""What the checks and the words of a reassignment need, read at once: the operation's own look."""

from __future__ import annotations

from collections.abc import Callable

from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reassignment_znodes import read_reassignment_znodes
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.look import ReassignmentSeen
from kraft_runbook.reassignment.throttles import ALL_RATES


def see_reassignment(
    spec: ClusterSpec, *, secrets: Secrets, tell: Callable[[str], object], settings: bool = True
) -> ReassignmentSeen:
    """The cluster, its partitions and what moves of them, every throttle, and the faults in /brokers/topics, where
    brokers read it. ``tell``: as of ``observe_settled``; ``settings``: as of ``look_at_replicas``. Raises Unreachable.
    """
    cluster = observe_settled(spec, secrets=secrets, tell=tell, scope=Scope.LIVE)
    look = look_at_replicas(spec, secrets=secrets, settings=settings)
    throttles = read_throttles(spec, {p.topic for p in look.seen}, secrets=secrets, keys=ALL_RATES)
    modes = {broker.mode for broker in cluster.brokers.values() if was_read(broker.mode)}
    faulty = None
    if spec.zookeeper is not None and modes != {BrokerMode.KRAFT}:
        faulty = read_reassignment_znodes(spec, secrets=secrets, lists=True).faulty_lists
    return ReassignmentSeen(cluster, look, throttles, faulty)
