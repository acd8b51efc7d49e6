"""When the partitions that a stopped broker led have other leaders. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Handover:
    """How the partitions that a stopped broker led came to other leaders. ``led``: how many there were. ``seconds``:
    from when its process was told to end until the last one had another leader; None where that was not seen.
    """

    led: int
    seconds: float | None

    def to_list(self) -> list[float | None]:
        return [self.led, None if self.seconds is None else round(self.seconds, 2)]

    @classmethod
    def from_list(cls, told: Sequence[Any] | None) -> Handover | None:
        """Raises IndexError, TypeError or ValueError where it is no such value."""
        return None if told is None else cls(int(told[0]), None if told[1] is None else float(told[1]))

    def __str__(self) -> str:
        took = "whether and when the last one moved was not seen"
        if self.seconds is not None:
            took = f"the last one had another leader {self.seconds:.1f} s after it was told to end"
        return f"it led {self.led} partitions; {took}"


LATE = 0.5
"""Seconds by which a host's answer may be late on its way."""


def handover(led: int | None, told_at: float | None, looks: Iterable[tuple[float, int]]) -> Handover | None:
    """Of ``led`` partitions, by looks that say when how many had no other leader; None where nothing was seen.
    ``told_at``: when the process was told to end, by the looks' clock; None where its host does not say. It is late by
    what the host's answer took on its way. Where the last one moved well before it, that was too long: not seen.
    """
    if led is None:
        return None
    if told_at is None or not led:
        return Handover(led, None)
    moved = next((at - told_at for at, left in looks if not left), None)
    return Handover(led, None if moved is None or moved < -LATE else max(0.0, moved))
