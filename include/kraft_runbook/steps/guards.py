"""What must hold of the other nodes before one is stopped, whatever for. Raises Refused; nothing was changed then."""

from __future__ import annotations

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import was_read
from kraft_runbook.errors import Refused
from kraft_runbook.steps.node_step import Look


def require_other_brokers_up(look: Look) -> None:
    """Every other broker answers."""
    down = [b.id for b in look.seen.brokers.values() if b.id != look.node and b.running is not True]
    if down:
        raise Refused(
            f"{nodes('broker', down, 'does')} not answer; stopping broker {look.node} too could make"
            " partitions unavailable",
            way_out=f"bring {by_number(down, 'it', 'them')} back into every ISR, then clear this task",
        )


def require_other_brokers_in_sync(look: Look) -> None:
    """No replica on another broker is out of sync."""
    topics = look.seen.topics
    if not was_read(topics):
        raise Refused(
            f"the state of the partitions could not be read: {topics.reason}",
            way_out="make the brokers' listener reachable and clear this task",
        )
    lagging = {b: n for b, n in topics.out_of_sync_by_broker.items() if b != look.node and n}
    if lagging:
        raise Refused(
            f"replicas on other brokers are out of sync ({', '.join(f'broker {b}: {n}' for b, n in lagging.items())})",
            way_out=f"wait until they are in sync, then clear this task; broker {look.node} was not touched",
        )


def require_other_controllers_up(look: Look) -> None:
    """Every other controller answers, and one leads."""
    down = [c.id for c in look.seen.controllers.values() if c.id != look.node and c.running is not True]
    if down or not was_read(look.seen.quorum):
        raise Refused(
            "the quorum is not whole: "
            + (f"{nodes('controller', down, 'does')} not answer" if down else "it has no leader"),
            way_out=f"start what is down, then clear this task; controller {look.node} was not touched",
        )
