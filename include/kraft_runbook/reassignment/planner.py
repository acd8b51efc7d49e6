"""From a goal to a plan. Each goal says which partitions may change, which brokers may hold them, and what is to be
even; ``replica_flow``, ``leader_flow`` and ``byte_moves`` do the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.cluster.log_dirs import all_cordoned, total_bytes
from kraft_runbook.cluster.naming import by_number, nodes, some
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.byte_moves import drain_bytes, even_bytes
from kraft_runbook.reassignment.demotion import demoted_orders, lead_nothing, orders_given_back
from kraft_runbook.reassignment.disk_room import UNCORDON
from kraft_runbook.reassignment.goals import (
    AddBrokers,
    DemoteBrokers,
    DrainBrokers,
    EvenLeaders,
    EvenOut,
    Explicit,
    GiveBackOrder,
    Goal,
    Measure,
    MendRacks,
    ReplaceLost,
    Restore,
    SetReplicationFactor,
    Topics,
)
from kraft_runbook.reassignment.leader_flow import even_leaders
from kraft_runbook.reassignment.placement import Placement, brokers_of, racks_of, replicas_by_broker
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.plan_of_sets import emptied, ground_of, in_orders, planned
from kraft_runbook.reassignment.racks import Ground, RackRule, rack_sizes
from kraft_runbook.reassignment.replica_flow import even_flow, frugal_flow, group_by_replicas
from kraft_runbook.reassignment.topic_spread import spread_topics
from kraft_runbook.runbook.telling import Tell, nobody

SAMPLE = 20


def make_plan(
    goal: Goal,
    placement: Placement,
    *,
    topics: Topics | None = None,
    keep_order: bool = False,
    tell: Tell = nobody,
) -> ReassignmentPlan:
    """The plan that reaches the goal with the least movement, over the topics that are chosen (all by default).

    Counts are even over the chosen topics, as those of kafka-reassign-partitions ``--generate`` are. ``keep_order``:
    a partition whose leader stays keeps it, so that no order changes where no replica moves; leaders may be uneven
    then. ``tell``: hears what is being planned. Raises Refused where the goal names what does not exist or can't be
    reached; what must not be carried out of a plan is ``refusals``' to say.
    """
    chosen = topics or Topics()
    names = {p.topic for p in placement.present}
    meant = set(filter(chosen.matches, names))
    scope = placement.present
    if meant != names:
        scope = {p: replicas for p, replicas in scope.items() if p.topic in meant}
    if isinstance(goal, Explicit):
        return replace(_to_target(str(goal), goal.target, placement, scope=None), directories=goal.directories)
    if not scope:
        raise Refused("no partition of the cluster is chosen", way_out="correct the patterns of topics")
    if isinstance(goal, Restore):
        return _to_target(str(goal), goal.saved, placement, scope=scope)
    if isinstance(goal, GiveBackOrder):
        return _order_given_back(goal, placement, scope)
    if isinstance(goal, DemoteBrokers):
        return _demoted(goal, placement, scope)
    if isinstance(goal, EvenLeaders):
        return _leaders_alone(goal, placement, scope)
    if isinstance(goal, SetReplicationFactor):
        return _with_factor(goal, placement, scope, tell)
    if isinstance(goal, MendRacks):
        return _mended(goal, placement, scope, tell)
    if isinstance(goal, ReplaceLost):
        return _replaced(goal, placement, scope, tell)
    brokers = _brokers_for(goal, placement, scope)
    if isinstance(goal, DrainBrokers) and not goal.even:
        drained = _drained if goal.measure is Measure.REPLICAS else _drained_by_bytes
        return drained(goal, placement, scope, brokers, tell)
    if goal.measure is not Measure.REPLICAS:
        within = goal.within if isinstance(goal, EvenOut) else 0.05
        return _even_in_bytes(goal, placement, scope, brokers, within=within, keep_order=keep_order, tell=tell)
    return _even_in_count(goal, placement, scope, brokers, keep_order=keep_order, tell=tell)


def _to_target(
    what: str, target: Assignment, placement: Placement, *, scope: Collection[TopicPartition] | None
) -> ReassignmentPlan:
    """``scope``: leave out what is not in it; None: all of it is wanted, also what does not exist, which is refused
    later with its name.
    """
    wanted = {p: replicas for p, replicas in target.items() if scope is None or p in scope}
    left_out = sum(p not in placement.present for p in target) if scope is not None else 0
    notes = (f"{left_out} saved partitions no longer exist and are left out",) if left_out else ()
    return planned(what, placement, wanted, bound=None, notes=notes)


def _brokers_for(goal: Goal, placement: Placement, scope: Assignment) -> list[int]:
    """The live brokers that may hold replicas afterwards."""
    named = goal.brokers if isinstance(goal, AddBrokers | DrainBrokers) else ()
    _require_known(named, placement)
    if isinstance(goal, AddBrokers):
        if dead := sorted(set(named) - placement.live):
            raise Refused(
                f"{nodes('broker', dead, 'does')} not run", way_out=f"start {by_number(dead, 'it', 'them')} first"
            )
        return sorted((placement.live & brokers_of(scope)) | set(named))
    return sorted(placement.live - set(named))


def _require_known(named: Collection[int], placement: Placement) -> None:
    not_live = set(named) - placement.live
    if not_live and (unknown := sorted(not_live - brokers_of(placement.present))):
        raise Refused(
            f"{nodes('broker', unknown, 'is')} not in the cluster", way_out="start what is missing, or correct the id"
        )


def _even_in_count(
    goal: Goal, placement: Placement, scope: Assignment, brokers: list[int], *, keep_order: bool, tell: Tell
) -> ReassignmentPlan:
    ground = ground_of(placement, brokers, {len(replicas) for replicas in scope.values()})
    groups = group_by_replicas(scope, by_first=False)
    tell("replicas by broker")
    sets = spread_topics(scope, even_flow(groups, ground), ground, {}, tell)
    tell("leaders")
    target = in_orders(scope, sets, ground, leaders_of=scope, fixed_leaders=keep_order)
    return planned(str(goal), placement, target, bound=None, notes=emptied(goal, placement, scope))


def _drained(
    goal: DrainBrokers, placement: Placement, scope: Assignment, brokers: list[int], tell: Tell
) -> ReassignmentPlan:
    leaving = set(goal.brokers)
    touched = {p: replicas for p, replicas in scope.items() if leaving & set(replicas)}
    bound = sum(len(set(replicas) - set(brokers)) for replicas in touched.values())
    return _frugal(goal, placement, touched, brokers, bound=bound, tell=tell)


def _replaced(goal: ReplaceLost, placement: Placement, scope: Assignment, tell: Tell) -> ReassignmentPlan:
    if running := sorted(set(goal.brokers) & placement.live):
        raise Refused(
            f"{nodes('broker', running, 'runs')}, so what is there is not lost",
            way_out="drain instead (drain brokers), or name those that do not run",
        )
    holding = brokers_of(scope) - placement.live
    if unknown := sorted(set(goal.brokers) - holding):
        raise Refused(
            f"{nodes('broker', unknown, 'holds')} no replica of the chosen topics",
            way_out="correct the id, or name none: then all brokers count that hold replicas and do not run",
        )
    lost = set(goal.brokers) or holding
    holding_any = {p: replicas for p, replicas in scope.items() if lost & set(replicas)}
    # A copy is read from the leader. Where all are without one, they stay in, and are refused by their names.
    touched = {p: r for p, r in holding_any.items() if p not in placement.leaderless} or holding_any
    bound = sum(len(set(replicas) - placement.live) for replicas in touched.values())
    plan = _frugal(goal, placement, touched, sorted(placement.live), bound=bound, tell=tell)
    return replace(plan, notes=(*plan.notes, *_without_a_leader(sorted(holding_any.keys() - touched.keys()))))


def _without_a_leader(left_out: Sequence[TopicPartition]) -> Iterator[str]:
    if left_out:
        yield (
            f"{len(left_out)} partitions without a leader are left out, since a copy is read from the leader:"
            f" {some(left_out, SAMPLE)}. Start the brokers that were in sync last, and plan again"
        )


def _drained_by_bytes(
    goal: DrainBrokers, placement: Placement, scope: Assignment, brokers: list[int], tell: Tell
) -> ReassignmentPlan:
    """Where replicas are of very different sizes: the brokers that take them are even in bytes, not in number."""
    ground = _ground_with_sizes(placement, scope, brokers)
    tell("replicas by bytes")
    found = drain_bytes(scope, placement.sizes, ground, goal.brokers, _widths(goal.measure, placement, brokers))
    _require_drained(goal, {**scope, **found.sets})
    tell("leaders")
    target = in_orders(
        {p: scope[p] for p in found.sets},
        found.sets,
        ground,
        leaders_of={p: replicas for p, replicas in placement.present.items() if p not in found.sets},
        fixed_leaders=True,
    )
    return planned(str(goal), placement, target, bound=found.bound, unit="bytes")


def _require_drained(goal: DrainBrokers, held: Mapping[TopicPartition, Collection[int]]) -> None:
    """Bytes are dealt out one replica at a time, and the rack rule may let nobody take one."""
    left = sorted(p for p, brokers in held.items() if set(goal.brokers) & set(brokers))
    if left:
        raise Refused(
            f"these brokers can't be drained by bytes: the rack rule lets no other broker take {len(left)} of their"
            f" partitions: {some(left)}",
            way_out="drain by replicas, which may move the partitions' other replicas too, or mend racks first",
        )


def _with_factor(goal: SetReplicationFactor, placement: Placement, scope: Assignment, tell: Tell) -> ReassignmentPlan:
    if goal.factor < 1:
        raise Refused(f"replication factor {goal.factor}", way_out="give a factor of 1 or more")
    touched = {p: replicas for p, replicas in scope.items() if len(replicas) != goal.factor}
    bound = sum(max(0, goal.factor - len(placement.live & set(replicas))) for replicas in touched.values())
    return _frugal(goal, placement, touched, sorted(placement.live), factor=goal.factor, bound=bound, tell=tell)


def _mended(goal: MendRacks, placement: Placement, scope: Assignment, tell: Tell) -> ReassignmentPlan:
    brokers = sorted(placement.live)
    racks = racks_of(brokers, placement.racks)
    breaks = RackRule(racks, rack_sizes(racks)).breaks
    broken = {p: replicas for p, replicas in scope.items() if breaks(replicas)}
    # The rack of a broker that does not run is not known: its partitions may be spread as they should be.
    touched = {p: replicas for p, replicas in broken.items() if placement.live.issuperset(replicas)}
    plan = _frugal(goal, placement, touched, brokers, bound=None, tell=tell)
    return replace(plan, notes=(*plan.notes, *_unknown_racks(sorted(broken.keys() - touched.keys()), placement)))


def _unknown_racks(left_out: Sequence[TopicPartition], placement: Placement) -> Iterator[str]:
    if left_out:
        down = sorted({broker for p in left_out for broker in placement.present[p]} - placement.live)
        yield (
            f"{len(left_out)} partitions are left out, since the rack of {nodes('broker', down, 'is')} not known while"
            f" {by_number(down, 'it does', 'they do')} not run: {some(left_out, SAMPLE)}. Start"
            f" {by_number(down, 'it', 'them')}, or replace what is lost, and plan again"
        )


def _frugal(
    goal: Goal,
    placement: Placement,
    touched: Assignment,
    brokers: list[int],
    *,
    factor: int | None = None,
    bound: int | None,
    tell: Tell,
) -> ReassignmentPlan:
    """Only these partitions change. ``factor``: how many replicas each is to have; None: as many as it has. ``bound``
    None: what the flow moves is the least, since it is exact.
    """
    if not touched:
        return planned(str(goal), placement, {}, bound=0)
    ground = ground_of(placement, brokers, [factor] if factor else {len(replicas) for replicas in touched.values()})
    others = {p: replicas for p, replicas in placement.present.items() if p not in touched}
    fixed = {b: count for b, count in replicas_by_broker(others).items() if b in ground.racks}
    tell("replicas by broker")
    dealt = frugal_flow(group_by_replicas(touched, factor, by_first=True), ground, fixed)
    sets = spread_topics(touched, dealt, ground, others, tell, keep_first=True)
    tell("leaders")
    target = in_orders(touched, sets, ground, leaders_of=others, fixed_leaders=True)
    return planned(str(goal), placement, target, bound=bound, notes=emptied(goal, placement, touched))


def _even_in_bytes(
    goal: EvenOut | AddBrokers | DrainBrokers,
    placement: Placement,
    scope: Assignment,
    brokers: list[int],
    *,
    within: float,
    keep_order: bool,
    tell: Tell,
) -> ReassignmentPlan:
    ground = _ground_with_sizes(placement, scope, brokers)
    widths = _widths(goal.measure, placement, brokers)
    tell("replicas by bytes")
    found = even_bytes(scope, placement.sizes, ground, within=within, widths=widths)
    if isinstance(goal, DrainBrokers):
        _require_drained(goal, {**scope, **found.sets})
    tell("leaders")
    target = in_orders(
        {p: scope[p] for p in found.sets}, found.sets, ground, leaders_of=scope, fixed_leaders=keep_order
    )
    notes = list(emptied(goal, placement, scope))
    if found.outside:
        listed = ", ".join(f"{broker}: {load:,} bytes" for broker, load in sorted(found.outside.items()))
        notes.append(
            f"outside {within:.0%} of their share stay broker {listed}: no replica and no exchange of two was found"
            " that brings them within. Single replicas are larger than the band, or no other broker may hold theirs"
        )
    if found.moved > found.bound > 0:
        notes.append(
            f"{found.moved / found.bound:.2f} times what must move: replicas move whole and within the rack rule, and"
            " nothing lighter was found"
        )
    return planned(str(goal), placement, target, bound=found.bound, unit="bytes", notes=tuple(notes))


def _widths(measure: Measure, placement: Placement, brokers: Collection[int]) -> Mapping[int, float] | None:
    """The size of each broker's disks, where that decides."""
    if measure is not Measure.FULLNESS:
        return None
    if closed := sorted(b for b in brokers if all_cordoned(placement.directories.get(b, ()))):
        raise Refused(f"all log directories of {nodes('broker', closed)} are cordoned", way_out=UNCORDON)
    found = {broker: total_bytes(placement.directories.get(broker, ())) for broker in brokers}
    if unknown := sorted(broker for broker, size in found.items() if not size):
        raise Refused(
            f"how large the disks of {nodes('broker', unknown)} are is not known",
            way_out="let brokers of Kafka 3.3 or later say it (DescribeLogDirs), or even out bytes",
        )
    return {broker: size / 1e9 for broker, size in found.items() if size}


