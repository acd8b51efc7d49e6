"""What must hold of the other nodes before one is stopped, whatever for. Raises Refused; nothing was changed then."""

from __future__ import annotations

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.cluster.observation import was_read
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.short_together import short_together
from kraft_runbook.runbook.broker_batches import FEWER_AT_ONCE
from kraft_runbook.runbook.check_results import Verdict, sample
from kraft_runbook.runbook.quorum_places import the_quorum_is_what_the_cluster_file_says
from kraft_runbook.steps.node_step import Look


def require_other_brokers(look: Look, *, in_sync: bool = True) -> None:
    """Every other broker answers, and no replica on another is out of sync. Those that are restarted together with this
    one may be down; then every partition keeps min.insync.replicas without all of them. Not ``in_sync``: replicas may
    be out of sync.
    """
    _require_other_brokers_up(look)
    if in_sync:
        _require_other_brokers_in_sync(look)
    if len(look.together) > 1:
        _require_enough_without(look)


def _require_other_brokers_up(look: Look) -> None:
    down = [b.id for b in look.seen.brokers.values() if b.id not in look.together and b.running is not True]
    if down:
        raise Refused(
            f"{nodes('broker', down, 'does')} not answer; stopping broker {look.node} too could make"
            " partitions unavailable",
            way_out=f"bring {by_number(down, 'it', 'them')} back into every ISR, then clear this task",
        )


def _require_other_brokers_in_sync(look: Look) -> None:
    topics = look.seen.topics
    if not was_read(topics):
        raise Refused(
            f"the state of the partitions could not be read: {topics.reason}",
            way_out="make the brokers' listener reachable and clear this task",
        )
    lagging = {b: n for b, n in topics.out_of_sync_by_broker.items() if b not in look.together and n}
    if lagging:
        raise Refused(
            f"replicas on other brokers are out of sync ({', '.join(f'broker {b}: {n}' for b, n in lagging.items())})",
            way_out=f"wait until they are in sync, then clear this task; broker {look.node} was not touched",
        )


def _require_enough_without(look: Look) -> None:
    short = look.cluster.ask(short_together, batches=[look.together])
    if short:
        (found,) = short.values()
        raise Refused(
            f"without {nodes('broker', sorted(look.together))}, which are restarted together, partitions would have too"
            f" few replicas in sync: {sample(found.samples, found.count)}",
            way_out=(
                f"{FEWER_AT_ONCE}; then trigger a new run: what was signed is the former file. Broker {look.node} was"
                " not touched"
            ),
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


def require_the_quorum_to_be_as_declared(look: Look) -> None:
    """Before a node's file is written: where the cluster file says that the quorum is a dynamic one, it is."""
    quorum = the_quorum_is_what_the_cluster_file_says(look.seen, look.spec)
    if quorum.verdict is not Verdict.PASS:
        raise Refused(
            f"where the quorum is is not written: {quorum.evidence}",
            way_out="take 'quorum: dynamic' out of the cluster file, or make the quorum dynamic first"
            f" (docs/dynamic-quorum.md), then clear this task; node {look.node} was not touched",
        )
