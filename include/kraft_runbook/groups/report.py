"""A scan of groups as a value and as text: per group its class, members, mode, partitions, next step, and what is
refused and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from kraft_runbook.cluster.consumer_groups import ConsumerGroups, GroupClass, SomeGroups
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.classify import Standing, classify, in_kafka, needs_zookeeper
from kraft_runbook.groups.fault_kinds import WAY_OUT, WHY_REFUSED
from kraft_runbook.groups.faults import Fault, faults, side_in_force
from kraft_runbook.groups.look import CLASSIC, GroupLook, Kind, Mode, Partition
from kraft_runbook.groups.partitions import Side, bounds_of, name, offset_of, partitions_of, shown

SAMPLES = 5
"""How many groups a summary names of each sort."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition. ``zookeeper_owner``: as the owner znode names it; ``kafka_owner``: the client id of the member of
    Kafka's group that it is assigned to. ``lag``: records between the offset that counts and the log's end; None where
    one of them is not known, for ``why``.
    """

    partition: str
    zookeeper_owner: str | None
    kafka_owner: str | None
    zookeeper_offset: int | None
    kafka_offset: int | None
    log_start: int | None
    log_end: int | None
    lag: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class GroupReport:
    """One group. ``members``: names by kind. ``needs_zookeeper``: whether somebody is registered there; None: not
    known. ``mode``: the znode's; ``follows``: whose offsets count. ``fenced``: how many partitions.
    ``kafka_state``, ``kafka_type``: of Kafka's group; its type is classic, consumer (KIP-848), share or streams.
    ``last_write``: of an offset znode, by ZooKeeper's clock. ``refused``: why it must not be moved now.
    """

    name: str
    group_class: GroupClass
    why: str
    needs_zookeeper: bool | None
    members: Mapping[Kind, tuple[str, ...]]
    mode: Mode | None
    follows: Side | None
    kafka_state: str | None
    kafka_type: str | None
    fenced: int
    partitions: tuple[PartitionRow, ...]
    lag: int | None
    last_write: datetime | None
    next_step: str
    refused: tuple[str, ...]
    faults: tuple[Fault, ...]
    half_moved: bool = False
    """Whether it is fenced, and no fence says that Kafka has had its offsets: nobody consumes."""

    @property
    def judged(self) -> bool:
        """Whether enough was read of it to say what is wrong with it."""
        return self.group_class is not GroupClass.UNKNOWN

    def line(self) -> str:
        """The group in one line."""
        who = ", ".join(f"{len(ids)} {kind}" for kind, ids in self.members.items() if ids) or "no members"
        return f"{self.name}: {self.group_class} ({who}, {len(self.partitions)} partitions, {self._lag()}). {self.why}"

    def _lag(self) -> str:
        unknown = sum(row.lag is None for row in self.partitions)
        if self.lag is None:
            return "lag not known"
        return f"lag {self.lag:,}" + (f" without {unknown} partitions" if unknown else "")

    def render_text(self, most: int | None = None) -> str:
        """For a terminal, with at most so many partitions. A group that nobody must look at is a line then."""
        lines = [self.line()]
        if most is not None and self.group_class in _NO_CONCERN:
            return "\n".join([*lines, f"  next: {self.next_step}"])
        for kind, ids in self.members.items():
            lines += [f"  {kind}: {_few(ids)}"] if ids else []
        mode = f"  mode: {self.mode}" if self.mode is not None else "  mode: not read"
        lines.append(mode + (f", offsets of {self.follows} count" if self.follows else ""))
        if self.kafka_type not in (None, CLASSIC):
            lines.append(f"  Kafka's group is of the type {self.kafka_type}")
        lines += [f"  fenced: {self.fenced} partitions"] if self.fenced else []
        if self.last_write is not None:
            lines.append(f"  last offset written to ZooKeeper: {self.last_write:%Y-%m-%d %H:%M:%S} UTC")
        if self.partitions:
            lines.append("  partition · owner · offset in ZooKeeper · offset in Kafka · lag")
            shown = self.partitions[:most]
            lines += [f"    {_row(each)}" for each in shown]
            rest = len(self.partitions) - len(shown)
            lines += [f"    {rest} more: --group {self.name}"] if rest else []
        lines.append(f"  next: {self.next_step}")
        lines += [f"  refused: {each}" for each in self.refused]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class GroupScan:
    """Every group below /consumers. ``read_at``: by ZooKeeper's clock; None where that could not be read, or no group
    is judged by its age.
    """

    cluster: str
    read_at: datetime | None
    took_seconds: float
    groups: tuple[GroupReport, ...]

    def render_text(self, most: int | None = None) -> str:
        """Those that need ZooKeeper first, then the others; a line of counts at the end. ``most``: as of a group."""
        ordered = sorted(self.groups, key=lambda each: (each.needs_zookeeper is False, each.group_class, each.name))
        parts = [each.render_text(most) for each in ordered]
        count = ", ".join(
            f"{number} {group_class}"
            for group_class in GroupClass
            if (number := sum(each.group_class is group_class for each in self.groups))
        )
        live = sum(each.needs_zookeeper is not False for each in self.groups)
        told = f"{len(self.groups)} groups below /consumers of {self.cluster}" + (f": {count}" if count else "")
        tail = f"{told}. {live} need ZooKeeper, or may; read in {self.took_seconds:.1f} s"
        return "\n\n".join([*parts, tail])

    def short_lines(self, most: int) -> tuple[str, ...]:
        """A line for each group that somebody must look at, at most so many, and one for the rest."""
        said = [each for each in self.groups if each.group_class not in _NO_CONCERN or each.half_moved]
        lines = [f"{each.line()}. Next: {each.next_step}" for each in said[:most]]
        rest = len(self.groups) - len(lines)
        if rest:
            lines.append(f"{rest} more: kraft-runbook groups scan --cluster {self.cluster}")
        return tuple(lines)


_NO_CONCERN = frozenset({GroupClass.LEFT_BEHIND, GroupClass.ALL_NEW, GroupClass.FENCED})

NEXT: Mapping[GroupClass, str] = {
    GroupClass.ALL_OLD: "move it before the last broker leaves migration mode (docs/consumer-groups.md)",
    GroupClass.MIXED_OLD: "replace the old members by migrating ones, or go back to old ones alone",
    GroupClass.ALL_MIGRATING: "let Kafka assign (toggle_consumer_group; docs/toggle.md), then replace them by"
    " KafkaConsumers",
    GroupClass.MIXED_NEW: "replace the migrating members by KafkaConsumers",
    GroupClass.ALL_NEW: "nothing: it does not use ZooKeeper any more",
    GroupClass.CONTRADICTORY: "stop the members of Kafka's group, or those in ZooKeeper, now: records are consumed"
    " twice",
    GroupClass.FOREIGN: "find its owner and move it before the last broker leaves migration mode"
    " (docs/consumer-groups.md)",
    GroupClass.OFFSETS_ONLY: "find who commits to ZooKeeper without registering, and have it commit to Kafka",
    GroupClass.LEFT_BEHIND: "nothing: it goes with ZooKeeper. If its application is to start again, copy its offsets"
    " first",
    GroupClass.FENCED: "start its new members; where its move ended half-way, or to go back: move_consumer_group",
    GroupClass.UNKNOWN: "make readable what is named, or wait until the group has settled, and look again",
}
_CLASS_REFUSES = frozenset({GroupClass.CONTRADICTORY, GroupClass.UNKNOWN})


def report(look: GroupLook) -> GroupReport:
    """One group, judged."""
    standing = classify(look)
    found = faults(look, standing)
    side = side_in_force(look, standing)
    rows = tuple(_rows(look, side))
    zookeeper, kafka, live = look.zookeeper, in_kafka(look), needs_zookeeper(look)
    last = zookeeper.last_written_ms if was_read(zookeeper) else None
    lags = [row.lag for row in rows if row.lag is not None]
    return GroupReport(
        name=look.name,
        group_class=standing.group_class,
        why=standing.why,
        needs_zookeeper=live if was_read(live) else None,
        members=_members(look, standing),
        mode=zookeeper.mode if was_read(zookeeper) else None,
        follows=side,
        kafka_state=(kafka.state or None) if kafka is not None else None,
        kafka_type=kafka.group_type if kafka is not None else None,
        fenced=len(zookeeper.fenced) if was_read(zookeeper) else 0,
        partitions=rows,
        lag=sum(lags) if lags else None,
        last_write=None if last is None else datetime.fromtimestamp(last / 1000, UTC),
        next_step=NEXT[standing.group_class],
        refused=tuple(_refused(standing, found)),
        faults=found,
        half_moved=is_half_moved(look, standing),
    )


def is_half_moved(look: GroupLook, standing: Standing) -> bool:
    """A move that ended between its fence and its commit."""
    side = look.zookeeper
    return standing.group_class is GroupClass.FENCED and was_read(side) and not side.committed >= side.fenced


def summary(looks: Iterable[GroupLook]) -> ConsumerGroups:
    """What an observation keeps of all groups."""
    counts: dict[GroupClass, int] = {}
    some: dict[str, list[str]] = {"live": [], "unread": [], "offsets_only": [], "unknown": [], "half_moved": []}
    number = dict.fromkeys(some, 0)

    def add(sort: str, text: str) -> None:
        number[sort] += 1
        if len(some[sort]) < SAMPLES:
            some[sort].append(text)

    for look in looks:
        standing, live = classify(look), needs_zookeeper(look)
        counts[standing.group_class] = counts.get(standing.group_class, 0) + 1
        if not was_read(live):
            add("unread", f"{look.name} ({live.reason})")
        elif live:
            add("live", f"{look.name} ({standing.group_class})")
        if standing.group_class is GroupClass.OFFSETS_ONLY:
            add("offsets_only", look.name)
        if is_half_moved(look, standing):
            add("half_moved", look.name)
        if standing.group_class is GroupClass.UNKNOWN:
            add("unknown", f"{look.name} ({standing.why})")
    return ConsumerGroups(counts, **{sort: SomeGroups(number[sort], tuple(names)) for sort, names in some.items()})


def _members(look: GroupLook, standing: Standing) -> Mapping[Kind, tuple[str, ...]]:
    of_zookeeper = look.zookeeper.members if was_read(look.zookeeper) else ()
    found = {kind: tuple(each.id for each in of_zookeeper if each.kind is kind) for kind in Kind}
    return {**found, Kind.NEW: tuple(f"{each.client_id} ({each.host})" for each in standing.new)}


def _refused(standing: Standing, found: Iterable[Fault]) -> Iterator[str]:
    if standing.group_class in _CLASS_REFUSES:
        yield f"it is {standing.group_class}: {standing.why}"
    for fault in found:
        if fault.stops:
            more = ", …" if fault.count > len(fault.where) else ""
            told = f"{fault.kind} ({fault.count}: {', '.join(fault.where)}{more})"
            yield f"{told}: {WHY_REFUSED[fault.kind]}; {WAY_OUT[fault.kind]}"


def _rows(look: GroupLook, side: Side | None) -> Iterator[PartitionRow]:
    kafka = in_kafka(look)
    assigned = {
        partition: member.client_id
        for member in (kafka.members if kafka is not None else ())
        if was_read(member.partitions)
        for partition in member.partitions
    }
    owners = look.zookeeper.owners if was_read(look.zookeeper) else {}
    for partition in partitions_of(look):
        log = bounds_of(look, partition)
        offset = offset_of(look, side, partition) if side is not None else None
        lag = log.end - offset if log is not None and offset is not None and 0 <= offset <= log.end else None
        yield PartitionRow(
            name(partition),
            owners[partition].who if partition in owners else None,
            assigned.get(partition),
            offset_of(look, Side.ZOOKEEPER, partition),
            offset_of(look, Side.KAFKA, partition),
            log.start if log is not None else None,
            log.end if log is not None else None,
            lag,
            "" if lag is not None else _no_lag(look, side, partition, offset),
        )


def _no_lag(look: GroupLook, side: Side | None, partition: Partition, offset: int | None) -> str:
    """Why the lag is not known."""
    if side is None:
        return "nobody can tell whose offset counts"
    if offset is None:
        return _no_offset(look, side, partition)
    logs = look.logs.get(partition[0])
    if isinstance(logs, Unread):
        return logs.reason
    if partition[0] not in look.logs:
        return "its log was not looked at"
    found = logs.get(partition[1]) if logs is not None else None
    if found is None:
        return "there is no such partition"
    return found.reason if isinstance(found, Unread) else "its offset is outside the log"


def _no_offset(look: GroupLook, side: Side, partition: Partition) -> str:
    if side is Side.ZOOKEEPER:
        stored = was_read(look.zookeeper) and partition in look.zookeeper.offsets
        return "its offset in ZooKeeper is no number" if stored else "no offset in ZooKeeper"
    kafka = in_kafka(look)
    if kafka is None:
        return "no offset in Kafka"
    if not was_read(kafka.offsets):
        return kafka.offsets.reason
    found = kafka.offsets.get(partition)
    return found.reason if isinstance(found, Unread) else "no offset in Kafka"


def _row(row: PartitionRow) -> str:
    owner = " and ".join(each for each in dict.fromkeys((row.zookeeper_owner, row.kafka_owner)) if each) or "nobody"
    lag = row.why if row.lag is None else f"{row.lag:,}"
    return f"{row.partition} · {owner} · {shown(row.zookeeper_offset)} · {shown(row.kafka_offset)} · {lag}"


def _few(names: tuple[str, ...], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)})" if len(names) > most else "")
