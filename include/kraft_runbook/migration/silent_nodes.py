"""Nodes that accept connections and send no response: the process hangs, is stopped, or gets no CPU time. Pure.

The kernel accepts connections for such a process, so an open port does not prove that it works. A node that refuses, or
answers with an error, does not hang.
"""

from __future__ import annotations

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation


def silent_controllers(seen: ClusterObservation, earlier: ClusterObservation | None = None) -> tuple[int, ...]:
    """Controllers that hang; with ``earlier``, an observation some seconds before, only those that hung then too."""
    return tuple(
        c.id for c in seen.controllers.values() if c.silent and (earlier is None or earlier.controllers[c.id].silent)
    )


def silent_brokers(seen: ClusterObservation, earlier: ClusterObservation | None = None) -> tuple[int, ...]:
    """Brokers that hang, as above. A known mode does not matter: the quorum knows it too."""
    return tuple(b.id for b in seen.brokers.values() if b.silent and (earlier is None or earlier.brokers[b.id].silent))


def name_silent(seen: ClusterObservation, earlier: ClusterObservation | None = None) -> str:
    """Both, in words: ``controllers 101, 102 and broker 3``; empty: none hangs."""
    found = (("controller", silent_controllers(seen, earlier)), ("broker", silent_brokers(seen, earlier)))
    return " and ".join(nodes(what, ids) for what, ids in found if ids)


def name_silent_brokers(seen: ClusterObservation, earlier: ClusterObservation | None = None) -> str:
    """The brokers alone; empty: none hangs."""
    found = silent_brokers(seen, earlier)
    return nodes("broker", found) if found else ""
