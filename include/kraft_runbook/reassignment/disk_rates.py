"""How fast copies between the disks of a broker may go by its own configuration, and whether they would ever end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kraft_runbook.reassignment.disks import DiskMove, Logs
from kraft_runbook.reassignment.throttles import DISK_RATE, LEAST_OF_RATE, OfMove, Speeds, at_once

COPY_THREADS = "num.replica.alter.log.dirs.threads"
"""How many replicas a broker copies at the same time, of those that were started; without it as many as it has log
directories (KafkaConfig.getNumReplicaAlterLogDirsThreads). Each thread copies one after the other
(LocalLeaderEndPoint.selectPartitionToFetch), and all share the throttle.
"""


@dataclass(frozen=True, slots=True)
class CopySettings:
    """What one broker's configuration says of its copies; None: nothing. ``threads``: ``COPY_THREADS``. ``rate``: its
    own ``DISK_RATE``, bytes a second. That one counts there, and the one of the brokers' default, which a run sets,
    does not (BrokerConfigHandler.processConfigChanges). kafka-reassign-partitions sets it, and may leave it.
    """

    threads: int | None = None
    rate: int | None = None


def produced_into_copies(
    moves: Iterable[DiskMove], before: Logs, after: Logs, seconds: float, settings: Mapping[int, CopySettings]
) -> Speeds:
    """By broker, what is produced into the replicas that it copies, from two looks at the replicas' sizes: of the
    fastest, as many as it copies at the same time (``COPY_THREADS``). What retention took away meanwhile counts as
    none. A replica that lies at its target is not copied, nor is one whose copy is ended there.
    """
    found: dict[int, list[OfMove]] = {}
    for move in moves:
        if move.broker in before and move.broker in after:
            if after[move.broker].placed.get(move.partition) == move.target:
                continue
            size = after[move.broker].sizes.get(move.partition, 0)
            grown = max(0, size - before[move.broker].sizes.get(move.partition, size))
            found.setdefault(move.broker, []).append(OfMove(grown / max(seconds, 0.1), size))
    threads = {b: settings.get(b, CopySettings()).threads or len(after[b].directories) for b in found}
    return {broker: sorted(each, reverse=True)[: threads[broker]] for broker, each in found.items()}


def own_rates(settings: Mapping[int, CopySettings]) -> tuple[str, ...]:
    """In words, for each broker that has a rate of its own."""
    return tuple(
        f"broker {broker}: its own {DISK_RATE}={each.rate:,} counts there, and no throttle that a run sets"
        for broker, each in sorted(settings.items())
        if each.rate is not None
    )


def own_rates_of_copies_that_cannot_end(
    settings: Mapping[int, CopySettings], produced_by_move: Speeds, moves: int
) -> tuple[str, ...]:
    """Why the rates that brokers have of their own would never let copies end, so many (``moves``) at once; as of
    ``throttles.cannot_end``.
    """
    produced = at_once(produced_by_move, moves)
    return tuple(
        f"broker {broker}: its own {DISK_RATE}={each.rate:,} counts there, and {produced[broker]:,.0f} bytes/s are"
        " produced into what it copies"
        for broker, each in sorted(settings.items())
        if each.rate is not None and produced.get(broker, -1.0) >= each.rate * LEAST_OF_RATE
    )
