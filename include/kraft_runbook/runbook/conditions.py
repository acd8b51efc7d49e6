"""A condition of the cluster that a sensor waits for, by name. Pure: an observation in, progress out, with the name of
who or what is missing.

The caller looks again and again, counts the observations that hold in a row, and keeps the deadline. Every condition
also holds where the cluster is already past it, so that a cleared task goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec


@dataclass(frozen=True, slots=True)
class Progress:
    """Whether the condition holds and, if not, who or what is missing. ``hopeless``: waiting longer can't help.
    ``far``: what is waited for and how far it is, in a number that rises; None where nothing tells. ``unread``: not
    done only because the look did not read what would tell; all that it read is as wanted. ``untold``: what could not
    be judged at this look and is wanted all the same, as the time of requests that nobody sent. ``topics``: not done
    only because of the topics as brokers show them. ``way_out``: what to do where waiting for it is in vain.
    ``waived``: after so many seconds, None: by the deadline, it is not waited for any longer, and what is ``untold``
    then.
    """

    done: bool
    waiting_for: str = ""
    hopeless: bool = False
    far: tuple[str, int] | None = None
    unread: bool = False
    untold: frozenset[str] = frozenset()
    topics: bool = False
    way_out: str = ""
    waived: tuple[float | None, str] | None = None


DONE = Progress(True)

Judge = Callable[[ClusterObservation, ClusterSpec, int, ClusterObservation | None], Progress]
"""The progress, from the observation, the cluster file, the node's id (any number where the condition is about no
node), and the observation before, or None.
"""


Holds = Callable[[ClusterObservation, ClusterSpec, int], float]
"""Seconds that a condition must hold, from the observation, the cluster file and the node's id."""


def _at_once(*_: object) -> float:
    return 0.0


class Topics(Enum):
    """At which looks a condition is judged by the topics as brokers show them. They are most of a look at a large
    cluster. LAST: once all else is as wanted, which its ``Progress.topics`` says.
    """

    ALWAYS, LAST, NEVER = range(3)


def _nothing(_: ClusterObservation) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Condition:
    """``name``: its name in a sensor and in the evidence. ``phrase``: what is waited for; it has ``{id}`` in it where
    the condition is about one node. ``keeps``: what the evidence keeps of the observation that fulfilled it. ``holds``:
    how long it must hold, from the first look on. ``topics``: at which looks those count.
    """

    name: str
    phrase: str
    judge: Judge
    keeps: Callable[[ClusterObservation], Mapping[str, Any]] = _nothing
    holds: Holds = _at_once
    topics: Topics = Topics.ALWAYS

    @property
    def of_a_node(self) -> bool:
        return "{id}" in self.phrase

    def describe(self, node_id: int | None = None) -> str:
        """What is waited for, as a phrase."""
        return self.phrase.format(id=node_id)

    def progress(
        self,
        seen: ClusterObservation,
        spec: ClusterSpec,
        *,
        node_id: int | None = None,
        earlier: ClusterObservation | None = None,
    ) -> Progress:
        """Whether it holds. ``node_id``: the node that it is about; ``earlier``: the observation before, or None."""
        if node_id is None and self.of_a_node:
            raise ValueError(f"{self.name} is about one node: give its id")
        return self.judge(seen, spec, -1 if node_id is None else node_id, earlier)


@dataclass(frozen=True, slots=True)
class Missing:
    """What is missing. ``far``, ``topics``, ``way_out``, ``waived``: as of ``Progress``."""

    text: str
    far: tuple[str, int] | None = None
    topics: bool = False
    way_out: str = ""
    waived: tuple[float | None, str] | None = None


def first_missing(*groups: Iterable[str | Missing]) -> Progress:
    """Done when nothing is missing, else the first missing thing (the rest usually follows from it)."""
    for group in groups:
        for each in group:
            missing = Missing(each) if isinstance(each, str) else each
            return Progress(
                False,
                missing.text,
                far=missing.far,
                topics=missing.topics,
                way_out=missing.way_out,
                waived=missing.waived,
            )
    return DONE


def by_name(*conditions: Condition) -> Mapping[str, Condition]:
    """The conditions of an operation, as a sensor finds them."""
    return {each.name: each for each in conditions}
