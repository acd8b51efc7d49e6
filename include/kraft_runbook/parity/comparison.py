"""Whether ZooKeeper and the metadata log hold the same, under any churn: the argument, and the comparison of rows.

ZooKeeper is written before /migration is (KIP-866). So it holds everything up to offset M, which /migration names, and
maybe part of what follows. It is behind only where Kafka failed to write a change and went on (``LAST_QUOTA`` of
``standstill``), which is a mismatch like any other. One look is: read M, read ZooKeeper, ask for the log's end E, read
the log up to E. Each value in ZooKeeper must then be one that the log gave its key at M or at a later offset up to E.
Being absent is such a value.

- A key that does not fit is a suspect. It is read again, with an M and an E of its own. One that fits once is cleared,
  for it was right at that M. One that never fits is a mismatch. (Measured: no difference at M on up to 1,000,000
  partitions.)
- A suspect that fits only because what ZooKeeper had is gone, while the log removed nothing there, is not cleared:
  somebody else writes to ZooKeeper (``second_look``).
- Last, /migration must have moved since the first M, unless nothing was committed behind it. If it stands still, what
  follows M does not reach ZooKeeper, and the answer says nothing about now (``dual_write``).
- Where nobody writes, in the fence of leaving KRaft, M is E: each key must have its last value (``final_proof``).

The looks are made by ``looks``, the same for everything and for what changed since a proof.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kraft_runbook.metadata.canonical_rows import Kind, Row, canonical, describe_paths, describe_value, why_undecoded
from kraft_runbook.metadata.differences import Difference, Undecoded
from kraft_runbook.metadata.image.image import Key
from kraft_runbook.metadata.image.log_replay import Version
from kraft_runbook.parity.coverage import NOT_COMPARED
from kraft_runbook.parity.parity_report import SAMPLES_A_KIND, Obstacle, ParityReport, Verdict, counts_of, samples_of
from kraft_runbook.parity.partition_epochs import is_behind

__all__ = [
    "Comparison",
    "Difference",
    "Obstacle",
    "ParityReport",
    "Undecoded",
    "Verdict",
    "compare",
    "make_report",
    "verdict_of",
]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one pass found. ``both``: how many keys of each kind agree."""

    both: Counter[Kind]
    differences: tuple[Difference, ...] = ()
    undecoded: tuple[Undecoded, ...] = ()


@dataclass(slots=True)
class _Candidates:
    """A key's values: ZooKeeper's, and the log's from M to E with the latest first known. ``more``: what else says the
    same key.
    """

    zookeeper: Row | None = None
    more: list[Row] | None = None
    versions: list[str | None] = field(default_factory=list)
    latest: str | None = None


def compare(rows: Iterable[Row], versions: Iterable[Version]) -> Comparison:
    """Compare ZooKeeper's rows with the log's versions of the same keys. A key that neither mentions is not looked at.

    A key of which ZooKeeper has two rows differs, whatever they say: Kafka reads the one or the other, and writes one
    of them.
    """
    keys: dict[Key, _Candidates] = {}
    for row in rows:
        candidates = keys.setdefault((row.kind, row.key), _Candidates())
        if candidates.zookeeper is None:
            candidates.zookeeper = row
        else:
            candidates.more = [*(candidates.more or ()), row]
    for version in versions:
        candidates = keys.setdefault((version.kind, version.key), _Candidates())
        if version.last and candidates.latest is None:
            candidates.latest = version.value
        candidates.versions.append(version.value)
    both: Counter[Kind] = Counter()
    differences: list[Difference] = []
    undecoded: list[Undecoded] = []
    for (kind, key), candidates in keys.items():
        verdict = _judge(kind, key, candidates)
        if verdict is None:
            both[kind] += candidates.zookeeper is not None and (
                kind is not Kind.PARTITION_EPOCH or any(candidates.versions)
            )
        elif isinstance(verdict, Undecoded):
            undecoded.append(verdict)
        else:
            differences.append(verdict)
    return Comparison(both, tuple(differences), tuple(undecoded))


