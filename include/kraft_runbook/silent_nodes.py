"""Which nodes accept connections and answer nothing: their process hangs, is stopped, or is starved. Pure.

The kernel accepts for a process that does not, so an open port is no sign of life.
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, was_read


def silent_controllers(seen: ClusterObservation) -> tuple[int, ...]:
    """Controllers whose port is open, and that tell neither their mode nor their metrics."""
    return tuple(c.id for c in seen.controllers.values() if c.running is True and not was_read(c.mode) and not was_read(c.metrics))


def silent_brokers(seen: ClusterObservation) -> tuple[int, ...]:
    """Brokers whose port is open, and that answer neither Metadata nor for their metrics. Their mode is no sign: the quorum tells it too."""
    answered = seen.topics.topics_known_by_broker if was_read(seen.topics) else {}
    return tuple(b.id for b in seen.brokers.values() if b.running is True and not was_read(b.metrics) and b.id not in answered)


def name_silent(seen: ClusterObservation) -> str:
    """Both, in words: ``controller 101, 102 and broker 3``; empty: every node that runs answers."""
    found = (("controller", silent_controllers(seen)), ("broker", silent_brokers(seen)))
    return " and ".join(f"{what} {', '.join(map(str, ids))}" for what, ids in found if ids)
