"""Moving replicas between the log directories of one broker (JBOD, KIP-113): the plan, and where it stands.

The broker copies by itself, from one of its disks to another; no other broker takes part, and no leader changes. Kafka
keeps the copy (its future log) over a restart and goes on with it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.log_dirs import BrokerLogs, LogDir, may_be_one_volume
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.batches import Order
from kraft_runbook.reassignment.disk_room import KEEP_FREE
from kraft_runbook.reassignment.plan import made_anew
from kraft_runbook.reassignment.stages import PlanStage
from kraft_runbook.runbook.digests import sha256_of

SAMPLE = 5
Logs = Mapping[int, BrokerLogs]
"""By broker, of those that answered."""
Held = Mapping[TopicPartition, Collection[int]]
"""By partition, the brokers that have a replica of it."""


@dataclass(frozen=True, slots=True, order=True)
class DiskMove:
    """One replica's way from a directory of its broker to another. ``size``: its bytes when it was planned. To end a
    copy that goes on, the directory that it fills is the source, and the one where the replica lies the target.
    """

    broker: int
    partition: TopicPartition
    source: str
    target: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """``topic_ids``: of its topics, where they have one."""

    goal: str
    moves: tuple[DiskMove, ...]
    notes: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(sorted({each.broker for each in self.moves}))

    @property
    def held(self) -> Held:
        """As the plan has it: each of its brokers has the replicas that move there."""
        found: dict[TopicPartition, set[int]] = {}
        for each in self.moves:
            found.setdefault(each.partition, set()).add(each.broker)
        return found

    @property
    def digest(self) -> str:
        """What a person's approval is bound to."""
        return sha256_of({"moves": [to_plain(each)[:4] for each in self.moves], "topic_ids": dict(self.topic_ids)})

    def to_json(self) -> str:
        """With its digest, which ``plan_from_json`` asks for."""
        moves = [to_plain(each) for each in self.moves]
        body = {"goal": self.goal, "moves": moves, "notes": list(self.notes), "topic_ids": dict(self.topic_ids)}
        return json.dumps(body | {"digest": self.digest}, ensure_ascii=False)

    def preview(self, logs: Logs, *, throttle: int | None = None) -> DiskPreview:
        """For a person who judges it. ``throttle``: bytes a second a broker."""
        return DiskPreview(
            self.goal,
            len(self.moves),
            sum(each.size for each in self.moves),
            throttle,
            self.notes,
            tuple(self._changes(logs)),
            self.moves,
        )

    def _changes(self, logs: Logs) -> Iterator[DirectoryChange]:
        for broker in self.brokers:
            mine = [each for each in self.moves if each.broker == broker]
            for each in logs[broker].directories:
                held = [p for p, path in logs[broker].placed.items() if path == each.path]
                size = sum(logs[broker].sizes[p] for p in held)
                come, go = [m for m in mine if m.target == each.path], [m for m in mine if m.source == each.path]
                yield DirectoryChange(
                    broker,
                    each.path,
                    len(held),
                    len(held) + len(come) - len(go),
                    size,
                    size + sum(m.size for m in come) - sum(m.size for m in go),
                    each.usable,
                )


@dataclass(frozen=True, slots=True)
class DirectoryChange:
    """One log directory before and after. ``usable``: its free bytes now; None: the broker does not say."""

    broker: int
    directory: str
    replicas_before: int
    replicas_after: int
    bytes_before: int
    bytes_after: int
    usable: int | None


@dataclass(frozen=True, slots=True)
class DiskPreview:
    """``bytes``: that are copied; ``throttle``: bytes a second a broker."""

    goal: str
    replicas: int
    bytes: int
    throttle: int | None
    notes: tuple[str, ...]
    directories: tuple[DirectoryChange, ...]
    moves: tuple[DiskMove, ...]

    def render_markdown(self) -> str:
        """For the gate and the terminal."""
        lines = [
            f"- goal: {self.goal}",
            f"- {self.replicas:,} replicas, {self.bytes / 1e6:,.1f} MB, move between disks",
        ]
        if self.throttle:
            lines.append(
                f"- at most {self.throttle / 1e6:g} MB/s a broker: {self.bytes / self.throttle:,.0f} s or more"
            )
        else:
            lines.append("- no throttle: each disk is read and written as fast as it can, and clients may notice")
        lines.append("- while a replica is copied, Kafka deletes and compacts nothing of it, so its disk may grow")
        lines += [f"- {each}" for each in self.notes]
        lines += ["", "| broker | directory | replicas | MB | free, GB |", "|---|---|---:|---:|---:|"]
        lines += [
            f"| {each.broker} | {each.directory} | {each.replicas_before} → {each.replicas_after} |"
            f" {each.bytes_before / 1e6:,.1f} → {each.bytes_after / 1e6:,.1f} |"
            f" {'unknown' if each.usable is None else f'{each.usable / 1e9:,.1f}'} |"
            for each in self.directories
        ]
        return "\n".join(lines) + "\n"


