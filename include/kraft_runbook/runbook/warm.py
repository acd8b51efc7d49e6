"""Whether a controller is warm: it has not only fetched the metadata log but applied it, so that it can lead at once.

DescribeQuorum tells of fetching alone. A restarted controller had fetched everything in 2 to 40 s, and was elected
300,374 records behind in applying it: for up to 64 s nobody led (measured on 3.9.2 with 200,000 partitions). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Protocol

from kraft_runbook.cluster.observation import ClusterObservation, ControllerMetrics, Unread, was_read
from kraft_runbook.runbook.check_results import Finding, settle
from kraft_runbook.runbook.conditions import Missing

WARM_WITHIN_RECORDS = 20
"""Records that a warm controller may lag in applying: ten seconds of NoOp records, two of which are written a second.
"""
WARM_WITHIN_MS = 2000
"""The age of the last applied record of a warm controller, at most: 64 to 1,027 ms were seen on an idle quorum, 70,661
on a controller that applied a log (measured).
"""
OFFSET = "KafkaController.LastAppliedRecordOffset"
GAUGES = f"{OFFSET} and KafkaController.LastAppliedRecordLagMs"
RULE = (
    "let the exporter's rules pass kafka.controller:type=KafkaController,* (docs/hosts.md); until then only"
    " DescribeQuorum is known, which tells what a controller has fetched, not what it has applied"
)
"""The way out where the gauges are not there."""
APPLY_RULE = (
    "let the exporter's rules pass last-applied-record-offset and last-applied-record-lag-ms of"
    " kafka.server:type=broker-metadata-metrics (docs/hosts.md); until then only DescribeQuorum is known, which tells"
    " what a broker has fetched, not what it has applied"
)
"""The same of a broker."""
NOT_KNOWN = "not_known_to_be_warm"
"""What ``unjudged`` keeps, in the evidence."""


class Applies(Protocol):
    """What a node's gauges say of its applying the metadata log (``ControllerMetrics``, ``BrokerApplied``)."""

    @property
    def last_applied_offset(self) -> int | None: ...
    @property
    def last_applied_lag_ms(self) -> int | None: ...
    @property
    def active(self) -> bool: ...


class Warmth(StrEnum):
    """WARM: what is committed is applied. COLD: elected now, this controller could not lead yet."""

    WARM = "warm"
    COLD = "cold"


def warmth(metrics: Applies | Unread, committed: int | None, before: int | None = None) -> Warmth | Unread:
    """Whether a controller is warm, by its gauges; of a broker, whether it has applied what was committed.

    ``committed``: the quorum's high watermark at this look; None or negative where nobody knows it. ``before``: the
    same at an earlier look: whoever has applied that is warm however much is written. Unread where the gauges are
    missing, or can't be judged: an old last record alone does not tell a controller that is behind from a clock that
    differs, or a log without NoOp records.
    """
    if not was_read(metrics):
        return metrics
    if not shows_applying(metrics):
        return Unread(f"its metrics hold no gauge {GAUGES}", way_out=RULE)
    applied, lag = metrics.last_applied_offset, _lag(metrics)
    if lag is not None and lag < WARM_WITHIN_MS:
        return Warmth.WARM
    if applied is None:
        return Warmth.WARM if metrics.active else Unread(f"{_old(lag)}, and its metrics hold no {OFFSET}", way_out=RULE)
    if committed is None or committed < 0:
        return Unread("nobody leads that knows what is committed")
    wanted = committed - WARM_WITHIN_RECORDS
    if before is not None and before >= 0:
        wanted = min(wanted, before - 1)
    return Warmth.WARM if applied >= wanted else Warmth.COLD


def shows_applying(metrics: Applies) -> bool:
    """Whether its gauges tell what it has applied. Of an active controller either does: it becomes active only once it
    has applied its log.
    """
    return metrics.last_applied_offset is not None or metrics.last_applied_lag_ms is not None


def _old(lag: int | None) -> str:
    return "its last record has no age that says anything" if lag is None else f"its last record is {lag} ms old"


def _lag(metrics: Applies) -> int | None:
    """The lag in applying, where it says anything: an active controller applies what it writes itself, and a negative
    lag means that two clocks differ.
    """
    lag = metrics.last_applied_lag_ms
    return None if lag is None or lag < 0 or metrics.active else lag


