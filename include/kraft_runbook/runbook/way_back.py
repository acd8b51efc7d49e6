"""Whether an operation can be undone from where a cluster stands, and how."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Whether the cluster can go back now, and the steps in order. ``risks`` says what a person must know first.

    ``seconds``: about how long it takes; ``window_seconds``: about how long of it no metadata can be changed. Both 0
    where nothing is estimated.
    """

    possible: bool
    why: str
    steps: tuple[str, ...]
    risks: tuple[str, ...] = ()
    seconds: float = 0
    window_seconds: float = 0


def render_estimate(plan: RollbackPlan) -> str:
    """The estimate in brackets, or nothing where there is none."""
    if not plan.seconds:
        return ""
    window = f", about {plan.window_seconds:g} s of it without metadata changes" if plan.window_seconds else ""
    return f" (about {max(1, round(plan.seconds / 60)):d} min{window})"