def plan_from_json(text: str, *, source: str) -> DiskPlan:
    """``source`` names the file in errors. Raises Refused where it is none, or was changed."""
    try:
        body: Mapping[str, Any] = json.loads(text)
        moves = tuple(map(of_plain, body["moves"]))
        found = DiskPlan(body["goal"], moves, tuple(body["notes"]), body["topic_ids"])
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"{source} holds no plan of disks ({type(error).__name__}: {error})",
            way_out="clear the task 'plan' with its downstream tasks",
        ) from None
    if found.digest != body.get("digest"):
        raise Refused(f"{source} was changed since it was made", way_out="take an untouched copy of the file")
    return found


def to_plain(move: DiskMove) -> list[object]:
    """As plain values, for a file."""
    return [move.broker, list(move.partition), move.source, move.target, move.size]


def of_plain(values: Iterable[Any]) -> DiskMove:
    """Raises ValueError or TypeError for anything but what ``to_plain`` gave."""
    broker, (topic, number), source, target, size = values
    return DiskMove(broker, TopicPartition(topic, number), source, target, size)


@dataclass(frozen=True, slots=True)
class DiskReading:
    """The plan's moves by what is true of each. ``gone``: the replica is no longer on that broker, or its topic was
    made anew. ``foreign``: it lies, or is being copied, where the plan did not put it. ``lost``: brokers that did not
    answer, of moves that are not gone. ``bytes_left``: of the copies that go on. ``logs``: what was read.
    """

    left: tuple[DiskMove, ...]
    moving: tuple[DiskMove, ...]
    there: tuple[DiskMove, ...]
    gone: tuple[DiskMove, ...]
    foreign: tuple[DiskMove, ...]
    lost: tuple[int, ...]
    bytes_left: int
    logs: Logs = field(default_factory=dict, repr=False)

    @property
    def ends(self) -> tuple[DiskMove, ...]:
        """Of what is left, the moves that end a copy."""
        return tuple(each for each in self.left if ends_a_copy(each, self.logs))

    @property
    def stage(self) -> PlanStage:
        if self.foreign:
            return PlanStage.UNKNOWN
        if not self.left and not self.moving and not self.lost:
            return PlanStage.AS_PLANNED
        return PlanStage.MOVING if self.moving or self.there else PlanStage.AS_BEFORE

    def __str__(self) -> str:
        said = f"{len(self.there)} there, {len(self.moving)} moving, {len(self.left)} left"
        said += f", {self.bytes_left / 1e6:,.1f} MB left of them" if self.moving else ""
        said += f", {len(self.gone)} gone" if self.gone else ""
        if self.foreign:
            named = some([f"{m.partition} of broker {m.broker}" for m in self.foreign], SAMPLE)
            said += f", {len(self.foreign)} moved elsewhere by somebody: {named}"
        return said + (f"; {nodes('broker', self.lost, 'does')} not answer" if self.lost else "")


def read_disks(
    plan: DiskPlan,
    logs: Logs,
    topic_ids: Mapping[str, str] | None = None,
    held: Held | None = None,
    *,
    without: Collection[DiskMove] = (),
) -> DiskReading:
    """Where the plan stands. ``topic_ids``: of its topics now, and ``held``: who has which partition by the
    controller, where that was asked: a log that is no replica any more is nobody's (in ZooKeeper mode it may stay), and
    a replica whose directory has failed is not gone; those of a broker that is lost for good are, once others have
    them. ``without``: moves that were found to be gone then.
    """
    anew = made_anew(plan.topic_ids, topic_ids or {})
    found: dict[str, list[DiskMove]] = {each: [] for each in ("left", "moving", "there", "gone", "foreign")}
    lost = set()
    for move in plan.moves:
        is_held = None if held is None else move.broker in held.get(move.partition, ())
        if move in without or move.partition.topic in anew or is_held is False:
            found["gone"].append(move)
            continue
        if move.broker not in logs:
            lost.add(move.broker)
            continue
        mine = logs[move.broker]
        at, copy = mine.placed.get(move.partition), mine.future.get(move.partition)
        if at is None:
            what = "left" if is_held else "gone"
        elif at == move.target:
            # To end a copy, the directory that it fills is the source, and the one where the replica lies the target.
            what = "there" if copy is None else "left" if copy.path == move.source else "foreign"
        elif copy is not None:
            what = "moving" if copy.path == move.target else "foreign"
        else:
            what = "left" if at == move.source else "foreign"
        found[what].append(move)
    kinds = {what: tuple(moves) for what, moves in found.items()}
    left_bytes = sum(_to_copy(move, logs) for move in kinds["moving"])
    return DiskReading(**kinds, lost=tuple(sorted(lost)), bytes_left=left_bytes, logs=logs)


