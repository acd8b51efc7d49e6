"""What a comparison has found so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kraft_runbook.cluster.observation import MigrationZnode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.parity.comparison import Comparison, Difference, Obstacle, ParityReport, Undecoded, make_report
from kraft_runbook.parity.parity_report import ZOOKEEPER
from kraft_runbook.parity.partition_epochs import compare_packed


@dataclass(slots=True)
class Findings:
    """Mutable. ``start`` and ``end``: M and E of the first look at everything; ``last``: the E of the last look.
    ``both``: agreeing keys of each kind. ``may_be_empty``: whether nothing to compare is a match.
    """

    started_at: datetime
    against: str = ZOOKEEPER
    quorum: QuorumDescription | None = None
    migration: MigrationZnode | None = None
    start: int = -1
    end: int = -1
    last: int = -1
    both: Counter[Kind] = field(default_factory=Counter)
    differences: tuple[Difference, ...] = ()
    undecoded: tuple[Undecoded, ...] = ()
    obstacles: list[Obstacle] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rounds: int = 1
    may_be_empty: bool = False

    def began(self, migration: MigrationZnode) -> None:
        """The first look begins, at the M that /migration names."""
        self.migration, self.start = migration, migration.kraft_metadata_offset

    def gave_up(self, error: RunbookError) -> None:
        """The comparison proves nothing, and why."""
        self.obstacles.append(Obstacle(error.problem, error.way_out))

    def add(self, compared: Comparison) -> None:
        """Add what a comparison of rows says."""
        self.both += compared.both
        self.differences += compared.differences
        self.undecoded += compared.undecoded

    def add_epochs(self, packed: Sequence[Row], replay: LogReplay, *, but: Iterable[str]) -> None:
        """Add what the versions of state znodes say, as workers packed them, against the log's epochs at M; ``but``: of
        topics that are looked at more closely.
        """
        assert replay.image.frozen is not None
        both, behind = compare_packed(packed, replay.image.frozen.frozen, but=frozenset(but))
        self.both += both
        self.differences += behind

    def report(self, spec: ClusterSpec) -> ParityReport:
        """The answer, as of now."""
        return make_report(
            cluster=spec.name,
            against=self.against,
            both=self.both,
            differences=self.differences,
            undecoded=self.undecoded,
            obstacles=self.obstacles,
            migration_offset=self.start,
            end_offset=self.end,
            migration_epoch=self.migration.kraft_metadata_epoch if self.migration else -1,
            leader_id=self.quorum.leader_id if self.quorum else -1,
            leader_epoch=self.quorum.leader_epoch if self.quorum else -1,
            rounds=self.rounds,
            started_at=self.started_at,
            finished_at=datetime.now(UTC),
            notes=self.notes,
            may_be_empty=self.may_be_empty,
        )
