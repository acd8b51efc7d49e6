"""A change of one feature's level, planned by the table of the software that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.feature_levels import KRAFT_VERSION, METADATA_VERSION, FeatureTable, Level, SoftwareLevels
from kraft_runbook.errors import Refused
from kraft_runbook.metadata.metadata_version import BRINGS, NEWEST_LEVEL

RAISED: Mapping[tuple[str, int], str] = {
    ("eligible.leader.replicas.version", 1): (
        "the quorum sets min.insync.replicas for all brokers, to what the active controller's own file says, unless it"
        " is set for all already, and removes what is set for single brokers; lowering the level gives nothing of that"
        " back (KIP-966)"
    ),
}
"""What else a server does when a feature comes to a level (``ConfigurationControlManager`` of 4.1.1)."""
OFF: Mapping[str, str] = {
    "group.version": "consumers with group.protocol=consumer are refused from then on (KIP-848)",
    "share.version": "share groups are refused from then on (KIP-932)",
    "streams.version": "Kafka Streams with group.protocol=streams is refused from then on (KIP-1071)",
}
"""Who is refused once a feature is off: level 0."""
LOWERED: Mapping[str, str] = {
    "transaction.version": (
        "transactional producers of Kafka 4 that run may get UNSUPPORTED_VERSION and end for good (reported, KIP-890):"
        " restart them once it is lowered"
    ),
}
"""Who may be hit by any step down."""


class Direction(StrEnum):
    UP = "up"
    DOWN = "down"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Step:
    """One level on the way. ``brings``: what it changed in the metadata; empty where it changed nothing."""

    level: int
    name: str
    starred: bool
    brings: str

    def __str__(self) -> str:
        star = f" *, changes metadata{f': {self.brings}' if self.brings else ''}" if self.starred else ""
        return f"{self.level} {self.name}{star}"


@dataclass(frozen=True, slots=True)
class LevelChange:
    """From the level that holds to the one that is wanted. ``steps``: the levels that come (up) or go (down), in the
    order in which they do.
    """

    feature: str
    now: int
    target: int
    target_name: str
    steps: tuple[Step, ...]
    software: str

    @property
    def direction(self) -> Direction:
        return Direction.UP if self.target > self.now else Direction.DOWN if self.target < self.now else Direction.NONE

    @property
    def starred(self) -> tuple[Step, ...]:
        """The steps that change metadata: the way back of a change up, and the end of a change down."""
        return tuple(step for step in self.steps if step.starred)

    @property
    def lowest_afterwards(self) -> int:
        """How far down the level can go again once the change up is done."""
        return max((step.level for step in self.starred), default=self.now)

    def render_text(self) -> str:
        """The change for a person, step by step."""
        if self.direction is Direction.NONE:
            return f"{self.feature} is at {self.now} ({self.target_name}) already: nothing to do"
        verb = "comes" if self.direction is Direction.UP else "goes"
        lines = [
            f"{self.feature} {self.now} -> {self.target} ({self.target_name}), by the table of Kafka {self.software}"
        ]
        lines += [f"  {verb}: {step}" for step in self.steps]
        if self.direction is Direction.UP:
            lines += [text for step in self.steps if (text := RAISED.get((self.feature, step.level)))]
        elif self.feature in LOWERED:
            lines.append(LOWERED[self.feature])
        elif self.target == 0 and self.feature in OFF:
            lines.append(OFF[self.feature])
        if self.direction is Direction.UP and self.feature == METADATA_VERSION:
            lines.append(_way_back(self))
        if self.direction is Direction.UP and self.feature == KRAFT_VERSION:
            lines.append("irreversible: no release lowers kraft.version")
        return "\n".join(lines)


def _way_back(change: LevelChange) -> str:
    if not change.starred:
        return f"it can go back to {change.now}: no level on the way changes metadata"
    named = ", ".join(f"{step.level} ({step.name})" for step in change.starred)
    return (
        f"irreversible: {named} change{'s' if len(change.starred) == 1 else ''} metadata, and no server lowers across"
        f" such a level; afterwards {change.lowest_afterwards} is the lowest that can be had"
    )


def plan_change(software: SoftwareLevels, feature: str, now: int, wanted: str) -> LevelChange:
    """The change to ``wanted``: a level's number, its name ("4.0-IV3") or a release ("4.1": its last level).

    Raises Refused for a feature or a level that this software does not know or support.
    """
    table = software.features.get(feature)
    if table is None:
        raise Refused(
            f"Kafka {software.version} has no feature {feature}; it has {', '.join(sorted(software.features))}",
            way_out="name one of these, or bring the nodes to a Kafka that has it first (upgrade_software)",
        )
    target = _level(software, feature, table, wanted)
    lower, upper = sorted((now, target.number))
    between = [level for level in table.levels if lower < level.number <= upper]
    steps = [
        Step(each.number, _named(feature, each), each.changes_metadata, _brings(feature, each)) for each in between
    ]
    if target.number < now:
        steps.reverse()
    return LevelChange(feature, now, target.number, target.name, tuple(steps), software.version)


def _named(feature: str, level: Level) -> str:
    unknown = feature == METADATA_VERSION and level.number > NEWEST_LEVEL
    return f"{level.name}, which this tool does not know" if unknown else level.name


def _brings(feature: str, level: Level) -> str:
    return BRINGS.get(level.number, "") if feature == METADATA_VERSION and level.changes_metadata else ""


def _level(software: SoftwareLevels, feature: str, table: FeatureTable, wanted: str) -> Level:
    by_number = {str(each.number): each for each in table.levels}
    by_name = {each.name: each for each in table.levels}
    released = [each for each in table.levels if each.number in table.supported]
    of_release = [each for each in released if each.release == wanted and feature == METADATA_VERSION]
    found = by_number.get(wanted) or by_name.get(wanted) or (of_release[-1] if of_release else None)
    if found is None and re.fullmatch(r"\d+", wanted) and int(wanted) in table.supported:
        found = Level(int(wanted), wanted, "", False)
    if found is None or found.number not in table.supported:
        raise Refused(
            f"Kafka {software.version} supports {software.ranges(feature)}; {wanted} is"
            f" {'beyond that' if found else 'no level that it knows'}",
            way_out=f"name a level from {table.supported.lowest} to {table.supported.highest}"
            + (f", or a release up to {released[-1].release}" if feature == METADATA_VERSION else "")
            + "; for a later one bring every node to a Kafka that supports it first (upgrade_software)",
        )
    return found
