"""When a broker may be unregistered, and what that does. Pure.

The controller asks nothing: UnregisterBroker (KIP-631) ends the registration of a live broker too, and takes the last
replica in sync out of its partition's ISR as any other (``ReplicationControlManager.handleBrokerUnregistered``, 3.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.assignment import PartitionSeen, TopicPartition
from kraft_runbook.cluster.naming import name_ids, nodes, some
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.quorum_seen import BrokerRegistration
from kraft_runbook.errors import Refused
from kraft_runbook.runbook.digests import sha256_of

AGAIN = "then clear this task"


Said = Mapping[TopicPartition, frozenset[int]]
"""Partitions, and the brokers that say so of each."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a broker holds by a look at every partition. ``leads``: partitions that it leads. ``alone``: those that
    nobody leads, or that have no other replica in sync. ``replicas``: how many partitions have a replica on it.
    ``asked``: by the word of these brokers.
    """

    leads: Said
    alone: Said
    replicas: int
    asked: frozenset[int]


def held_by(broker: int, partitions: Mapping[TopicPartition, PartitionSeen], *, by: int) -> Held:
    """``partitions``: all of the cluster's, as the broker ``by`` knows them."""
    its = {name: seen for name, seen in sorted(partitions.items()) if broker in seen.replicas}
    says = frozenset({by})
    return Held(
        {name: says for name, seen in its.items() if seen.leader == broker},
        {name: says for name, seen in its.items() if seen.leader is None or not set(seen.isr) - {broker}},
        len(its),
        says,
    )


def worst(views: Iterable[Held]) -> Held:
    """What a broker may hold by the words of several: it leads a partition, or is alone there, where any says so."""
    every = list(views)
    return Held(
        _together(each.leads for each in every),
        _together(each.alone for each in every),
        max(each.replicas for each in every),
        frozenset().union(*(each.asked for each in every)),
    )


def _together(views: Iterable[Said]) -> Said:
    found: dict[TopicPartition, frozenset[int]] = {}
    for name, says in (each for view in views for each in view.items()):
        found[name] = found.get(name, frozenset()) | says
    return dict(sorted(found.items()))


def may_know(broker: int, seen: ClusterObservation) -> bool:
    """Whether another broker is asked. Not one whose port is closed: it answers nobody. Nor one whose host does not
    answer while the log shows it fenced or not registered: where a whole rack is lost, its brokers are unregistered one
    after another, and none of them would ever answer for the next.
    """
    runs = seen.brokers[broker].running
    if was_read(runs):
        return runs
    if runs.out_of_time or not was_read(seen.quorum):
        return True
    found = seen.quorum.registrations.get(broker)
    return found is not None and not found.fenced


def registration(broker: int, seen: ClusterObservation) -> BrokerRegistration | None:
    """The broker's registration in the metadata log; None where it has none. Raises Refused where that is not known."""
    if not was_read(seen.quorum):
        raise Refused(
            f"which brokers are registered could not be read: {seen.quorum.reason}",
            way_out=f"let the quorum's leader answer (kraft-runbook quorum), {AGAIN}",
        )
    return seen.quorum.registrations.get(broker)


def require_registered(broker: int, seen: ClusterObservation) -> BrokerRegistration:
    """Raises Refused where there is nothing to unregister."""
    found = registration(broker, seen)
    if found is None:
        assert was_read(seen.quorum)
        raise Refused(
            f"broker {broker} is not registered; registered are {name_ids(sorted(seen.quorum.registrations))}",
            way_out="name one of them in a new run",
        )
    return found


