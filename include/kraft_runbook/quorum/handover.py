"""When the partitions that a stopped broker led have other leaders, and when a killed one was missed. Pure."""

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


@dataclass(frozen=True, slots=True)
class Loss:
    """How the loss of a killed controller went by in ZooKeeper mode. ``noticed``: seconds from the kill until ZooKeeper
    ended its session and /controller named it no more. ``served``: from there until the first metadata change was
    answered; None where none was. The first is zookeeper.session.timeout.ms, whatever the cluster holds; the second
    grows with the partitions.
    """

    noticed: float
    served: float | None

    def to_list(self) -> list[float | None]:
        return [round(self.noticed, 2), None if self.served is None else round(self.served, 2)]

    @classmethod
    def from_list(cls, told: Sequence[Any] | None) -> Loss | None:
        """Raises IndexError, TypeError or ValueError where it is no such value."""
        return None if told is None else cls(float(told[0]), None if told[1] is None else float(told[1]))

    def __str__(self) -> str:
        served = "no metadata change was answered after that"
        if self.served is not None:
            served = f"the first metadata change was answered {self.served:.1f} s after that"
        return f"ZooKeeper noticed the loss {self.noticed:.1f} s after the kill; {served}"


def loss(told_at: float | None, gone_at: float | None, changes: Iterable[float]) -> Loss | None:
    """None where the kill or what ZooKeeper noticed was not seen. ``changes``: when metadata changes were answered, in
    order; all by one clock.
    """
    if told_at is None or gone_at is None:
        return None
    served = next((each - gone_at for each in changes if each > gone_at), None)
    return Loss(max(0.0, gone_at - told_at), served)


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
