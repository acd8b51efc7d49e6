"""What the copied tree says of the source's brokers and no throwaway shows: there every broker has a stand-in. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from kraft_runbook.cluster.naming import by_number, nodes
from kraft_runbook.rehearsal.verdict import Finding, Verdict

GHOSTS, UNNAMED, RUNNING, IN_SYNC = "KRB-PRE-028", "KRB-PRE-005", "KRB-PRE-004", "KRB-PRE-029"
"""The checks of the start gate that say it of the cluster itself."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The brokers for which the migration would wait. ``ghosts``: those that partitions are assigned to and the cluster
    file does not name; ``unnamed``: those that are live without partitions and not in the file; ``down``: those that
    were not live when the tree was copied.
    """

    ghosts: frozenset[int]
    unnamed: frozenset[int]
    down: frozenset[int]

    @property
    def found(self) -> tuple[Finding, ...]:
        """FAILED for ghosts: the start gate would block. INCONCLUSIVE for declared ones: they may be live again."""
        found = []
        if self.ghosts:
            gone = self.ghosts & self.down
            told = f" {nodes('broker', gone, 'was')} not live when the tree was copied." if gone else ""
            found.append(
                Finding(
                    Verdict.FAILED,
                    f"{GHOSTS}: partitions are assigned to {nodes('broker', self.ghosts)}, which the cluster file does"
                    f" not name.{told} The controllers wait without end until each broker in an assignment has"
                    " registered; in the throwaway a stand-in did",
                    GHOSTS,
                )
            )
        if self.unnamed:
            found.append(
                Finding(
                    Verdict.FAILED,
                    f"{UNNAMED}: {nodes('broker', self.unnamed, 'is')} live, and not in the cluster file. The"
                    " controllers wait for each live broker too; in the throwaway a stand-in registered",
                    UNNAMED,
                )
            )
        if declared := self.down - self.ghosts:
            found.append(
                Finding(
                    Verdict.INCONCLUSIVE,
                    f"{RUNNING}: {nodes('broker', declared)} of the cluster file"
                    f" {by_number(declared, 'was', 'were')} not live when the tree was copied: the cluster's state at"
                    " that moment. In the throwaway a stand-in registered for each that has partitions, and could be"
                    " elected leader",
                    RUNNING,
                )
            )
        return tuple(found)

    def of_that_moment(self, found: Finding) -> Finding:
        """A finding of the start gate before the first copy. No stand-in leaves an ISR or comes back into one, so one
        that was too short was so at the source: INCONCLUSIVE, unless a ghost may be what it lacks.
        """
        if found.code != IN_SYNC or found.verdict is not Verdict.FAILED or self.ghosts & self.down:
            return found
        why = (
            "the cluster's state when the tree was copied, a broker that restarted meanwhile for one: every replica's"
            " broker was live or is declared. No stand-in comes back into an ISR"
        )
        return replace(found, verdict=Verdict.INCONCLUSIVE, what=f"{found.what} ({why})")


def assigned_brokers(assigned: Collection[int], *, live: Collection[int], declared: Collection[int]) -> Assigned:
    """Of the copied tree: ``assigned``, the ids in any topic's assignment, and ``live``, those below /brokers/ids; of
    the source's cluster file: ``declared``.
    """
    holding, there, named = frozenset(assigned), frozenset(live), frozenset(declared)
    return Assigned(holding - named, there - named - holding, (holding | named) - there)
