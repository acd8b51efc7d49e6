"""What a run that moves replicas waits for instead of ending: a broker that is lost, a controller that moves, a server
that does not answer. Since when it waits is read from its evidence.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.steps.reassignment.ending import STARTED
from kraft_runbook.steps.reassignment.signed import BrokerLost
from kraft_runbook.steps.run import Run

WAITS, TRIES, GOES_ON, GAVE_UP = "waits", "tries again", "goes on", "gave up"
AGAIN_SECONDS = 30.0
"""Between two tries: each starts a task."""
ENDS = frozenset({GOES_ON, GAVE_UP})


def wait_out(run: Run, trouble: RunbookError) -> None:
    """Put on record that the run waits, or tries again, once for as long as it does: either may begin while the other
    lasts, and each has its own time. Raises ``trouble`` once it has lasted longer than the cluster file allows: so a
    person is asked, and a cleared task begins to wait anew.
    """
    passes, within = isinstance(trouble, Unreachable | BrokerLost), run.spec.reassignment
    what, most = (WAITS, within.lost_broker) if passes else (TRIES, within.refused)
    # While it waits for a broker it never says that it goes on: what Kafka refused has passed once it takes a move.
    since = _since(run, {what}, ended_by=ENDS if passes else ENDS | {STARTED})
    if since is None:
        run.cluster.tell(f"The run {what}: {trouble.problem}")
        run.journal.record(Moves(what=what, partitions=None, told=trouble.problem))
        return
    waited = run.cluster.now() - since
    if waited > most:
        run.journal.record(Moves(what=GAVE_UP, partitions=None, told=f"after {waited:,.0f} s: {trouble.problem}"))
        raise trouble
    run.cluster.tell(f"The run {what} since {waited:,.0f} s, at most {most:,.0f}: {trouble.problem}")


def say_it_goes_on(run: Run) -> None:
    """Put on record that it waits no more, where it did."""
    since = _since(run, {WAITS, TRIES}, ended_by=ENDS)
    if since is not None:
        told = f"after {run.cluster.now() - since:,.0f} s"
        run.journal.record(Moves(what=GOES_ON, partitions=None, told=told))


def _since(run: Run, whats: Collection[str], *, ended_by: Collection[str]) -> float | None:
    """When the first of these was put on record after the last that ended them, in seconds since the epoch; None where
    none was.
    """
    first: str | None = None
    for record, told in of_kind(run.journal.records(), Moves):
        if told.what in ended_by:
            first = None
        elif told.what in whats:
            first = first or record.at
    return None if first is None else datetime.fromisoformat(first).timestamp()
