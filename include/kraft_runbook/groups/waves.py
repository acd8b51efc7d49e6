"""In which order the groups of a run move: the first one alone, then some at a time."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_runbook.errors import Refused

MOST = 12
"""Waves of a run: each is a task group of its DAG."""


def waves(groups: Sequence[str], *, size: int, canary: bool) -> tuple[tuple[str, ...], ...]:
    """The groups of each wave. ``size``: how many move at once; ``canary``: whether the first one moves alone, before
    the others. Raises Refused where a run has not so many waves.
    """
    first = 1 if canary and len(groups) > 1 else 0
    found = [tuple(groups[:first])] if first else []
    found += [tuple(groups[at : at + size]) for at in range(first, len(groups), size)]
    if len(found) > MOST:
        least = -(-(len(groups) - first) // (MOST - first))
        raise Refused(
            f"{len(groups)} groups in waves of {size} are {len(found)} waves, and a run has {MOST}",
            way_out=f"move {least} groups at once or more, or name fewer groups",
        )
    return tuple(found)
