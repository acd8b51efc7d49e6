"""Whether an operation can be undone from a cluster's present stage, and how."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Whether the cluster can go back now, and the steps in order. ``risks``: what a person must know first.

    ``seconds``: the estimated time; ``window_seconds``: the estimated part of it without metadata changes. Both are 0
    if there is no estimate.
    """

    possible: bool
    why: str
    steps: tuple[str, ...]
    risks: tuple[str, ...] = ()
    seconds: float = 0
    window_seconds: float = 0


def render_estimate(plan: RollbackPlan) -> str:
    """The estimate in brackets; empty if there is none."""
    if not plan.seconds:
        return ""
    window = f", about {plan.window_seconds:g} s of it without metadata changes" if plan.window_seconds else ""
    return f" (about {max(1, round(plan.seconds / 60)):d} min{window})"
