"""How long clients heard nothing, with a fault and without one: what a drill measures, and what of it is an effect.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kraft_runbook.cluster.processor_time import Used
from kraft_runbook.quorum.handover import Handover, Loss

CHANGES = "metadata changes"
"""What stands in the place of a partition for the probe of metadata changes."""


def longest_silence(answers: Iterable[float], began: float, ended: float) -> float:
    """The longest time without an answer, in seconds. One that is still open at the end counts, and one from the
    beginning. ``answers``: moments in order.
    """
    moments = [began, *(each for each in answers if began <= each <= ended), ended]
    return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one window showed. ``seconds``: its length. ``silences``: the longest one of each partition, and of
    ``CHANGES``. ``failed``: records that were given up. ``handover``: None where no broker was stopped. ``loss``: None
    where no controller was killed in ZooKeeper mode. ``processors``: what the processes used, from a little before the
    window until a little after it. ``control``: the names of those that control the cluster, after the fault.
    """

    seconds: float
    silences: Mapping[str, float] = field(default_factory=dict)
    answered: int = 0
    failed: int = 0
    handover: Handover | None = None
    processors: Used = field(default_factory=Used)
    control: tuple[str, ...] = ()
    loss: Loss | None = None

    @property
    def of_changes(self) -> float | None:
        """The longest time in which no metadata change was answered; None where none was tried."""
        return self.silences.get(CHANGES)

    @property
    def of_partitions(self) -> Mapping[str, float]:
        return {name: each for name, each in self.silences.items() if name != CHANGES}

    def to_dict(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 1),
            "silences": {name: round(each, 2) for name, each in sorted(self.silences.items())},
            "answered": self.answered,
            "failed": self.failed,
            "handover": None if self.handover is None else self.handover.to_list(),
            "processors": self.processors.to_dict(),
            "control": list(self.control),
            "loss": None if self.loss is None else self.loss.to_list(),
        }

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Measured | None:
        """None where it is no such value. What earlier drills did not measure is not there."""
        try:
            silences = {str(name): float(each) for name, each in body["silences"].items()}
            return cls(
                float(body["seconds"]),
                silences,
                int(body["answered"]),
                int(body["failed"]),
                Handover.from_list(body.get("handover")),
                Used.from_dict(body["processors"]) if "processors" in body else Used(),
                tuple(map(str, body.get("control", ()))),
                Loss.from_list(body.get("loss")),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class Effect:
    """What a fault did beyond what happens without one. ``seconds``: its longest silence; ``baseline``: the longest
    without a fault. ``of``: of how many partitions it was measured, of which ``partitions`` exceeded the baseline.
    """

    what: str
    seconds: float
    baseline: float
    partitions: int = 0
    of: int = 0

    def __str__(self) -> str:
        told = f"{self.what}: silent for {self.seconds:.1f} s, {self.baseline:.1f} s without a fault"
        return f"{told} ({self.partitions} of {self.of} partitions exceeded that)" if self.of else told


def effects(baseline: Measured, fault: Measured) -> tuple[Effect, ...]:
    """What exceeds the baseline's maximum; all else is what happens without a fault too. A part that the baseline does
    not hold has no effect: there is nothing to compare with.
    """
    found: list[Effect] = []
    usual = baseline.of_changes
    if usual is not None and fault.of_changes is not None and fault.of_changes > usual:
        found.append(Effect(CHANGES, fault.of_changes, usual))
    if baseline.of_partitions and fault.of_partitions:
        most = max(baseline.of_partitions.values())
        beyond = [each for each in fault.of_partitions.values() if each > most]
        if beyond:
            found.append(Effect("partitions", max(beyond), most, len(beyond), len(fault.of_partitions)))
    return tuple(found)
