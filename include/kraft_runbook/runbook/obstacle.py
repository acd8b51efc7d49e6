"""What stands in the way of a change, with its way out: the one form in which levels, disks and files say so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Obstacle:
    """``problem``, ``way_out``: as of an error. ``unknown``: it could not be read, so nobody knows."""

    problem: str
    way_out: str
    unknown: bool = False

    def __str__(self) -> str:
        return f"{self.problem}. {self.way_out[0].upper()}{self.way_out[1:]}."
