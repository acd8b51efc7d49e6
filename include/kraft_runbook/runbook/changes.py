"""What must not change between a proof and the step that it allows, and whose a change is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.naming import name_ids
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import FOR_GOOD, detect_phase

UNREAD = "unread"
"""In a state: this part of a node could not be read."""


def state_of(seen: ClusterObservation) -> dict[str, Any]:
    """What must not change between a proof and its step: phase, cluster id, which nodes run and in which mode. A leader
    may change.

    Plain JSON; a node is ``[running, mode]`` under its id as text; a part that was not read is ``"unread"``.
    """
    return {
        "phase": detect_phase(seen).phase.value,
        "cluster_id": seen.zookeeper.cluster_id if was_read(seen.zookeeper) else None,
        "brokers": {str(b.id): [_plain(b.running), _plain(b.mode)] for b in seen.brokers.values()},
        "controllers": {str(c.id): [_plain(c.running), _plain(c.mode)] for c in seen.controllers.values()},
        "undeclared": [sorted(seen.undeclared_brokers), sorted(seen.undeclared_controllers)],
    }


def _plain(part: Any) -> bool | str:
    if not was_read(part):
        return UNREAD
    return part if isinstance(part, bool) else str(part.value)


class By(StrEnum):
    """Who made a change: the steps that the gate guards, somebody else, or unknown, since a part was not read."""

    THE_STEPS = "the steps"
    OTHERS = "others"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between a proof and the cluster as it was seen later."""

    what: str
    by: By
    of_controller: bool = False


State = Mapping[str, Any]
"""What ``state_of`` gives."""
Judge = Callable[[Any, Any], By]
"""Whose the change of a node is, from ``[running, mode]`` to ``[running, mode]``."""


def changes_between(
    was: State,
    now: State,
    *,
    turn: Collection[int],
    of_broker: Judge,
    of_controller: Judge,
    of_phase: Callable[[], By],
) -> Iterator[Change]:
    """How the cluster differs from the proof, part by part.

    ``turn``: the nodes whose turn it is; their own step may have left them down or half-way. ``of_broker``,
    ``of_controller``: who made the change of another node. ``of_phase``: who changed the phase, asked where it changed
    by more than by itself (``FOR_GOOD``).
    """
    if now["cluster_id"] != was["cluster_id"]:
        yield Change(
            f"the cluster's id was {was['cluster_id']}, now {now['cluster_id'] or UNREAD}",
            By.UNREAD if now["cluster_id"] is None else By.OTHERS,
        )
    for what, before, after in zip(("brokers", "controllers"), was["undeclared"], now["undeclared"], strict=True):
        if list(before) != list(after):
            yield Change(
                f"{what} that the cluster file does not name: were {name_ids(before) or 'none'}, now"
                f" {name_ids(after) or 'none'}",
                By.OTHERS,
            )
    for kind, of_whom in (("brokers", of_broker), ("controllers", of_controller)):
        for node_id in sorted({*was[kind], *now[kind]}, key=int):
            before, after = was[kind].get(node_id), now[kind].get(node_id)
            if before == after:
                continue
            if before is None or after is None:
                whose = By.OTHERS
            elif int(node_id) in turn:
                whose = by_the_steps_if_read(before, after)
            else:
                whose = of_whom(before, after)
            yield Change(
                f"{kind.removesuffix('s')} {node_id} {_say(before)}, now {_say(after)}", whose, kind == "controllers"
            )
    if now["phase"] != was["phase"] and not {now["phase"], was["phase"]} <= FOR_GOOD:
        yield Change(f"the phase was {was['phase']}, now {now['phase']}", of_phase())


def unread_since(was: State, now: State) -> list[str]:
    """The nodes of which the first look read what the later one could not, in words."""
    return [
        f"{kind.removesuffix('s')} {node_id} {_say(after)}"
        for kind in ("brokers", "controllers")
        for node_id, after in now[kind].items()
        if UNREAD in after and UNREAD not in was[kind].get(node_id, (UNREAD,))
    ]


def unread_now(state: State) -> list[str]:
    """The nodes that run, or may run, and of which a part was not read, in words."""
    return [
        f"{kind.removesuffix('s')} {node_id} {_say(node)}"
        for kind in ("brokers", "controllers")
        for node_id, node in state[kind].items()
        if node[0] is not False and UNREAD in node
    ]


def the_steps(_: object, after: Sequence[object]) -> By:
    """Of a node that the steps restart; UNREAD where it can't be read now."""
    return By.UNREAD if UNREAD in after else By.THE_STEPS


def others(_: object, after: Sequence[object]) -> By:
    """Of a node that no step touches; UNREAD where it can't be read now."""
    return By.UNREAD if UNREAD in after else By.OTHERS


def by_the_steps_if_read(before: Any, after: Any) -> By:
    """THE_STEPS, or UNREAD where one of the two looks did not read enough to show a change. A node that is down has no
    mode.
    """
    seen_then = before[0] is False or UNREAD not in before
    seen_now = after[0] is False or UNREAD not in after
    return By.THE_STEPS if seen_then and seen_now else By.UNREAD


def _say(node: Any) -> str:
    if node is None:
        return "was not declared"
    running, mode = node
    state = "its port was not looked at" if running == UNREAD else "runs" if running else "is down"
    return f"{state} ({mode if mode != UNREAD else 'mode not read'})"
