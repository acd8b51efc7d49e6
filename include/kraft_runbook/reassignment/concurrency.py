"""How many copies a broker may take or give at once, by how busy the brokers are. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.observation import Timed
from kraft_runbook.cluster.operation_settings import Concurrency
from kraft_runbook.reassignment.batches import MOVES_AT_ONCE

WELL_BELOW = 0.5
"""More go at once only below this part of a limit: at the limit itself fewer and more would follow each other."""
WINDOWS = 10.0
"""Numbers that are so many times ``every`` old say nothing of now. So long after it was lowered it is not raised: on a
cluster that is busy by itself it would go up and down for days.
"""
SAMPLE = 3


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """``produce``: Produce requests since the broker's start. ``under_min_isr``: the partitions that it leads with
    fewer in sync than min.insync.replicas. ``handlers_idle``: the part of the last minute in which its request
    handlers had nothing to do. None: its metrics do not show it.
    """

    produce: Timed | None
    under_min_isr: int | None
    handlers_idle: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """The brokers that count, at one moment, in seconds since the epoch. ``unread``: why others' numbers are not known,
    by id.
    """

    at: float
    brokers: Mapping[int, BrokerLoad]
    unread: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Pace:
    """``moves``: copies that a broker may take or give at once. ``load``: when that was judged last; None: not yet.
    ``changes``: in words, those that are not on record yet. ``held``: why no more go at once, although as many go on as
    may. ``lowered``: when a broker had too much to do, in seconds since the epoch; None: not lately.
    """

    moves: int
    load: Load | None = None
    changes: tuple[str, ...] = ()
    held: str = ""
    lowered: float | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def without_changes(self) -> Pace:
        """The same once they are on record."""
        return replace(self, changes=())


def pace_from_json(text: str) -> Pace:
    """Raises ValueError, KeyError, TypeError or AttributeError for anything but what ``to_json`` wrote."""
    given = json.loads(text)
    load = given["load"]
    return Pace(
        int(given["moves"]),
        None if load is None else _load_of(load),
        tuple(map(str, given["changes"])),
        str(given["held"]),
        None if given["lowered"] is None else float(given["lowered"]),
    )


def _load_of(given: Mapping[str, Any]) -> Load:
    brokers = {
        int(broker): BrokerLoad(
            None if each["produce"] is None else Timed(**each["produce"]), each["under_min_isr"], each["handlers_idle"]
        )
        for broker, each in given["brokers"].items()
    }
    return Load(float(given["at"]), brokers, {int(broker): why for broker, why in given["unread"].items()})


def first_pace(bounds: Concurrency) -> Pace:
    """With which a run begins: as many as without bounds, where they allow it."""
    return Pace(min(max(MOVES_AT_ONCE, bounds.least), bounds.most))


def as_of_now(pace: Pace | None, bounds: Concurrency, now: float) -> Pace:
    """What of a pace still counts: numbers that are too old count no more, and no run goes on with more at once by
    them than it would begin with. Bounds that were changed count at once.
    """
    if pace is None:
        return first_pace(bounds)
    if pace.load is not None and not 0 <= now - pace.load.at <= WINDOWS * bounds.every:
        began = min(pace.moves, first_pace(bounds).moves)
        pace = _changed(
            replace(pace, load=None, held="", lowered=None), began, "the brokers' numbers are too old to go by"
        )
    within = min(max(pace.moves, bounds.least), bounds.most)
    return _changed(pace, within, f"the bounds are {bounds.least} and {bounds.most}")


def is_due(pace: Pace, bounds: Concurrency, now: float) -> bool:
    """Whether it is time to judge anew."""
    return pace.load is None or now - pace.load.at >= bounds.every


def judged(pace: Pace, bounds: Concurrency, now: Load, *, busiest: int, may_rise: bool) -> Pace:
    """The pace by what changed since it was judged last.

    Fewer, by half, as soon as one broker shows that it has too much to do, or partitions that it leads lost so many in
    sync that min.insync.replicas is not met. More, by a quarter, only where every broker's numbers were read twice and
    all are well below the limits, and not soon after it was lowered. ``busiest``: the most copies that a broker takes
    or gives now; with fewer than are allowed, idle brokers say nothing of more. ``may_rise``: whether a new batch would
    start.
    """
    if pace.load is None:
        return replace(pace, load=now, held="")
    worse = _first(_worse(bounds, now, pace.load))
    if worse:
        fewer = replace(pace, load=now, held="", lowered=now.at)
        return _changed(fewer, max(bounds.least, pace.moves // 2), worse)
    if not may_rise or busiest < pace.moves or pace.moves >= bounds.most:
        return replace(pace, load=now, held="")
    calm = WINDOWS * bounds.every
    if pace.lowered is not None and now.at - pace.lowered < calm:
        return replace(pace, load=now, held=f"it was lowered less than {calm:.0f} s ago")
    held = _first(_not_idle(bounds, now, pace.load))
    if held:
        return replace(pace, load=now, held=held)
    more = min(bounds.most, pace.moves + max(1, pace.moves // 4))
    return _changed(replace(pace, load=now, held=""), more, "every broker has time for more")


def _first(reasons: Iterable[str]) -> str:
    return some(list(reasons), SAMPLE, between="; ")


def _changed(pace: Pace, moves: int, why: str) -> Pace:
    if moves == pace.moves:
        return pace
    told = f"{moves} copies at once at a broker, instead of {pace.moves}: {why}"
    return replace(pace, moves=moves, changes=(*pace.changes, told))


def _worse(bounds: Concurrency, now: Load, before: Load) -> Iterator[str]:
    """Why fewer should go on at once."""
    for broker, each in sorted(now.brokers.items()):
        then = before.brokers.get(broker)
        took = _produce_ms(each, then)
        if took is not None and took > bounds.request_time_ms:
            yield f"Produce requests take broker {broker} {took:.0f} ms, more than {bounds.request_time_ms:g}"
        idle = each.handlers_idle
        if bounds.handlers_idle is not None and idle is not None and idle < bounds.handlers_idle:
            yield f"request handlers of broker {broker} are idle for {idle:.0%}, less than {bounds.handlers_idle:.0%}"
        short, was = each.under_min_isr, None if then is None else then.under_min_isr
        if short is not None and was is not None and short > was:
            yield f"{short} partitions that broker {broker} leads are under min.insync.replicas, {was} were"


def _not_idle(bounds: Concurrency, now: Load, before: Load) -> Iterator[str]:
    """Why more should not go on at once. What is not known is a reason."""
    for broker, why in sorted(now.unread.items()):
        yield f"broker {broker}: {why}"
    for broker, each in sorted(now.brokers.items()):
        took = _produce_ms(each, before.brokers.get(broker))
        if took is None:
            yield f"how long Produce requests take broker {broker} is not known since the last look"
        elif took > WELL_BELOW * bounds.request_time_ms:
            yield f"Produce requests take broker {broker} {took:.0f} ms"
        if each.under_min_isr is None:
            yield f"broker {broker} does not show ReplicaManager.UnderMinIsrPartitionCount"
        elif each.under_min_isr:
            yield f"{each.under_min_isr} partitions that broker {broker} leads are under min.insync.replicas"
        if bounds.handlers_idle is None:
            continue
        if each.handlers_idle is None:
            yield f"broker {broker} does not show OneMinuteRate of RequestHandlerAvgIdlePercent"
        elif each.handlers_idle < 1 - WELL_BELOW * (1 - bounds.handlers_idle):
            yield f"request handlers of broker {broker} are idle for {each.handlers_idle:.0%}"


def _produce_ms(now: BrokerLoad, before: BrokerLoad | None) -> float | None:
    """Of the Produce requests between both looks; 0 where there was none. None: not known."""
    if now.produce is None or before is None or before.produce is None:
        return None
    return 0.0 if now.produce.count == before.produce.count else now.produce.mean_since(before.produce)