def _judge(kind: Kind, key: str, candidates: _Candidates) -> Difference | Undecoded | None:
    """None when they agree."""
    row = candidates.zookeeper
    if row is not None and candidates.more is not None:
        return _said_more_than_once(kind, key, [row, *candidates.more], candidates.latest)
    seen = None if row is None else row.value
    if kind is Kind.PARTITION_EPOCH:
        if not is_behind(seen, candidates.versions):
            return None
        return Difference(kind, key, seen, candidates.latest, () if row is None else (row.path,))
    if seen in (candidates.versions or [None]):
        return None
    reason = why_undecoded(seen) if seen is not None else None
    if reason is not None and any(value is not None for value in candidates.versions):
        return Undecoded(kind, key, reason)
    return Difference(kind, key, seen, candidates.latest, () if row is None else (row.path,))


def _said_more_than_once(kind: Kind, key: str, rows: Sequence[Row], latest: str | None) -> Difference:
    said = ", ".join(sorted(f"{describe_paths(kind, [row.path])} ({describe_value(row.value)})" for row in rows))
    return Difference(
        kind, key, canonical({f"it {len(rows)} times:": said}), latest, tuple(sorted({row.path for row in rows}))
    )


def verdict_of(
    both: Mapping[Kind, int],
    differences: Sequence[Difference],
    obstacles: Sequence[Obstacle],
    *,
    may_be_empty: bool = False,
) -> Verdict:
    """A difference is proof; an obstacle withholds it; nothing compared is no match, unless it ``may_be_empty``: a look
    at what changed, where nothing did.

    A znode version that is lower than the partition epoch is no difference of metadata. It forbids leaving KRaft, which
    ``ParityReport.behind`` reports.
    """
    if any(each.kind is not Kind.PARTITION_EPOCH for each in differences):
        return Verdict.MISMATCH
    if obstacles or not (may_be_empty or any(count for kind, count in both.items() if kind.follows_the_log)):
        return Verdict.INCONCLUSIVE
    return Verdict.MATCH


NOTHING_COMPARED = Obstacle(
    "neither ZooKeeper nor the metadata log holds any topic, config, quota, credential, ACL or token: nothing was"
    " compared",
    "check that zookeeper.servers and zookeeper.chroot in the cluster file name this cluster's tree",
)


def make_report(
    *,
    cluster: str,
    against: str,
    both: Mapping[Kind, int],
    differences: Sequence[Difference],
    undecoded: Sequence[Undecoded],
    obstacles: Sequence[Obstacle],
    migration_offset: int,
    end_offset: int,
    migration_epoch: int,
    leader_id: int,
    leader_epoch: int,
    rounds: int,
    started_at: datetime,
    finished_at: datetime,
    notes: Sequence[str] = (),
    may_be_empty: bool = False,
) -> ParityReport:
    """Put the answer together: verdict, counts, samples, and every reason that withholds a proof."""
    reasons = [*obstacles]
    reasons += [
        Obstacle(
            str(each),
            "let this tool resolve password.encoder.secret (cluster file: secrets), as the brokers have it, and run"
            " again",
        )
        for each in undecoded[:SAMPLES_A_KIND]
    ]
    if not reasons and verdict_of(both, differences, reasons, may_be_empty=may_be_empty) is Verdict.INCONCLUSIVE:
        reasons.append(NOTHING_COMPARED)
    return ParityReport(
        cluster=cluster,
        verdict=verdict_of(both, differences, reasons, may_be_empty=may_be_empty),
        counts=counts_of(both, differences, undecoded),
        samples=samples_of(differences),
        obstacles=tuple(reasons),
        against=against,
        migration_offset=migration_offset,
        end_offset=end_offset,
        migration_epoch=migration_epoch,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        rounds=rounds,
        started_at=started_at,
        finished_at=finished_at,
        notes=(*NOT_COMPARED, *notes),
    )
