"""The facts that every reader in these benchmarks must produce, ours and each peer, so that the times compare like with
like.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kraft_runbook.metadata.topic_columns import PartitionColumns, TopicColumns, bounds_of

Partition = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int, int, tuple[int, ...], int]
"""Replicas in order, adding and removing (sorted), leader, leader epoch, ISR (sorted), recovery state."""

SAMPLED_TOPICS = 20


@dataclass(slots=True)
class Facts:
    """What a script would hold: plain dicts. ``ids``: topic name -> id; ``partitions`` and ``configs`` by
    topic name.
    """

    ids: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, dict[int, Partition]] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)

    def partition(self, topic: str, number: int, value: Partition) -> None:
        self.partitions.setdefault(topic, {})[number] = value


@dataclass(frozen=True, slots=True)
class Summary:
    """What two readers' results are held against each other by: all counts, and every fact of some topics, as text."""

    topics: int
    partitions: int
    configs: int
    sample: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """``seconds``: of the work itself, imports and connecting left out; ``note``: what must be said beside the figure.
    ``summary`` None: not whole (sampled).
    """

    seconds: float
    summary: Summary | None
    note: str = ""


def is_sampled(topic: str, topics: int) -> bool:
    """Whether this topic's facts are compared one by one: about 20 of all, by their names alone."""
    return zlib.crc32(topic.encode()) % max(1, topics // SAMPLED_TOPICS) == 0


def summary_of_facts(facts: Facts, topics: int) -> Summary:
    """``topics``: how many the cluster was made with, for the sample."""
    sample: dict[str, Any] = {}
    for name, topic_id in facts.ids.items():
        if is_sampled(name, topics):
            parts = {
                str(number): [list(each) if isinstance(each, tuple) else each for each in value]
                for number, value in facts.partitions[name].items()
            }
            sample[name] = {
                "id": topic_id,
                "partitions": dict(sorted(parts.items())),
                "configs": dict(sorted(facts.configs.get(name, {}).items())),
            }
    counts = len(facts.ids), sum(map(len, facts.partitions.values())), sum(map(len, facts.configs.values()))
    return Summary(*counts, sample)


def summary_of_columns(columns: TopicColumns, topics: int) -> Summary:
    """The same, of columns."""
    held, sample = columns.partitions, {}
    bounds = bounds_of(held.topic, len(columns)).tolist()
    configs = bounds_of(columns.configs.topic, len(columns)).tolist()
    for at, name in enumerate(columns.names):
        if is_sampled(name, topics):
            set_ = range(configs[at], configs[at + 1])
            sample[name] = {
                "id": columns.ids[at],
                "partitions": dict(
                    sorted(
                        (str(held.partition[each]), _partition(held, each))
                        for each in range(bounds[at], bounds[at + 1])
                    )
                ),
                "configs": dict(sorted((columns.configs.name[each], columns.configs.value[each]) for each in set_)),
            }
    return Summary(len(columns), len(held), len(columns.configs.name), sample)


def _partition(held: PartitionColumns, at: int) -> list[Any]:
    replicas, adding, removing, isr = (
        each.values[each.offsets[at] : each.offsets[at + 1]].tolist()
        for each in (held.replicas, held.adding, held.removing, held.isr)
    )
    return [
        replicas,
        sorted(adding),
        sorted(removing),
        int(held.leader[at]),
        int(held.leader_epoch[at]),
        sorted(isr),
        int(held.recovery[at]),
    ]


def joined(summaries: Iterable[Summary]) -> Summary:
    """Of parts, of the whole."""
    parts = list(summaries)
    sample = {name: facts for part in parts for name, facts in part.sample.items()}
    return Summary(
        sum(p.topics for p in parts), sum(p.partitions for p in parts), sum(p.configs for p in parts), sample
    )


def differences(ours: Facts, theirs: Facts) -> int:
    """The dict diff: how many topics, partitions and configs one side lacks or has otherwise."""
    found = sum(ours.ids.get(name) != theirs.ids.get(name) for name in ours.ids.keys() | theirs.ids.keys())
    for left, right in ((ours.partitions, theirs.partitions), (ours.configs, theirs.configs)):
        for name in left.keys() | right.keys():
            here: Mapping[Any, Any] = left.get(name, {})
            there: Mapping[Any, Any] = right.get(name, {})
            if here != there:
                found += sum(here.get(key) != there.get(key) for key in here.keys() | there.keys())
    return found


# -- from the log ------------------------------------------------------------------------------------------------------


class Names(NamedTuple):
    """How a decoder spells the records' fields."""

    topic_id: str
    partition_id: str
    adding: str
    removing: str
    leader_epoch: str
    recovery: str
    resource_type: str
    resource_name: str


CAMEL = Names(
    "topicId",
    "partitionId",
    "addingReplicas",
    "removingReplicas",
    "leaderEpoch",
    "leaderRecoveryState",
    "resourceType",
    "resourceName",
)
SNAKE = Names(
    "topic_id",
    "partition_id",
    "adding_replicas",
    "removing_replicas",
    "leader_epoch",
    "leader_recovery_state",
    "resource_type",
    "resource_name",
)

TOPIC_RESOURCE = 2


class LogScript:
    """Decoded records to facts, as a careful script does it: transactions honoured, changes merged
    (``PartitionRegistration.merge``).
    """

    def __init__(self, names: Names) -> None:
        self.facts = Facts()
        self.records = 0
        self._names = names
        self._topics: dict[Any, str] = {}
        self._held: list[tuple[str, Mapping[str, Any]]] | None = None

    def take(self, kind: str, data: Mapping[str, Any]) -> None:
        """One record. ``kind`` as kafka-dump-log names it; ``topic id`` values as Kafka writes ids."""
        self.records += 1
        if kind == "BEGIN_TRANSACTION_RECORD":
            self._held = []
        elif kind == "ABORT_TRANSACTION_RECORD":
            self._held = None
        elif kind == "END_TRANSACTION_RECORD":
            held, self._held = self._held or [], None
            for each in held:
                self._apply(*each)
        elif self._held is not None:
            self._held.append((kind, data))
        else:
            self._apply(kind, data)

    def _apply(self, kind: str, data: Mapping[str, Any]) -> None:
        names, facts = self._names, self.facts
        if kind == "PARTITION_RECORD":
            facts.partition(
                self._topics[data[names.topic_id]],
                data[names.partition_id],
                (
                    tuple(data["replicas"]),
                    tuple(sorted(data[names.adding])),
                    tuple(sorted(data[names.removing])),
                    data["leader"],
                    data[names.leader_epoch],
                    tuple(sorted(data["isr"])),
                    data.get(names.recovery, 0),
                ),
            )
        elif kind == "TOPIC_RECORD":
            self._topics[data[names.topic_id]] = data["name"]
            facts.ids[data["name"]] = data[names.topic_id]
        elif kind == "CONFIG_RECORD" and data[names.resource_type] == TOPIC_RESOURCE:
            configs = facts.configs.setdefault(data[names.resource_name], {})
            if data["value"] is None:
                configs.pop(data["name"], None)
            else:
                configs[data["name"]] = data["value"]
        elif kind == "PARTITION_CHANGE_RECORD":
            self._change(data)
        elif kind == "REMOVE_TOPIC_RECORD":
            name = self._topics.pop(data[names.topic_id])
            for held in (facts.ids, facts.partitions, facts.configs):
                held.pop(name, None)

    def _change(self, data: Mapping[str, Any]) -> None:
        names = self._names
        partitions = self.facts.partitions[self._topics[data[names.topic_id]]]
        replicas, adding, removing, leader, leader_epoch, isr, recovery = partitions[data[names.partition_id]]
        replicas = replicas if data.get("replicas") is None else tuple(data["replicas"])
        adding = adding if data.get(names.adding) is None else tuple(sorted(data[names.adding]))
        removing = removing if data.get(names.removing) is None else tuple(sorted(data[names.removing]))
        isr = isr if data.get("isr") is None else tuple(sorted(data["isr"]))
        if data.get("leader", -2) != -2:
            leader, leader_epoch = data["leader"], leader_epoch + 1
        if data.get(names.recovery, -1) != -1:
            recovery = data[names.recovery]
        partitions[data[names.partition_id]] = (replicas, adding, removing, leader, leader_epoch, isr, recovery)
