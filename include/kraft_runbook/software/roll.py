"""The roll's order, and where it stands: by the versions that the nodes themselves show, never by what was done."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.observation import ClusterObservation, Unread


class Rolled(StrEnum):
    """OLD: every node runs the version that the cluster file names; NEW: every one its target; MIXED: some each.
    UNKNOWN: a node does not show one of the two, so no step may run.
    """

    OLD = "OLD"
    MIXED = "MIXED"
    NEW = "NEW"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class RollReading:
    """Where the roll stands, and why that is said. ``on_new``: the nodes that run the target."""

    stage: Rolled
    reasons: tuple[str, ...]
    on_new: frozenset[int] = frozenset()


def read_roll(
    shown: Mapping[str, tuple[int, str | Unread]], old: str, new: str, *, down: Sequence[str] = ()
) -> RollReading:
    """Where the roll from ``old`` to ``new`` stands. ``shown``: each running node's id and version, by its name.
    ``down``: the nodes that do not serve, in words. One of those is half-way, whatever the others run: its
    step goes on.
    """
    unknown = [
        f"{who}: {version.reason}" if isinstance(version, Unread) else f"{who} runs {version}, neither {old} nor {new}"
        for who, (_, version) in shown.items()
        if version not in (old, new)
    ]
    on_new = frozenset(node_id for node_id, version in shown.values() if version == new)
    if unknown or not shown:
        return RollReading(Rolled.UNKNOWN, tuple(unknown) or ("no node runs",), on_new)
    counts = f"{len(on_new)} of {len(shown)} nodes run {new}, the others {old}"
    if down:
        return RollReading(Rolled.MIXED, (counts, *down), on_new)
    stage = Rolled.NEW if len(on_new) == len(shown) else Rolled.MIXED if on_new else Rolled.OLD
    return RollReading(stage, (counts,), on_new)


def read_roll_of(seen: ClusterObservation, old: str, new: str) -> RollReading:
    """The same, of a look at the cluster."""
    both = seen.brokers.keys() & seen.controllers.keys()  # one process: it counts once
    nodes = [
        (f"{'node' if b.id in both else 'broker'} {b.id}", b.id, b.running, b.software_version)
        for b in seen.brokers.values()
    ]
    nodes += [
        (f"controller {c.id}", c.id, c.running, c.software_version)
        for c in seen.controllers.values()
        if c.id not in both
    ]
    down = [f"broker {b.id} {b.closed}" for b in seen.brokers.values() if b.running is False]
    down += [f"controller {c.id} does not run" for c in seen.controllers.values() if c.running is False]
    return read_roll(
        {who: (node_id, version) for who, node_id, running, version in nodes if running is not False},
        old,
        new,
        down=down,
    )


def in_turn(controllers: Iterable[int], both: Collection[int], *, back: bool = False) -> tuple[int, ...]:
    """The controllers in the order of their first turns: those alone come before those that are brokers too (``both``),
    on the way back after them.
    """
    return tuple(sorted(controllers, key=lambda each: (each in both) != back))


def order(
    brokers: Iterable[int],
    controllers: Iterable[int],
    leader_id: int,
    *,
    both: Collection[int] = (),
    back: bool = False,
) -> tuple[int, ...]:
    """The nodes in the order in which they change: controllers first (``in_turn``) and the active one last of them,
    then brokers; on the way back the brokers come first.

    Both orders serve at a level that both versions know (measured; Kafka's docs name none). This one lets the
    controllers know every level before a broker can register with it.
    """
    turns = in_turn(controllers, both, back=back)
    quorum = (*(i for i in turns if i != leader_id), *(i for i in turns if i == leader_id))
    return (*brokers, *quorum) if back else (*quorum, *brokers)
