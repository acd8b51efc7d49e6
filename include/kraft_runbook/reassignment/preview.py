"""What a person sees before a plan is carried out: each broker before and after, what moves, how long it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.cluster.log_dirs import usable_bytes
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.reassignment.alike import rows_of
from kraft_runbook.reassignment.disk_room import perhaps_too_full
from kraft_runbook.reassignment.placement import Placement, racks_of
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.racks import RackRule, rack_sizes
from kraft_runbook.reassignment.throttles import LEAST_OF_RATE, MOST_OF_RATE
from kraft_runbook.reassignment.topic_shares import TopicShares, WorstTopic


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """One broker, before and after. Replicas, leaders (preferred ones) and bytes are of all topics.

    ``replicas_in``, ``bytes_in``: copied to it; ``replicas_out``, ``bytes_out``: deleted there. ``bytes_read``: what
    others copy from it, were each first replica the leader. ``usable_after``: free bytes once all is copied and before
    anything is deleted; None where unknown.
    """

    broker: int
    rack: str | None
    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    bytes_before: int
    bytes_after: int
    replicas_in: int
    replicas_out: int
    bytes_in: int
    bytes_out: int
    bytes_read: int
    usable_after: int | None


@dataclass(frozen=True, slots=True)
class Preview:
    """``reordered``: partitions of which only the order changes. ``seconds``: the least and the most that the throttle
    lets expect; None without a throttle, or where no size is known. ``racks_broken_before``, ``racks_broken_after``:
    partitions that are not spread over the racks, as far as that is known: the rack of a broker that does not run is
    not. ``worst_topic``, ``worst_led``: which topic is furthest above its share of a broker afterwards, in replicas and
    in leaders; None where none is.
    """

    goal: str
    digest: str
    partitions: int
    reordered: int
    copies: int
    bound: int
    unit: str
    bytes_copied: int
    racks_broken_before: int
    racks_broken_after: int
    throttle: int | None
    seconds: tuple[float, float] | None
    brokers: tuple[BrokerChange, ...]
    notes: tuple[str, ...] = ()
    worst_topic: WorstTopic | None = None
    worst_led: WorstTopic | None = None

    def summary(self) -> Iterator[str]:
        """Lines of text."""
        yield f"goal: {self.goal}"
        if not self.partitions:
            yield "nothing is to move" if not self.notes else "nothing is to move between brokers"
            yield from self.notes
            return
        yield f"{self.partitions:,} partitions change, {self.bytes_copied / 1e6:,.1f} MB are copied"
        if self.reordered:
            yield f"of {self.reordered:,} of them only the order of the replicas changes: no data moves"
        if self.copies < self.bound:
            yield f"{self.copies:,} {self.unit} move; the goal, which is not reached, takes {self.bound:,} or more"
        else:
            yield f"{self.copies:,} {self.unit} move; no plan reaches the goal with fewer than {self.bound:,}"
        yield f"not spread over the racks: {self.racks_broken_before:,} before, {self.racks_broken_after:,} after"
        none = "none is above its share of a broker"
        yield f"worst topic: {self.worst_topic or none}; in leaders: {self.worst_led or none}"
        if self.throttle is None:
            yield "no throttle: brokers copy as fast as they can, and clients may notice"
        elif self.seconds is not None:
            times = " to ".join(dict.fromkeys(map(_time, self.seconds)))
            yield (
                f"at a throttle of {self.throttle / 1e6:,.1f} MB/s a broker: {times}"
                f" ({LEAST_OF_RATE:.0%} to {MOST_OF_RATE:.0%} of a throttle's rate get through)"
            )
        yield from self.notes

    def render_markdown(self) -> str:
        """The summary as a list, and the brokers as a table."""
        lines = [f"- {line}" for line in self.summary()]
        if self.partitions:
            head = ("broker", "rack", "replicas", "leaders", "MB", "copied to it", "deleted there", "free after")
            lines += ["", f"| {' | '.join(head)} |", "|---|---|" + "---:|" * (len(head) - 2)]
            lines += [f"| {' | '.join(cells)} |" for cells in self._rows()]
        return "\n".join(lines) + "\n"

    def render_text(self) -> str:
        """The same for a terminal."""
        lines = list(self.summary())
        if self.partitions:
            head = ("broker", "rack", "replicas", "leaders", "MB", "copied to it", "deleted there", "free after")
            rows = [head, *self._rows()]
            widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
            lines.append("")
            lines += [
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
            ]
        return "\n".join(lines)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for each in self.brokers:
            yield (
                str(each.broker),
                each.rack or "",
                _change(each.replicas_before, each.replicas_after),
                _change(each.leaders_before, each.leaders_after),
                _change(each.bytes_before, each.bytes_after, unit=1e6),
                f"{each.replicas_in:,}, {each.bytes_in / 1e6:,.1f} MB",
                f"{each.replicas_out:,}, {each.bytes_out / 1e6:,.1f} MB",
                "unknown" if each.usable_after is None else f"{each.usable_after / 1e9:,.1f} GB",
            )


def make_preview(plan: ReassignmentPlan, placement: Placement, *, throttle: int | None = None) -> Preview:
    """``throttle``: bytes a second a broker, in each direction."""
    after = {**placement.present, **plan.target}
    rows_after = rows_of(after.values())
    before_counts, after_counts = _counts(placement.present, placement), _counts(after, placement)
    copied: Counter[tuple[str, int]] = Counter()
    for move in plan.moves:
        size = placement.size(move.partition)
        for broker in move.adding:
            copied["in", broker] += 1
            copied["bytes in", broker] += size
        for broker in move.removing:
            copied["out", broker] += 1
            copied["bytes out", broker] += size
        if move.adding and (source := placement.source(move)) is not None:
            copied["read", source] += size * len(move.adding)
    brokers = []
    for broker in sorted(placement.live | {b for _, b in before_counts} | {b for _, b in after_counts}):
        usable = usable_bytes(placement.directories.get(broker, ()))
        brokers.append(
            BrokerChange(
                broker,
                placement.racks.get(broker),
                before_counts["replicas", broker],
                after_counts["replicas", broker],
                before_counts["leaders", broker],
                after_counts["leaders", broker],
                before_counts["bytes", broker],
                after_counts["bytes", broker],
                copied["in", broker],
                copied["out", broker],
                copied["bytes in", broker],
                copied["bytes out", broker],
                copied["read", broker],
                None if usable is None else usable - copied["bytes in", broker],
            )
        )
    racks, live = racks_of(sorted(placement.live), placement.racks), placement.live
    breaks = RackRule(racks, rack_sizes(racks)).breaks
    broken = [sum(map(breaks, filter(live.issuperset, each.values()))) for each in (placement.present, after)]
    busiest = max((max(b.bytes_in, b.bytes_read) for b in brokers), default=0)
    seconds = (busiest / throttle / MOST_OF_RATE, busiest / throttle / LEAST_OF_RATE) if throttle and busiest else None
    return Preview(
        plan.goal,
        plan.digest,
        len(plan.target),
        sum(not move.adding and not move.removing and move.present != move.target for move in plan.moves),
        plan.copies,
        plan.bound,
        plan.unit,
        sum(b.bytes_in for b in brokers),
        broken[0],
        broken[1],
        throttle,
        seconds,
        tuple(brokers),
        (
            *plan.notes,
            *_moving(placement),
            *_not_in_sync(plan, placement),
            *_not_judged(placement),
            *_racks_of_one(brokers),
            *perhaps_too_full(plan, placement),
        ),
        TopicShares(after, rows_after).worst_of_all(),
        TopicShares(after, rows_after[:, :1]).worst_of_all(),
    )


def _moving(placement: Placement) -> Iterator[str]:
    if placement.ongoing:
        yield (
            f"{len(placement.ongoing):,} partitions move now, and the plan counts them where they are: plan anew once"
            " they are where they go"
        )


def _not_in_sync(plan: ReassignmentPlan, placement: Placement) -> Iterator[str]:
    """Another order alone waits for nobody (``refusals``)."""
    behind: dict[TopicPartition, set[int]] = {}
    for move in plan.moves:
        kept = set(move.target).intersection(move.present)
        late = kept.difference(placement.in_sync.get(move.partition, kept))
        if late and (move.adding or move.removing):
            behind[move.partition] = late
    if behind:
        yield (
            f"{len(behind):,} partitions keep a replica that is not in sync, on"
            f" {nodes('broker', chain.from_iterable(behind.values()))}: a move ends once its whole target is in sync"
        )


def _not_judged(placement: Placement) -> Iterator[str]:
    unknown = sum(not placement.live.issuperset(replicas) for replicas in placement.present.values())
    if unknown and any(placement.racks.values()):
        yield (
            f"whether {unknown:,} partitions are spread over the racks is not known: a replica of each lies on a broker"
            " that does not run"
        )


def _racks_of_one(brokers: Sequence[BrokerChange]) -> Iterator[str]:
    """A new rack with one broker: the rack rule gives it a replica of each partition, whatever its share would be."""
    of_rack = Counter(each.rack for each in brokers)
    for each in brokers:
        if each.rack and of_rack[each.rack] == 1 < len(of_rack) and not each.replicas_before and each.replicas_in:
            yield (
                f"rack {each.rack} begins with one broker: {each.broker} gets {each.replicas_in:,} replicas, since each"
                " partition is spread over all racks; with more brokers in the rack each gets fewer"
            )


def _counts(assignment: Assignment, placement: Placement) -> Counter[tuple[str, int]]:
    replicas = Counter(chain.from_iterable(assignment.values()))
    leaders = Counter(each[0] for each in assignment.values() if each)
    of_size: Counter[int] = Counter()
    for partition, held in assignment.items() if placement.sizes else ():
        size = placement.size(partition)
        for broker in held:
            of_size[broker] += size
    kinds = ("replicas", replicas), ("leaders", leaders), ("bytes", of_size)
    return Counter({(what, broker): count for what, counted in kinds for broker, count in counted.items()})


def _change(before: int, after: int, *, unit: float = 1) -> str:
    def shown(value: int) -> str:
        return f"{value:,}" if unit == 1 else f"{value / unit:,.1f}"

    return shown(before) if shown(before) == shown(after) else f"{shown(before)} → {shown(after)}"


def in_units(size: int) -> str:
    """Bytes in MB, GB or TB, for a person."""
    for unit, name in ((1e12, "TB"), (1e9, "GB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size / 1e6:,.1f} MB"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
