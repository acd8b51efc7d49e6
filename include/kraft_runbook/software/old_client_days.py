"""Which clients asked what Kafka 4 answers no more, day by day: added up from many looks, for weeks. Pure.

A broker's own counts begin anew at its start, and a window at the gate sees no client that comes once a night. A
restart between two looks costs what came after the look before it, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.naming import in_markdown, name_ids, nodes
from kraft_runbook.cluster.observation import BrokerState, ClusterObservation, was_read
from kraft_runbook.cluster.old_requests import OldRequests, is_answered, not_counted
from kraft_runbook.cluster.spans import in_words

DAYS = 35
"""So long a day is kept."""
MOST_KINDS = 300
"""Kinds whose days are kept; of more, those that asked last. What the brokers counted of the others is kept, so that
what they ask later is counted from there on.
"""


@dataclass(frozen=True, slots=True)
class KindDays:
    """What one client software asks in one version of one API. ``days``: requests by day (UTC, ISO). ``totals``: by
    broker, what it counted at the last look, since its start.
    """

    software: str
    asked: str
    days: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OldClientDays:
    """``since``, ``last``: the first and the last look. ``gap_seconds``: the longest time between two. ``brokers``:
    whose counts were ever read; ``unread``: those that run and whose counts were not read at the last look.
    ``dropped``: whether there were ever more kinds than ``MOST_KINDS``, so that days of some are missing.
    """

    cluster: str
    since: AwareDatetime
    last: AwareDatetime
    looks: int = 1
    gap_seconds: float = 0.0
    brokers: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()
    kinds: tuple[KindDays, ...] = ()
    dropped: bool = False
    version: int = 1

    @property
    def asking(self) -> tuple[KindDays, ...]:
        """Those that asked since ``since``: the latest first, then those that asked most."""
        asked = (each for each in self.kinds if each.days)
        by_use = sorted(asked, key=lambda each: (each.software, each.asked))
        by_use.sort(key=lambda each: (max(each.days), sum(each.days.values())), reverse=True)
        return tuple(by_use)


_DAYS: TypeAdapter[OldClientDays] = TypeAdapter(OldClientDays)


def to_json(days: OldClientDays) -> bytes:
    return _DAYS.dump_json(days)


def from_json(text: bytes) -> OldClientDays:
    """Raises ValueError, in a few words, where these bytes hold none of this version."""
    try:
        found = _DAYS.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise ValueError(first["msg"]) from None
    if found.version != 1:
        raise ValueError(f"it is of version {found.version}, and this software reads version 1")
    return found


def with_look(kept: OldClientDays | None, seen: ClusterObservation) -> OldClientDays | None:
    """With what came since the look before. None, or as it was, where no broker of Kafka 3 runs, and for a look that is
    older than the last one. What a broker counted before the first look is not of any day.
    """
    on_3 = [broker for broker in seen.brokers.values() if _counts_for_4(broker)]
    if not on_3 or (kept and seen.observed_at <= kept.last):
        return kept
    before = kept or OldClientDays(seen.cluster, seen.observed_at, seen.observed_at, looks=0)
    found = {(each.software, each.asked): each for each in before.kinds}
    day = seen.observed_at.date().isoformat()
    read = {broker.id: rows for broker in on_3 if (rows := _rows(broker)) is not None}
    for broker_id, rows in read.items():
        counts = {(row.software, row.asked): row.count for row in rows}
        began_anew = {key: 0 for key, kind in found.items() if broker_id in kind.totals}
        for key, count in {**began_anew, **counts}.items():
            kind = found.get(key, KindDays(*key))
            came = _came(count, kind.totals.get(broker_id, 0)) if broker_id in before.brokers else 0
            days = {**kind.days, day: kind.days.get(day, 0) + came} if came else kind.days
            found[key] = replace(kind, days=days, totals={**kind.totals, broker_id: count})
    kinds, dropped = _bounded(found.values(), (seen.observed_at - timedelta(days=DAYS)).date().isoformat())
    return replace(
        before,
        last=seen.observed_at,
        looks=before.looks + 1,
        gap_seconds=max(before.gap_seconds, (seen.observed_at - before.last).total_seconds()),
        brokers=before.brokers.union(read),
        unread=frozenset(broker.id for broker in on_3 if broker.id not in read),
        kinds=kinds,
        dropped=before.dropped or dropped,
    )


def _counts_for_4(broker: BrokerState) -> bool:
    """Whether it runs a Kafka that counts, as far as is known: 4 counts for the one after it."""
    version = broker.software_version
    return broker.running is not False and (not was_read(version) or release_of(version) < (4, 0))


def _rows(broker: BrokerState) -> tuple[OldRequests, ...] | None:
    if not was_read(broker.metrics) or not was_read(broker.metrics.deprecated_requests):
        return None
    return broker.metrics.deprecated_requests


def _came(now: int, before: int) -> int:
    """All, where the broker began to count anew."""
    return now - before if now >= before else now


def _bounded(kinds: Iterable[KindDays], oldest: str) -> tuple[tuple[KindDays, ...], bool]:
    """With the days of no more kinds than are kept, and whether any lost theirs. A kind that has no days, and of which
    no broker has counted anything since its start, is as one that never came.
    """
    every = [replace(each, days={day: n for day, n in each.days.items() if day >= oldest}) for each in kinds]
    every.sort(key=lambda each: (max(each.days, default=""), each.software, each.asked), reverse=True)
    rest = [replace(each, days={}) for each in every[MOST_KINDS:]]
    kept = (*every[:MOST_KINDS], *(each for each in rest if any(each.totals.values())))
    return kept, any(each.days for each in every[MOST_KINDS:])


def table_of_days(days: OldClientDays | str | None, version: str, *, watch: str) -> str:
    """What a person signs before the roll. ``days``: None where nobody has counted, or why that can't be read.
    ``watch``: the DAG that counts.
    """
    return "\n".join(_table(days, version, watch))


def _table(days: OldClientDays | str | None, version: str, watch: str) -> Iterator[str]:
    yield f"### Clients that Kafka {version} will not answer, by day"
    yield ""
    if days is None:
        yield (
            f"Nobody has counted by day. Let {watch} run for as long as your rarest client takes to come again, such as"
            " a job of every month; then prove this gate again."
        )
        return
    if isinstance(days, str):
        yield f"Not read: {in_markdown(days)}. Move the file away, and {watch} begins anew."
        return
    yield (
        f"Counted from {_when(days.since)} to {_when(days.last)} UTC, {in_words(days.last - days.since)}, in"
        f" {days.looks:,} looks; the longest time without one: {in_words(timedelta(seconds=days.gap_seconds))}."
    )
    if days.unread:
        yield f"At the last look the counts of {nodes('broker', sorted(days.unread))} were not read."
    if days.dropped:
        yield f"More than {MOST_KINDS} kinds of client and request came: only those that came last are here."
    if uncounted := not_counted(version):
        yield f"Not counted: {in_markdown(uncounted)}."
    yield ""
    unanswered = [each for each in days.asking if not _is_answered(each, version)]
    if not unanswered:
        yield "None came."
        return
    yield "| client | request and version | last day | days | requests | brokers |"
    yield "|---|---|---|---:|---:|---|"
    for each in unanswered:
        yield (
            f"| {in_markdown(each.software)} | {in_markdown(each.asked)} | {max(each.days)} | {len(each.days)} |"
            f" {sum(each.days.values()):,} | {name_ids(each.totals)} |"
        )


def _is_answered(kind: KindDays, target: str) -> bool:
    api, _, version = kind.asked.rpartition(" ")
    return is_answered(api, version, target)


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
