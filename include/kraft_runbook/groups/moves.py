"""The move of several groups: which are meant, the plan of each, and those that are left out with their reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kraft_runbook.errors import Refused
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.move_plan import MovePlan, plan_move
from kraft_runbook.groups.planned_offsets import Direction, LeftOut, MoveRefused, Origin, PlannedOffset, Without
from kraft_runbook.groups.quiet import Quiet
from kraft_runbook.runbook.digests import sha256_of


@dataclass(frozen=True, slots=True)
class Moves:
    """``plans``: by group, in order; ``refused``: the groups that stay as they are, with every reason."""

    direction: Direction
    plans: tuple[MovePlan, ...]
    refused: Mapping[str, tuple[MoveRefused, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "direction": self.direction.value,
            "plans": [
                {
                    "group": plan.group,
                    "offsets": [
                        [*o.partition, o.offset, o.origin.value, o.replaces, *(() if o.left is None else (o.left,))]
                        for o in plan.offsets
                    ],
                    "fences": [list(each) for each in plan.fences],
                    **_where_any(
                        topic_ids=dict(plan.topic_ids),
                        abandoned=list(plan.abandoned),
                        left_out=[[*each.partition, each.held, each.why] for each in plan.left_out],
                        subscribed=[list(each) for each in plan.subscribed],
                        unseen_stop=[[*each, end] for each, end in plan.unseen_stop],
                    ),
                }
                for plan in self.plans
            ],
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Moves:
        """The plans alone: what was refused is told, and not kept."""
        direction = Direction(data["direction"])
        return Moves(
            direction,
            tuple(
                MovePlan(
                    each["group"],
                    direction,
                    tuple(PlannedOffset((t, n), o, Origin(w), r, *left) for t, n, o, w, r, *left in each["offsets"]),
                    tuple((t, n) for t, n in each["fences"]),
                    dict(each.get("topic_ids", {})),
                    tuple(each.get("abandoned", ())),
                    tuple(LeftOut((t, n), held, why) for t, n, held, why in each.get("left_out", ())),
                    tuple((pattern, text) for pattern, text in each.get("subscribed", ())),
                    tuple(((t, n), end) for t, n, end in each.get("unseen_stop", ())),
                )
                for each in data["plans"]
            ),
        )

    @property
    def digest(self) -> str:
        """Of what would be done."""
        return sha256_of(self.to_dict())

    def render_text(self) -> str:
        """A table a group, then what is left out and why."""
        parts = [plan.render_text() for plan in self.plans]
        parts += [
            "\n".join([f"{group} is not moved:", *(f"- {each.why}\n  What to do: {each.way_out}" for each in why)])
            for group, why in self.refused.items()
        ]
        return "\n\n".join([*parts, f"{len(self.plans)} groups can be moved, {len(self.refused)} can not"])


def _where_any(**some: Any) -> dict[str, Any]:
    """Without those that are empty: a plan that has none of them is written, and signed, as it was before they came."""
    return {key: value for key, value in some.items() if value}


def meant(wanted: Sequence[str], there: Iterable[str]) -> tuple[str, ...]:
    """The groups that are named, or that a pattern fits whole. Raises Refused for a word that means none."""
    every = sorted(there)
    found: set[str] = set()
    for word in wanted:
        if word in every:
            found.add(word)
            continue
        try:
            fitting = [each for each in every if re.fullmatch(word, each)]
        except re.error as error:
            raise Refused(f"{word!r} is no group and no pattern: {error}", way_out="correct it") from None
        if not fitting:
            raise Refused(
                f"no group below /consumers is {word!r}, or fits it", way_out="kraft-runbook groups scan names them all"
            )
        found.update(fitting)
    if not found:
        raise Refused("no group is named", way_out="name groups, or patterns that fit their whole names")
    return tuple(sorted(found))


def plan_moves(
    looks: Iterable[GroupLook],
    direction: Direction,
    without: Without | None,
    quiet: Mapping[str, Quiet] = MappingProxyType({}),
) -> Moves:
    """The plan of each, or its reasons. ``without``, ``quiet`` by group: as of ``plan_move``; offsets by partition are
    given for one group alone, since their names don't say of which group they are.
    """
    plans: list[MovePlan] = []
    refused: dict[str, tuple[MoveRefused, ...]] = {}
    several = list(looks)
    if isinstance(without, Mapping) and len(several) > 1:
        raise Refused(
            f"offsets of single partitions are given for {len(several)} groups",
            way_out="move one group at a time with them, or say earliest, end at the stop, or one offset for all",
        )
    for look in several:
        found = plan_move(look, direction, without=without, quiet=quiet.get(look.name))
        if isinstance(found, MovePlan):
            plans.append(found)
        else:
            refused[look.name] = found
    return Moves(direction, tuple(plans), refused)
