"""The threads through which a broker in migration mode speaks to its controller, and how one that died is seen. Pure.

Found on 3.9.2: in 5 of 68 departures, one of three brokers could create no topic afterwards, for ever, though it knew
its controller. Its log says ``NodeToControllerRequestThread: Error due to IllegalArgumentException: A metric named ...
already exists``. Each of these threads makes its network client anew when the controller changes between ZooKeeper and
KRaft. The clients' sensors bear the same names, so two threads that do so at the same moment leave a metric behind, and
the next change ends the thread (inferred from the code; that both do so at once was seen in the log). Without
``forwarding`` the broker passes on no change of metadata, without ``alter-partition`` none of its partitions' replicas
comes back into the ISR. Nothing but a restart mends it.
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
