"""Several groups that may be toggled, and those that may not with their reasons: what the command shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.planned_offsets import Direction, MoveRefused
from kraft_runbook.groups.toggles.toggle import Toggle, plan_toggle


@dataclass(frozen=True, slots=True)
class Toggles:
    """``toggles``: in order of their names; ``refused``: the others, with every reason."""

    direction: Direction
    toggles: tuple[Toggle, ...]
    refused: Mapping[str, tuple[MoveRefused, ...]] = field(default_factory=dict)

    def render_text(self) -> str:
        """A group and its members, then what is refused and why."""
        parts = [each.render_text() for each in self.toggles]
        parts += [
            "\n".join([f"{group} is refused:", *(f"- {each.why}\n  What to do: {each.way_out}" for each in why)])
            for group, why in self.refused.items()
        ]
        told = f"{len(self.toggles)} groups can be toggled {self.direction}, {len(self.refused)} can not"
        return "\n\n".join([*parts, told])


def plan_toggles(earlier: Iterable[GroupLook], looks: Iterable[GroupLook], direction: Direction) -> Toggles:
    """Each group of ``looks``. ``earlier``: looks at the same groups, some moments before."""
    before = {each.name: each for each in earlier}
    toggles: list[Toggle] = []
    refused: dict[str, tuple[MoveRefused, ...]] = {}
    for look in sorted((each for each in looks if each.name in before), key=lambda each: each.name):
        found = plan_toggle(before[look.name], look, direction)
        if isinstance(found, Toggle):
            toggles.append(found)
        else:
            refused[look.name] = found
    return Toggles(direction, tuple(toggles), refused)