def warmth_of(
    seen: ClusterObservation, ids: Iterable[int], earlier: ClusterObservation | None = None
) -> Mapping[int, Warmth | Unread]:
    """Of each of these controllers, by one look at the cluster, or two."""
    committed = seen.quorum.high_watermark if was_read(seen.quorum) else None
    before = earlier.quorum.high_watermark if earlier is not None and was_read(earlier.quorum) else None
    return {i: warmth(seen.controllers[i].metrics, committed, before) for i in ids}


def not_warm(seen: ClusterObservation, ids: Iterable[int], earlier: ClusterObservation | None) -> Iterator[Missing]:
    """What keeps these controllers from leading at once, with how far each is. One whose gauges are missing keeps
    nobody waiting: it is judged by DescribeQuorum alone, and ``unjudged`` says so.
    """
    for i, found in warmth_of(seen, ids, earlier).items():
        metrics = seen.controllers[i].metrics
        if not was_read(metrics):
            yield Missing(f"waiting for the metrics of controller {i}: {metrics.reason}")
        elif found is Warmth.COLD:
            yield Missing(
                f"waiting for controller {i} to apply the metadata log: {how_cold(metrics, seen)}",
                _far(i, metrics, seen),
            )
        elif not was_read(found) and shows_applying(metrics):
            yield Missing(f"waiting to tell whether controller {i} is warm: {found.reason}", _far(i, metrics, seen))


def _far(node: int, metrics: ControllerMetrics, seen: ClusterObservation) -> tuple[str, int] | None:
    """How far it is in applying: by the records that it lacks of what is committed, else by the age of its last record;
    both fall. An offset that rises tells nothing: the log grows, and whoever applies it at a constant lag never ends.
    """
    committed = seen.quorum.high_watermark if was_read(seen.quorum) else -1
    if metrics.last_applied_offset is not None and committed is not None and committed >= 0:
        return f"records that controller {node} lacks", metrics.last_applied_offset - committed
    lag = _lag(metrics)
    return None if lag is None else (f"age of controller {node}", -lag)


def how_cold(metrics: ControllerMetrics, seen: ClusterObservation) -> str:
    """How far a controller lags in applying, in words."""
    return how_far_applied(metrics, seen.quorum.high_watermark - 1 if was_read(seen.quorum) else None)


def how_far_applied(metrics: Applies, committed: int | None) -> str:
    """What a node has applied of the log, in words; empty where its gauges do not tell. ``committed``: the last
    committed offset.
    """
    of = "" if committed is None else f" of {committed}"
    offset, lag = metrics.last_applied_offset, metrics.last_applied_lag_ms
    if offset is not None and offset < 0:
        return f"it has applied nothing{of} yet"
    told = [] if offset is None else [f"it has applied up to offset {offset}{of}"]
    return ", ".join([*told, *([] if lag is None else [f"its last record is {lag} ms old"])])


def unjudged(seen: ClusterObservation) -> dict[str, Any]:
    """What the evidence keeps of a wait for controllers: of which running ones nobody could tell whether they are warm,
    and why. Empty where all were judged.
    """
    found = warmth_of(seen, [c.id for c in seen.controllers.values() if c.running is True])
    told = {
        str(i): "; ".join(filter(None, (each.reason, each.way_out))) for i, each in found.items() if not was_read(each)
    }
    return {NOT_KNOWN: told} if told else {}


WARM_FIX = (
    "wait until the named controller has applied the log: an election now could leave the cluster without a controller"
    " that serves for as long as that takes"
)


def controllers_are_warm(seen: ClusterObservation, ids: Iterable[int], earlier: ClusterObservation | None) -> Finding:
    """Whether each of these controllers is warm. UNKNOWN where one's gauges are missing, with the rule to add."""
    found = warmth_of(seen, ids, earlier)
    cold = [f"controller {i} is cold: {_told(seen, i)}" for i, each in found.items() if each is Warmth.COLD]
    unread = [f"controller {i}: {each.reason}" for i, each in found.items() if not was_read(each)]
    answer = settle(cold, unread, f"{len(found)} of {len(found)} are")
    missing = any(not was_read(each) and each.way_out == RULE for each in found.values())
    return replace(answer, fix=RULE) if missing and not cold else answer


def _told(seen: ClusterObservation, node: int) -> str:
    metrics = seen.controllers[node].metrics
    return how_cold(metrics, seen) if was_read(metrics) else metrics.reason
