"""What a run that moves replicas waits for instead of ending: a broker that is lost, a controller that moves, a server
that does not answer. Since when it waits is read from its evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.steps.reassignment.ending import STARTED
from kraft_runbook.steps.reassignment.signed import BrokerLost
from kraft_runbook.steps.run import Run

WAITS, TRIES, GAVE_UP = "waits", "tries again", "gave up"
GOES_ON: Mapping[str, str] = {WAITS: "goes on", TRIES: "refused no more"}
"""What ends each: either may go on lasting when the other has ended."""
AGAIN_SECONDS = 30.0
"""Between two tries: each starts a task."""


def wait_out(run: Run, trouble: RunbookError) -> None:
    """Put on record that the run waits, or tries again, once for as long as it does: either may begin while the other
    lasts, and each has its own time. Raises ``trouble`` once it has lasted longer than the cluster file allows: so a
    person is asked, and a cleared task begins to wait anew.
    """
    passes, within = isinstance(trouble, Unreachable | BrokerLost), run.spec.reassignment
    what, most = (WAITS, within.lost_broker) if passes else (TRIES, within.refused)
    # What Kafka refused has passed once it takes a move, also beside moves that it still refuses.
    since = _since(run, what, ended_by={GOES_ON[what], GAVE_UP, *(() if passes else (STARTED,))})
    if since is None:
        run.cluster.tell(f"The run {what}: {trouble.problem}")
        run.journal.record(Moves(what=what, partitions=None, told=trouble.problem))
        return
    waited = run.cluster.now() - since
    if waited > most:
        run.journal.record(Moves(what=GAVE_UP, partitions=None, told=f"after {waited:,.0f} s: {trouble.problem}"))
        raise trouble
    run.cluster.tell(f"The run {what} since {waited:,.0f} s, at most {most:,.0f}: {trouble.problem}")


def say_it_goes_on(run: Run, what: str) -> None:
    """Put on record that it does this no more (``WAITS`` or ``TRIES``), where it did."""
    since = _since(run, what, ended_by={GOES_ON[what], GAVE_UP})
    if since is not None:
        told = f"after {run.cluster.now() - since:,.0f} s"
        run.journal.record(Moves(what=GOES_ON[what], partitions=None, told=told))


def _since(run: Run, what: str, *, ended_by: Collection[str]) -> float | None:
    """When this was first put on record after the last that ended it, in seconds since the epoch; None where it was
    not.
    """
    first: str | None = None
    for record, told in of_kind(run.journal.records(), Moves):
        if told.what in ended_by:
            first = None
        elif told.what == what:
            first = first or record.at
    return None if first is None else datetime.fromisoformat(first).timestamp()
