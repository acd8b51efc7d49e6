"""Take a broker's leaders off, and give them back: by the order of replicas alone (``reassignment.demotion``).

What was before is on disk before anything is sent. Each can be killed anywhere and done again: it looks first, and
sends what is left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.leader_elections import elect_preferred_leaders
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.io.private_file import write_private
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.move_replicas import LOOKS as LOOKS_AT_AN_ORDER
from kraft_runbook.procedures.move_replicas import give_back_order, prefer_first_replicas
from kraft_runbook.reassignment.demotion import KeptOrders, demoted_orders, orders_from_json, orders_given_back
from kraft_runbook.reassignment.look import ReplicasLook

LOOKS, TRIES, APART_SECONDS = 30, 5, 1.0
"""Until a broker leads nothing any more, and until leaders are back: an election takes a moment."""
SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Demotes:
    """How a cluster is looked at and changed."""

    looks: Callable[..., ReplicasLook] = look_at_replicas
    client: Callable[..., Reassignments] = Reassignments
    elect: Callable[..., Mapping[TopicPartition, str]] = elect_preferred_leaders
    ids_of: Callable[..., Mapping[str, str]] = topic_ids
    apart: float = APART_SECONDS
    looks_at_leaders: int = LOOKS
    looks_at_an_order: int = LOOKS_AT_AN_ORDER

    def look(self, spec: ClusterSpec, secrets: Secrets) -> ReplicasLook:
        return self.looks(spec, secrets=secrets, sizes_of=(), settings=False, deletions=True)

    def reorder(self, spec: ClusterSpec, secrets: Secrets, orders: Assignment) -> tuple[TopicPartition, ...]:
        given: dict[str, Any] = {"client": self.client, "looks": self.looks, "apart": self.apart}
        return give_back_order(spec, orders, secrets=secrets, most=self.looks_at_an_order, **given)


KAFKAS = Demotes()


@dataclass(frozen=True, slots=True)
class Demoted:
    """``orders``: how many partitions have another order by it; ``left``: those that were left alone: they have one
    replica, are being reassigned or deleted.
    """

    orders: int
    left: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenBack:
    """``orders``: how many partitions have their former order again; ``left``: those that somebody changed since."""

    orders: int
    left: tuple[TopicPartition, ...] = ()


def read_orders(path: Path) -> KeptOrders | None:
    """What is kept there; None where nothing is. Raises Refused where it can't be read."""
    try:
        return orders_from_json(path.read_text(), source=str(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"{path} can't be read: {error}", way_out="let this host read the state directory") from None


def keep_orders(
    path: Path, cluster_id: str, present: Assignment, target: Assignment, topic_ids: Mapping[str, str]
) -> KeptOrders:
    """Keep on disk what is demoted next, beside what is kept there already. Raises Refused where that is of another
    cluster.
    """
    kept = _own_orders(path, cluster_id) or KeptOrders(cluster_id, {}, {}, {})
    found = kept.and_then(present, target, topic_ids)
    write_private(path, found.to_json())
    return found


def _own_orders(path: Path, cluster_id: str) -> KeptOrders | None:
    """What this run keeps there. Raises Refused where that is of another cluster."""
    kept = read_orders(path)
    if kept is not None and kept.cluster_id != cluster_id:
        raise Refused(
            f"{path} is of cluster {kept.cluster_id}, and this is {cluster_id}",
            way_out="correct the addresses in the cluster file, or begin a new run",
        )
    return kept


def take_over(path: Path, others: Iterable[Path], cluster_id: str) -> KeptOrders | None:
    """What earlier runs demoted of the same broker and never gave back becomes this run's to give back. ``others``: the
    oldest first. Those of other clusters are left. Returns all that is this run's then; None where that is nothing.
    Raises Refused where its own is of another cluster.
    """
    own = _own_orders(path, cluster_id)
    found = [(each, kept) for each in others if (kept := read_orders(each)) and kept.cluster_id == cluster_id]
    if not found:
        return own
    merged = KeptOrders(cluster_id, {}, {}, {})
    for kept in (*(kept for _, kept in found), *([own] if own else ())):
        merged = merged.and_then(kept.before, kept.after, kept.topic_ids)
    write_private(path, merged.to_json())
    for each, _ in found:
        each.unlink(missing_ok=True)
    return merged


def demote_broker(
    spec: ClusterSpec, broker: int, path: Path, *, secrets: Secrets, others: Collection[Path] = (), by: Demotes = KAFKAS
) -> Demoted:
    """Let the broker lead nothing that another one can lead, and put it last in each order. ``path``: where the orders
    from before are kept; ``others``: where earlier runs kept theirs for this broker, the oldest first.

    A partition with one replica is left, and so is one that is being reassigned or deleted. Raises Refused where
    another has no other replica in sync; StepFailed where the broker leads something all the same; Unreachable.
    """
    look = by.look(spec, secrets)
    take_over(path, others, look.cluster_id)
    now = look.placement
    held = {p: replicas for p, replicas in now.present.items() if broker in replicas}
    left = {p for p, r in held.items() if len(r) == 1 or p in now.ongoing or p.topic in now.being_deleted}
    scope = {p: replicas for p, replicas in held.items() if p not in left}
    target = demoted_orders([broker], now, scope)
    changed = {p: order for p, order in target.items() if scope[p] != order}
    if changed:
        ids = by.ids_of(spec, {p.topic for p in changed}, secrets=secrets)
        keep_orders(path, look.cluster_id, {p: scope[p] for p in changed}, changed, ids)
        left |= set(by.reorder(spec, secrets, changed))
    _take_leaders_off(spec, broker, target.keys() - left, secrets, by)
    return Demoted(len(changed), tuple(sorted(left)))


def give_orders_back(
    spec: ClusterSpec, path: Path, *, secrets: Secrets, others: Collection[Path] = (), by: Demotes = KAFKAS
) -> GivenBack | None:
    """Give back the orders that are kept there, each where the partition still has the one that the demotion gave it,
    and elect their first replicas. Then forget them. ``others``: as of ``demote_broker``: this run took nothing where
    the broker was down, and an earlier one may have. None where nothing is kept. Raises Refused where that can't be
    read or is of another cluster; StepFailed with Kafka's texts; Unreachable.
    """
    look = by.look(spec, secrets)
    kept = take_over(path, others, look.cluster_id)
    if kept is None:
        return None
    kept = kept.of_topics_that_are(by.ids_of(spec, kept.topic_ids.keys(), secrets=secrets))
    there = {p: r for p, r in look.placement.present.items() if p.topic not in look.placement.being_deleted}
    given, left = orders_given_back(kept.before, kept.after, there)
    moving = by.reorder(spec, secrets, given) if given else ()
    # Also of what an earlier try gave back before it was killed.
    meant = {p for p, order in kept.before.items() if p in there and p not in {*left, *moving}}
    _give_leaders_back(spec, meant, secrets, by)
    path.unlink(missing_ok=True)
    return GivenBack(len(given) - len(moving), tuple(sorted({*left, *moving})))


def forget_orders(path: Path, topics: Callable[[str], bool]) -> None:
    """Let nobody give back any more what is kept there of these topics. Raises Refused where it can't be read."""
    kept = read_orders(path)
    if kept is None:
        return
    left, was = kept.without(topics), path.stat()
    if not left.before:
        path.unlink()
        return
    write_private(path, left.to_json())
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))  # it says which broker was demoted first


