"""A plan: which partitions change, from what to what, how much moves, and the least that any plan would move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_runbook.cluster.assignment import Assignment, Move, Replicas, TopicPartition
from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.cluster.naming import some
from kraft_runbook.reassignment.goals import Goal, without_topics
from kraft_runbook.runbook.digests import sha256_of


@dataclass(frozen=True, slots=True)
class ReassignmentPlan:
    """``present`` and ``target`` name the partitions that change and no others.

    ``copies``: replicas that are copied to a broker; ``bound``: the least that reach the goal with any plan, both in
    ``unit`` ("replicas", or "bytes" where bytes are evened out). ``notes``: what the plan could not do, and why.
    ``demotes``: the brokers that it takes leaders from, by order alone; giving back is then of that order alone.
    ``min_isr``: of its topics, for the order in which partitions move. ``topic_ids``: of its topics, where they have
    one: a topic that is made anew under its name is another topic. ``directories``: those that replicas are to lie in,
    also of partitions that the plan leaves where they are.
    """

    goal: str
    present: Assignment
    target: Assignment
    copies: int
    bound: int
    unit: str = "replicas"
    notes: tuple[str, ...] = ()
    changes_replication_factor: bool = False
    demotes: tuple[int, ...] = ()
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict, repr=False)
    min_isr: Mapping[str, int] = field(default_factory=dict, repr=False)
    topic_ids: Mapping[str, str] = field(default_factory=dict, repr=False)
    directories: Directories = field(default_factory=dict, repr=False)

    @property
    def moves(self) -> tuple[Move, ...]:
        """In the order of topics and partitions."""
        return tuple(Move(p, self.present[p], self.target[p]) for p in sorted(self.target))

    @property
    def is_empty(self) -> bool:
        """Nothing is to change."""
        return not self.target

    @property
    def digest(self) -> str:
        """Over the plan and what the partitions have now: what a person's approval is bound to."""
        more: dict[str, object] = {"topic_ids": dict(self.topic_ids)} if self.topic_ids else {}
        more |= {"directories": _plain_directories(self.directories)} if self.directories else {}
        return sha256_of({"present": plain(self.present), "target": plain(self.target), **more})

    @property
    def topics(self) -> frozenset[str]:
        """Those that it names."""
        return frozenset(p.topic for p in (*self.target, *(p for _, p in self.directories)))

    @property
    def directories_of_new(self) -> Directories:
        """Of these directories, those of replicas that the plan makes; the others are of replicas that are there."""
        new = {(broker, move.partition) for move in self.moves for broker in move.adding} if self.directories else set()
        return {each: path for each, path in self.directories.items() if each in new}

    def made_anew(self, topic_ids: Mapping[str, str]) -> frozenset[str]:
        """Its topics that have another id by now."""
        return made_anew(self.topic_ids, topic_ids)


def made_anew(was: Mapping[str, str], now: Mapping[str, str]) -> frozenset[str]:
    """The topics that have another id by now. One that has none, or does not exist, counts as the same."""
    return frozenset(topic for topic, before in was.items() if now.get(topic, before) != before)


def without_made_anew(
    goal: Goal, was: Mapping[str, str], now: Mapping[str, str], tell: Callable[[str], object]
) -> Goal:
    """What was saved, without topics that have another id by now, which ``tell`` hears: their replicas are nobody's
    that was saved. ``was``: the ids when it was saved. Any other goal as it is.
    """
    anew = made_anew(was, now)
    if anew:
        tell(f"{len(anew)} topics were made anew since they were saved, and are left: {some(sorted(anew), 5)}")
    return without_topics(goal, anew)


def plan_to_dict(plan: ReassignmentPlan) -> dict[str, object]:
    """As plain values, for a file; without the sizes, which change."""
    return {
        "goal": plan.goal,
        "present": plain(plan.present),
        "target": plain(plan.target),
        "copies": plan.copies,
        "bound": plan.bound,
        "unit": plan.unit,
        "notes": list(plan.notes),
        "changes_replication_factor": plan.changes_replication_factor,
        "demotes": list(plan.demotes),
        "min_isr": dict(plan.min_isr),
        "topic_ids": dict(plan.topic_ids),
        "directories": _plain_directories(plan.directories),
        "digest": plan.digest,
    }


def plan_from_dict(data: Mapping[str, Any]) -> ReassignmentPlan:
    """Raises KeyError, TypeError or ValueError where it is none, or its digest does not fit."""
    found = ReassignmentPlan(
        data["goal"],
        {TopicPartition(topic, number): tuple(replicas) for topic, number, replicas in data["present"]},
        {TopicPartition(topic, number): tuple(replicas) for topic, number, replicas in data["target"]},
        data["copies"],
        data["bound"],
        data["unit"],
        tuple(data["notes"]),
        data["changes_replication_factor"],
        tuple(data.get("demotes", ())),
        min_isr=data.get("min_isr", {}),
        topic_ids=data.get("topic_ids", {}),
        directories={
            (broker, TopicPartition(topic, number)): path for broker, topic, number, path in data.get("directories", ())
        },
    )
    if found.digest != data["digest"]:
        raise ValueError("the plan was changed since it was made")
    return found


def plain(assignment: Mapping[TopicPartition, Replicas]) -> list[list[object]]:
    """As plain values in the order of topics and partitions, for digests and files."""
    return [[p.topic, p.partition, list(assignment[p])] for p in sorted(assignment)]


def _plain_directories(directories: Directories) -> list[list[object]]:
    return [[broker, p.topic, p.partition, path] for (broker, p), path in sorted(directories.items())]
