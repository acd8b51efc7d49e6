"""From the brokers that are to hold each partition to a plan: what all goals share."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.cluster.naming import name_ids
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.goals import DrainBrokers, Goal, ReplaceLost
from kraft_runbook.reassignment.leader_flow import even_leaders, put_first
from kraft_runbook.reassignment.placement import Placement, brokers_of, racks_of, replicas_by_broker
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.racks import Ground, rack_sizes
from kraft_runbook.reassignment.replica_order import in_order


def ground_of(placement: Placement, brokers: Collection[int], factors: Collection[int]) -> Ground:
    """These brokers by their racks. ``factors``: how many replicas partitions are to have. Raises Refused where no
    broker is left, or fewer than a partition needs.
    """
    if not brokers:
        raise Refused("no live broker is left that may hold replicas", way_out="start brokers, or drain fewer")
    largest = max(factors)
    if largest > len(brokers):
        raise Refused(
            f"{largest} replicas do not fit on {len(brokers)} brokers ({name_ids(brokers)})",
            way_out="let more brokers take part, or lower the replication factor first",
        )
    racks = racks_of(brokers, placement.racks)
    return Ground(racks, rack_sizes(racks))


def in_orders(
    present: Assignment,
    sets: Mapping[TopicPartition, frozenset[int]],
    ground: Ground,
    *,
    leaders_of: Assignment,
    fixed_leaders: bool = False,
) -> dict[TopicPartition, Replicas]:
    """The sets that differ from the present ones as lists, in the present order, and what gets another leader, so that
    leaders are even. ``leaders_of``: the other partitions whose leaders
    count; ``fixed_leaders``: a leader that stays goes on leading, and only those that go are replaced.
    """
    moved = {
        p: in_order(present[p], brokers, ground.racks) for p, brokers in sets.items() if brokers != set(present[p])
    }
    # A leader that stays is the one to keep, wherever the move put it.
    kept = {p: put_first(order, present[p][0]) if present[p][0] in order else order for p, order in moved.items()}
    leaderless = frozenset(p for p, order in kept.items() if present[p][0] not in order)
    every = {**leaders_of, **kept}
    if fixed_leaders:
        led = {p: order for p, order in kept.items() if p in leaderless}
        beside = {p: order for p, order in every.items() if p not in leaderless}
        return kept | even_leaders(led, beside, moved=leaderless, leaderless=leaderless)
    return kept | even_leaders(every, {}, moved=frozenset(moved), leaderless=leaderless)


def emptied(goal: Goal, placement: Placement, touched: Assignment) -> tuple[str, ...]:
    """A broker that does not run and was not named holds nothing of these partitions afterwards: nobody may have meant
    that.
    """
    named = set(goal.brokers) if isinstance(goal, DrainBrokers | ReplaceLost) else set()
    if isinstance(goal, ReplaceLost) and not named:
        return ()
    gone = brokers_of(touched) - placement.live - named
    held = replicas_by_broker(touched) if gone else {}
    return tuple(
        f"broker {broker} does not run: {held[broker]:,} of its replicas go, and what is needed of them is made anew"
        " elsewhere. Start it first where it is to keep them"
        for broker in sorted(gone)
    )


def planned(
    what: str,
    placement: Placement,
    wanted: Assignment,
    *,
    bound: int | None,
    unit: str = "replicas",
    notes: tuple[str, ...] = (),
) -> ReassignmentPlan:
    """What differs of what is wanted. ``bound`` None: every copy of these is needed."""
    target = {p: replicas for p, replicas in wanted.items() if placement.present.get(p) != replicas}
    present = {p: placement.present.get(p, ()) for p in target}
    copied = {p: len(set(replicas) - set(present[p])) for p, replicas in target.items()}
    weigh = placement.size if unit == "bytes" else (lambda _: 1)
    copies = sum(count * weigh(p) for p, count in copied.items())
    return ReassignmentPlan(
        what,
        present,
        target,
        copies,
        copies if bound is None else bound,
        unit,
        notes,
        changes_replication_factor=any(p in placement.present and len(r) != len(present[p]) for p, r in target.items()),
        sizes={p: placement.size(p) for p in target},
        min_isr={topic: placement.min_isr[topic] for topic in {p.topic for p in target} & placement.min_isr.keys()},
    )