def ends_a_copy(move: DiskMove, logs: Logs) -> bool:
    """Whether this move ends a copy that goes on."""
    copy = logs[move.broker].future.get(move.partition)
    return copy is not None and copy.path == move.source


def _to_copy(move: DiskMove, logs: Logs) -> int:
    """Bytes that its copy still lacks; none where it ends one."""
    mine, copy = logs[move.broker], logs[move.broker].future.get(move.partition)
    if mine.placed.get(move.partition) == move.target:
        return 0
    has = copy.size if copy is not None and copy.path == move.target else 0
    return max(0, mine.sizes.get(move.partition, move.size) - has)


def without_strays(logs: Logs, held: Held) -> tuple[Logs, dict[int, str]]:
    """The same without logs that are no replicas of their broker by the controller; and these in words, by broker. It
    does not move them (AlterReplicaLogDirs answers REPLICA_NOT_AVAILABLE).
    """
    kept, notes = {}, {}
    for broker, mine in logs.items():
        placed = {p: path for p, path in mine.placed.items() if broker in held.get(p, ())}
        kept[broker] = replace(mine, placed=placed)
        if strays := sorted(mine.placed.keys() - placed.keys()):
            notes[broker] = (
                f"broker {broker} has {len(strays)} logs that are no replicas of it any more, and stay where they lie:"
                f" {some(strays, SAMPLE)}"
            )
    return kept, notes


def next_moves(reading: DiskReading, at_once: int, order: Order = Order.NAME) -> tuple[DiskMove, ...]:
    """What to start beside what moves, so many at once for each broker, and as far as the disks have room. What ends a
    copy comes first, whatever moves: it costs nothing. ``order``: which go first of the others; whether any may start
    does not depend on it.
    """
    ends = reading.ends
    left, room = Counter(dict.fromkeys((each.broker for each in reading.left), at_once)), DiskRoom(reading)
    left.subtract(each.broker for each in reading.moving)
    chosen = list(ends)
    copies = set(reading.left).difference(ends)
    for move in sorted(copies, key=lambda each: (order.rank(each.size), each)):
        if left[move.broker] > 0 and room.fits(move):
            left[move.broker] -= 1
            room.take(move)
            chosen.append(move)
    return tuple(chosen)


def without_room(reading: DiskReading) -> tuple[DiskMove, ...]:
    """What is left and would not fit beside what moves, though nothing else were started: others may have used the disk
    since it was planned.
    """
    room = DiskRoom(reading)
    return tuple(each for each in reading.left if not room.fits(each))


class DiskRoom:
    """What may still be written to each volume, beside what moves."""

    def __init__(self, reading: DiskReading) -> None:
        self._logs = reading.logs
        self._volume: dict[tuple[int, str], int] = {}
        self._free: list[float] = []
        for broker, mine in reading.logs.items():
            for group in volumes([each for each in mine.directories if not each.error]):
                self._volume |= {(broker, each.path): len(self._free) for each in group}
                self._free.append(room_of(group))
        for move in reading.moving:
            self.take(move)

    def fits(self, move: DiskMove) -> bool:
        """Where its directory has failed, the broker says so, and not this."""
        size, volume = _to_copy(move, self._logs), self._volume.get((move.broker, move.target))
        return not size or volume is None or size <= self._free[volume]

    def take(self, move: DiskMove) -> None:
        """The room of this move."""
        volume = self._volume.get((move.broker, move.target))
        if volume is not None:
            self._free[volume] -= _to_copy(move, self._logs)


def short_of_room(mine: BrokerLogs, coming: Iterable[tuple[str, int]]) -> list[str]:
    """The volumes of a broker that are filled too far by what comes, in words: a copy lies beside its source until it
    is whole. Directories that may share a volume count as one. ``coming``: directories, and bytes.
    """
    taken = Counter[str]()
    for path, size in coming:
        taken[path] += size
    found = []
    for group in volumes([each for each in mine.directories if not each.error]):
        wanted = sum(taken[each.path] for each in group)
        if wanted > room_of(group):
            where = " and ".join(each.path for each in group if taken[each.path])
            free = min(each.usable for each in group if each.usable is not None)
            found.append(f"broker {mine.broker} is to take {wanted:,} bytes in {where} and has {free:,} free")
    return found


def room_of(volume: Iterable[LogDir]) -> float:
    """The bytes that may be copied to the volume of these directories; without end, where a broker does not say."""
    return min((each.usable for each in volume if each.usable is not None), default=math.inf) * (1 - KEEP_FREE)


def volumes(directories: Iterable[LogDir]) -> list[list[LogDir]]:
    """These directories by the volume that they lie on; those that may share one count as one."""
    groups: list[list[LogDir]] = []
    for each in directories:
        joined = [group for group in groups if any(may_be_one_volume(each, other) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(other for group in joined for other in group), each])
    return groups


def busiest_disks(reading: DiskReading) -> int:
    """The most copies that a broker makes now."""
    return max(Counter(each.broker for each in reading.moving).values(), default=0)
