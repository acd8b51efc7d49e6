"""What a run that moves replicas waits for instead of ending: a broker that is lost, a controller that moves, a server
that does not answer. Since when it waits is read from its evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.steps.reassignment.signed import BrokerLost
from kraft_runbook.steps.run import Run

WAITS, TRIES, GOES_ON, GAVE_UP = "waits", "tries again", "goes on", "gave up"
AGAIN_SECONDS = 30.0
"""Between two tries: each starts a task."""
APART_SECONDS, MOMENT_SECONDS = 5.0, 120.0
T = TypeVar("T")


def wait_out(run: Run, trouble: RunbookError) -> None:
    """Put on record that the run waits, or tries again, where that is not the last that it said. Raises ``trouble``
    once it has lasted longer than the cluster file allows: so a person is asked, and a cleared task begins to wait
    anew.
    """
    passes, within = isinstance(trouble, Unreachable | BrokerLost), run.spec.reassignment
    what, most = (WAITS, within.lost_broker) if passes else (TRIES, within.refused)
    said, since = _last_said(run)
    if said != what:
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
    said, since = _last_said(run)
    if said in (WAITS, TRIES):
        told = f"after {run.cluster.now() - since:,.0f} s"
        run.journal.record(Moves(what=GOES_ON, partitions=None, told=told))


def _last_said(run: Run) -> tuple[str, float]:
    """Which of the four was put on record last, and when, in seconds since the epoch."""
    told = of_kind(run.journal.records(), Moves)
    said = [(each.what, record.at) for record, each in told if each.what in (WAITS, TRIES, GOES_ON, GAVE_UP)]
    return (said[-1][0], datetime.fromisoformat(said[-1][1]).timestamp()) if said else ("", 0.0)


def patiently(run: Run, does: Callable[[], T]) -> T:
    """What ``does`` answers, tried again for ``MOMENT_SECONDS`` while a server does not answer: a broker that dies, or
    a controller that moves, holds it up for a moment. Raises what the last try raised.
    """
    ends = run.cluster.now() + MOMENT_SECONDS
    while True:
        try:
            return does()
        except Unreachable as trouble:
            if run.cluster.now() > ends:
                raise
            run.cluster.tell(f"Not done, trying again: {trouble.problem}")
        run.cluster.pause(APART_SECONDS)
