"""The rate that a person asks for while data moves: taken up by the run that moves, and judged by its own rule.

The same for moves between brokers and between disks; what differs is the throttle (``Throttle``).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Protocol

from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)

SET, PUT_BACK_DONE = "throttled", "put back"
"""On record once it is done."""
THROTTLE_REFUSED = "throttle refused"
"""On record where a rate that was asked for while data moves is not taken."""


class Throttle(Protocol):
    """The throttle of one run. Rates are in bytes a second a broker."""

    @property
    def noted(self) -> int | None:
        """The rate that the run has set, or is about to; None where it has set none."""

    def stands(self, rate: int) -> bool:
        """Whether the brokers have it, or one that a person has set since."""

    def require_an_end(self, rate: int) -> None:
        """Keeps how many copies at once it lets end, where that is fewer than may go on (``judged_rate``). Raises
        Refused for a rate under which the copies would never catch up.
        """

    def set(self, rate: int) -> None:
        """Note it, set it, and put that on record."""


def take_up_rate(run: Run, throttle: Throttle, given: int | None) -> None:
    """Set the rate that was asked for since (``pace``), or the run's own (``given``) where none is in force. A rate
    that makes no sense, or would never let it end, stops nothing that moves: that is on record, the rate in force
    stays, and the file says it again; where none is, the run's own is set.
    """
    files, in_force = files_of(run), throttle.noted
    try:
        rate = files.wanted_throttle(given)
        if rate is None or (rate == in_force and _is_on_record(run, rate) and throttle.stands(rate)):
            return
        if rate != in_force and (in_force is not None or rate != given):
            throttle.require_an_end(rate)
    except Refused as refused:
        files.keep_throttle(in_force)
        rate = given if in_force is None else in_force
        stays = "there is none" if rate is None else f"it stays {rate_text(rate)}"
        log.warning("The throttle is not changed, %s: %s. What to do: %s", stays, refused.problem, refused.way_out)
        why = f"{stays}: {refused.problem}. What to do: {refused.way_out}"
        run.journal.record(Moves(what=THROTTLE_REFUSED, partitions=None, told=why))
        if rate is None or rate == in_force:
            return
    throttle.set(rate)


def is_left_alone(now: str | None, rate: int, former: str | None, of_others: Collection[str]) -> bool:
    """Whether what the brokers have (``now``) is this rate, or one that a person has set since: none from before, and
    none of another run, which may have ended meanwhile.
    """
    return now == str(rate) or (now is not None and now != former and now not in of_others)


def was_set(did: Iterable[Moves], rate: int) -> bool:
    """Whether the rate is not only noted: a broker that was lost, or a killed worker, may have come between. ``did``:
    what is on record of the run.
    """
    last = [told for told in did if told.what in (SET, PUT_BACK_DONE)][-1:]
    return [(told.what, told.told) for told in last] == [(SET, rate_text(rate))]


def _is_on_record(run: Run, rate: int) -> bool:
    return was_set((told for _, told in of_kind(run.journal.records(), Moves)), rate)


def rate_text(rate: int) -> str:
    """For a person, and for the evidence."""
    return f"{rate / 1e6:g} MB/s a broker"
