"""A change of a level before it is made: what a person reads before signing, and what the signature is bound to."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_runbook.cluster.feature_levels import Answer
from kraft_runbook.features.change import LevelChange
from kraft_runbook.features.losses import Loss
from kraft_runbook.features.obstacles import Obstacle


@dataclass(frozen=True, slots=True)
class Preview:
    """``answer``: what the leader says to it, validate-only. None where nothing changes."""

    change: LevelChange
    obstacles: tuple[Obstacle, ...]
    losses: tuple[Loss, ...]
    answer: Answer | None

    @property
    def may_go(self) -> bool:
        """Whether the leader accepts, and nothing is seen that speaks against it."""
        return not self.obstacles and (self.answer is None or self.answer.accepted)

    def render_text(self) -> str:
        lines = [self.change.render_text()]
        lines += [f"in the way: {each}" for each in self.obstacles]
        lines += [f"would be lost: {each}" for each in self.losses]
        if self.answer is not None:
            said = "accepts it" if self.answer.accepted else f"refuses it: {self.answer.refusal}"
            lines.append(f"the quorum's leader {said} (validate-only, nothing was changed)")
        return "\n".join(lines)
