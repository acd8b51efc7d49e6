"""Comparing again what changed since a full comparison: the log's tail, and the znodes that it touches.

What somebody changed in ZooKeeper by hand, without the log, is found by full comparisons alone: hence ``FULL_AFTER``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kraft_runbook.cluster.observation import ZkMigrationState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.kafka.metadata_log_reader import LogTruncated, Position
from kraft_runbook.io.kafka.metadata_quorum import QuorumDescription
from kraft_runbook.io.private_file import private_file
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.read_rows import read_keys
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.metadata.image.image import MetadataImage
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.frames import Garbled
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.parity.comparison import Comparison, Difference, Obstacle, ParityReport, compare, make_report
from kraft_runbook.parity.decoding import decoding_of
from kraft_runbook.parity.dual_write import NoProof, read_migration, require_movement
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.proven_state import ProvenHead, dump, load
from kraft_runbook.parity.quorum_facts import quorum_versions

FULL_AFTER = timedelta(hours=6)
"""How old a full comparison may be that others build on."""
ROUNDS = 5
"""How often what does not fit is read again, a second apart."""
PAUSE = 1.0


def save_proven(path: Path, spec: ClusterSpec, report: ParityReport, *, secrets: Secrets) -> None:
    """Write the state that ``report``, a MATCH, proved: the whole file or nothing. Raises LogTruncated, Unreachable."""
    replay = LogReplay(report.migration_offset, decoding_of(spec, secrets=secrets).fingerprints, spec.kafka.ibp)
    with LogFollower(spec, replay, secrets=secrets) as log:
        log.read_to(report.migration_offset)
        head = ProvenHead(spec.name, report.migration_offset, log.position.epoch, report.digest, report.finished_at)
    with private_file(path) as file:
        file.write(dump(head, replay.image))


def recheck(spec: ClusterSpec, path: Path, *, secrets: Secrets) -> ParityReport:
    """Compare what the log touched since the state in ``path`` was proven. Its counts are of these keys alone.

    INCONCLUSIVE, with the way out, where that state is too old, or the log does not reach back to it. Raises
    RunbookError for a file that is none.
    """
    started_at = datetime.now(UTC)
    check = _Recheck(spec, secrets, path)
    obstacles: list[Obstacle] = []
    try:
        check.run()
    except (Unreachable, LogTruncated, Garbled, NoProof) as error:
        obstacles.append(Obstacle(error.problem, error.way_out))
    return make_report(
        cluster=spec.name,
        against=(
            f"ZooKeeper, as far as it was touched since the proof {check.head.digest[:16]} at offset"
            f" {check.head.offset}"
        ),
        both=check.found.both,
        differences=check.found.differences,
        undecoded=check.found.undecoded,
        obstacles=obstacles,
        migration_offset=check.start,
        end_offset=check.end,
        migration_epoch=-1,
        leader_id=check.quorum.leader_id if check.quorum else -1,
        leader_epoch=check.quorum.leader_epoch if check.quorum else -1,
        rounds=check.rounds,
        started_at=started_at,
        finished_at=datetime.now(UTC),
        notes=(
            (
                "only keys that the metadata log touched since then were compared; a change made in ZooKeeper by hand"
                " is found by a full comparison"
            ),
        ),
        may_be_empty=True,
    )


_FULL = "run a full comparison (kraft-runbook parity --save-proven FILE)"


class _Recheck:
    """One run: ``start`` and ``end`` are M and E of its last round."""

    def __init__(self, spec: ClusterSpec, secrets: Secrets, path: Path) -> None:
        self._spec, self._secrets = spec, secrets
        self._decoding: Decoding = decoding_of(spec, secrets=secrets)
        image = MetadataImage(self._decoding.fingerprints, spec.kafka.ibp)
        try:
            self.head = load(path.read_bytes(), image)
        except FileNotFoundError:
            raise RunbookError(f"there is no proven state at {path}", way_out=_FULL) from None
        if self.head.cluster != spec.name:
            raise RunbookError(
                f"the proven state at {path} is of cluster {self.head.cluster}, not {spec.name}",
                way_out="name the one of this cluster",
            )
        self._replay = LogReplay.resumed(image, self.head.offset)
        self.found = Comparison(Counter())
        self.quorum: QuorumDescription | None = None
        self.start = self.end = -1
        self.rounds = 0

    def run(self) -> None:
        if datetime.now(UTC) - self.head.proven_at > FULL_AFTER:
            raise NoProof(
                f"the last full comparison ended at {self.head.proven_at:%Y-%m-%d %H:%M} UTC, more than"
                f" {FULL_AFTER} ago",
                way_out=_FULL,
            )
        position = Position(self.head.offset + 1, self.head.epoch)
        with (
            ZookeeperReader(self._spec.ensemble, secrets=self._secrets) as zookeeper,
            LogFollower(self._spec, self._replay, secrets=self._secrets, position=position) as log,
        ):
            suspects: Sequence[Difference] | None = None
            before = read_migration(zookeeper).kraft_metadata_offset
            while self.rounds < ROUNDS and (suspects is None or suspects):
                if self.rounds:
                    time.sleep(PAUSE)
                self.rounds += 1
                self._round(zookeeper, log)
                suspects = self.found.differences
            require_movement(zookeeper, self._spec, since=before, secrets=self._secrets)

    def _round(self, zookeeper: ZookeeperReader, log: LogFollower) -> None:
        """M, then the touched znodes as they are, then E; what is touched in between comes with the next round, or is
        no suspect of this one.
        """
        self._read_on(log)
        self.start = read_migration(zookeeper).kraft_metadata_offset
        keys = {key for key in self._replay.touched if key[0].follows_the_log}
        rows = list(
            read_keys(
                zookeeper,
                keys | {(Kind.CONTROLLER, '["/controller"]'), (Kind.CONTROLLER, '["/migration"]')},
                self._decoding,
            )
        )
        self._read_on(log)
        told = [
            v
            for v in quorum_versions(self._spec, log.quorum, offset=self.start, secrets=self._secrets)
            if v.kind is Kind.CONTROLLER
        ]
        self.found = compare(rows, [*self._replay.versions_of(keys, self.start), *told])

    def _read_on(self, log: LogFollower) -> None:
        self.end = log.read_on()
        self.quorum = log.quorum
        if self._replay.migration_state is not ZkMigrationState.MIGRATION:
            raise NoProof("the log says that the cluster is not in dual write any more", way_out=_FULL)
