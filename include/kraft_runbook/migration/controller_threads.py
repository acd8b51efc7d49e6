"""The threads by which a broker in migration mode connects to its controller, and how a dead one is noticed. Pure.

Found on 3.9.2: in 5 of 68 rollbacks with three brokers each, one broker received no new topic afterwards, though it
knew its controller. Its log says ``NodeToControllerRequestThread: Error due to IllegalArgumentException: A metric named
... already exists``. Each of these threads creates its network client again when the controller changes between
ZooKeeper and KRaft. The clients' sensors have the same names. So two threads that do this at the same moment leave a
metric over, and the next change ends the thread (inferred from the code; that both do it at once was seen in the log).
Without ``forwarding`` the broker forwards no metadata change. Without ``alter-partition`` no replica of its partitions
comes back into the ISR. Only a restart helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, HostState, Unread, was_read
from kraft_runbook.migration.thread_names import CUTS

PREFIX = "zk-broker-"
"""How the names of these threads begin."""
_NAMES = (
    "to-controller-forwarding-channel-manager",
    "to-controller-alter-partition-channel-manager",
    "to-controller-quorum-channel-manager",
    "lifecycle-manager-event-handler",
)


def dead_threads(broker_id: int, threads: Iterable[str]) -> int:
    """How many of the threads are missing that a broker in migration mode has; ``threads``: the names as Linux shows
    them.
    """
    names, seen = [f"{PREFIX}{broker_id}-{name}" for name in _NAMES], Counter(threads)
    return min((Counter(map(cut, names)) - seen).total() for cut in CUTS)


def cut_off(seen: ClusterObservation, hosts: Mapping[int, HostState]) -> dict[int, int | Unread]:
    """The brokers in migration mode that run without one of these threads, with how many are missing; Unread where that
    could not be seen.
    """
    found: dict[int, int | Unread] = {}
    for broker in seen.brokers.values():
        if broker.running is not True or broker.mode != BrokerMode.HYBRID:
            continue
        host = hosts.get(broker.id)
        threads = host.controller_threads if host else Unread(f"node {broker.id}'s host was not examined")
        missing = _missing(broker.id, threads) if was_read(threads) else threads
        if missing:
            found[broker.id] = missing
    return found


def _missing(broker_id: int, threads: tuple[str, ...]) -> int | Unread:
    """A broker that registers has its ``lifecycle-manager`` at least: none at all means that the host does not show
    Java's threads by their names.
    """
    return dead_threads(broker_id, threads) if threads else Unread("its host shows none of its threads by name")
