"""Whether a plan is carried out: each partition as planned, whole and led by its first replica, nothing left over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.assignment import Assignment, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.reassignment.throttles import Leftover

SAMPLE = 5


class Deviation(StrEnum):
    """How a partition differs from the plan."""

    MISSING = "does not exist"
    MOVING = "still moves"
    OTHER_REPLICAS = "has other replicas"
    OTHER_ORDER = "has its replicas in another order"
    OUT_OF_SYNC = "has replicas that are not in sync"
    LEADERLESS = "has no leader"
    OTHER_LEADER = "is not led by its first replica"
    NOT_PLANNED = "is not in the plan, and is not where it was"


@dataclass(frozen=True, slots=True)
class Verification:
    """``partitions``: of the plan. ``deviations``: by kind, the partitions. ``throttles``: what is left of them.

    Where it is known what was there before: ``others``: partitions beyond the plan, which must be where they were;
    ``deleted``: partitions whose topic was deleted since; ``new``: partitions that came since. The last two are no
    fault. ``source``: whose answer was compared. ``elsewhere``: the replicas that do not lie in the log directory that
    the plan asks for, in words.
    """

    partitions: int
    deviations: Mapping[Deviation, tuple[TopicPartition, ...]]
    throttles: tuple[Leftover, ...] = ()
    legacy_znode: bool = False
    others: int = 0
    deleted: int = 0
    new: int = 0
    source: str = ""
    elsewhere: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Everything is as planned. Of no partition nothing is proven."""
        compared = self.partitions + self.others + self.deleted
        left = self.throttles or self.legacy_znode or self.elsewhere
        return bool(compared) and not self.deviations and not left

    def render_text(self) -> str:
        """One line a finding, with the first names."""
        held = "as planned" if self.holds else "NOT as planned"
        rest = f", and {self.others:,} others with where they were" if self.others else ""
        source = f" ({self.source})" if self.source else ""
        lines = [f"{self.partitions:,} partitions compared with the plan{rest}: {held}{source}"]
        for kind, names in self.deviations.items():
            lines.append(f"  {len(names)} {kind}: {some(names, SAMPLE)}")
        if self.elsewhere:
            named = some(self.elsewhere, SAMPLE, between="; ")
            lines.append(f"  {len(self.elsewhere)} replicas do not lie where the plan asks for: {named}")
        lines += [f"  a throttle is left: {each}" for each in self.throttles]
        if self.legacy_znode:
            lines.append("  /admin/reassign_partitions exists")
        lines += [f"  {self.deleted:,} deleted since, with their topics"] if self.deleted else []
        lines += [f"  {self.new:,} new since"] if self.new else []
        return "\n".join(lines)


def verify(
    target: Assignment,
    seen: Mapping[TopicPartition, PartitionSeen],
    ongoing: Mapping[TopicPartition, Ongoing],
    *,
    before: Assignment | None = None,
    throttles: Sequence[Leftover] = (),
    legacy_znode: bool = False,
    source: str = "",
) -> Verification:
    """What was found against what was planned. A partition counts once, by the first that is wrong with it.

    ``before``: the whole assignment before the plan. With it, what the plan does not name must be where it was (who
    leads it, and who is in sync, is not the plan's matter), and a topic that is gone was deleted since.
    """
    found: dict[Deviation, list[TopicPartition]] = {}
    known: Assignment = before if before is not None else {}
    topics = {each.topic for each in seen}
    deleted = {p for p in {**known, **target} if p in known and p.topic not in topics}
    others = [p for p in known if p not in target and p not in deleted]
    for partition in sorted(p for p in target if p not in deleted):
        deviation = _deviation(target[partition], seen.get(partition), partition in ongoing)
        if deviation is not None:
            found.setdefault(deviation, []).append(partition)
    for partition in others:
        now = seen.get(partition)
        if now is None or partition in ongoing or now.replicas != known[partition]:
            found.setdefault(Deviation.NOT_PLANNED, []).append(partition)
    return Verification(
        sum(p not in deleted for p in target),
        {kind: tuple(sorted(found[kind])) for kind in Deviation if kind in found},
        tuple(throttles),
        legacy_znode,
        others=len(others),
        deleted=len(deleted),
        new=0 if before is None else sum(p not in known and p not in target for p in seen),
        source=source,
    )


def _deviation(target: tuple[int, ...], seen: PartitionSeen | None, moves: bool) -> Deviation | None:
    if seen is None:
        return Deviation.MISSING
    if moves:
        return Deviation.MOVING
    if set(seen.replicas) != set(target) or len(seen.replicas) != len(target):
        return Deviation.OTHER_REPLICAS
    if seen.replicas != target:
        return Deviation.OTHER_ORDER
    if seen.leader is None:
        return Deviation.LEADERLESS
    if set(seen.isr) != set(target):
        return Deviation.OUT_OF_SYNC
    return None if seen.leader == target[0] else Deviation.OTHER_LEADER


def to_report(found: Verification) -> str:
    """What a job leaves for the task that started it. JSON."""
    values = {"holds": found.holds, "partitions": found.partitions, "others": found.others}
    return json.dumps({**values, "told": found.render_text()}, ensure_ascii=False)
