"""What a step down of metadata.version would lose, counted in the real log by kind of record.

By state, as the image writers' ``handleLoss`` (Kafka 3.9 and 4.x, ``metadata/image``): below a level, what it brought
can't be written. No server lowers across a level that changed metadata, so this explains a refusal; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_index import index_records
from kraft_runbook.metadata.log.record_schemas import RecordType, decode
from kraft_runbook.metadata.log.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Loss:
    """What would be lost below ``level``: how many of which kind. ``silent``: Kafka itself would not say so."""

    level: int
    count: int
    what: str
    silent: bool = False

    def __str__(self) -> str:
        return f"{self.count} {self.what} (level {self.level}{', without a word' if self.silent else ''})"


@dataclass(slots=True)
class Held:
    """What the records applied so far hold of each kind that a level brought."""

    stopping: set[int] = field(default_factory=set)
    migrated: bool = False
    scram: set[tuple[str, int]] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    controllers: set[int] = field(default_factory=set)
    cordoned: dict[int, int] = field(default_factory=dict)
    log_dirs: dict[int, int] = field(default_factory=dict)
    topics: dict[str, UUID] = field(default_factory=dict)
    assigned: dict[tuple[UUID, int], int] = field(default_factory=dict)
    """The replicas of each partition that are assigned to a directory."""
    elr: dict[tuple[UUID, int], int] = field(default_factory=dict)
    """The members of each partition's eligible and last known leader replicas."""
    _transactions: Transactions = field(default_factory=Transactions)

    def apply(self, chunk: Chunk) -> None:
        """Read a chunk. A snapshot is a whole state: it replaces this one."""
        if chunk.snapshot is not None and chunk.begins:
            empty = Held()
            for name in self.__slots__:
                setattr(self, name, getattr(empty, name))
        records = index_records(chunk)
        wanted = records.take(np.isin(records.api_key, _WANTED)).records()
        for _, record in self._transactions.effective(wanted):
            _APPLY[RecordType(record.api_key)](self, decode(record))

    def below(self, now: int, target: int) -> tuple[Loss, ...]:
        """What a step from level ``now`` down to ``target`` would lose: kinds that are held, in order of their
        level.
        """
        return tuple(loss for loss in self._losses() if loss.count and target < loss.level <= now)

    def _losses(self) -> Iterator[Loss]:
        yield Loss(7, len(self.stopping), "brokers in controlled shutdown")
        yield Loss(8, int(self.migrated), "state of the migration from ZooKeeper")
        yield Loss(11, len(self.scram), "SCRAM credentials")
        yield Loss(14, len(self.tokens), "delegation tokens")
        yield Loss(15, len(self.controllers), "registrations of controllers")
        yield Loss(17, sum(self.log_dirs.values()), "log directories of brokers")
        yield Loss(17, sum(self.assigned.values()), "replicas assigned to a directory")
        yield Loss(23, sum(self.elr.values()), "eligible leader replicas", silent=True)
        yield Loss(30, sum(self.cordoned.values()), "cordoned log directories")

    # -- records -------------------------------------------------------------------------------------------------------

    def register_broker(self, values: Mapping[str, Any]) -> None:
        self.log_dirs[values["broker_id"]] = len(values["log_dirs"] or ())
        self.cordoned[values["broker_id"]] = len(values["cordoned_log_dirs"] or ())
        self._stopping(values["broker_id"], 1 if values["in_controlled_shutdown"] else -1)

    def unregister_broker(self, values: Mapping[str, Any]) -> None:
        self.log_dirs.pop(values["broker_id"], None)
        self.cordoned.pop(values["broker_id"], None)
        self.stopping.discard(values["broker_id"])

    def change_broker(self, values: Mapping[str, Any]) -> None:
        if values["log_dirs"]:
            self.log_dirs[values["broker_id"]] = len(values["log_dirs"])
        if values["cordoned_log_dirs"] is not None:  # null: no change
            self.cordoned[values["broker_id"]] = len(values["cordoned_log_dirs"])
        self._stopping(values["broker_id"], values["in_controlled_shutdown"])

    def _stopping(self, broker_id: int, change: int) -> None:
        if change > 0:
            self.stopping.add(broker_id)
        elif change < 0:
            self.stopping.discard(broker_id)

    def register_controller(self, values: Mapping[str, Any]) -> None:
        self.controllers.add(values["controller_id"])

    def unregister_controller(self, values: Mapping[str, Any]) -> None:
        self.controllers.discard(values["controller_id"])

    def add_scram(self, values: Mapping[str, Any]) -> None:
        self.scram.add((values["name"], values["mechanism"]))

    def remove_scram(self, values: Mapping[str, Any]) -> None:
        self.scram.discard((values["name"], values["mechanism"]))

    def add_token(self, values: Mapping[str, Any]) -> None:
        self.tokens.add(values["token_id"])

    def remove_token(self, values: Mapping[str, Any]) -> None:
        self.tokens.discard(values["token_id"])

    def migration(self, values: Mapping[str, Any]) -> None:
        self.migrated = values["zk_migration_state"] != 0

    def topic(self, values: Mapping[str, Any]) -> None:
        self.topics[values["name"]] = values["topic_id"]

    def remove_topic(self, values: Mapping[str, Any]) -> None:
        gone = values["topic_id"]
        self.topics = {name: each for name, each in self.topics.items() if each != gone}
        for held in (self.assigned, self.elr):
            for key in [key for key in held if key[0] == gone]:
                del held[key]

    def partition(self, values: Mapping[str, Any]) -> None:
        key = (values["topic_id"], values["partition_id"])
        if values["directories"] is not None:
            self.assigned[key] = sum(each.int >= _RESERVED for each in values["directories"])
        eligible, last = values["eligible_leader_replicas"], values["last_known_elr"]
        if eligible is not None or last is not None:
            self.elr[key] = len(eligible or ()) + len(last or ())

    def clear_elr(self, values: Mapping[str, Any]) -> None:
        """Of one topic, or without a name of all."""
        cleared = self.topics.get(values["topic_name"]) if values["topic_name"] else None
        for key in [key for key in self.elr if cleared is None or key[0] == cleared]:
            del self.elr[key]


_RESERVED = 100
"""Ids below are no directory's: MIGRATING 0, UNASSIGNED 1, LOST 2 (``DirectoryId.reserved``)."""
_APPLY = {
    RecordType.REGISTER_BROKER: Held.register_broker,
    RecordType.UNREGISTER_BROKER: Held.unregister_broker,
    RecordType.BROKER_REGISTRATION_CHANGE: Held.change_broker,
    RecordType.REGISTER_CONTROLLER: Held.register_controller,
    RecordType.UNREGISTER_CONTROLLER: Held.unregister_controller,
    RecordType.USER_SCRAM_CREDENTIAL: Held.add_scram,
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL: Held.remove_scram,
    RecordType.DELEGATION_TOKEN: Held.add_token,
    RecordType.REMOVE_DELEGATION_TOKEN: Held.remove_token,
    RecordType.ZK_MIGRATION_STATE: Held.migration,
    RecordType.TOPIC: Held.topic,
    RecordType.REMOVE_TOPIC: Held.remove_topic,
    RecordType.PARTITION: Held.partition,
    RecordType.PARTITION_CHANGE: Held.partition,
    RecordType.CLEAR_ELR: Held.clear_elr,
}
_WANTED = (*_APPLY, RecordType.BEGIN_TRANSACTION, RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION)


def read_held(chunks: Iterable[Chunk]) -> Held:
    """What these chunks hold."""
    held = Held()
    for chunk in chunks:
        held.apply(chunk)
    return held
