"""Controllers one by one, the active one last, so that leadership moves once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.steps.node_step import Look, NodeStep, passes_over_none, rehearse_step, take_step
from kraft_runbook.steps.run import Run

Taken = tuple[int, dict[str, Any]]
Awaits = Callable[[int], object]
"""Waits for what must hold after a node's restart."""


def left_for_last(look: Look, left: Collection[int]) -> str | None:
    """Why this controller's turn comes later: it leads, and others of ``left`` have had none."""
    if len(left) > 1 and look.seen.is_active(look.node):
        return f"left for last: controller {look.node} is the active one"
    return None


def active_one_last(
    run: Run,
    step_of: Callable[[int], NodeStep],
    left: Callable[[ClusterObservation], Collection[int]],
    *,
    once: bool = False,
    before: Condition | None = None,
    after: Awaits | None = None,
) -> list[Taken]:
    """Take the step on the controllers that a first pass left: the active one, and any that led in between, the active
    one last. Returns them in that order, each with the step's answer; in a rehearsal, the one that leads now, where a
    first pass leaves it for last.

    ``left``: those that still need it, by a look. ``once``: none has a second turn. ``before``: what is waited for
    before each, at most ``deadlines.quorum`` seconds; ``after``: waits for what must hold after it. One of them that
    has ended comes first, without ``before``: its step starts it, and a wait for the whole quorum would never end.
    Raises as ``take_step`` and ``wait_for``.
    """
    done: list[Taken] = []
    if run.cluster.rehearses:
        seen = run.cluster.observe()
        still = left(seen)
        active = [each for each in still if len(still) > 1 and seen.is_active(each)]
        for node in active:
            done.append((node, rehearse_step(run, replace(step_of(node), passed_over=passes_over_none), node)))
            if after is not None:
                after(node)
        return done
    within = run.spec.deadlines.quorum
    while remaining := _to_come(left(seen := run.cluster.observe()), done if once else ()):
        ended = [each for each in remaining if seen.controllers[each].running is False]
        if before is not None and not ended:
            seen = run.cluster.wait_for(before, deadline=within)
        node = ended[0] if ended else seen.next_controller(remaining)
        done.append((node, take_step(run, step_of(node), node)))
        if after is not None:
            after(node)
    return done


def _to_come(left: Collection[int], done: Collection[Taken]) -> list[int]:
    had_their_turn = {node for node, _ in done}
    return [each for each in left if each not in had_their_turn]
