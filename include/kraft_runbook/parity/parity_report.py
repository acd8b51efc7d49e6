"""The result of a comparison, for a person, a gate and a file: counts, at most 20 samples a kind, the offsets for which
it holds, and a digest of all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from kraft_runbook.metadata.canonical_rows import Kind, canonical, describe_key, describe_value
from kraft_runbook.metadata.differences import Difference, Side, Undecoded
from kraft_runbook.parity.coverage import NOT_COMPARED
from kraft_runbook.parity.partition_epochs import WAY_OUT
from kraft_runbook.parity.standstill import LAST_QUOTA

SAMPLES_A_KIND = 20
ZOOKEEPER = "ZooKeeper"
"""What a comparison of everything is against, as long as ZooKeeper is written."""


class Verdict(StrEnum):
    """MATCH: proven the same. MISMATCH: proven different. INCONCLUSIVE: not proven, and the report says what to do
    about it.
    """

    MATCH = "MATCH"
    MISMATCH = "MISMATCH"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many keys of one kind agree, and how many don't, by side."""

    kind: str
    both: int
    only_zookeeper: int = 0
    only_kraft: int = 0
    differ: int = 0
    undecoded: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One difference, in words. Secrets are fingerprints."""

    kind: str
    key: str
    side: str
    zookeeper: str
    kraft: str


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why an answer is INCONCLUSIVE, and the way out."""

    problem: str
    way_out: str


@dataclass(frozen=True, slots=True)
class ParityReport:
    """The answer. ``migration_offset`` M and ``end_offset`` E: the offsets between which it holds, -1 where they were
    not read.

    ``against``: ``ZOOKEEPER``, what of it was compared, or the proven state that stood in its place after finalization.
    Times are UTC.
    """

    cluster: str
    verdict: Verdict
    counts: tuple[KindCount, ...]
    samples: tuple[Sample, ...]
    obstacles: tuple[Obstacle, ...]
    against: str
    migration_offset: int
    end_offset: int
    migration_epoch: int
    leader_id: int
    leader_epoch: int
    rounds: int
    started_at: datetime
    finished_at: datetime
    notes: tuple[str, ...] = NOT_COMPARED
    digest: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", self._content_digest())

    def _content_digest(self) -> str:
        return hashlib.sha256(canonical(self._content()).encode()).hexdigest()

    def _content(self) -> dict[str, Any]:
        content = asdict(self)
        del content["digest"]
        return content | {
            name: content[name].isoformat(timespec="milliseconds") for name in ("started_at", "finished_at")
        }

    @property
    def offset(self) -> int:
        """The metadata offset up to which the proof holds: M."""
        return self.migration_offset

    @property
    def compared(self) -> int:
        """How many keys were found the same."""
        return sum(each.both for each in self.counts if each.kind != Kind.PARTITION_EPOCH)

    @property
    def differing(self) -> int:
        return sum(
            each.only_zookeeper + each.only_kraft + each.differ
            for each in self.counts
            if each.kind != Kind.PARTITION_EPOCH
        )

    @property
    def behind(self) -> int:
        """How many partitions have a state znode whose version is lower than their epoch. That is no difference of
        metadata, but it forbids leaving KRaft (``partition_epochs``).
        """
        return sum(each.differ for each in self.counts if each.kind == Kind.PARTITION_EPOCH)

    @property
    def before_leaving(self) -> tuple[str, ...]:
        """What must be corrected before the cluster may go back to ZooKeeper, in words; empty if nothing must."""
        if not self.behind:
            return ()
        return (
            (
                f"{self.behind} partitions have a state znode whose version is lower than their partition epoch. That"
                " is no difference of metadata, but a ZooKeeper controller could not lead them, so it must be corrected"
                f" before the cluster leaves KRaft. What to do: {WAY_OUT}"
            ),
        )

    @property
    def cures(self) -> tuple[str, ...]:
        """What makes both sides the same again, in words; empty where nothing shows a cause that is known."""
        known = self.against.startswith(ZOOKEEPER) and any(
            each.only_zookeeper for each in self.counts if each.kind == Kind.CLIENT_QUOTA
        )
        return (f"A client quota that ZooKeeper alone has: {LAST_QUOTA}",) if known else ()

    @property
    def summary(self) -> str:
        """One sentence."""
        span = f"metadata offsets {self.migration_offset} to {self.end_offset}"
        behind = (
            f"; the versions of {self.behind} state znodes are lower than their partition epochs, which forbids leaving"
            " KRaft"
            if self.behind
            else ""
        )
        match self.verdict:
            case Verdict.MATCH:
                return (
                    f"MATCH: {self.compared} facts are the same in {self.against} and the metadata log ({span}){behind}"
                )
            case Verdict.MISMATCH:
                return (
                    f"MISMATCH: {self.differing} facts differ, {self.compared} are the same in {self.against} and the"
                    f" metadata log ({span})"
                )
            case _:
                return f"INCONCLUSIVE: {'; '.join(each.problem for each in self.obstacles)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return self._content() | {"digest": self.digest}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ParityReport:
        """A report that ``to_dict`` wrote. Raises ValueError when its digest does not fit its content."""
        fields = dict(data)
        digest = fields.pop("digest")
        fields["verdict"] = Verdict(fields["verdict"])
        for name, kind in (("counts", KindCount), ("samples", Sample), ("obstacles", Obstacle)):
            fields[name] = tuple(kind(**each) for each in fields[name])
        fields["notes"] = tuple(fields["notes"])
        fields |= {name: datetime.fromisoformat(fields[name]) for name in ("started_at", "finished_at")}
        report = cls(**fields)
        if report.digest != digest:
            raise ValueError(
                f"the parity report of {report.cluster} was changed after it was written: its digest does not fit"
            )
        return report

    @property
    def _times(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M:%S} to {self.finished_at:%H:%M:%S} UTC"

    def render_text(self) -> str:
        """For a terminal."""
        lines = [self.summary, f"{'':<20}{'same':>10}{'only ZK':>10}{'only KRaft':>12}{'differ':>8}"]
        for each in self.counts:
            lines.append(
                f"{each.kind:<20}{each.both:>10}{each.only_zookeeper:>10}{each.only_kraft:>12}{each.differ:>8}"
            )
        for sample in self.samples:
            lines.append(
                f"  {sample.kind} {sample.key}: {sample.side}; ZooKeeper: {sample.zookeeper}; KRaft: {sample.kraft}"
            )
        for obstacle in self.obstacles:
            lines.append(f"  {obstacle.problem}\n    What to do: {obstacle.way_out}")
        lines += [f"  {text}" for text in (*self.cures, *self.before_leaving, *self.notes)]
        lines.append(f"controller {self.leader_id}, epoch {self.leader_epoch}; {self._times}; digest {self.digest}")
        return "\n".join(lines)

    def render_markdown(self) -> str:
        """For an approval in the Airflow UI."""
        lines = [
            f"**{_escaped(self.summary)}**",
            "",
            "| kind | same | only ZooKeeper | only KRaft | differ |",
            "|---|---:|---:|---:|---:|",
        ]
        lines += [f"| {c.kind} | {c.both} | {c.only_zookeeper} | {c.only_kraft} | {c.differ} |" for c in self.counts]
        if self.samples:
            lines += ["", "| difference | ZooKeeper | KRaft |", "|---|---|---|"]
            lines += [
                f"| {_escaped(f'{s.kind} {s.key}')} | {_escaped(s.zookeeper)} | {_escaped(s.kraft)} |"
                for s in self.samples
            ]
        lines += [""] + [f"- {_escaped(o.problem)}. What to do: {_escaped(o.way_out)}" for o in self.obstacles]
        lines += [f"- **{_escaped(text)}**" for text in (*self.cures, *self.before_leaving)]
        lines += [f"- {note}" for note in self.notes]
        lines += [
            "",
            f"controller {self.leader_id}, epoch {self.leader_epoch}; {self._times}",
            "",
            f"digest `{self.digest}`",
        ]
        return "\n".join(lines)


