"""What must not be planned. Kafka takes most of it: a dead target waits for ever, a replication factor changes
silently, a full disk stops a broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.disk_room import UNCORDON, to_cordoned, too_full
from kraft_runbook.reassignment.placement import Placement, racks_of
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.racks import RackRule, rack_sizes

SAMPLE = 5


class Reason(StrEnum):
    """Why a plan is refused. REPLICATION_FACTOR, RACKS and NO_RACK may be allowed by name."""

    UNKNOWN_PARTITION = "unknown partition"
    UNKNOWN_BROKER = "unknown broker"
    DEAD_BROKER = "dead broker"
    EMPTY_LIST = "empty list"
    DUPLICATE = "broker named twice"
    BEING_DELETED = "topic being deleted"
    LEADERLESS = "partition without a leader"
    BEING_REASSIGNED = "partition being reassigned"
    REPLICATION_FACTOR = "replication factor changes"
    BELOW_MIN_ISR = "fewer replicas than min.insync.replicas"
    RACKS = "racks not kept"
    NO_RACK = "broker without a rack among brokers with racks"
    CORDONED = "cordoned broker"
    DISK = "too little disk"


MAY_BE_ALLOWED = frozenset({Reason.REPLICATION_FACTOR, Reason.RACKS, Reason.NO_RACK})


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason, the names that it is about, and what to do."""

    reason: Reason
    names: tuple[str, ...]
    way_out: str

    def __str__(self) -> str:
        return f"{self.reason}: {some(self.names, SAMPLE)}"


def require_no_refusal(
    plan: ReassignmentPlan, placement: Placement, *, declared: Collection[int], allowed: Collection[Reason] = ()
) -> None:
    """Raise Refused, which says all of it at once, where anything of the plan must not be carried out."""
    found = refusals(plan, placement, declared=declared, allowed=allowed)
    if found:
        raise Refused(
            "the plan is refused: " + "; ".join(map(str, found)),
            way_out="; ".join(dict.fromkeys(f.way_out for f in found)),
        )


def refusals(
    plan: ReassignmentPlan, placement: Placement, *, declared: Collection[int], allowed: Collection[Reason] = ()
) -> tuple[Refusal, ...]:
    """Every reason against this plan. ``declared``: the brokers of the cluster file, known also where they are dead."""
    found: dict[Reason, list[str]] = {}
    for reason, name in (
        *_of_partitions(plan, placement, declared),
        *_of_racks(plan, placement),
        *((Reason.CORDONED, said) for _, said in to_cordoned(plan.moves, placement)),
        *((Reason.DISK, said) for _, said in too_full(plan.moves, placement, asked=plan.directories)),
    ):
        if reason not in MAY_BE_ALLOWED.intersection(allowed):
            found.setdefault(reason, []).append(name)
    return tuple(Refusal(reason, tuple(found[reason]), WAYS_OUT[reason]) for reason in Reason if reason in found)


def _of_partitions(
    plan: ReassignmentPlan, placement: Placement, declared: Collection[int]
) -> Iterator[tuple[Reason, str]]:
    racks = racks_of(sorted(placement.live), placement.racks)
    breaks = RackRule(racks, rack_sizes(racks)).breaks
    known = placement.live | set(declared)
    for partition, target in plan.target.items():
        name = str(partition)
        if partition not in placement.present:
            yield Reason.UNKNOWN_PARTITION, name
            continue
        present = placement.present[partition]
        if partition.topic in placement.being_deleted:
            yield Reason.BEING_DELETED, name
        if partition in placement.ongoing:
            present = placement.ongoing[partition].original  # what it gains may be what is wrong with it
            yield Reason.BEING_REASSIGNED, name
        if partition in placement.leaderless and set(target) - set(present):
            yield Reason.LEADERLESS, name  # nobody has anything to copy from
        if not target:
            yield Reason.EMPTY_LIST, name
            continue
        if len(set(target)) < len(target):
            yield Reason.DUPLICATE, f"{name} {list(target)}"
            continue
        # A reassignment ends when every replica of its target is in sync, those included that were held before (3.9.2:
        # KafkaController.isReassignmentComplete, PartitionReassignmentReplicas). Another order alone waits for nothing.
        for broker in sorted(set(target) - placement.live):
            if set(target) != set(present):
                yield Reason.DEAD_BROKER if broker in known else Reason.UNKNOWN_BROKER, f"{broker} for {name}"
        if len(target) != len(present):
            yield Reason.REPLICATION_FACTOR, f"{name} from {len(present)} to {len(target)}"
        if len(target) < min(len(present), least := placement.min_isr.get(partition.topic, 1)):
            yield Reason.BELOW_MIN_ISR, f"{name} {len(target)} of {least}"
        if (
            set(present) != set(target) <= placement.live  # of a dead broker no rack is known
            and breaks(target)
            and not breaks(present)
        ):
            yield Reason.RACKS, f"{name} {list(target)}"


def _of_racks(plan: ReassignmentPlan, placement: Placement) -> Iterator[tuple[Reason, str]]:
    if not any(placement.racks.values()):
        return
    coming = Counter(broker for move in plan.moves for broker in move.adding)
    for broker in sorted(each for each in coming if each in placement.racks and not placement.racks[each]):
        yield Reason.NO_RACK, f"{broker} for {coming[broker]:,} replicas"


WAYS_OUT = {
    Reason.UNKNOWN_PARTITION: "take partitions that do not exist out of the plan",
    Reason.UNKNOWN_BROKER: "correct the broker's id, or declare the broker in the cluster file and start it",
    Reason.DEAD_BROKER: "start the broker first, or leave it out: a move ends when its whole target is in sync",
    Reason.EMPTY_LIST: "name the replicas",
    Reason.DUPLICATE: "name each broker once",
    Reason.BEING_DELETED: "leave the topic out, or wait for its deletion",
    Reason.BEING_REASSIGNED: "wait for the reassignment that runs, or cancel it",
    Reason.REPLICATION_FACTOR: "ask for the change of the replication factor by name",
    Reason.BELOW_MIN_ISR: "give the partitions more replicas, or lower min.insync.replicas first",
    Reason.RACKS: "spread the replicas over the racks, or allow the loss of racks by name",
    Reason.LEADERLESS: (
        "start the brokers that were in sync last, since a copy is read from the leader; or leave out these topics"
        " (exclude)"
    ),
    Reason.NO_RACK: (
        "set broker.rack in their files and restart them, since each counts as a rack of its own, which gets a replica"
        " of every partition; or allow that by name"
    ),
    Reason.CORDONED: UNCORDON,
    Reason.DISK: "let other brokers take part, free disk, or move less",
}
