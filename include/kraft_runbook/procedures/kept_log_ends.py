"""The log ends of every partition, kept before the metadata copy and compared at every gate after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from kraft_runbook.cluster.log_ends import LogEnds, NotKept
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.replica_directories import ReplicasCompared
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.kafka.log_ends import read_log_ends
from kraft_runbook.io.private_file import private_file
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.migration import kept_ends
from kraft_runbook.migration.copy_forecast import COPY_AHEAD
from kraft_runbook.runbook.check_results import CheckResult

NOT_COMPARED = Unread("replicas on disk were not compared")
APART_SECONDS = 2.0
"""Before a loss is told it is looked at again."""


def topics_in_zookeeper(spec: ClusterSpec, secrets: Secrets) -> frozenset[str]:
    """The topics that ZooKeeper holds; none where the cluster file names no ZooKeeper. Raises Unreachable."""
    if spec.zookeeper is None:
        return frozenset()
    with ZookeeperReader(spec.zookeeper, secrets=secrets) as reader:
        return frozenset(reader.children("/brokers/topics") or ())


def check_log_ends(
    spec: ClusterSpec,
    file: Path,
    phase: Phase,
    *,
    secrets: Secrets,
    keeps: bool,
    blocking: bool = True,
    replicas: ReplicasCompared | Unread = NOT_COMPARED,
    tell: Callable[[str], object],
    read: Callable[..., LogEnds] = read_log_ends,
    stored: Callable[[ClusterSpec, Secrets], frozenset[str]] = topics_in_zookeeper,
    apart: float = APART_SECONDS,
) -> CheckResult:
    """KRB-GATE-013: compare the log ends with those kept in ``file``; keep them where none are kept, and in ZooKeeper
    mode, where a migration begins, always anew.

    ``keeps``: whether this look may write the file; without it there is nothing to compare with in ZooKeeper mode
    before a gate was proven. ``blocking``: as in ``kept_ends.judged``. ``replicas``: what the brokers have on disk, for
    the directories of topics that are gone; KRB-PRE-086 says where it was not read. ``apart``: seconds before a loss
    is looked at again.
    """
    try:
        kept = _kept(file)
        anew = keeps and (kept is None or phase is Phase.ZOOKEEPER)
        known = frozenset(kept[0].topics if kept else ())
        now = read(spec, secrets=secrets, also=known | stored(spec, secrets))
    except NotKept as error:
        return kept_ends.none_kept(
            f"the log ends kept in {file} can't be used: {error}",
            f"put the file back from your backup, or remove {file}: the gate then keeps the ends anew and says so",
            blocking=blocking,
        )
    except RunbookError as error:
        return kept_ends.none_kept(f"the log ends could not be read: {error.problem}", error.way_out, blocking=blocking)
    if anew and now.unread:
        return kept_ends.not_whole(now)
    if anew:
        return _keep(file, now, phase, tell)
    if kept is None:
        return kept_ends.none_kept(
            f"no log ends are kept in {file}",
            "clear the gate's 'prove' task: it keeps them before it asks (a dry run and a rollback keep none)",
            blocking=blocking,
        )
    ends, digest = kept
    if kept_ends.compared(ends, now).lower:
        time.sleep(apart)
        now = read(spec, secrets=secrets, also=ends.topics)
    gone = replicas.gone if was_read(replicas) else ()
    version = spec.kafka.version
    return kept_ends.judged(ends, now, str(file), digest, version=version, blocking=blocking, gone=gone)


def _keep(file: Path, ends: LogEnds, phase: Phase, tell: Callable[[str], object]) -> CheckResult:
    data = ends.to_bytes()
    _, digest = LogEnds.from_bytes(data)
    with private_file(file) as written:
        written.write(data)
    tell(f"the log ends of {ends.partitions:,} partitions are kept in {file}")
    told = kept_ends.just_kept if phase in COPY_AHEAD else kept_ends.kept_late
    return told(ends, str(file), digest)


def _kept(file: Path) -> tuple[LogEnds, str] | None:
    """None: nothing is kept. Raises NotKept."""
    try:
        return LogEnds.from_bytes(file.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotKept(f"it can't be read: {error.strerror}") from None
