"""A cluster that is looked at several times a second while its nodes start and restart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from labs import Lab

from kraft_runbook.cluster.observation import ClusterObservation, ZkMigrationState, was_read
from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.settled import observe_settled

PAUSE = 0.15
"""Seconds: without them the looks take a whole core from the cluster that is looked at."""


@dataclass
class Watched:
    """``raw``: every single look; ``settled``: those that may be acted upon; ``told``: what was looked at again
    meanwhile.
    """

    raw: list[ClusterObservation] = field(default_factory=list)
    settled: list[ClusterObservation] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    broken: list[BaseException] = field(default_factory=list)

    def states(self) -> set[ZkMigrationState | None]:
        """Every ZkMigrationState that a controller showed."""
        return {
            c.metrics.zk_migration_state for seen in self.raw for c in seen.controllers.values() if was_read(c.metrics)
        }

    def phases(self) -> list[Phase]:
        """The settled phases in their order, each once."""
        found = [detect_phase(seen).phase for seen in self.settled]
        return [phase for n, phase in enumerate(found) if n == 0 or phase is not found[n - 1]]

    def refused(self) -> list[PhaseReading]:
        """What a step would have been refused for though nothing is wrong: UNKNOWN when settled, or without being
        marked as a moment's.
        """
        raw = [detect_phase(seen) for seen in self.raw]
        settled = [detect_phase(seen) for seen in self.settled]
        return [r for r in raw if r.phase is Phase.UNKNOWN and not r.transient] + [
            r for r in settled if r.phase is Phase.UNKNOWN
        ]


@contextmanager
def watching(lab: Lab) -> Iterator[Watched]:
    """Two threads look until the context ends, ``PAUSE`` between two looks: one at single observations, one at settled
    ones. What they raise is raised at the end.
    """
    watched, stop = Watched(), threading.Event()

    def look() -> None:
        while not stop.wait(PAUSE):
            watched.raw.append(observe(lab.spec, secrets=lab.secrets))

    def settle() -> None:
        while not stop.wait(PAUSE):
            watched.settled.append(observe_settled(lab.spec, secrets=lab.secrets, tell=watched.told.append))

    def guarded(work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            watched.broken.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in (look, settle)]
    for thread in threads:
        thread.start()
    try:
        yield watched
    finally:
        stop.set()
        for thread in threads:
            thread.join(200)
    for error in watched.broken:
        raise error