def _escaped(text: str) -> str:
    """Names come from the cluster: they must not become markup."""
    return text.translate({ord(c): f"\\{c}" for c in "\\`*_[]<>|"}).replace("\n", " ")


def counts_of(
    both: Mapping[Kind, int], differences: Iterable[Difference], undecoded: Iterable[Undecoded]
) -> tuple[KindCount, ...]:
    """One count a kind that any side has, in the order of ``Kind``."""
    sides = Counter((each.kind, each.side) for each in differences)
    unread = Counter(each.kind for each in undecoded)
    counts = (
        KindCount(
            kind.value,
            both.get(kind, 0),
            sides[kind, Side.ONLY_ZOOKEEPER],
            sides[kind, Side.ONLY_KRAFT],
            sides[kind, Side.DIFFER],
            unread[kind],
        )
        for kind in Kind
    )
    return tuple(
        each for each in counts if each.both or each.only_zookeeper or each.only_kraft or each.differ or each.undecoded
    )


def samples_of(differences: Sequence[Difference]) -> tuple[Sample, ...]:
    """At most SAMPLES_A_KIND a kind, in the order of their keys."""
    taken: Counter[Kind] = Counter()
    samples = []
    for each in sorted(differences, key=lambda d: (list(Kind).index(d.kind), d.key)):
        if taken[each.kind] < SAMPLES_A_KIND:
            taken[each.kind] += 1
            samples.append(
                Sample(
                    each.kind.value,
                    describe_key(each.kind, each.key, each.paths),
                    each.side.value,
                    describe_value(each.zookeeper),
                    describe_value(each.kraft),
                )
            )
    return tuple(samples)
