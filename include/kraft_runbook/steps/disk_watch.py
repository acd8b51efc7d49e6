"""What lies on the controllers' hosts, read again and again beside the looks at what runs, without holding them up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from kraft_runbook.cluster.observation import ClusterObservation, HostState, Unread
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import RunbookError
from kraft_runbook.migration.checks import CHECKS, CheckResult, Verdict
from kraft_runbook.migration.checks.finalization import ON_DISK
from kraft_runbook.steps.handle import Cluster

EVERY_SECONDS = 60.0
"""How far the beginnings of two readings lie apart: one is a run of ansible, about two seconds of a processor."""
UNKNOWN_READINGS = 3
"""How many readings in a row may be without an answer: a host may be busy for a moment."""

Hosts = Mapping[int, HostState] | Unread


class DiskWatch:
    """Reads the controllers' files in a thread of its own. A file that is wrong counts at once; one that can't be read,
    when it stays so.
    """

    def __init__(self, cluster: Cluster, *, every: float = EVERY_SECONDS) -> None:
        self._cluster = cluster
        self._every = every
        self._reading: asyncio.Task[Hosts] | None = None
        self._due = 0.0
        self._unknown = 0
        self._answered = False
        self._unanswered: list[CheckResult] = []

    def look(self, seen: ClusterObservation) -> list[CheckResult]:
        """What is broken on the hosts, as of a reading that has ended since the last look. Begins the next reading when
        it is due; never waits.
        """
        found: list[CheckResult] = []
        if self._reading is not None and self._reading.done():
            found = self._judge(seen, self._reading.result())
            self._reading = None
        if self._reading is None and self._cluster.now() >= self._due:
            self._due = self._cluster.now() + self._every
            self._reading = asyncio.create_task(asyncio.to_thread(read_controllers, self._cluster))
        return found

    async def last_look(self, seen: ClusterObservation) -> list[CheckResult]:
        """The same, for the end of the watch: waits for the reading under way. What no reading answered since the watch
        began counts too.
        """
        found = self._judge(seen, await self._reading) if self._reading is not None else []
        return found or self._unanswered

    def stop(self) -> None:
        """Forget the reading under way; its ansible ends by itself and has changed nothing."""
        if self._reading is not None:
            self._reading.cancel()

    def _judge(self, seen: ClusterObservation, hosts: Hosts) -> list[CheckResult]:
        if detect_phase(seen).phase is Phase.FINALIZED:
            return []
        results = [CHECKS[code].run(replace(seen, hosts=hosts), self._cluster.spec) for code in ON_DISK]
        unknown = [r for r in results if r.verdict is Verdict.UNKNOWN]
        self._unknown = self._unknown + 1 if unknown else 0
        self._answered = self._answered or not unknown
        self._unanswered = [] if self._answered else unknown
        return [r for r in results if r.verdict is Verdict.FAIL] + (
            unknown if self._unknown >= UNKNOWN_READINGS else []
        )


def read_controllers(cluster: Cluster) -> Hosts:
    """The controllers' hosts, in one run of ansible."""
    try:
        return cluster.hosts(cluster.spec.controller_ids)
    except RunbookError as error:
        return Unread(error.problem)
