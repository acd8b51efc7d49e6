"""A drill in ZooKeeper mode beside the same in KRaft mode: what the migration changed for clients, as text and as a
picture. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.quorum.control import Control, control_time
from kraft_runbook.quorum.faults import BY_QUORUM, BY_ZOOKEEPER
from kraft_runbook.quorum.silences import Measured
from kraft_runbook.quorum.svg import document, text

KEPT = 100
"""Faults that are kept of a cluster."""
WHAT = "before and after the migration"
CONTROL = "processors of who controls"
WIDTH, NAMES, ROW, BAR = 720, 200, 46, 16
BEFORE, AFTER, USUAL = "#b8c0cc", "#4c78a8", "#e8ebf0"


@dataclass(frozen=True, slots=True)
class KeptFault:
    """One fault that was measured, its baseline, and where the cluster stood. ``run``: whose it is, and its number
    there; ``at``: ISO 8601.
    """

    run: str
    at: str
    phase: Phase
    fault: str
    baseline: Measured
    measured: Measured

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "at": self.at,
            "phase": self.phase.value,
            "fault": self.fault,
            "baseline": self.baseline.to_dict(),
            "measured": self.measured.to_dict(),
        }

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> KeptFault | None:
        """None where it is no such value."""
        try:
            baseline, measured = Measured.from_dict(body["baseline"]), Measured.from_dict(body["measured"])
            if baseline is None or measured is None:
                return None
            return cls(str(body["run"]), str(body["at"]), Phase(body["phase"]), str(body["fault"]), baseline, measured)
        except (KeyError, ValueError):
            return None


def with_new(kept: Sequence[KeptFault], new: Sequence[KeptFault]) -> list[KeptFault]:
    """Those that are kept, with new ones and without the oldest where they are too many. One that is there already
    comes once.
    """
    there = {each.run for each in kept}
    return [*kept, *(each for each in new if each.run not in there)][-KEPT:]


def pair(kept: Sequence[KeptFault], fault: str) -> tuple[KeptFault, KeptFault] | None:
    """The last such fault in ZooKeeper mode and the last one in KRaft mode; None where one is missing, or the one in
    KRaft mode came first: it belongs to an earlier migration.
    """
    before, after = _last(kept, fault, BY_ZOOKEEPER), _last(kept, fault, BY_QUORUM)
    return (before, after) if before and after and kept.index(before) < kept.index(after) else None


def _last(kept: Sequence[KeptFault], fault: str, phases: Collection[Phase]) -> KeptFault | None:
    return next((each for each in reversed(kept) if each.fault == fault and each.phase in phases), None)


def pairs(kept: Sequence[KeptFault]) -> tuple[list[tuple[KeptFault, KeptFault]], list[KeptFault]]:
    """Of each fault, the last ones in ZooKeeper mode and in KRaft mode; and the last in ZooKeeper mode of each that was
    not drilled in KRaft mode since.
    """
    both: list[tuple[KeptFault, KeptFault]] = []
    alone: list[KeptFault] = []
    for name in dict.fromkeys(each.fault for each in kept):
        found, before = pair(kept, name), _last(kept, name, BY_ZOOKEEPER)
        if found:
            both.append(found)
        elif before:
            alone.append(before)
    return both, alone


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds before and after, each beside those without a fault."""

    what: str
    before: float
    after: float
    usual_before: float
    usual_after: float


def rows(before: KeptFault, after: KeptFault) -> Iterator[Row]:
    """The silence of metadata changes, of the partition that was silent for longest and of the one in the middle; how
    long it took until the last partition had another leader; the processor time of who controls. What is not known of
    one has no row.
    """
    both = (before.measured, after.measured, before.baseline, after.baseline)
    changes = [each.of_changes for each in both]
    if None not in changes:
        yield Row("metadata changes", *(each or 0.0 for each in changes))
    if all(each.of_partitions for each in both):
        yield Row("the longest partition", *(max(each.of_partitions.values()) for each in both))
        yield Row("the partition in the middle", *(_middle(each) for each in both))
    moved = [each.measured.handover for each in (before, after)]
    took = [None if each is None else each.seconds for each in moved]
    if took[0] is not None and took[1] is not None:
        yield Row("the last leader moved", took[0], took[1], 0.0, 0.0)
    spent = [control_time(each.baseline, each.measured) for each in (before, after)]
    if isinstance(spent[0], Control) and isinstance(spent[1], Control):
        yield Row(CONTROL, spent[0].seconds, spent[1].seconds, spent[0].usual, spent[1].usual)


def _middle(measured: Measured) -> float:
    found = sorted(measured.of_partitions.values())
    return found[len(found) // 2]


def told(before: KeptFault, after: KeptFault) -> str:
    """The two in words."""
    lines = [f"{WHAT}, {before.fault} (seconds; without a fault in brackets):"]
    lines += [
        f"  - {each.what}: {each.before:.1f} s ({each.usual_before:.1f}) in ZooKeeper mode, {each.after:.1f} s"
        f" ({each.usual_after:.1f}) in KRaft mode"
        for each in rows(before, after)
    ]
    for where, each in (("ZooKeeper", before), ("KRaft", after)):
        spent = control_time(each.baseline, each.measured)
        if isinstance(spent, str):
            lines.append(f"  - {CONTROL} in {where} mode: not read ({spent})")
        elif spent.left_out:
            lines.append(f"  - {CONTROL} in {where} mode: {spent}")
    lines += [f"  - {each.measured.loss}" for each in (before, after) if each.measured.loss]
    return "\n".join([*lines, f"  - measured at {before.at} and {after.at}"])


def told_alone(before: KeptFault) -> str:
    """What one fault cost before the migration, in words."""
    parts = [
        f"{name} silent for {now:.1f} s ({usual:.1f} without a fault)"
        for name, now, usual in (
            ("metadata changes", before.measured.of_changes, before.baseline.of_changes),
            (
                "the longest partition",
                max(before.measured.of_partitions.values(), default=None),
                max(before.baseline.of_partitions.values(), default=None),
            ),
        )
        if now is not None and usual is not None
    ]
    parts += [str(before.measured.loss)] if before.measured.loss else []
    return f"{before.fault}, in ZooKeeper mode at {before.at}: {', '.join(parts) or 'nothing was measured'}"


def draw(before: KeptFault, after: KeptFault) -> str:
    """An SVG that needs nothing else: a bar each, and behind it what is silent without a fault."""
    found = list(rows(before, after))
    most = max([1.0, *(max(r.before, r.after, r.usual_before, r.usual_after) for r in found)])
    scale = (WIDTH - NAMES - 80) / most
    parts = [text(0, 18, f"{before.fault}: {WHAT}", bold=True), text(0, 36, "seconds; the wide bar: without a fault")]
    for number, row in enumerate(found):
        top = 52 + number * ROW
        parts.append(text(0, top + BAR + 4, row.what))
        for line, (value, usual, colour, name) in enumerate(
            ((row.before, row.usual_before, BEFORE, "ZooKeeper"), (row.after, row.usual_after, AFTER, "KRaft"))
        ):
            y = top + line * (BAR + 3)
            parts += [
                f'<rect x="{NAMES}" y="{y}" width="{usual * scale:.1f}" height="{BAR}" fill="{USUAL}"/>',
                f'<rect x="{NAMES}" y="{y + 4}" width="{value * scale:.1f}" height="{BAR - 8}" fill="{colour}"/>',
                text(NAMES + max(value, usual) * scale + 6, y + BAR - 3, f"{value:.1f} {name}"),
            ]
    height = 60 + len(found) * ROW
    return document(WIDTH, height, parts)
