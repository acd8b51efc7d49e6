"""What a run's form asks for, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.operation_settings import Concurrency
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.batches import KRAFT_LIMITS, MOVES_AT_ONCE, ZOOKEEPER_LIMITS, Limits, Order
from kraft_runbook.reassignment.concurrency import first_pace
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
from kraft_runbook.reassignment.hours import Hours, hours_of
from kraft_runbook.reassignment.plan_file import directed_from_json
from kraft_runbook.reassignment.refusals import Reason
from kraft_runbook.steps.demotions import forget, has_demoted, kept_by
from kraft_runbook.steps.reassignment.saved_by_runs import kept_orders, restorable, saved_by
from kraft_runbook.steps.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class HowFast:
    """How fast copies may go, and when. ``throttle``: bytes a second a broker. ``moves``: copies that a broker takes or
    gives at once; None: the form does not say. ``follows``: between how many, where that follows the brokers.
    ``order``: which go first. ``hours``: in which new batches may start; None: in any.
    """

    throttle: int | None = None
    moves: int | None = None
    follows: Concurrency | None = None
    order: Order = Order.NAME
    hours: Hours | None = None

    @property
    def most_moves(self) -> int:
        """Copies that a broker takes or gives at once at most, however idle it is."""
        return self.follows.most if self.follows else self.moves or MOVES_AT_ONCE

    @property
    def first_moves(self) -> int:
        """With how many at once a run begins."""
        return first_pace(self.follows).moves if self.follows else self.most_moves

    def at_most(self, moves: int | None) -> Self:
        """The same with no more copies at once than so many; None: as many."""
        if moves is None:
            return self
        follows = self.follows.within(moves) if self.follows else None
        return replace(self, moves=min(self.moves or moves, moves), follows=follows)


@dataclass(frozen=True, slots=True)
class Wanted(HowFast):
    """What a run's form asks for. ``partitions`` None: as the mode allows. ``cluster_id``: of the cluster that the goal
    was saved of; None where the goal is of none. ``topic_ids``: of topics when it was saved. ``keep_order``: change no
    order where no replica moves.
    """

    goal: Goal
    topics: Topics
    allowed: tuple[Reason, ...]
    partitions: int | None
    bytes: int | None
    cluster_id: str | None = None
    keep_order: bool = False
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def limits(self, seen: ClusterObservation, moves: int | None = None) -> Limits:
        """A controller in ZooKeeper mode takes less in one request. ``moves``: copies at once, where that follows the
        brokers; None: with which the run begins.
        """
        in_kraft = {broker.mode for broker in seen.brokers.values() if was_read(broker.mode)} == {BrokerMode.KRAFT}
        most = self.partitions or (KRAFT_LIMITS if in_kraft else ZOOKEEPER_LIMITS).partitions
        return Limits(most, moves or self.first_moves, self.bytes, self.order)


Asks = Callable[[Run], Wanted]
"""Reads the run's form. Raises Refused for what makes no sense."""


def asks_for_goal(run: Run) -> Wanted:
    """What the form of reassign_partitions asks for. Raises Refused for what makes no sense together."""
    return replace(_wanted(run, _goal(run.params)), keep_order=run.params["keep_order"])


def asks_to_restore(run: Run) -> Wanted:
    """The same for restore_assignment: what the run planned to move, as it was before. Of a run that demoted brokers,
    or took leaders from one for its restart and did not give them back, the order alone is given back, where it is
    still as that run left it; that is none where all is given back. Raises Refused where the run saved nothing.
    """
    name = str(run.params["run"] or "")
    kept = kept_by(name, run.state) or kept_orders(name, run.state)
    if kept is None and has_demoted(name, run.state):
        return _wanted(run, GiveBackOrder({}, {}))
    if kept is not None:
        wanted = _wanted(run, GiveBackOrder(kept.before, kept.after))
        return replace(wanted, cluster_id=kept.cluster_id, topic_ids=kept.topic_ids)
    saved = restorable(saved_by(name, run.state))
    wanted = _wanted(run, Restore(saved.assignment))
    return replace(wanted, cluster_id=saved.cluster_id, topic_ids=saved.topic_ids)


def forget_what_is_back(run: Run, wanted: Wanted) -> None:
    """Once the orders that a restart took are given back, they are the named run's no more: what is signed for later
    may be the same order. Raises Refused where they can't be read.
    """
    if isinstance(wanted.goal, GiveBackOrder) and not run.cluster.rehearses:
        forget(str(run.params["run"] or ""), run.state, wanted.topics.matches)


def asks_how_fast(run: Run) -> HowFast:
    """What the fields say that every form of moves has. Raises Refused for what makes no sense."""
    return HowFast(**_how_fast(run))


def _how_fast(run: Run) -> dict[str, Any]:
    params, moves, follows = run.params, run.params["moves_a_broker"], run.spec.reassignment.concurrency
    return {
        "throttle": round(params["throttle_mb"] * 1e6) if params["throttle_mb"] else None,
        "moves": moves,
        "follows": None if follows is None else follows.within(moves),
        "order": Order(params["order"]),
        "hours": hours_of(params["hours"]),
    }


def _wanted(run: Run, goal: Goal) -> Wanted:
    params = run.params
    allowed = [
        *([Reason.REPLICATION_FACTOR] if params["allow_replication_factor"] else []),
        *([Reason.RACKS] if params["allow_racks"] else []),
        *([Reason.NO_RACK] if params["allow_no_rack"] else []),
    ]
    if isinstance(goal, SetReplicationFactor):
        allowed.append(Reason.REPLICATION_FACTOR)  # it is what the run asks for by name
    return Wanted(
        goal,
        Topics(tuple(str(params["topics"]).split()), tuple(str(params["exclude"] or "").split())),
        tuple(allowed),
        params["partitions_a_request"],
        int(params["mb_a_broker"] * 1e6) if params["mb_a_broker"] else None,
        **_how_fast(run),
    )


def _goal(params: Mapping[str, Any]) -> Goal:
    brokers = tuple(int(each) for each in str(params["brokers"] or "").replace(",", " ").split())
    name = params["goal"]
    if name in ("add brokers", "drain brokers", "demote brokers") and not brokers:
        raise Refused(f"to {name}, the form must name them", way_out="trigger the run anew with 'brokers' filled in")
    if name == "replication factor" and not params["factor"]:
        raise Refused("the form names no replication factor", way_out="trigger the run anew with 'factor' filled in")
    if name == "explicit" and not params["plan"]:
        raise Refused("the form holds no plan", way_out="trigger the run anew with 'plan' filled in")
    goals: Mapping[str, Any] = {
        "even out": lambda: EvenOut(Measure(params["by"])),
        "add brokers": lambda: AddBrokers(brokers, Measure(params["by"])),
        "drain brokers": lambda: DrainBrokers(brokers, params["even"], Measure(params["by"])),
        "demote brokers": lambda: DemoteBrokers(brokers),
        "replace lost": lambda: ReplaceLost(brokers),
        "replication factor": lambda: SetReplicationFactor(params["factor"]),
        "even leaders": EvenLeaders,
        "mend racks": MendRacks,
        "explicit": lambda: _explicit(params["plan"]),
    }
    found: Goal = goals[name]()
    return found


def _explicit(text: str) -> Explicit:
    target, directories = directed_from_json(text, source="the form's plan")
    return Explicit(target, directories=directories)