def require_gone(broker: int, seen: ClusterObservation) -> None:
    """Raises Refused where the broker lives, or might. One that is unregistered while its process lives is shut out
    until that process restarts, and then registers anew.
    """
    found = require_registered(broker, seen)
    declared = seen.brokers.get(broker)
    stop = f"stop its process for good, wait until its session has ended (broker.session.timeout.ms), {AGAIN}"
    if not found.fenced:
        raise Refused(f"broker {broker} lives: the controller has not fenced it", way_out=stop)
    if declared is None:
        return
    if not was_read(declared.running):
        raise Refused(
            f"whether broker {broker} runs could not be read: {declared.running.reason}",
            way_out=f"make its host answer, or take the broker out of the cluster file, {AGAIN}",
        )
    if declared.running or declared.lives or declared.silent:
        does = "runs" if declared.running else "does not answer, and its port is open" if declared.silent else "lives"
        raise Refused(f"broker {broker} is fenced, and its process {does}", way_out=stop)


def require_no_voter(broker: int, seen: ClusterObservation) -> None:
    """Raises Refused where the id is a voter's too: the process was controller and broker, and its vote would stay,
    whatever the cluster file says by now.
    """
    found = registration(broker, seen)
    assert was_read(seen.quorum)
    if found is not None and broker in [each.id for each in seen.quorum.voters]:
        raise Refused(
            f"node {broker} is a voter of the quorum too, and unregistering ends its registration as a broker alone:"
            " its vote would stay",
            way_out="take its vote first, which a dynamic quorum alone can do (kafka-metadata-quorum.sh"
            f" remove-controller, docs/dynamic-quorum.md), {AGAIN}",
        )


def require_nothing_lost(broker: int, held: Held) -> None:
    """Raises Refused where the broker leads a partition, or might have what no other replica has."""
    if held.leads:
        which, first = _by_whose_word(held.leads, held.asked)
        raise Refused(
            f"broker {broker} leads {which}",
            way_out=f"{first}wait until others lead (kraft-runbook observe), {AGAIN}",
        )
    if held.alone:
        which, first = _by_whose_word(held.alone, held.asked)
        raise Refused(
            f"no other replica could lead {which}: what broker {broker} holds of it may exist nowhere else",
            way_out=f"{first}start broker {broker} once more and move its replicas (reassign_partitions); where its"
            f" data is lost, make the replicas anew or delete the topic, {AGAIN}",
        )


def _by_whose_word(said: Said, asked: frozenset[int]) -> tuple[str, str]:
    """Of which partitions a refusal tells, and what comes first on the way out. Told are those of which most brokers
    say it; where not all do, it is a question who is right.
    """
    by = max(said.values(), key=len)
    which = some(name for name, says in said.items() if says == by)
    if by == asked:
        return which, ""
    which += f" by the word of {nodes('broker', by)}, and not of {nodes('broker', asked - by)}"
    return (
        which,
        f"restart the one of them that may have stopped following the metadata log (KRB-QRM-012), {AGAIN}; or ",
    )


def digest(broker: int, found: BrokerRegistration) -> str:
    """Of what the gate's signature is for: this registration, and not one that the broker makes later."""
    return sha256_of([broker, found.incarnation_id, found.broker_epoch])


def page(broker: int, found: BrokerRegistration, held: Held, *, declared: bool) -> str:
    """What the gate shows."""
    lines = [
        f"### Unregister broker {broker}",
        "",
        f"Its registration leaves the metadata log: rack {found.rack or 'none'}, {', '.join(found.endpoints)},"
        f" incarnation {found.incarnation_id}. It leads no partition. Nothing on its host is touched.",
        "",
        f"**Partitions with a replica on it: {held.replicas}.** They stay under-replicated until these replicas are"
        " moved (reassign_partitions, goal *replace lost*). It is better to move them first."
        if held.replicas
        else "No partition has a replica on it.",
        "",
        "It is in the cluster file, and its process was looked for there. Take it out of the file after this run."
        if declared
        else "**It is not in the cluster file, so nobody looked for its process.** The controller has fenced it: no"
        " heartbeat came within its session. Make sure that nobody starts it again.",
        "",
        "There is no request that undoes this. A broker that is started again with the same id registers by itself.",
    ]
    return "\n".join(lines)