def _take_leaders_off(
    spec: ClusterSpec, broker: int, partitions: Collection[TopicPartition], secrets: Secrets, by: Demotes
) -> None:
    refused: dict[TopicPartition, str] = {}
    for _ in range(by.looks_at_leaders):
        look = by.look(spec, secrets)
        led = [p for p in partitions if p in look.seen and look.seen[p].leader == broker]
        if not led:
            return
        refused = prefer_first_replicas(spec, look, led, secrets=secrets, elect=by.elect)
        time.sleep(by.apart)
    why = f" ({some([f'{p}: {text}' for p, text in refused.items()], SAMPLE, between='; ')})" if refused else ""
    raise StepFailed(
        f"broker {broker} still leads {len(led)} partitions: {some(led, SAMPLE)}{why}",
        way_out="wait until their other replicas are in sync, then clear this task: it goes on with what is left",
    )


def _give_leaders_back(
    spec: ClusterSpec, partitions: Collection[TopicPartition], secrets: Secrets, by: Demotes
) -> None:
    """Where a first replica is not in sync, Kafka refuses: it elects it later by itself, or nobody wants it to."""
    for _ in range(TRIES):
        look = by.look(spec, secrets)
        seen = {p: look.seen[p] for p in partitions if p in look.seen}
        behind = [p for p, found in seen.items() if found.leader != found.replicas[0] in found.isr]
        if not behind:
            return
        prefer_first_replicas(spec, look, behind, secrets=secrets, elect=by.elect)
        time.sleep(by.apart)