def _ground_with_sizes(placement: Placement, scope: Assignment, brokers: list[int]) -> Ground:
    if not placement.sizes:
        raise Refused(
            "no broker said how large its replicas are, so bytes can't be evened out",
            way_out="let this tool's identity describe the cluster (DescribeLogDirs), or even out replicas",
        )
    return ground_of(placement, brokers, {len(replicas) for replicas in scope.values()})


def _demoted(goal: DemoteBrokers, placement: Placement, scope: Assignment) -> ReassignmentPlan:
    _require_known(goal.brokers, placement)
    orders = demoted_orders(goal.brokers, placement, scope)
    plan = planned(str(goal), placement, orders, bound=0)
    # One that a demoted broker leads in its stead is in the plan for its leader, though its order is as wanted.
    led = {p: order for p, order in orders.items() if p not in plan.target and placement.leaders.get(p) in goal.brokers}
    spared = [b for b in lead_nothing(goal.brokers, placement) if any(b in each for each in orders.values())]
    notes = (
        f"{nodes('broker', spared, 'is')} the first replica of no partition that another can lead, as after a"
        f" demotion, and {by_number(spared, 'gets', 'get')} no leader that another broker can have",
    )
    present, target = {**plan.present, **led}, {**plan.target, **led}
    return replace(plan, present=present, target=target, demotes=goal.brokers, notes=notes if spared else ())


def _order_given_back(goal: GiveBackOrder, placement: Placement, scope: Assignment) -> ReassignmentPlan:
    wanted, left = orders_given_back(goal.before, goal.demoted, scope)
    notes = (
        f"{len(left)} partitions have another order or other replicas by now than the demotion gave them, and are left:"
        f" {some(left, SAMPLE)}",
    )
    return planned(str(goal), placement, wanted, bound=0, notes=notes if left else ())


def _leaders_alone(goal: EvenLeaders, placement: Placement, scope: Assignment) -> ReassignmentPlan:
    return planned(str(goal), placement, even_leaders(scope, {}, moved=frozenset(), leaderless=frozenset()), bound=0)
