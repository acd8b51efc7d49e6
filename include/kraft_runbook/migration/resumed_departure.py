"""A departure from KRaft whose try was killed, or lost its connection, before it had put everything on record: what a
later try can still say of it. Pure.

Right before the znodes are deleted, what was measured by then is put on record (``LeavesKraft``). The rest is in
ZooKeeper, as long as nobody was elected since: /controller is created by the election, and /controller_epoch is then
the next number. ZooKeeper keeps no time of a deletion. So ``deleted_at`` stays unknown, between two moments that are
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

from kraft_runbook.evidence.body import Body, moment, text, texts, whole
from kraft_runbook.evidence.kinds import LeavesKraft, LeftKraft, kind_of
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.migration.leaving import Departure


@dataclass(frozen=True, slots=True)
class Elected:
    """The broker in /controller, when that znode was created (by ZooKeeper's clock), and /controller_epoch."""

    broker: int
    at: datetime
    epoch: int


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A departure as far as it is on record, and the phase before it, by name."""

    departure: Departure
    phase: str


def unfinished(records: Sequence[EvidenceRecord]) -> Unfinished | None:
    """The run's last departure; None where nothing is missing of it, or nothing was left."""
    told = [each for record in records if isinstance(each := kind_of(record.body), LeavesKraft | LeftKraft)]
    found = departure_in(told[-1].values) if told else None
    if found is None or (found.known_at is not None and found.election):
        return None
    return Unfinished(found, told[-1].phase)


def departure_in(body: Body) -> Departure | None:
    """The departure that a record holds (``Departure.to_dict``); None if it has no beginning."""
    read = {"datetime": moment, "int": whole, "tuple[str": texts, "str": text}
    values = {
        each.name: next(reads for name, reads in read.items() if str(each.type).startswith(name))(body, each.name)
        for each in fields(Departure)
        if each.name != "gone"
    }
    if values["began_at"] is None:
        return None
    gone = body.get("gone")
    ids = tuple(each for each in gone if isinstance(each, int)) if isinstance(gone, list) else ()
    return Departure(**values, gone=ids)  # type: ignore[arg-type]


def resumed(begun: Departure, elected: Elected, *, at: datetime) -> Departure | None:
    """The departure as a later try finds it. None where nothing shows that it came to its end: the deletion is not on
    record, and /controller_epoch is not the number of the election after it.

    ``at``: when the later try looked.
    """
    before = begun.controller_epoch if begun.epoch_set is None else begun.epoch_set
    first = before is not None and elected.epoch == before + 1
    if not first and begun.deleted_at is None:
        return None
    told = replace(begun, resumed_at=begun.resumed_at or at)
    if not first or begun.elected_at is not None:
        return told
    return replace(told, elected_at=elected.at, controller=elected.broker, by_zookeepers_clock=("elected_at",))
