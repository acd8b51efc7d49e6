"""The JSON that kafka-reassign-partitions reads and writes (``--reassignment-json-file``), version 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.errors import Refused

ANY_DIRECTORY = "any"


def to_json(assignment: Assignment) -> str:
    """The assignment as kafka-reassign-partitions ``--execute`` takes it."""
    partitions = [
        {"topic": p.topic, "partition": p.partition, "replicas": list(assignment[p])} for p in sorted(assignment)
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def from_json(
    text: str, *, source: str, ignored: Callable[[str], object] | None = None
) -> dict[TopicPartition, Replicas]:
    """What such a file says. ``source`` names it in errors.

    Empty lists and repeated brokers are read as they stand: ``refusals`` names them. This tool moves replicas between
    brokers alone, and Kafka 4.2's ``--generate`` writes the log directory of each replica into the present assignment:
    directories are left out where ``ignored`` takes the sentence that says so, and refused without it. Raises Refused
    for what is no such file, for a partition that is named twice, and for such a directory other than "any".
    """

    def refuse(problem: str, way_out: str) -> Refused:
        return Refused(f"{source}: {problem}", way_out=way_out)

    try:
        document = json.loads(text)
        version, partitions = document.get("version", 1), document["partitions"]
        entries = [entry_of(each) for each in partitions]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise refuse(
            f"this is no plan of kafka-reassign-partitions ({type(error).__name__}: {error})",
            'write {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}',
        ) from None
    if version != 1 or isinstance(version, bool):
        raise refuse(f"version {version!r} is not known", "write version 1")
    found: dict[TopicPartition, Replicas] = {}
    in_directories = 0
    for partition, replicas, log_dirs in entries:
        if partition in found:
            raise named_twice(partition, source=source)
        if set(log_dirs) - {ANY_DIRECTORY}:
            if ignored is None:
                raise refuse(
                    f"{partition} names log directories, and this tool moves replicas between brokers alone",
                    "leave log_dirs out here, and give the file to move_between_disks once the replicas are there",
                )
            in_directories += 1
        found[partition] = replicas
    if in_directories and ignored is not None:
        ignored(
            f"{source}: the log directories of {in_directories} partitions are ignored. Replicas are moved between"
            " brokers alone; each broker chooses the directory of a replica that comes to it"
        )
    return found


def named_twice(partition: TopicPartition, *, source: str) -> Refused:
    """Which of the entries is meant, nobody knows."""
    problem = f"{source}: {partition} is named twice; Kafka would take the last"
    return Refused(problem, way_out="name each partition once")


def entry_of(entry: Mapping[str, Any]) -> tuple[TopicPartition, Replicas, Sequence[str]]:
    """The partition that an entry of such a file names, its replicas, and their log directories (none: not named).
    Nothing is read as what it is not: a text as the brokers of its digits. Raises KeyError or TypeError for what is no
    such entry.
    """
    topic, partition, replicas = entry["topic"], entry["partition"], entry["replicas"]
    log_dirs = entry.get("log_dirs") or []
    if not isinstance(topic, str) or not _are_ids([partition]):
        raise TypeError(f"topic {topic!r}, partition {partition!r}")
    if not _are_ids(replicas):
        raise TypeError(f"replicas {replicas!r} of {topic}-{partition}")
    if not isinstance(log_dirs, list) or not all(isinstance(each, str) for each in log_dirs):
        raise TypeError(f"log_dirs {log_dirs!r} of {topic}-{partition}")
    return TopicPartition(topic, partition), tuple(replicas), log_dirs


def _are_ids(found: object) -> bool:
    """A list of whole numbers: true is one to Python."""
    return isinstance(found, list) and all(isinstance(each, int) and not isinstance(each, bool) for each in found)
