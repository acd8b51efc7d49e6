"""What a fault costs those who control the cluster, in processor time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kraft_runbook.quorum.silences import Measured


@dataclass(frozen=True, slots=True)
class Control:
    """Processor seconds of those who control the cluster, and what they use without a fault in as long a time.
    ``left_out``: of whom that is not known, with the reason.
    """

    seconds: float
    usual: float
    left_out: Mapping[str, str]

    def __str__(self) -> str:
        told = f"processor time of who controls: {self.seconds:.1f} s, {self.usual:.1f} s without a fault in that time"
        without = "; ".join(f"{name}: {why}" for name, why in self.left_out.items())
        return f"{told} (without {without})" if without else told


def control_time(baseline: Measured, fault: Measured) -> Control | str:
    """Of the processes that ran through both windows; why nothing is known where none did."""
    both = [each for each in fault.control if each in fault.processors.by_name and each in baseline.processors.by_name]
    missing = {
        name: fault.processors.unread.get(name) or baseline.processors.unread.get(name) or "it was not looked at"
        for name in fault.control
        if name not in both
    }
    if not both or not baseline.processors.seconds:
        return "; ".join(f"{name}: {why}" for name, why in missing.items()) or "no host was asked"
    share = fault.processors.seconds / baseline.processors.seconds
    usual = sum(baseline.processors.by_name[each] for each in both) * share
    return Control(sum(fault.processors.by_name[each] for each in both), usual, missing)
