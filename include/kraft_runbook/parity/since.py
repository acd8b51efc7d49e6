"""Comparing what changed since a full comparison: the log's tail, and the znodes that it touches, by the same looks
(``looks``) and without Spark.

What somebody changed in ZooKeeper by hand, without the log, is found by full comparisons alone: hence ``FULL_AFTER``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_log_reader import LogTruncated, Position
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.frames import Garbled
from kraft_runbook.parity.comparison import ParityReport
from kraft_runbook.parity.decoding import decoding_of
from kraft_runbook.parity.dual_write import NoProof
from kraft_runbook.parity.findings import Findings
from kraft_runbook.parity.log_follower import LogFollower
from kraft_runbook.parity.looks import Looks
from kraft_runbook.parity.parity_report import ZOOKEEPER
from kraft_runbook.parity.proven import FULL, Head, read_head, read_state, require_of

FULL_AFTER = timedelta(hours=6)
"""How old a full comparison may be that others build on."""
NOTE = (
    "only keys that the metadata log touched since then were compared; a change made in ZooKeeper by hand is found by a"
    " full comparison"
)


def compare_since(
    spec: ClusterSpec,
    path: Path,
    *,
    secrets: Secrets,
    full_after: timedelta = FULL_AFTER,
    follow: Callable[..., LogFollower] = LogFollower,
) -> ParityReport:
    """Compare what the log touched since the state in ``path`` was proven. Its counts are of these keys alone.

    INCONCLUSIVE, with the way out, where that state is too old, or the log does not reach back to it. Raises
    RunbookError for a file that is none, or of another cluster. ``full_after``: how old it may be.
    """
    started_at, head, state = datetime.now(UTC), read_head(path), read_state(path)
    require_of(spec, head, path)
    proof = f"the proof {head.digest[:16]} at offset {head.migration_offset}"
    found = Findings(started_at, f"{ZOOKEEPER}, as far as it was touched since {proof}", notes=[NOTE])
    found.may_be_empty = True
    decoding = decoding_of(spec, secrets=secrets, salt=head.salt)
    replay = LogReplay.resumed(state, head.migration_offset, decoding.fingerprints, spec.kafka.ibp)
    try:
        position = _young_enough(head, full_after)
        with follow(spec, replay, secrets=secrets, position=position) as log:
            looks = Looks(spec, secrets, decoding, log, found)
            looks.at_touched()
            looks.again()
            looks.require_movement()
    except (Unreachable, LogTruncated, Garbled, NoProof) as error:
        found.gave_up(error)
    return found.report(spec)


def _young_enough(head: Head, full_after: timedelta) -> Position:
    """Where the log is read on. Raises NoProof where the proof is too old to build on."""
    if datetime.now(UTC) - head.proven_at > full_after:
        raise NoProof(
            f"the last full comparison ended at {head.proven_at:%Y-%m-%d %H:%M} UTC, more than {full_after} ago",
            way_out=FULL,
        )
    return Position(head.migration_offset + 1, head.log_epoch)
