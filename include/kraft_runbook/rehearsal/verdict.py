"""What a rehearsal says: PASSED, FAILED or INCONCLUSIVE. Pure.

FAILED: the metadata, the settings or this tool are at fault, so the migration itself would fail too. INCONCLUSIVE: the
place is at fault, or a part was not seen. What is not shown never passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    PASSED = "PASSED"
    FAILED = "FAILED"
    INCONCLUSIVE = "INCONCLUSIVE"


class Rung(StrEnum):
    """What a rehearsal does, in its order."""

    COPY_THE_TREE = "copy the tree"
    START = "start the throwaway"
    FORWARD = "forward to dual write"
    PARITY_IN_HYBRID = "parity in HYBRID"
    TO_KRAFT = "brokers to KRaft"
    PARITY_IN_KRAFT = "parity in DUAL_WRITE"
    BACK = "back to ZooKeeper"
    SAME_TREE = "the tree as it was before"
    FORWARD_AGAIN = "forward to dual write again"
    PARITY_AGAIN = "parity in DUAL_WRITE again"
    FINALIZE = "finalize"
    PARITY_FINALIZED = "parity after finalization"


SHORT = (Rung.COPY_THE_TREE, Rung.START, Rung.FORWARD, Rung.PARITY_IN_HYBRID, Rung.BACK, Rung.SAME_TREE)
"""Forward to dual write, parity, and back: no broker in KRaft mode, no second time, not finalized."""
SHORT_DOES = (
    "Copy the tree, go forward to dual write, compare both sides, go back to ZooKeeper, and compare the tree with what"
    " it was before. Left out: brokers in KRaft mode, the second time, finalization. The start gate does not count it"
)
"""For a person who chooses it."""
WHOLE = tuple(Rung)


TREE_CHANGED, MISMATCH = "tree changed", "mismatch"


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason not to pass. ``verdict``: FAILED or INCONCLUSIVE. ``code``: of the check that says so, or TREE_CHANGED
    or MISMATCH of what was compared.
    """

    verdict: Verdict
    what: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """Numbers of a rehearsal; None: not measured. Seconds; MiB. ``copy``: of Kafka's copy, by the log's own times.
    ``window``: of the way back, without a controller. ``controller_rss``: the most that any controller had resident.
    ``tries``: of leaving KRaft. ``respelt``: znodes that came back from KRaft in other bytes of the same meaning.
    ``tree_seconds``: of reading the source. ``cores``: that it may use of this machine, a part of one included
    (``io.local.cores``).

    ``cpu``: processor seconds of the throwaway's processes in all, ``load``: the highest load average of a minute that
    was seen at all; with ``copy_`` or ``window_``: in that span alone (``io.local.usage``). ``throttled``: what was
    waited for under a CPU quota, as a part of what it gives; None: no quota. ``tree_cpu``: of this process while it
    read the source. ``rungs``: by rung its seconds, ``cpu``, ``load`` and ``throttled``. ``refused``: each try of
    leaving KRaft or of a step that was in vain, with its reason; most were followed by another.
    """

    partitions: int | None = None
    topics: int | None = None
    brokers: int | None = None
    znodes: int | None = None
    tree_seconds: float | None = None
    tree_cpu: float | None = None
    copy: float | None = None
    copy_cpu: float | None = None
    copy_load: float | None = None
    copy_throttled: float | None = None
    copied_records: int | None = None
    window: float | None = None
    window_cpu: float | None = None
    window_load: float | None = None
    window_throttled: float | None = None
    controller_rss: int | None = None
    cpu: float | None = None
    load: float | None = None
    cores: float | None = None
    tries: int | None = None
    respelt: int | None = None
    seconds: float | None = None
    rungs: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    refused: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"refused": list(self.refused)}


NEEDED = (
    *("partitions", "tree_seconds", "copy", "copy_load", "window", "window_load"),
    *("controller_rss", "cpu", "load", "tries"),
)
"""What a rehearsal that passes has measured."""


def judge(
    wanted: Sequence[Rung], done: Collection[Rung], found: Iterable[Finding], measured: Measured
) -> tuple[Verdict, tuple[Finding, ...]]:
    """The verdict and every reason, FAILED ones first. A rung that was not reached, and a number that is missing, are
    reasons of their own.
    """
    reasons = list(found)
    left = [rung for rung in wanted if rung not in done]
    if left:
        reasons.append(Finding(Verdict.INCONCLUSIVE, f"not reached: {', '.join(left)}"))
    else:
        missing = [name for name in NEEDED if getattr(measured, name) is None]
        reasons += [Finding(Verdict.INCONCLUSIVE, f"not measured: {name}") for name in missing]
    reasons.sort(key=lambda each: each.verdict is not Verdict.FAILED)
    if any(each.verdict is Verdict.FAILED for each in reasons):
        return Verdict.FAILED, tuple(reasons)
    return (Verdict.INCONCLUSIVE if reasons else Verdict.PASSED), tuple(reasons)
