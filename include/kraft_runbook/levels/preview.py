"""A change of a level before it is made: what a person reads before signing, and what the signature is bound to."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_runbook.cluster.feature_levels import KRAFT_VERSION, Answer, FeatureObservation, SoftwareLevels
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.levels.change import Direction, LevelChange
from kraft_runbook.levels.losses import Loss
from kraft_runbook.levels.obstacles import LevelObstacle

NOT_REGISTERED = "has not registered"
"""Of the leader's refusal (``QuorumFeatures``)."""


@dataclass(frozen=True, slots=True)
class Preview:
    """``answer``: what the leader says to it, validate-only. None where nothing changes. ``shuts``: which other
    software no node can start on afterwards, and for how long. ``voters``: what Kafka will write of them.
    """

    change: LevelChange
    obstacles: tuple[LevelObstacle, ...]
    losses: tuple[Loss, ...]
    answer: Answer | None
    shuts: tuple[str, ...] = ()
    voters: tuple[str, ...] = ()

    @property
    def may_go(self) -> bool:
        """Whether the leader accepts, and nothing is seen that speaks against it."""
        return not self.obstacles and (self.answer is None or self.answer.accepted)

    @property
    def may_be_over(self) -> bool:
        """Whether nothing stands in the way but what seconds may end: a controller that is about to register."""
        refused = self.answer is not None and not self.answer.accepted
        if not self.obstacles:
            return refused and self.answer is not None and NOT_REGISTERED in self.answer.refusal
        return all(each.momentary for each in self.obstacles)

    def render_text(self) -> str:
        lines = [self.change.render_text(), *self.voters, *self.shuts]
        lines += [f"in the way: {each}" for each in self.obstacles]
        lines += [f"would be lost: {each}" for each in self.losses]
        if self.answer is not None:
            said = "accepts it" if self.answer.accepted else f"refuses it: {self.answer.refusal}"
            lines.append(f"the quorum's leader {said} (validate-only, nothing was changed)")
        return "\n".join(lines)


def voters_written(seen: FeatureObservation, change: LevelChange) -> tuple[str, ...]:
    """At which address kraft.version puts each voter into the metadata log: the one at which the controller registered,
    as far as it did.
    """
    if change.feature != KRAFT_VERSION or change.direction is not Direction.UP or isinstance(seen.log, Unread):
        return ()
    known = {i: seen.log.controllers[i].endpoints for i in seen.controllers if i in seen.log.controllers}
    return tuple(f"the metadata log will have voter {i} at {', '.join(known[i])}" for i in sorted(known))


def shuts_out(seen: FeatureObservation, change: LevelChange) -> tuple[str, ...]:
    """What a raise does to the way back of the software: each other version that is installed for these nodes, and does
    not know the level that would hold. One that the level of now shuts out already is told where the raise makes that
    final, and else left out.
    """
    if change.direction is not Direction.UP or change.feature == KRAFT_VERSION:
        return ()
    hosts = [host for host in seen.hosts.values() if not isinstance(host, Unread)]
    others = {
        each.version: each for host in hosts for each in host.software.values() if isinstance(each, SoftwareLevels)
    }
    told = []
    for version, other in sorted(others.items()):
        if version == change.software or other.supports(change.feature, change.target):
            continue
        how_long = _how_long(change, other, others.get(change.software))
        if how_long:
            ranges = other.ranges(change.feature)
            told.append(f"it shuts the way to Kafka {version}, which supports {ranges}: {how_long}")
    return tuple(told)


def _how_long(change: LevelChange, other: SoftwareLevels, running: SoftwareLevels | None) -> str | None:
    """None: the raise changes nothing for that software."""
    table, known = other.features.get(change.feature), running.features.get(change.feature) if running else None
    highest = table.supported.highest if table else 0
    now = change.now
    if known and any(each.changes_metadata and highest < each.number <= now for each in known.levels):
        return None  # it is shut for good already
    beyond = [step for step in change.starred if step.level > highest]
    if beyond:
        return f"for good, since {', '.join(f'{step.level} ({step.name})' for step in beyond)} changes metadata"
    if now and not other.supports(change.feature, now):
        return None
    return "until it is lowered again and every node has taken a snapshot past that"
