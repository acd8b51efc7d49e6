"""What a run that moves or toggles a group says of its members' logs: what was lost, twice, by two at once, and which
partitions were silent for longer than they may. The rules of ``proof``, from where the group stood when the run began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.groups.look import GroupLook, LogBounds, Partition
from kraft_runbook.groups.partitions import Side, name, offset_of, partitions_of
from kraft_runbook.groups.proof import Bounds, ConsumptionProof, HandedOut, PartitionProof, prove

BEFORE_SECONDS = 60.0
"""Of a partition without an offset at the beginning, records count from so long before it."""
ROWS = 30
"""How many partitions a report shows; those with faults come first."""


@dataclass(frozen=True, slots=True)
class Before:
    """Where a group stood when the run began. ``at``: seconds since the epoch; ``offsets``: the committed ones."""

    at: float
    offsets: Mapping[Partition, int] = field(default_factory=dict)

    @staticmethod
    def of(look: GroupLook, at: float) -> Before:
        """As a look shows it; of two offsets the lower one."""
        both = {p: _offsets(look, p) for p in partitions_of(look)}
        return Before(at, {p: min(found) for p, found in both.items() if found})

    def to_dict(self) -> dict[str, Any]:
        return {"at": self.at, "offsets": [[*p, offset] for p, offset in sorted(self.offsets.items())]}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Before:
        """Raises KeyError, TypeError, ValueError."""
        return Before(float(data["at"]), {(str(t), int(n)): int(offset) for t, n, offset in data["offsets"]})


@dataclass(frozen=True, slots=True)
class Silence:
    """For how long a partition handed out nothing, seconds. ``goes_on``: there are records that it has not handed out
    yet.
    """

    partition: Partition
    seconds: float
    goes_on: bool = False

    def __str__(self) -> str:
        return f"{name(self.partition)} {'has been' if self.goes_on else 'was'} silent for {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class Consumed:
    """One group. ``logs``: how many were read. ``at_most``: how long a partition may be silent, seconds; None: as long
    as it likes. ``silences``: the longest one of each partition.
    """

    group: str
    logs: int
    proof: ConsumptionProof
    silences: Mapping[Partition, Silence] = field(default_factory=dict)
    at_most: float | None = None

    @property
    def exceeded(self) -> tuple[Silence, ...]:
        """The silences that were too long, the longest one first."""
        if self.at_most is None:
            return ()
        found = [each for each in self.silences.values() if each.seconds > self.at_most]
        return tuple(sorted(found, key=lambda each: -each.seconds))

    @property
    def why_exceeded(self) -> str:
        """In words; empty: none was too long."""
        if not self.exceeded:
            return ""
        return f"exceeded: {some(map(str, self.exceeded), 5)}, and at most {self.at_most:g} s are allowed"

    def render_text(self) -> str:
        """What holds for the group, then a table of its partitions."""
        logs = "1 log" if self.logs == 1 else f"{self.logs} logs"
        lines = [f"{self.group}, by {logs} of its members: {'' if self.proof.holds else 'NOT '}every record once"]
        lines += self.proof.render_text().splitlines()
        if self.at_most is not None:
            lines.append(self.why_exceeded or f"no partition was silent for longer than the {self.at_most:g} s allowed")
        rows = sorted(self.proof.partitions, key=lambda each: (each.holds and not self._too_long(each), each.name))
        lines.append("partition · records · lost · twice · by two at once · longest silence · who had it last")
        lines += [self._row(each) for each in rows[:ROWS]]
        if len(rows) > ROWS:
            lines.append(f"… and {len(rows) - ROWS} partitions more")
        return "\n".join(lines)

    def _too_long(self, each: PartitionProof) -> bool:
        return any(silence.partition == (each.topic, each.partition) for silence in self.exceeded)

    def _row(self, each: PartitionProof) -> str:
        silence = self.silences.get((each.topic, each.partition))
        silent = "not known" if silence is None else f"{silence.seconds:.1f} s"
        too_long = " (exceeded)" if self._too_long(each) else ""
        lost, twice = (sum(last - first + 1 for first, last in ranges) for ranges in (each.lost, each.twice))
        who = each.last or "nobody"
        return f"{each.name} · {each.records} · {lost} · {twice} · {each.overlapping} · {silent}{too_long} · {who}"


def consumed(
    group: str,
    records: Iterable[HandedOut],
    before: Before,
    look: GroupLook | None,
    now: float,
    *,
    logs: int,
    at_most: float | None = None,
) -> Consumed:
    """What the members' records show. ``look``: at the group, after them; None: it could not be looked at, so that
    nobody knows what had to come, and what waits. ``now``: seconds since the epoch, by the clock of the records.
    """
    bounds = _expected(before, look)
    ours = [each for each in records if _counts(each, before, look)]
    proof = prove(ours, bounds)
    return Consumed(group, logs, proof, dict(_silences(proof, ours, before, look, now)), at_most)


def _counts(each: HandedOut, before: Before, look: GroupLook | None) -> bool:
    """Whether it is of the group's topics, and not from before the run."""
    partition = each.topic, each.partition
    begin = before.offsets.get(partition)
    if begin is not None:
        return each.offset >= begin
    if look is not None and was_read(look.zookeeper) and partition not in partitions_of(look):
        return False
    return each.at is not None and each.at >= before.at - BEFORE_SECONDS


def _expected(before: Before, look: GroupLook | None) -> Bounds | None:
    """What is committed by now must have been handed out. None: not known of any partition."""
    if look is None or not before.offsets:
        return None
    return {p: (begin, max([begin, *_offsets(look, p)])) for p, begin in before.offsets.items()}


def _offsets(look: GroupLook, partition: Partition) -> list[int]:
    found = (offset_of(look, side, partition) for side in Side)
    return [each for each in found if each is not None]


def _silences(
    proof: ConsumptionProof, records: Sequence[HandedOut], before: Before, look: GroupLook | None, now: float
) -> Iterator[tuple[Partition, Silence]]:
    times: dict[Partition, list[float]] = {}
    beyond: dict[Partition, int] = {}
    for each in records:
        partition = each.topic, each.partition
        beyond[partition] = max(each.offset + 1, beyond.get(partition, 0))
        if each.at is not None:
            times.setdefault(partition, []).append(each.at)
    for one in proof.partitions:
        partition = one.topic, one.partition
        timed = sorted(times.get(partition, ()))
        # what ended before the run began is not the run's
        found = [Silence(partition, later - at) for at, later in pairwise(timed) if later > before.at]
        since = timed[-1] if timed else before.at if partition not in beyond else None
        read = beyond.get(partition, before.offsets.get(partition))
        end = _end(look, partition)
        if since is not None and read is not None and end is not None and read < end:
            found.append(Silence(partition, max(0.0, now - since), goes_on=True))
        if found:
            yield partition, max(found, key=lambda each: each.seconds)


def _end(look: GroupLook | None, partition: Partition) -> int | None:
    logs = look.logs.get(partition[0]) if look is not None else None
    log = logs.get(partition[1]) if logs is not None and was_read(logs) else None
    return log.end if isinstance(log, LogBounds) else None
