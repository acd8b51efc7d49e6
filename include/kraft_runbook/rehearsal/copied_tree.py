"""What a copy of a cluster's tree holds, and what is missing in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.cluster.observation import Found
from kraft_runbook.rehearsal.replacing import Dropped, Replaced
from kraft_runbook.rehearsal.since import KeptPaths

MOST_NAMED = 1000
"""Configs without a topic that a record names. It counts the others."""


@dataclass(frozen=True, slots=True)
class CopiedTree:
    """``snapshot``: the file that a ZooKeeper loads at its start, of ``size`` bytes; it holds ``znodes``.

    ``unread``: paths that ZooKeeper did not show this tool (their ACL): neither they nor what lies below them is in the
    copy. ``left_out``: the configs that the copy lacks, each with where it was and the reason, and in how many znodes.
    ``orphaned``: the config of each topic that the copy lacks, which it lacks too: such a config stayed behind when its
    topic was deleted, or one of both was made or deleted while the tree was read. ``in_deletion``: topics whose
    deletion was asked for and had not ended, which the copy lacks.
    ``unjudged_passwords``: how many encoded passwords were taken for ones that the source's
    password.encoder.secret opens, because that secret is not at hand. ``newest_zxid``: the newest transaction that was
    seen in any znode. ``live_brokers``: the ids below /brokers/ids; ``assigned_brokers``: those in any topic's
    assignment; ``configured_brokers``: those below /config/brokers. ``seconds``, ``cpu_seconds``: what the copying took
    of this process.
    """

    snapshot: Path
    source_cluster_id: str
    cluster_id: str
    znodes: int
    size: int
    topics: int
    partitions: int
    dropped: Mapping[Dropped, int]
    replaced: Mapping[Replaced, int]
    left_out: Mapping[str, int]
    orphaned: tuple[str, ...]
    in_deletion: tuple[str, ...]
    unread: Found
    unjudged_passwords: int
    newest_zxid: int
    live_brokers: frozenset[int]
    assigned_brokers: frozenset[int]
    configured_brokers: frozenset[int]
    kept: KeptPaths
    seconds: float
    cpu_seconds: float

    @property
    def why_not_whole(self) -> tuple[str, ...]:
        """Why a rehearsal with this copy can't pass, each a sentence; empty for a whole copy. A verdict with any is
        INCONCLUSIVE at best.
        """
        why = []
        if self.unread.count:
            named = _some(self.unread.samples, self.unread.count)
            why.append(
                f"znodes that this tool may not read (their ACL), and all below them: {self.unread.count} ({named})"
            )
        if self.in_deletion:
            named = _some(self.in_deletion, len(self.in_deletion))
            why.append(
                f"topics whose deletion goes on at the source, and which the copy lacks: {len(self.in_deletion)}"
                f" ({named})"
            )
        if self.unjudged_passwords:
            why.append(
                f"encoded passwords of which nobody knows whether the controllers open them: {self.unjudged_passwords}"
                " (password.encoder.secret is not at hand)"
            )
        return tuple(why)

    @property
    def left_out_told(self) -> tuple[str, ...]:
        """Each config that the copy lacks, as the rehearsal's record tells it."""
        told = [f"{each} ({number} znodes)" if number > 1 else each for each, number in self.left_out.items()]
        told += [f"{path}: the copy has no such topic" for path in self.orphaned[:MOST_NAMED]]
        if len(self.orphaned) > MOST_NAMED:
            told.append(f"{len(self.orphaned) - MOST_NAMED} more configs of topics that the copy lacks")
        return tuple(told)


def why_not_loaded(written: int, held: int | None) -> str:
    """Why the throwaway's ZooKeeper is not taken for one with the copied tree, where it was just started on that; empty
    where it holds as many znodes as were ``written``. ``held``: None: it did not say.
    """
    if held is None:
        return f"ZooKeeper does not say how many znodes it holds: {written:,} were copied"
    if held == written:
        return ""
    return (
        f"{written:,} znodes were copied, and the ZooKeeper that was started on them holds {held:,}: this tool's"
        " snapshot file or ZooKeeper's loading of it is at fault, which tells nothing of the cluster"
    )


def _some(paths: Sequence[str], count: int) -> str:
    return ", ".join(paths[:3]) + (" …" if count > 3 else "")
