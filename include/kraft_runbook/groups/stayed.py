"""The groups of a run that an act refused, so that they stay where they are while the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kraft_runbook.errors import RunbookError


class Act(IntEnum):
    """What is done for each group, in its order."""

    PLAY_TO_STOP = 0
    STOP = 1
    FENCE = 2
    COMMIT = 3
    LIFT_FENCE = 4
    ASK_TO_START = 5
    PLAY_TO_START = 6
    START = 7


@dataclass(frozen=True, slots=True)
class Stayed:
    """``act``: which one refused the group; ``why`` and ``way_out`` as it said."""

    act: Act
    why: str
    way_out: str

    @staticmethod
    def of(act: Act, error: RunbookError) -> Stayed:
        return Stayed(act, error.problem, error.way_out)

    def to_dict(self) -> dict[str, Any]:
        return {"act": int(self.act), "why": self.why, "way_out": self.way_out}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Stayed:
        """Raises KeyError, TypeError, ValueError."""
        return Stayed(Act(data["act"]), str(data["why"]), str(data["way_out"]))


def going_on(groups: Iterable[str], stayed: Mapping[str, Stayed], act: Act) -> tuple[str, ...]:
    """The groups that this act is to be done for: those that an earlier one refused stay out. One that this act
    refused before, or a later one, is tried again.
    """
    return tuple(each for each in groups if each not in stayed or stayed[each].act >= act)


def render(stayed: Mapping[str, Stayed]) -> str:
    """A line a group."""
    return "\n".join(f"- {group}: {each.why}\n  What to do: {each.way_out}" for group, each in stayed.items())
