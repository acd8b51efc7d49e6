"""A change of a level before it is made: what a person reads before signing, and what the signature is bound to."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_runbook.cluster.feature_levels import KRAFT_VERSION, Answer, FeatureObservation, SoftwareLevels
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.features.change import Direction, LevelChange
from kraft_runbook.features.losses import Loss
from kraft_runbook.features.obstacles import Obstacle


@dataclass(frozen=True, slots=True)
class Preview:
    """``answer``: what the leader says to it, validate-only. None where nothing changes. ``shuts``: which other
    software no node can start on afterwards, and for how long.
    """

    change: LevelChange
    obstacles: tuple[Obstacle, ...]
    losses: tuple[Loss, ...]
    answer: Answer | None
    shuts: tuple[str, ...] = ()

    @property
    def may_go(self) -> bool:
        """Whether the leader accepts, and nothing is seen that speaks against it."""
        return not self.obstacles and (self.answer is None or self.answer.accepted)

    def render_text(self) -> str:
        lines = [self.change.render_text(), *self.shuts]
        lines += [f"in the way: {each}" for each in self.obstacles]
        lines += [f"would be lost: {each}" for each in self.losses]
        if self.answer is not None:
            said = "accepts it" if self.answer.accepted else f"refuses it: {self.answer.refusal}"
            lines.append(f"the quorum's leader {said} (validate-only, nothing was changed)")
        return "\n".join(lines)


def shuts_out(seen: FeatureObservation, change: LevelChange) -> tuple[str, ...]:
    """What a raise does to the way back of the software: each other version that is installed for these nodes, and does
    not know the level that would hold.
    """
    if change.direction is not Direction.UP or change.feature == KRAFT_VERSION:
        return ()
    hosts = [host for host in seen.hosts.values() if not isinstance(host, Unread)]
    others = {
        each.version: each for host in hosts for each in host.software.values() if isinstance(each, SoftwareLevels)
    }
    return tuple(
        f"it shuts the way to Kafka {version}, which supports {other.ranges(change.feature)}:"
        f" {_how_long(change, other)}"
        for version, other in sorted(others.items())
        if version != change.software and not other.supports(change.feature, change.target)
    )


def _how_long(change: LevelChange, other: SoftwareLevels) -> str:
    table = other.features.get(change.feature)
    beyond = [step for step in change.starred if table is None or step.level > table.supported.highest]
    if beyond:
        return f"for good, since {', '.join(f'{step.level} ({step.name})' for step in beyond)} changes metadata"
    return "until it is lowered again and every node has taken a snapshot past that"
